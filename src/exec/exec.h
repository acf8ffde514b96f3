/* exec.h - runs a plan. Knows actions, and no strategy.
 *
 * ls_exec_step() runs one worker's two lanes. With a core to spare the communication lane has a
 * thread of its own and reductions overlap Backward; else one thread runs both: it starts a
 * communication as soon as it may, and looks after it between computations. ls_exec_step_all() is
 * the oracle: it runs the global order of all workers, one action after the other, in one thread.
 * ls_exec_step_chaos() shows that no dependency is missing: it takes any action that is ready.
 */
#ifndef LS_EXEC_EXEC_H
#define LS_EXEC_EXEC_H

#include "data/loader.h"
#include "exec/trace.h"
#include "exec/world.h"
#include "net/local/board.h"
#include "optim/adamw.h"

typedef struct ls_exec ls_exec;

/* What a step is given; ls_step_out (store.h) is what it says. */
typedef struct ls_step_in {
    int64_t step;    /* from 0; consecutive from first_step on */
    int64_t updates; /* done before: fewer than steps where some were skipped */
    double lr, clip;
    double loss_scale; /* of the gradient, divided out in the update; 1: none */
    bool skips;        /* a step whose gradient overflows changes nothing */
    ls_adamw adamw;
} ls_step_in;

/* Told when a step's norm is known, before any part of the state changes: from then on the step's
 * result is certain. */
typedef void ls_exec_decided(void *arg, const ls_step_in *, const ls_step_out *,
                             const ls_adamw_step *);

/* Workers that help each other. */
typedef struct ls_exec_helpers {
    /* The gradient [nfloats] and the losses by place in the batch of a virtual worker, where
     * another worker has computed them in this step; else NULL. */
    const void *(*given)(void *arg, int64_t step, int vw, const double **losses_p);
    /* While this worker waits for others, and the norm is not known: does a piece of other work.
     * False: there is none. */
    bool (*idle)(void *arg, const ls_step_in *);
    void *arg;
} ls_exec_helpers;

typedef struct ls_exec_config {
    const ls_plan *plan;   /* } outlive the executor */
    const ls_world *world; /* } this worker's, with its group */
    ls_board_slot *slot;   /* } where it tells what it does */
    int worker, threads;
    int busy, cores; /* threads of all workers of this host, and what they share: how they wait */
    bool overlap;    /* a thread for the communication lane */
    ls_loader_config loader;
    int64_t first_step;
    ls_exec_decided *decided; /* NULL: nobody wants to know */
    void *decided_arg;
    const ls_exec_helpers *helpers; /* NULL: there are none; not with `overlap` */
    /* Asked before each computation until the norm is known: shall this step be given up? NULL:
     * none is. */
    bool (*gives_up)(void *arg);
    void *gives_up_arg;
} ls_exec_config;

ls_status ls_exec_create(const ls_exec_config *, ls_exec **x_p, ls_error *);
void ls_exec_free(ls_exec *); /* NULL is fine */

/* Collective. After an error the group can only be closed. LS_EABORT: this worker is recalled
 * (net/local/board.h). */
ls_status ls_exec_step(ls_exec *, const ls_step_in *, ls_step_out *out_p, ls_error *);

/* Has the latest step been given up? A worker that gives up computes nothing more, takes part in
 * what the others wait for, and says so where the norm is summed: then all of them change nothing,
 * and the step can be done again, or left. */
bool ls_exec_gave_up(const ls_exec *);

/* Collective, with a store: the next step is this one. Where it was broken off in another group of
 * as many workers, some of whom may be new, they keep what they have of it: this executor its
 * gradients so far; another worker's successor all of them, if they lie in the store; all of them
 * parts of sums. Nothing is traced any more. */
ls_status ls_exec_take_up(ls_exec *, int64_t step, ls_error *);

/* Forward and Backward alone, for the sum of this worker's virtual workers: nothing is sent, no
 * state changes. Of the world only params, grads, wide and parts are used. */
ls_status ls_exec_gradient(ls_exec *, const ls_step_in *, ls_error *);
/* The same, an action a call; *at_p begins as 0, and is -1 when it is complete. */
ls_status ls_exec_gradient_next(ls_exec *, const ls_step_in *, int *at_p, ls_error *);

/* The executor is of a plan in which each worker runs one virtual worker: the next gradient is that
 * of virtual worker vw, whichever the executor's own is, in the step after `steps` others. */
void ls_exec_aim(ls_exec *, int vw, int64_t steps);

/* execs [nworkers], all in this process. */
ls_status ls_exec_step_all(ls_exec **execs, const ls_step_in *, ls_step_out *out_p, ls_error *);

/* The same, with random actions of random workers and lanes. */
ls_status ls_exec_step_chaos(ls_exec **execs, uint64_t seed, const ls_step_in *, ls_step_out *out_p,
                             ls_error *);

/* After a step whose norm is not finite: the layer whose gradient overflowed first, or "the loss".
 */
const char *ls_exec_overflow(const ls_exec *);

/* Nanoseconds spent in a kind of action since the last reset; between steps. */
int64_t ls_exec_time(const ls_exec *, ls_action_kind);
void ls_exec_reset_times(ls_exec *);

/* Between steps: from here on actions are noted in `t`, which stays the caller's; NULL: they are
 * not. The caller calls ls_trace_begin_step() before each step. */
void ls_exec_trace(ls_exec *, ls_trace *t);

/* Between steps: threads and memory for evaluation. */
const ls_compute *ls_exec_compute(const ls_exec *);
float *ls_exec_arena(const ls_exec *, size_t *nbytes_p);

#endif
