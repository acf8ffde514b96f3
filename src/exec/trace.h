/* trace.h - when the actions of one worker ran: its executor notes them.
 *
 * Made at set-up, with room for some steps; noting a span allocates nothing and takes no lock,
 * since each lane has its own part. ls_exec_trace() gives it to an executor, between steps.
 */
#ifndef LS_EXEC_TRACE_H
#define LS_EXEC_TRACE_H

#include "exec/span.h"

typedef struct ls_trace_lane {
    int nactions;   /* of the worker in a step */
    int n;          /* noted in the step in flight */
    bool open;      /* the next one has its beginning */
    ls_span *spans; /* [nsteps][nactions] */
} ls_trace_lane;

typedef struct ls_trace {
    int worker;
    int room, nsteps;    /* steps: at most, and begun */
    int64_t *origins_ns; /* [room] ls_clock_ns() where each began */
    ls_trace_lane lanes[LS_NLANES];
} ls_trace;

void ls_trace_open(ls_trace *, const ls_plan *, int worker, int nsteps);
void ls_trace_free(ls_trace *); /* {0} is fine */

/* The next step begins now. There must be room for it. */
void ls_trace_begin_step(ls_trace *);

/* An action ran from begin_ns to end_ns, as ls_clock_ns() tells. One that is looked after now and
 * then comes in pieces: the first has its beginning, the last (complete) its end. Lanes may be
 * noted by two threads. */
void ls_trace_add(ls_trace *, ls_lane, int action, int64_t begin_ns, int64_t end_ns, bool complete);

/* Spans of a step, of both lanes. */
int ls_trace_nspans(const ls_trace *);
/* spans [ls_trace_nspans()]: lane by lane, times from the step's origin. */
void ls_trace_spans(const ls_trace *, int step, ls_span *spans);

#endif
