/* runner.h - trains trials: this program, started as other processes, several at a time, which
 * share the workers.
 *
 * What a trial comes to does not depend on its workers, so what comes of several does not depend on
 * how they share them. Each process leads a group of its own, and is killed when this one ends: the
 * same command continues. While a runner is open, SIGINT, SIGTERM and SIGHUP are taken from it by
 * ls_runner_wait(). One runner, one thread.
 */
#ifndef LS_SEARCH_RUNNER_H
#define LS_SEARCH_RUNNER_H

#include "search/trial.h"

/* The workers of all trials together, and how many trials run at once. */
typedef struct ls_sharing {
    int64_t
        workers;  /* 0: one per core; with one trial at a time as many as `lockstep train` takes */
    int64_t jobs; /* trials at once, at most; 0: as many as workers */
} ls_sharing;

/* LS_EINVAL: several trials at once are asked for, and what they come to depends on their
 * workers. */
ls_status ls_sharing_check(const ls_sharing *, const ls_config *, ls_error *);

typedef struct ls_runner ls_runner;

/* c: the threads of its workers count. Cores are divided among the trials that run at once: one
 * whose config can't have as many workers as there are cores for it has more threads. */
ls_runner *ls_runner_open(const ls_sharing *, const ls_config *c);
/* Ends what still runs: SIGTERM, so that trainings write a checkpoint, and after 10 s SIGKILL. NULL
 * is allowed. */
void ls_runner_close(ls_runner *);

/* Calls show(arg) about once a second while trials run. */
void ls_runner_show(ls_runner *, void (*show)(void *arg), void *arg);

/* Starts a trial, if there are workers for it; t->runs says so. nready: trials that could begin
 * now, which share the idle workers. Its output is appended to DIR.log. */
ls_status ls_runner_begin(ls_runner *, ls_trial *, int nready, ls_error *);
/* Waits until one of those that run ends: *t_p, NULL: none runs. LS_EINVAL: it failed, other than
 * by a loss that is no number. LS_EABORT: this process got a signal. */
ls_status ls_runner_wait(ls_runner *, ls_trial **t_p, ls_error *);

/* Trains all n, in order; on a terminal with a bar of their steps. A failure ends all. */
ls_status ls_runner_train(ls_runner *, ls_trial *const *trials, int n, ls_error *);
/* The loss of a trial's checkpoint of step `until` on the whole validation part. LS_EINVAL: it is
 * gone, as another command has trained further. Nothing else runs. */
ls_status ls_runner_evaluate(ls_runner *, const ls_trial *, double *loss_p, ls_error *);

#endif
