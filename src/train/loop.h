/* loop.h - the training loop of a worker: its state between steps, and the steps.
 *
 * All workers make the same decisions at the same steps.
 */
#ifndef LS_TRAIN_LOOP_H
#define LS_TRAIN_LOOP_H

#include "train/async_steps.h"
#include "train/outputs.h"
#include "train/save.h"
#include "train/steps_apart.h"
#include "train/validation.h"
#include "train/worker.h"

/* How long steps take; by loop.c. */
typedef struct ls_pace {
    int64_t measured; /* steps of this view */
    double seconds;   /* of `nsteps` complete steps */
    int64_t nsteps;
    int32_t waited_us;  /* by this worker in the latest step; 0 once data_wait_s has it */
    double data_wait_s; /* in these steps: each step's longest wait of a worker for its samples */
} ls_pace;

/* Each part is changed by the file whose name is beside it, and by no other. */
typedef struct ls_loop {
    const ls_train_job *job; /* worker.c */
    const ls_host *host;     /* worker.c */
    const ls_run *run;       /* worker.c */
    bool follows;            /* worker.c: earlier workers have left their state in memory */
    ls_member m;             /* member.c */
    ls_dataset data;         /* begin.c */
    int64_t steps;           /* loop.c: complete; begin.c: those of earlier views */
    ls_asked asked;          /* loop.c: after the latest step */
    bool evicts;             /* loop.c: an audit found a faulty worker, which leaves */
    ls_pace pace;            /* loop.c */
    ls_outputs out;          /* outputs.c */
    ls_validation val;       /* validation.c */
    ls_saver saver;          /* save.c */
    ls_async_side async;     /* async_steps.c */
    ls_apart_steps *apart;   /* steps_apart.c; NULL: there are no replicas */
} ls_loop;

/* A step that was made. */
typedef struct ls_loop_step {
    ls_step_in in;
    ls_step_out out;
    ls_step_time time;
} ls_loop_step;

/* Collective: makes the step of s->in. If l->asked is not LS_ASKED_NOTHING afterwards, the step was
 * given up. */
ls_status ls_loop_take(ls_loop *, ls_loop_step *, ls_error *);
/* Collective: records the step's result. */
ls_status ls_loop_report(ls_loop *, const ls_loop_step *, ls_error *);
/* Collective. Fails after a step whose result is not finite, and records that in metrics.jsonl. */
ls_status ls_loop_diverged(ls_loop *, int64_t steps, const ls_step_out *, ls_error *);
/* Records the time of a complete step. */
void ls_loop_took(ls_loop *, double seconds, double data_wait_s);

/* Are all steps done, or has the run ended early? */
bool ls_loop_is_complete(const ls_loop *);

/* Collective. Trains to the last step, or until the view or the run must end. */
ls_status ls_loop_run(ls_loop *, ls_error *);

#endif
