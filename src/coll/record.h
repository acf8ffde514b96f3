/* record.h - a call in a few bytes, so that other workers can tell what this one is doing.
 *
 * Every worker keeps the record of its last call where others can read it (shared memory), or hands
 * it out when asked (watch.h). It is written at every call, and costs a few nanoseconds.
 */
#ifndef LS_COLL_RECORD_H
#define LS_COLL_RECORD_H

#include "coll/algorithm.h"

/* A single message on its way. */
typedef struct ls_single {
    int32_t peer, line;
    uint64_t nbytes;
    char file[32];
} ls_single;

/* Where a worker has waited for a while. */
typedef enum ls_waiting {
    LS_WAITS_NOT,
    LS_WAITS_IN_CALL, /* the last one that it has made */
    LS_WAITS_TO_SEND,
    LS_WAITS_TO_RECEIVE
} ls_waiting;

/* Worker `from` sends another count to worker `to` than that expects, in call `number`. */
typedef struct ls_miscount {
    bool found;
    uint8_t what, dtype; /* of that call */
    int from, to;
    uint32_t number;
    uint64_t sent, expected;
} ls_miscount;

typedef struct ls_record {
    uint32_t calls; /* that the worker has made in this group: the last one's number + 1 */
    uint32_t group; /* which of the groups that have had this number */
    uint8_t what, dtype, op, waiting;
    int32_t root, line;
    uint64_t count, print;
    char file[32];        /* the end of its name */
    ls_single single;     /* that it waits for */
} ls_record;

/* Of a call. `group` and `single` stay. */
void ls_record_set(ls_record *, const ls_call *, uint32_t number, uint64_t print, const char *file,
                   int line);
void ls_record_set_file(char name[32], const char *file);
/* "all_reduce f32 sum, 1000 elements as call 5 at train.c:40" */
void ls_record_text(const ls_record *, char *text, size_t nbytes);
/* "recv of 4000 bytes from worker 1 at train.c:41" */
void ls_single_text(const ls_single *, bool receives, char *text, size_t nbytes);

/* "train.c:40" */
void ls_record_place(const ls_record *, char *text, size_t nbytes);

/* What another worker on this host is: "running", "sleeping", "stopped", "gone", ... */
const char *ls_process_state(int pid);

/* One that others wait for. */
typedef struct ls_late {
    int rank, pid;
    const char *host; /* NULL: this one */
    const char *state;
    bool unknown; /* it did not answer: `last` says nothing */
    ls_record last;
} ls_late;

/* `heading`, and a line for each: where they are. */
void ls_late_report(const char *heading, const ls_late *late, int nlate, char *text, size_t nbytes);

#endif
