/* outputs.h - what a run writes while it trains, beside checkpoints. Worker 0 writes it, except for
 * timelines. */
#ifndef LS_TRAIN_OUTPUTS_H
#define LS_TRAIN_OUTPUTS_H

#include "report/metrics.h"
#include "report/mllog.h"
#include "report/tracer.h"
#include "storage/folder.h"
#include "train/in_flight.h"

struct ls_loop;

typedef struct ls_outputs {
    ls_folder *folder;    /* worker 0's; NULL: not open yet */
    ls_metrics *metrics;  /* worker 0's */
    ls_mllog *mllog;      /* worker 0's; NULL: none is written */
    ls_in_flight *flight; /* worker 0's */
    ls_tracer tracer;
    ls_error lost; /* worker 0's: a trace or log that could not be written; the run goes on */
    bool follow;   /* workers of an earlier view have opened them */
} ls_outputs;

/* On worker 0: takes the run directory, which the process that starts all workers may have opened
 * for them. */
ls_status ls_outputs_take_folder(struct ls_loop *, ls_error *);
/* Call it once the member has begun. ready_ns: when the worker had its group and the data. */
ls_status ls_outputs_open(struct ls_loop *, int64_t ready_ns, ls_error *);
/* Completes metrics and log of the view. */
ls_status ls_outputs_end_view(struct ls_loop *, ls_error *);
/* ls_outputs_close() is called before the member leaves, ls_outputs_leave_folder() when everything
 * else is closed. fails: a run that has not begun abandons its directory. */
void ls_outputs_close(struct ls_loop *);
void ls_outputs_leave_folder(struct ls_loop *, bool fails);

#endif
