/* train.h - training in a program that owns its loop.
 *
 *     ls_trainer *t;
 *     ls_trainer_options o = {.program = &mine, .config = "mine.yaml", .count = n};
 *     ls_trainer_open(&o, &t, &e);
 *     while (ls_trainer_steps(t) < ls_trainer_end(t)) {
 *         for (int64_t i = 0; i < ls_trainer_nsamples(t); i++)
 *             fill(ls_trainer_sample(t, i), ls_trainer_number(t, i));
 *         ls_trainer_step(t, &out, &e);
 *     }
 *     ls_trainer_save(t, "mine.safetensors", &e);
 *     ls_trainer_close(t);
 *
 * Each worker opens a trainer: processes that `lockstep run`, mpirun or srun started, threads of
 * ls_run_threads(), or a single process. The weights have the same bits for any number of them.
 *
 * A worker that is lost ends the run: the calls of the others return LS_EPEER, or LS_ETIMEOUT if it
 * hangs (parallel.timeout_s). These workers can neither continue nor save what they have. A program
 * that writes checkpoints, and opens its trainers with `resume`, continues from the newest one when
 * it is started again; `lockstep run --restarts N` and torchrun's --max-restarts start all workers
 * again by themselves. The weights are those of an undisturbed run.
 *
 * While a call computes, the workers of a machine use its cores, each an equal part of them
 * (parallel.threads: auto); between calls these threads sleep. With "parallel.threads=1" a worker
 * has only the thread that calls, and the other cores are the program's.
 *
 * One thread at a time uses a trainer. All programs of a process are the same ls_program. The
 * ls_error of a call may be NULL: the code is returned alone.
 */
#ifndef LOCKSTEP_TRAIN_H
#define LOCKSTEP_TRAIN_H

#include "lockstep/group.h"
#include "lockstep/program.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct ls_trainer ls_trainer;

typedef struct ls_trainer_options {
    const ls_program *program LS_UNSET; /* its name, keys and build(); its data are not used */
    const char *config LS_UNSET; /* path of the config: train.batch, optim ...; NULL: no file */
    const char *const *sets LS_UNSET; /* "key=value" after the file; NULL ends them; NULL: none */
    uint64_t count LS_UNSET;          /* samples of the data set, below 2^62 */
    uint64_t hash LS_UNSET;           /* differs if the samples do; checked when a run is resumed */
    ls_group *group LS_UNSET; /* the workers that train; NULL: those that were started together */
    /* The run directory, the same for all workers; NULL: none. Worker 0 writes config.yaml,
     * data.json, metrics.jsonl, log.txt and TensorBoard's events into it as `lockstep train` does,
     * so that `lockstep compare` and `status` read the run, and checkpoints when the program asks
     * for them. One program at a time uses a directory. If a process has several trainers open,
     * only the first one has a log. */
    const char *run LS_UNSET;
    int resume LS_UNSET; /* 1: continue from the newest checkpoint there, if there is one */
} ls_trainer_options;

/* Collective. The group must outlive the trainer.
 *
 * Errors   LS_EINVAL: the config, the model, or a checkpoint of another run. LS_EIO: a file.
 *          LS_ENOMEM: the model does not fit. LS_EPEER, LS_ETIMEOUT: a worker was lost. Here and
 *          below, an error without a message is one that another worker reports. */
ls_status ls_trainer_open(const ls_trainer_options *, ls_trainer **t_p, ls_error *);
/* Not collective. NULL is fine. If all steps succeeded, metrics.jsonl says that the run has ended:
 * after train.steps or more it is complete, with or without a checkpoint.
 *
 * A process remembers the last eight trainers that it closed: functions called on them return
 * LS_EINVAL, 0 or NULL; older ones must not be used. */
void ls_trainer_close(ls_trainer *);

/* The number of this worker: 0 to the number of workers - 1. */
int ls_trainer_rank(const ls_trainer *);

/* The number of complete steps, including those before the checkpoint that a run was resumed from.
 * The loop ends where the program ends it: train.steps only says how the learning rate falls. Steps
 * beyond it are trained as any other, with the last rate: optim.min_lr, if the schedule falls to
 * it. */
int64_t ls_trainer_steps(const ls_trainer *);

/* The number of steps of the whole run, over which the learning rate is scheduled: train.steps, or
 * as many as train.epochs take with `count` samples. */
int64_t ls_trainer_end(const ls_trainer *);

/* The samples that this worker computes in the next step, and their numbers, below count. An epoch
 * takes each number once, in an order that is a function of train.seed. */
int64_t ls_trainer_nsamples(const ls_trainer *);
uint64_t ls_trainer_number(const ls_trainer *, int64_t i);
/* Where sample i of the next step is written (ls_sample_field()); all bytes are 0 at first. NULL if
 * there is no such sample. */
ls_sample *ls_trainer_sample(ls_trainer *, int64_t i);

typedef struct ls_trainer_result {
    int64_t step;     /* from 1 */
    double loss;      /* mean over the batch of all workers */
    double grad_norm; /* before clipping */
    double lr;
} ls_trainer_result;

/* Collective. Trains one step with the samples that were written. out is the same on all workers.
 * After an error the trainer can only be closed: other calls return LS_EINVAL. */
ls_status ls_trainer_step(ls_trainer *, ls_trainer_result *out, ls_error *);

enum { LS_TRAINER_METRICS = 16, LS_TRAINER_METRIC_NAME = 32 };

typedef struct ls_trainer_metric {
    char name[LS_TRAINER_METRIC_NAME]; /* as ls_metric() names it, or the usual one: "accuracy" */
    double value;                      /* NaN: no sample counts */
} ls_trainer_metric;

typedef struct ls_trainer_score {
    double loss; /* mean over the samples, by their weights */
    int nmetrics;
    ls_trainer_metric metrics[LS_TRAINER_METRICS];
} ls_trainer_score;

/* Collective, between steps. Computes the loss and the metrics of samples that are not trained on.
 * The samples are divided among the workers: each worker calls samples->read() for its own part.
 * The score is the same on all workers, and has the same bits for any number of them. It is that of
 * the weights, or of their average with train.eval_weights ema.
 *
 * LS_EINVAL, LS_EIO: there are no samples, or one can't be read (all workers get the message of the
 * worker that reads it); training may continue. After other errors the trainer can only be
 * closed. */
ls_status ls_trainer_evaluate(ls_trainer *, const ls_own_source *samples, ls_trainer_score *out,
                              ls_error *);

/* Collective. Worker 0 writes the weights as a safetensors file, with the directories above it; an
 * old file is replaced once the new one is complete. The path is read by worker 0 alone.
 * LS_EINVAL: it is empty, NULL, or a directory; LS_EIO: the file can't be written. */
ls_status ls_trainer_save(ls_trainer *, const char *path, ls_error *);
/* Collective. Writes a checkpoint into the run directory, as `lockstep train` does. */
ls_status ls_trainer_checkpoint(ls_trainer *, ls_error *);

#ifdef __cplusplus
}
#endif
#endif
