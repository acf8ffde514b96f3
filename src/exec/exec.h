/* exec.h - runs a plan. The executor knows actions, and no strategy.
 *
 * ls_exec_step() runs one worker's two lanes. If a core is free, the communication lane has a
 * thread of its own, and reductions overlap Backward. Otherwise one thread runs both lanes: it
 * starts communications as soon as they may begin (plan/progress.h), and polls them between
 * computations.
 * ls_exec_step_all() is the oracle: it runs the global order of all workers, one action after the
 * other, in one thread.
 */
#ifndef LS_EXEC_EXEC_H
#define LS_EXEC_EXEC_H

#include "data/loader.h"
#include "exec/trace.h"
#include "net/local/board.h"
#include "state/world.h"

typedef struct ls_exec ls_exec;

/* The input of a step; its result is ls_step_out (store.h). */
typedef struct ls_step_in {
    int64_t step;    /* from 0; consecutive from first_step on */
    int64_t updates; /* applied before: fewer than steps if some were skipped */
    double lr, clip;
    double loss_scale; /* multiplies the gradient, and is divided out in the update; 1: none */
    bool skips;        /* skip the update if the gradient overflows */
    int64_t changes;   /* how many the state has had with this step (store.h); 0: step + 1 */
    bool apart;        /* islands decide it alone (apart.h) */
    bool certain;      /* it can't be given up */
    const double *lr_scales; /* [islands] of the replicas' learning rates; NULL: all 1 */
    /* for a plan of another task than training: the training step before it */
    const struct ls_step_in *training;
    const ls_step_out *trained;
} ls_step_in;

/* Called when a step's norm is known, before any part of the state changes. From then on the result
 * of the step is certain. */
typedef void ls_exec_decided(void *arg, const ls_store_note *);

/* Workers that help each other. */
typedef struct ls_exec_helpers {
    /* The gradient [nfloats] of a virtual worker, and its losses and notes by place in the batch,
     * if another worker has computed them in this step; else NULL. */
    const void *(*given)(void *arg, int64_t step, int vw, const double **losses_p);
    /* Called while this worker waits for others, until the norm is known: does a piece of other
     * work. False: there is none. */
    bool (*idle)(void *arg, const ls_step_in *);
    void *arg;
} ls_exec_helpers;

typedef struct ls_exec_config {
    const ls_plan *plan;   /* } outlive the executor */
    const ls_world *world; /* } this worker's, with its group */
    ls_board_slot *slot;   /* } where it publishes its progress */
    int worker, threads;
    int busy, cores; /* threads of all workers of this host, and cores: they decide how to wait */
    bool overlap;    /* give the communication lane a thread */
    ls_loader_config loader;   /* not used by a plan that reads no samples */
    const ls_layer_rows *rows; /* of tables; NULL: the model has no windows of them */
    const char *device;        /* that runs the layers, if the plan says so: ls_device_open() */
    const ls_compute *compute; /* another executor's, in whose place it runs; NULL: its own */
    int64_t first_step;
    ls_exec_decided *decided; /* may be NULL */
    void *decided_arg;
    const ls_exec_helpers *helpers; /* NULL: none; not with `overlap` */
    /* Called before each computation until the norm is known: is this step to be given up? NULL:
     * never. */
    bool (*gives_up)(void *arg);
    void *gives_up_arg;
} ls_exec_config;

ls_status ls_exec_create(const ls_exec_config *, ls_exec **x_p, ls_error *);
/* Waits for workers that read this one's device. NULL is fine. */
void ls_exec_free(ls_exec *);
/* This worker failed, and others may wait for it: it does not wait for them when it is freed. */
void ls_exec_fail(ls_exec *);

/* Collective. After an error the group can only be closed. LS_EABORT: this worker was recalled
 * (net/local/board.h). */
ls_status ls_exec_step(ls_exec *, const ls_step_in *, ls_step_out *out_p, ls_error *);

/* Was the latest step given up? A worker that gives a step up computes no more, but still takes
 * part in communications that others wait for, and reports it with the norm. Then no worker changes
 * its state, and the step can be repeated or abandoned. */
bool ls_exec_gave_up(const ls_exec *);

