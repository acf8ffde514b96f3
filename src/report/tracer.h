/* tracer.h - traces some steps of a run: gathers all workers' spans on worker 0.
 *
 * Every traced step begins with a barrier. Workers of one host share a clock, so their times are
 * comparable to the nanosecond. Clocks of different hosts are unrelated: the moments when the first
 * worker of each host leaves the barrier are taken as equal, which is right to about the time of
 * one message.
 *
 * All functions but ls_tracer_open() and ls_tracer_close() are collective. A tracer that is {0}
 * does nothing.
 */
#ifndef LS_REPORT_TRACER_H
#define LS_REPORT_TRACER_H

#include "exec/exec.h"
#include "report/timeline.h"

enum { LS_TRACE_STEPS = 3, LS_TRACE_MOST_STEPS = 1000 };

/* What the user asked for. */
typedef struct ls_trace_request {
    const char *path; /* FILE.json or FILE.svg; NULL: nothing is traced */
    int64_t steps;    /* how many; 0: LS_TRACE_STEPS */
} ls_trace_request;

/* The workers that are traced, as one of them sees them. All of it must outlive the tracer. */
typedef struct ls_traced_workers {
    ls_group *group;
    const ls_plan *plan;
    ls_exec **execs; /* [nexecs] of this process: one; or all, where it plays all workers */
    int nexecs;
    double timeout_s; /* of the group's calls, after one without a limit */
} ls_traced_workers;

typedef struct ls_tracer {
    const char *path; /* NULL once the file is written */
    ls_traced_workers w;
    int64_t first, end; /* steps, from 0 */
    ls_trace *traces;   /* [w.nexecs] */
} ls_tracer;

/* Called before training: can worker 0 write the file? */
ls_status ls_tracer_check(const ls_trace_request *, ls_group *, ls_error *);
/* The run will execute steps `first` to `end`. Traces steps after the first; or the only one. */
void ls_tracer_open(ls_tracer *, const ls_trace_request *, const ls_traced_workers *, int64_t first,
                    int64_t end);
/* Called before and after each step, from 0. After the last traced step, worker 0 writes the
 * file. */
ls_status ls_tracer_before(ls_tracer *, int64_t step, ls_error *);
ls_status ls_tracer_after(ls_tracer *, int64_t step, ls_error *);
/* Called when no more steps follow: writes the steps traced so far, unless the file is written. */
ls_status ls_tracer_finish(ls_tracer *, ls_error *);
void ls_tracer_close(ls_tracer *); /* before the executors end */

#endif
