/* trace.h - when the actions of one worker ran, as recorded by its executor.
 *
 * A trace has room for a number of steps from the start. Recording a span allocates nothing and
 * takes no lock, since each lane has its own part. ls_exec_trace() gives the trace to an executor,
 * between steps.
 */
#ifndef LS_EXEC_TRACE_H
#define LS_EXEC_TRACE_H

#include "exec/span.h"

typedef struct ls_trace_lane {
    int nactions;   /* the worker's actions in a step */
    int n;          /* recorded in the step in flight */
    bool open;      /* the beginning of the next span is recorded */
    ls_span *spans; /* [nsteps][nactions] */
} ls_trace_lane;

typedef struct ls_trace {
    int worker;
    int room, nsteps;    /* steps that fit, and steps begun */
    int64_t *origins_ns; /* [room] ls_clock_ns() where each began */
    ls_trace_lane lanes[LS_NLANES];
} ls_trace;

void ls_trace_open(ls_trace *, const ls_plan *, int worker, int nsteps);
void ls_trace_free(ls_trace *); /* {0} is allowed */

/* Begins the next step. There must be room for it. */
void ls_trace_begin_step(ls_trace *);

/* Records that an action ran from begin_ns to end_ns, by ls_clock_ns(). A communication that is
 * polled is recorded in pieces: its span begins with the first and ends with the last (complete).
 * Two threads may record the two lanes. */
void ls_trace_add(ls_trace *, ls_lane, int action, int64_t begin_ns, int64_t end_ns, bool complete);

/* The number of spans of a step, in both lanes. */
int ls_trace_nspans(const ls_trace *);
/* spans [ls_trace_nspans()]: those of a step, lane by lane, with times from the step's beginning.
 */
void ls_trace_spans(const ls_trace *, int step, ls_span *spans);

#endif
