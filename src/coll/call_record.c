/* call_record.c - see call_record.h. */
#include "coll/call_record.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/escape.h"
#include "base/file.h"
#include "base/plural.h"

void ls_record_set_file(char name[32], const char *file) {
    if (!file) file = "?";
    size_t n = strlen(file), most = 31;
    memcpy(name, n > most ? file + n - most : file, (n > most ? most : n) + 1);
}

void ls_record_set(ls_record *r, const ls_call *c, int n, uint32_t number, uint64_t print,
                   ls_call_site site) {
    r->number = number;
    r->what = (uint8_t)c->what;
    r->dtype = c->by ? 0 : (uint8_t)c->dtype;
    r->op = c->by ? 0 : (uint8_t)c->op;
    r->own_nbytes = c->by ? (uint16_t)c->by->element_nbytes : 0;
    if (c->by && !c->counts) snprintf(r->by, sizeof r->by, "%s", c->by->name);
    r->form = (uint8_t)c->form;
    r->root = c->root;
    r->line = site.line;
    r->count = c->count;
    r->print = print;
    r->nblocks = c->counts ? (uint32_t)n : 0;
    for (int i = 0; c->counts && i < n; i++) {
        r->count = (i ? r->count : 0) + c->counts[i];
        if (i < LS_BLOCKS_SHOWN) r->blocks[i] = c->counts[i];
    }
    ls_record_set_file(r->file, site.file);
}

void ls_history_add(ls_history *h, const ls_record *r) {
    h->last[r->number % LS_CALLS_REMEMBERED] = *r;
    h->calls = r->number + 1;
    h->waiting = LS_WAITS_NOT;
}

const ls_record *ls_history_call(const ls_history *h, uint32_t number) {
    const ls_record *r = &h->last[number % LS_CALLS_REMEMBERED];
    bool is_remembered = h->calls - number - 1 < LS_CALLS_REMEMBERED; /* numbers wrap around */
    return is_remembered && r->number == number ? r : NULL;
}

int64_t ls_history_differs(const ls_history *a, const ls_history *b) {
    if (a->group != b->group) return -1;
    uint32_t ahead = a->calls - b->calls; /* numbers wrap around */
    uint32_t end = ahead < UINT32_MAX / 2 ? b->calls : a->calls;
    for (uint32_t back = LS_CALLS_REMEMBERED; back > 0; back--) {
        const ls_record *x = ls_history_call(a, end - back), *y = ls_history_call(b, end - back);
        if (x && y && x->print != y->print) return end - back;
    }
    return -1;
}

