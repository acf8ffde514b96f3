/* call_record.h - a worker's last calls in a few bytes, so that other workers can report what it
 * did.
 *
 * Every worker has the history of a group's calls where others can read it (shared memory), or
 * sends it when asked (watch.h); over TCP it also sends it when it leaves (tcp.c). Every call is
 * added to it, in a few nanoseconds. Two histories are compared where both have a call: the first
 * call that differs is what two workers disagree about, even when both have gone on since.
 */
#ifndef LS_COLL_CALL_RECORD_H
#define LS_COLL_CALL_RECORD_H

#include "coll/algo/algorithm.h"

enum { LS_CALLS_REMEMBERED = 16, LS_BLOCKS_SHOWN = 6 };

/* Where in the user's program a call stands. */
typedef struct ls_call_site {
    const char *file; /* NULL: not known */
    int line;
} ls_call_site;

/* One call. */
typedef struct ls_record {
    uint32_t number;
    uint8_t what, dtype, op, form;
    int32_t root, line;
    uint64_t count; /* in uneven forms, of all blocks together */
    uint64_t print; /* of this call alone */
    union {
        uint64_t blocks[LS_BLOCKS_SHOWN]; /* where they are uneven */
        char by[LS_BLOCKS_SHOWN * 8];     /* else the name of the caller's own reduction */
    };
    uint32_t nblocks;    /* 0: they are even */
    char file[32];       /* the end of its name */
    uint16_t own_nbytes; /* of an element of the caller's own reduction; 0: it is dtype and op */
} ls_record;

/* A single message on its way. */
typedef struct ls_single {
    int32_t peer, line;
    uint64_t nbytes;
    char file[32];
} ls_single;

/* Where a worker waits, once it has waited for a while. */
typedef enum ls_waiting {
    LS_WAITS_NOT,
    LS_WAITS_IN_CALL, /* the last one that it has made */
    LS_WAITS_TO_SEND,
    LS_WAITS_TO_RECEIVE
} ls_waiting;

/* In call `number`, worker `to` expects another count than worker `from` sends to it. */
typedef struct ls_miscount {
    bool found;
    uint8_t what, dtype; /* of that call */
    int from, to;
    uint32_t number;
    uint64_t sent, expected;
} ls_miscount;

/* The fields before `last` change together. */
typedef struct ls_history {
    uint32_t group;                      /* which of the groups that have had this number */
    uint32_t calls;                      /* that the worker has made in this group */
    uint32_t done;                       /* all before this one are done */
    uint32_t waiting;                    /* ls_waiting */
    ls_single single;                    /* that it waits for */
    ls_record last[LS_CALLS_REMEMBERED]; /* call c is last[c % LS_CALLS_REMEMBERED] */
} ls_history;

/* Fills in the record of a call in a group of n. */
void ls_record_set(ls_record *, const ls_call *, int n, uint32_t number, uint64_t print,
                   ls_call_site);
void ls_record_set_file(char name[32], const char *file);
/* "all_reduce f32 sum, 1000 elements as call 5 at train.c:40" */
void ls_record_text(const ls_record *, char *text, size_t nbytes);
/* Are their texts the same, except for the place? */
bool ls_record_reads_as(const ls_record *, const ls_record *);
/* "recv of 4000 bytes from worker 1 at train.c:41" */
void ls_single_text(const ls_single *, bool receives, char *text, size_t nbytes);

/* "train.c:40" */
void ls_record_place(const ls_record *, char *text, size_t nbytes);
/* Adds the next call. The worker is no longer waiting. */
void ls_history_add(ls_history *, const ls_record *);
/* NULL: it was not made, or is no longer remembered. */
const ls_record *ls_history_call(const ls_history *, uint32_t number);
/* The number of the first call that both remember, and that differs; -1: there is none. Histories
 * of two groups don't differ. */
int64_t ls_history_differs(const ls_history *, const ls_history *);

/* The state of a process of this host: "running", "sleeping", "stopped", "gone", ... */
const char *ls_process_state(int pid);

/* A worker that others wait for. */
typedef struct ls_late {
    int rank, pid;
    const char *host; /* NULL: this one */
    const char *state;
    const ls_history *history; /* NULL: it did not answer */
    bool not_joined;           /* it has no process yet */
} ls_late;

/* `heading`, and a line for each late worker, with its place. */
void ls_late_report(const char *heading, const ls_late *late, int nlate, char *text, size_t nbytes);

#endif