/* Collective, with a store: the next step is `step`. If another group of as many workers, some of
 * which may be new now, was interrupted in it, its results are retained where possible: this
 * executor's gradients so far, all gradients of a replaced worker if the store has them, and parts
 * of sums. Tracing ends. */
ls_status ls_exec_take_up(ls_exec *, int64_t step, ls_error *);

/* Runs Forward and Backward alone, without measuring and encoding, for the sum of this worker's
 * virtual workers: sends nothing, changes no state, and uses only params, grads, wide and parts of
 * the world. */
ls_status ls_exec_gradient(ls_exec *, const ls_step_in *, ls_error *);
/* As ls_exec_gradient(), one action a call; *at_p is 0 at first, and -1 when the gradient is
 * complete. */
ls_status ls_exec_gradient_next(ls_exec *, const ls_step_in *, int *at_p, ls_error *);

/* After ls_exec_gradient(), in a plan of one worker whose world has its sums at `parts`: the loss,
 * the norm and what an update needs. */
void ls_exec_measure(ls_exec *, const ls_step_in *, ls_step_out *out_p, ls_optim_step *update_p);
/* The result of a step apart, of which `row` has the losses and norms of all islands (apart.h);
 * out_p->batch is that of the step. Between steps. */
void ls_exec_joined(ls_exec *, const ls_step_in *, const double *row, ls_step_out *out_p);
/* The next gradient is that of the step after `steps` others. */
void ls_exec_seek(ls_exec *, int64_t steps);

/* For a plan in which each worker runs one virtual worker: the next gradient is that of virtual
 * worker vw, instead of the executor's own, in the step after `steps` others. */
void ls_exec_aim(ls_exec *, int vw, int64_t steps);

/* execs [nworkers], all in this process. */
ls_status ls_exec_step_all(ls_exec **execs, const ls_step_in *, ls_step_out *out_p, ls_error *);

/* After a step whose norm is not finite: the layer whose gradient overflowed first, or "the loss".
 */
const char *ls_exec_overflow(const ls_exec *);

/* Nanoseconds spent in actions of a kind since the last reset; call it between steps. */
int64_t ls_exec_time(const ls_exec *, ls_action_kind);
/* Nanoseconds spent in all actions that compute. */
int64_t ls_exec_compute_time(const ls_exec *);
/* How long the latest step waited for its samples. */
int64_t ls_exec_data_wait_ns(const ls_exec *);
void ls_exec_reset_times(ls_exec *);

/* Between steps: records further actions in `t`, which remains the caller's; NULL: records none.
 * The caller calls ls_trace_begin_step() before each step. */
void ls_exec_trace(ls_exec *, ls_trace *t);

/* Between steps, by the thread that runs them: binds this thread and the executor's others to the
 * cores of worker i of n of this machine. cores: those of each worker, one for each of its threads,
 * that for communication too, if there are enough. i < 0: binds to none. */
void ls_exec_bind(const ls_exec *, int i, int n, int cores);

/* Between steps: the world gets the parameters that the executor's device has, and with `states`
 * the optimizer's states, if these are newer (ls_world.fetch). */
ls_status ls_exec_fetch_state(ls_exec *, bool states, ls_error *);

/* What evaluation may use between steps of the device of an executor that has one: addresses
 * there. */
typedef struct ls_exec_device {
    const ls_compute *compute;
    const void *params; /* those that were given */
    const ls_frozen_value *frozen;
    const float *const *constants;
    void *memory; /* its arena, or if that is too small, memory of its own */
} ls_exec_device;
size_t ls_exec_device_arena(const ls_exec *);
/* The device gets parameters [nfloats], if it does not have them. They take the place of those that
 * are there: where the state is there, the world's must follow. LS_ENOMEM: there is no room for
 * nbytes; nothing was sent. */
ls_status ls_exec_lend_device(ls_exec *, const void *params, size_t nbytes, ls_exec_device *d_p,
                              ls_error *);

/* The executor's threads and memory, which evaluation may use between steps. */
const ls_compute *ls_exec_compute(const ls_exec *);
float *ls_exec_arena(const ls_exec *, size_t *nbytes_p);

#endif
