/* batch_jobs.c - see batch_jobs.h. */
#include "cli/batch_jobs.h"

#include <string.h>

#include "base/cores.h"

typedef struct work {
    const cli_batch_workers *o;
    cli_batch_job *list; /* [n] the tag of a process is its place */
    int n, nbegun, nrunning;
    int jobs, all, idle; /* all workers; those that are idle */
    cli_pool *pool;
} work;

/* ---- one after the other ---- */

static ls_status run_in_turn(work *w, ls_error *e) {
    for (int i = 0; i < w->n; i++) {
        cli_batch_job *j = &w->list[i];
        j->trial.workers = w->o->workers;
        ls_status s = cli_trial_train(&j->trial, j->until, e);
        j->diverged = s != LS_OK && strstr(e->msg, CLI_TRIAL_DIVERGED);
        if (s != LS_OK && !j->diverged) return s;
    }
    return LS_OK;
}

/* ---- side by side ---- */

/* Trainings begin in order. One that needs more workers than are idle waits. */
static ls_status start_ready(work *w, ls_error *e) {
    while (w->nbegun < w->n && w->nrunning < w->jobs && w->idle > 0) {
        cli_batch_job *j = &w->list[w->nbegun];
        int places = w->jobs - w->nrunning, left = w->n - w->nbegun;
        if (places > left) places = left;
        int share = w->idle / places,
            n = cli_trial_workers(j->config, share > 0 ? share : 1, w->all);
        if (n > w->idle) return LS_OK;
        if (!cli_trial_is_trained(&j->trial, j->until)) {
            j->trial.workers = n;
            LS_TRY(cli_trial_start(&j->trial, j->until, w->pool, w->nbegun, e));
            w->idle -= n;
            w->nrunning++;
        }
        w->nbegun++;
    }
    return LS_OK;
}

static ls_status wait_one(work *w, ls_error *e) {
    int i = 0, code = 0;
    if (cli_pool_wait(w->pool, &i, &code, e) != LS_OK)
        return ls_fail(e, LS_EABORT, "interrupted; the same command continues");
    w->nrunning--;
    cli_batch_job *j = &w->list[i];
    w->idle += (int)j->trial.workers;
    return cli_trial_check(&j->trial, j->until, code, &j->diverged, e);
}

static ls_status run_all(work *w, ls_error *e) {
    for (;;) {
        LS_TRY(start_ready(w, e));
        if (w->nrunning == 0) return LS_OK;
        LS_TRY(wait_one(w, e));
    }
}

static ls_status run_at_once(work *w, ls_error *e) {
    int64_t cores = ls_cores() / w->list[0].config->parallel.threads;
    w->all = w->idle = (int)(w->o->workers ? w->o->workers : cores > 1 ? cores : 1);
    w->jobs = (int)(w->o->jobs < w->idle ? w->o->jobs : w->idle);
    w->pool = cli_pool_open();
    ls_status s = run_all(w, e);
    cli_pool_close(w->pool);
    return s;
}

ls_status cli_batch_jobs_check(const cli_batch_workers *o, const ls_config *c, ls_error *e) {
    if (o->jobs <= 1 || c->parallel.reduce != LS_REDUCE_FASTEST) return LS_OK;
    return ls_fail(e, LS_EINVAL,
                   "--jobs: not with parallel.reduce fastest: trainings side by side have other "
                   "numbers of workers, on which their bits depend; leave out --jobs, or use tree");
}

ls_status cli_batch_jobs_run(const cli_batch_workers *o, cli_batch_job *list, int n, ls_error *e) {
    work w = {.o = o, .list = list, .n = n};
    return o->jobs > 1 && n > 1 ? run_at_once(&w, e) : run_in_turn(&w, e);
}
