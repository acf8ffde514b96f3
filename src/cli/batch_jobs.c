/* batch_jobs.c - see batch_jobs.h. */
#include "cli/batch_jobs.h"

#include <stdlib.h>
#include <string.h>

#include "base/cores.h"
#include "base/log.h"
#include "base/name.h"
#include "cli/cli.h"
#include "cli/pool.h"
#include "cli/tune_metric.h"

/* How a training's message begins whose loss is no number any more. */
static const char DIVERGED[] = "the loss is ";

typedef struct work {
    const cli_batch_workers *o;
    cli_batch_job *list; /* [n] the tag of a process is its place */
    int n, nbegun, nrunning;
    int jobs, all, idle; /* all workers; those that are idle */
    int *workers;   /* [n] of those that run */
    cli_pool *pool;
} work;

/* ---- one after the other ---- */

static ls_status run_in_turn(work *w, ls_error *e) {
    for (int i = 0; i < w->n; i++) {
        cli_batch_job *j = &w->list[i];
        j->trial.workers = w->o->workers;
        ls_status s = cli_trial_train(&j->trial, j->until, e);
        j->diverged = s != LS_OK && strstr(e->msg, DIVERGED);
        if (s != LS_OK && !j->diverged) return s;
    }
    return LS_OK;
}

/* ---- side by side ---- */

static ls_status start_process(work *w, int i, ls_error *e) {
    const cli_trial *t = &w->list[i].trial;
    char *config = ls_format("%s.yaml", t->dir), *output = ls_format("%s.log", t->dir);
    char *n = ls_format("%d", w->workers[i]);
    char *step = ls_format("%lld", (long long)w->list[i].until);
    const char *const words[] = {ls_name(), "train", config, "-o", t->dir, "--resume",
                                 "--until", step,    "-n",   n,    NULL};
    ls_status s = cli_trial_wait(t, e);
    if (s == LS_OK) s = cli_pool_start(w->pool, (char *const *)(uintptr_t)words, output, i, e);
    free(config);
    free(output);
    free(n);
    free(step);
    return s;
}

/* Trainings begin in order. One that needs more workers than are idle waits. */
static ls_status start_ready(work *w, ls_error *e) {
    while (w->nbegun < w->n && w->nrunning < w->jobs && w->idle > 0) {
        const cli_batch_job *j = &w->list[w->nbegun];
        int places = w->jobs - w->nrunning, left = w->n - w->nbegun;
        if (places > left) places = left;
        int share = w->idle / places, n = cli_trial_workers(j->config, share > 0 ? share : 1, w->all);
        if (n > w->idle) return LS_OK;
        if (!cli_trial_is_trained(&j->trial, j->until)) {
            w->workers[w->nbegun] = n;
            LS_TRY(start_process(w, w->nbegun, e));
            w->idle -= n;
            w->nrunning++;
        }
        w->nbegun++;
    }
    return LS_OK;
}

static ls_status check_end(cli_batch_job *j, int code, ls_error *e) {
    char *output = ls_format("%s.log", j->trial.dir);
    char *last = cli_tune_last_line(output);
    bool good = code == 0 || code == CLI_UNFINISHED;
    ls_status s = LS_OK;
    if (!good && strstr(last, DIVERGED))
        j->diverged = true;
    else if (!good)
        s = ls_fail(e, LS_EINVAL, "training %s failed with exit code %d: %.300s (%s)", j->trial.dir,
                    code, last, output);
    else if (cli_trial_steps(&j->trial) < j->until)
        s = ls_fail(e, LS_EINVAL, "%s: was stopped; the same command continues", j->trial.dir);
    free(output);
    free(last);
    return s;
}

static ls_status wait_one(work *w, ls_error *e) {
    int i = 0, code = 0;
    if (cli_pool_wait(w->pool, &i, &code, e) != LS_OK)
        return ls_fail(e, LS_EABORT, "interrupted; the same command continues");
    w->nrunning--;
    w->idle += w->workers[i];
    return check_end(&w->list[i], code, e);
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
    w->workers = LS_NEW_ARRAY(int, (size_t)w->n);
    w->pool = cli_pool_open();
    ls_status s = run_all(w, e);
    cli_pool_close(w->pool);
    free(w->workers);
    return s;
}

ls_status cli_batch_jobs_run(const cli_batch_workers *o, cli_batch_job *list, int n, ls_error *e) {
    work w = {.o = o, .list = list, .n = n};
    return o->jobs > 1 && n > 1 ? run_at_once(&w, e) : run_in_turn(&w, e);
}
