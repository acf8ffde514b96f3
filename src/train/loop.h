/* loop.h - the training loop of a worker: its state between steps, and the steps.
 *
 * All workers make the same decisions at the same steps.
 */
#ifndef LS_TRAIN_LOOP_H
#define LS_TRAIN_LOOP_H

#include "report/metrics.h"
#include "report/mllog.h"
#include "report/report.h"
#include "report/tracer.h"
#include "storage/best.h"
#include "storage/folder.h"
#include "train/apart.h"
#include "train/in_flight.h"
#include "train/member.h"
#include "train/prompts.h"
#include "train/worker.h"

typedef struct ls_loop {
    const ls_train_job *job;
    const ls_host *host;
    const ls_run *run;
    ls_member m;
    ls_dataset data;
    ls_folder *folder;    /* worker 0's; NULL: not open yet */
    ls_metrics *metrics;  /* worker 0's */
    ls_mllog *mllog;      /* worker 0's; NULL: none is written */
    ls_evaluation latest; /* the same on all */
    double *records;      /* worker 0's: of the samples of the last evaluation (results.h) */
    ls_picture picture;   /* worker 0's */
    ls_prompts prompts;
    int64_t answered;          /* on worker 0: the latest step with lines of answers; 0: none */
    ls_best best;              /* the same on all */
    int64_t nskipped;          /* on worker 0: checkpoints in a row that were skipped */
    int64_t nroomless;         /* on worker 0: those that were not written for lack of room */
    ls_checkpoint_known known; /* worker 0's, where it writes checkpoints itself */
    ls_tracer tracer;
    ls_in_flight *flight;   /* worker 0's */
    struct ls_async *async; /* sync.mode async: what makes the steps; else NULL */
    ls_buf settings;        /* that must match on hosts that join it */
    ls_apart_steps apart;   /* of replicas */
    int64_t steps;          /* complete */
    int64_t saved;          /* steps complete at the latest checkpoint; -1: none */
    int64_t evaluated;      /* steps complete at the latest evaluation of earlier views */
    int64_t saved_ns;       /* when the latest checkpoint was due; at first when training began */
    int64_t latest_ns;      /* sync.mode async: when the latest step was complete */
    int64_t measured;       /* steps of this view */
    double seconds;         /* of `nsteps` complete steps */
    int64_t nsteps;
    int32_t waited_us;    /* by this worker in the latest step; 0 once data_wait_s has it */
    double data_wait_s;   /* in these steps: each step's longest wait of a worker for its samples */
    ls_noise_scale noise; /* worker 0's, at the end (train.noise_scale) */
    ls_metrics_use used;  /* worker 0's, at the end */
    bool evicts;          /* an audit found a faulty worker, which leaves */
    ls_asked asked;       /* after the latest step */
    bool follows;         /* earlier workers have left their state in memory */
    bool shared;          /* no host has all of the state: each writes a part of a checkpoint */
    int64_t asked_share;  /* the part that this worker has asked for (storage/snapshot.h) */
} ls_loop;

/* For the workers of later views: notes that a checkpoint was made after l->steps steps. */
void ls_loop_note_saved(const ls_loop *);

/* Notes that a checkpoint is due now: the next one by time is counted from here on, also by the
 * workers of later views. */
void ls_loop_note_due(ls_loop *);

/* Is a checkpoint due by worker 0's clock? */
bool ls_loop_is_time(const ls_loop *);

/* Collective. Fails after a step whose result is not finite, which metrics.jsonl then says. */
ls_status ls_loop_diverged(ls_loop *, int64_t steps, const ls_step_out *, ls_error *);

/* Are all steps done, or has the run ended early? */
bool ls_loop_is_complete(const ls_loop *);

/* Collective. Trains to the last step, or until the view or the run must end. */
ls_status ls_loop_run(ls_loop *, ls_error *);

#endif
