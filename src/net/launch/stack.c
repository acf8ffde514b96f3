/* stack.c - see stack.h. The one file that knows elfutils' libdw. */
#include "net/launch/stack.h"

#include <elfutils/libdwfl.h>
#include <stdio.h>
#include <string.h>

typedef struct walk {
    Dwfl *dwfl;
    char *text;
    size_t nbytes, at;
    int most, n;
} walk;

/* The symbols in the files themselves suffice; libdw would look for others on the network. */
static int no_debuginfo(Dwfl_Module *m, void **data, const char *name, Dwarf_Addr base,
                        const char *file, const char *link, GElf_Word crc, char **path) {
    (void)m, (void)data, (void)name, (void)base, (void)file, (void)link, (void)crc, (void)path;
    return -1;
}

/* A frame that has made a call holds the return address; the call itself is just before it. */
static int on_frame(Dwfl_Frame *f, void *arg) {
    walk *w = arg;
    Dwarf_Addr pc = 0;
    bool is_call = false;
    if (w->n == w->most || !dwfl_frame_pc(f, &pc, &is_call)) return DWARF_CB_ABORT;
    if (!is_call) pc--;
    Dwfl_Module *m = dwfl_addrmodule(w->dwfl, pc);
    const char *name = m ? dwfl_module_addrname(m, pc) : NULL;
    int wrote = snprintf(w->text + w->at, w->nbytes - w->at, "%s%s", w->n++ ? " < " : "",
                         name ? name : "?");
    w->at += (size_t)wrote;
    if (w->at < w->nbytes) return DWARF_CB_OK;
    w->at = w->nbytes - 1;
    return DWARF_CB_ABORT;
}

void ls_stack_text(pid_t pid, int most, char *text, size_t nbytes) {
    static const Dwfl_Callbacks how = {.find_elf = dwfl_linux_proc_find_elf,
                                       .find_debuginfo = no_debuginfo};
    walk w = {.dwfl = dwfl_begin(&how), .text = text, .nbytes = nbytes, .most = most};
    text[0] = 0;
    if (!w.dwfl) return;
    if (dwfl_linux_proc_report(w.dwfl, pid) == 0 && dwfl_report_end(w.dwfl, NULL, NULL) == 0 &&
        dwfl_linux_proc_attach(w.dwfl, pid, false) == 0)
        dwfl_getthread_frames(w.dwfl, pid, on_frame, &w);
    dwfl_end(w.dwfl);
}
