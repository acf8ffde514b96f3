/* record.c - see record.h. */
#include "coll/record.h"

#include <stdio.h>
#include <string.h>

void ls_record_set_file(char name[32], const char *file) {
    if (!file) file = "?";
    size_t n = strlen(file), most = 31;
    memcpy(name, n > most ? file + n - most : file, (n > most ? most : n) + 1);
}

void ls_record_set(ls_record *r, const ls_call *c, uint32_t number, uint64_t print,
                   const char *file, int line) {
    r->calls = number + 1;
    r->what = (uint8_t)c->what;
    r->dtype = (uint8_t)c->dtype;
    r->op = (uint8_t)c->op;
    r->root = c->root;
    r->line = line;
    r->count = c->count;
    r->print = print;
    r->waiting = LS_WAITS_NOT;
    ls_record_set_file(r->file, file);
}

/* Records come from other workers. */
static const char *base_name(const char file[32], char copy[32]) {
    memcpy(copy, file, 32);
    copy[31] = 0;
    const char *slash = strrchr(copy, '/');
    return slash ? slash + 1 : copy;
}

void ls_single_text(const ls_single *m, bool receives, char *text, size_t nbytes) {
    char file[32];
    snprintf(text, nbytes, "%s of %llu bytes %s worker %d at %s:%d", receives ? "recv" : "send",
             (unsigned long long)m->nbytes, receives ? "from" : "to", m->peer,
             base_name(m->file, file), m->line);
}

void ls_record_place(const ls_record *r, char *text, size_t nbytes) {
    char file[sizeof r->file];
    snprintf(text, nbytes, "%s:%d", base_name(r->file, file), r->line);
}

void ls_record_text(const ls_record *r, char *text, size_t nbytes) {
    ls_collective what = (ls_collective)(r->what % LS_NCALLS);
    char op[16] = "", root[32] = "", file[sizeof r->file];
    const char *name = base_name(r->file, file);
    if (ls_collective_reduces(what)) snprintf(op, sizeof op, " %s", ls_op_name((ls_op)r->op));
    bool rooted = what == LS_CALL_BROADCAST || what == LS_CALL_REDUCE || what == LS_CALL_GATHER ||
                  what == LS_CALL_SCATTER;
    if (rooted) snprintf(root, sizeof root, ", root %d", r->root);
    if (ls_collective_is_pairwise(what))
        snprintf(text, nbytes, "%s %s%s as call %u at %s:%d", ls_collective_name(what),
                 ls_dtype_name((ls_dtype)r->dtype), root, r->calls - 1, name, r->line);
    else if (what == LS_CALL_BARRIER)
        snprintf(text, nbytes, "barrier as call %u at %s:%d", r->calls - 1, name, r->line);
    else
        snprintf(text, nbytes, "%s %s%s, %llu elements%s as call %u at %s:%d",
                 ls_collective_name(what), ls_dtype_name((ls_dtype)r->dtype), op,
                 (unsigned long long)r->count, root, r->calls - 1, name, r->line);
}

const char *ls_process_state(int pid) {
    char path[64], line[512] = "";
    snprintf(path, sizeof path, "/proc/%d/stat", pid);
    FILE *f = fopen(path, "r");
    if (!f) return "gone";
    size_t n = fread(line, 1, sizeof line - 1, f);
    fclose(f);
    line[n] = 0;
    const char *state = strrchr(line, ')'); /* the name may have blanks and brackets */
    switch (state && state[1] ? state[2] : '?') {
    case 'R': return "running";
    case 'S': return "sleeping";
    case 'D': return "waiting for a disk";
    case 'T': return "stopped";
    case 't': return "stopped by a debugger";
    case 'Z':
    case 'X': return "gone";
    default: return "in an unknown state";
    }
}

static size_t put(char *text, size_t nbytes, size_t at, const char *line) {
    size_t n = strlen(line);
    if (at + n + 1 > nbytes) return at;
    memcpy(text + at, line, n + 1);
    return at + n;
}

/* "it waits in recv of ..." */
static void where(const ls_late *l, char *text, size_t nbytes) {
    char what[256] = "";
    const ls_record *r = &l->last;
    bool single = r->waiting == LS_WAITS_TO_SEND || r->waiting == LS_WAITS_TO_RECEIVE;
    const char *does = l->unknown                       ? "it does not answer"
                       : single                         ? "it waits in "
                       : !r->calls                      ? "it has made no call yet"
                       : r->waiting == LS_WAITS_IN_CALL ? "it waits in "
                                                        : "it has made ";
    if (!l->unknown && single)
        ls_single_text(&r->single, r->waiting == LS_WAITS_TO_RECEIVE, what, sizeof what);
    else if (!l->unknown && r->calls)
        ls_record_text(r, what, sizeof what);
    snprintf(text, nbytes, "%s%s", does, what);
}

void ls_late_report(const char *heading, const ls_late *late, int nlate, char *text,
                    size_t nbytes) {
    size_t at = put(text, nbytes, 0, heading);
    for (int i = 0; i < nlate; i++) {
        const ls_late *l = &late[i];
        char place[320], line[640];
        where(l, place, sizeof place);
        snprintf(line, sizeof line, "\n  worker %d (%s%spid %d) is %s; %s", l->rank,
                 l->host ? l->host : "", l->host ? ", " : "", l->pid, l->state, place);
        at = put(text, nbytes, at, line);
    }
}
