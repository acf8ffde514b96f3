/* record.c - see record.h. */
#include "coll/record.h"

#include <stdio.h>
#include <string.h>

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
    if (!file) file = "?";
    size_t n = strlen(file), most = sizeof r->file - 1;
    memcpy(r->file, n > most ? file + n - most : file, (n > most ? most : n) + 1);
}

void ls_record_text(const ls_record *r, char *text, size_t nbytes) {
    ls_collective what = (ls_collective)(r->what % LS_NCALLS);
    char op[16] = "", root[32] = "", file[sizeof r->file];
    memcpy(file, r->file, sizeof file);
    file[sizeof file - 1] = 0;
    const char *slash = strrchr(file, '/'), *name = slash ? slash + 1 : file;
    if (ls_collective_reduces(what)) snprintf(op, sizeof op, " %s", ls_op_name((ls_op)r->op));
    bool rooted = what == LS_CALL_BROADCAST || what == LS_CALL_REDUCE || what == LS_CALL_GATHER ||
                  what == LS_CALL_SCATTER;
    if (rooted) snprintf(root, sizeof root, ", root %d", r->root);
    if (what == LS_CALL_BARRIER)
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

void ls_late_report(const ls_record *call, double waited_s, int size, const ls_late *late,
                    int nlate, char *text, size_t nbytes) {
    char what[256], last[256], line[640];
    ls_record_text(call, what, sizeof what);
    snprintf(line, sizeof line,
             "%d of %d workers have waited %.0f s in %s for the other%s:", size - nlate, size,
             waited_s, what, nlate == 1 ? "" : "s");
    size_t at = put(text, nbytes, 0, line);
    for (int i = 0; i < nlate; i++) {
        const ls_late *l = &late[i];
        const char *does = l->unknown        ? "it does not answer"
                           : !l->last.calls  ? "it has made no call yet"
                           : l->last.waiting ? "it waits in "
                                             : "it has made ";
        bool tell = !l->unknown && l->last.calls;
        if (tell) ls_record_text(&l->last, last, sizeof last);
        snprintf(line, sizeof line, "\n  worker %d (%s%spid %d) is %s; %s%s", l->rank,
                 l->host ? l->host : "", l->host ? ", " : "", l->pid, l->state, does,
                 tell ? last : "");
        at = put(text, nbytes, at, line);
    }
}