/* Records come from other workers. */
static const char *base_name(const char file[32], char copy[32]) {
    memcpy(copy, file, 32);
    copy[31] = 0;
    return ls_file_name(copy);
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

/* "reduce_scatter_v", "group_split": as the user called it. */
static const char *call_name(const ls_record *r, char name[40]) {
    if (r->form == LS_FORM_SPLIT) return "group_split";
    if (r->form == LS_FORM_DUP) return "group_dup";
    if (r->form == LS_FORM_COMPRESSED) return "all_reduce_compressed";
    if (r->form == LS_FORM_VIRTUAL) return "all_reduce_virtual";
    snprintf(name, 40, "%s%s", ls_collective_name((ls_collective)(r->what % LS_NCALLS)),
             r->nblocks ? "_v" : "");
    return name;
}

/* ", 15 elements in blocks of 3, 5, 7" */
static void put_elements(const ls_record *r, char *text, size_t nbytes) {
    int at = snprintf(text, nbytes, ", %llu element%s", (unsigned long long)r->count,
                      ls_plural((int64_t)r->count));
    for (uint32_t i = 0; i < r->nblocks && i < LS_BLOCKS_SHOWN && (size_t)at < nbytes; i++)
        at += snprintf(text + at, nbytes - (size_t)at, "%s%llu", i ? ", " : " in blocks of ",
                       (unsigned long long)r->blocks[i]);
    if (r->nblocks > LS_BLOCKS_SHOWN && (size_t)at < nbytes)
        snprintf(text + at, nbytes - (size_t)at, ", ...");
}

/* " f32 sum", or " of 24-byte elements by 'moments'" */
static void put_operation(const ls_record *r, char *text, size_t nbytes) {
    bool reduces = ls_collective_reduces((ls_collective)(r->what % LS_NCALLS));
    if (!r->own_nbytes) {
        snprintf(text, nbytes, " %s%s%s", ls_dtype_name((ls_dtype)r->dtype), reduces ? " " : "",
                 reduces ? ls_op_name((ls_op)r->op) : "");
        return;
    }
    int n = snprintf(text, nbytes, " of %u-byte elements", (unsigned)r->own_nbytes);
    if (!r->nblocks && n > 0 && (size_t)n < nbytes)
        snprintf(text + n, nbytes - (size_t)n, " by '%.31s'", r->by);
}

void ls_record_text(const ls_record *r, char *text, size_t nbytes) {
    ls_collective what = (ls_collective)(r->what % LS_NCALLS);
    char name[40], op[80] = "", root[32] = "", elements[160] = "", file[sizeof r->file];
    bool sized = r->form != LS_FORM_SPLIT && r->form != LS_FORM_DUP;
    bool plain = sized && what != LS_CALL_BARRIER;
    int at = snprintf(text, nbytes, "%s", call_name(r, name));
    put_operation(r, op, sizeof op);
    bool rooted = what == LS_CALL_BROADCAST || what == LS_CALL_REDUCE || what == LS_CALL_GATHER ||
                  what == LS_CALL_SCATTER || what == LS_CALL_GATHER_V || what == LS_CALL_SCATTER_V;
    if (rooted) snprintf(root, sizeof root, ", root %d", r->root);
    if (!ls_collective_is_pairwise(what)) put_elements(r, elements, sizeof elements);
    if (plain && (size_t)at < nbytes)
        at += snprintf(text + at, nbytes - (size_t)at, "%s%s%s", op, elements, root);
    if ((size_t)at < nbytes)
        snprintf(text + at, nbytes - (size_t)at, " as call %u at %s:%d", r->number,
                 base_name(r->file, file), r->line);
}

bool ls_record_reads_as(const ls_record *a, const ls_record *b) {
    return a->what == b->what && a->dtype == b->dtype && a->op == b->op && a->form == b->form &&
           a->own_nbytes == b->own_nbytes && a->root == b->root && a->count == b->count &&
           a->nblocks == b->nblocks && memcmp(a->blocks, b->blocks, sizeof a->blocks) == 0;
}

static const char UNKNOWN[] = "in an unknown state";

const char *ls_process_state(int pid) {
    char path[64], line[512] = "";
    snprintf(path, sizeof path, "/proc/%d/stat", pid);
    int fd = open(path, O_RDONLY | O_CLOEXEC); /* not fopen(), which allocates */
    /* Without /proc, or with no descriptor left, a process can still be known to live. */
    if (fd < 0) return kill(pid, 0) != 0 && errno == ESRCH ? "gone" : UNKNOWN;
    ssize_t n = read(fd, line, sizeof line - 1);
    close(fd);
    if (n < 0) return "gone"; /* it ended meanwhile */
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
    default: return UNKNOWN;
    }
}

/* Appends a line, if there is room for all of it. Names in it may contain line breaks. */
static size_t put(char *text, size_t nbytes, size_t at, const char *line) {
    char escaped[1024];
    size_t n = ls_escape(LS_ESCAPE_LINE, line, strlen(line), escaped, sizeof escaped);
    if (at + n + 2 > nbytes) return at;
    if (at) text[at++] = '\n';
    memcpy(text + at, escaped, n + 1);
    return at + n;
}

/* "it waits in recv of ..." */
static void where(const ls_late *l, char *text, size_t nbytes) {
    char what[320] = "";
    const ls_history *h = l->history;
    const ls_record *r = h && h->calls ? ls_history_call(h, h->calls - 1) : NULL;
    bool single = h && (h->waiting == LS_WAITS_TO_SEND || h->waiting == LS_WAITS_TO_RECEIVE);
    const char *does = !h                               ? "it does not answer"
                       : single                         ? "it waits in "
                       : !r                             ? "it has made no call yet"
                       : h->waiting == LS_WAITS_IN_CALL ? "it waits in "
                                                        : "it has made ";
    if (single)
        ls_single_text(&h->single, h->waiting == LS_WAITS_TO_RECEIVE, what, sizeof what);
    else if (r)
        ls_record_text(r, what, sizeof what);
    snprintf(text, nbytes, "%s%s", does, what);
}

void ls_late_report(const char *heading, const ls_late *late, int nlate, char *text,
                    size_t nbytes) {
    size_t at = put(text, nbytes, 0, heading);
    for (int i = 0; i < nlate; i++) {
        const ls_late *l = &late[i];
        char place[400], line[720];
        where(l, place, sizeof place);
        if (!l->not_joined)
            snprintf(line, sizeof line, "  worker %d (%s%spid %d) is %s; %s", l->rank,
                     l->host ? l->host : "", l->host ? ", " : "", l->pid, l->state, place);
        else
            snprintf(line, sizeof line, "  worker %d has not joined the group yet", l->rank);
        at = put(text, nbytes, at, line);
    }
}
