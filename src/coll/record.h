/* record.h - a call in a few bytes, so that other workers can tell what this one is doing.
 *
 * Every worker keeps the record of its last call where others can read it (shared memory), or hands
 * it out when asked (watch.h). It is written at every call, and costs a few nanoseconds.
 */
#ifndef LS_COLL_RECORD_H
#define LS_COLL_RECORD_H

#include "coll/algorithm.h"

typedef struct ls_record {
    uint32_t calls; /* that the worker has made in this group: the last one's number + 1 */
    uint16_t group;
    uint8_t waiting; /* is it inside the call? */
    uint8_t what, dtype, op;
    int32_t root, line;
    uint64_t count, print;
    char file[32]; /* the end of its name */
} ls_record;

/* "all_reduce f32 sum, 1000 elements as call 5 at train.c:40" */
void ls_record_text(const ls_record *, char *text, size_t nbytes);
void ls_record_set(ls_record *, const ls_call *, uint32_t number, uint64_t print, const char *file,
                   int line);

/* What another worker on this host is: "running", "sleeping", "stopped", "gone", ... */
const char *ls_process_state(int pid);

/* One that has not come to the call that others wait in. */
typedef struct ls_late {
    int rank, pid;
    const char *host; /* NULL: this one */
    const char *state;
    bool unknown; /* it did not answer: `last` says nothing */
    ls_record last;
} ls_late;

/* The lines that all who wait print: in which call, who has come, who has not and where they are.
 */
void ls_late_report(const ls_record *call, double waited_s, int size, const ls_late *late,
                    int nlate, char *text, size_t nbytes);

#endif
