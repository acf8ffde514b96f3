/* seeds.c - see seeds.h. */
#include "search/seeds.h"

#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/log.h"
#include "report/history.h"
#include "search/runner.h"

/* ---- a run ---- */

typedef struct reading {
    const ls_goal *target;
    ls_seeds_run run;
} reading;

static void add_line(void *arg, int64_t step, const ls_json *line) {
    reading *x = arg;
    ls_seeds_run *r = &x->run;
    double seconds = 0, value = 0;
    if (!r->reached && ls_json_number(ls_json_get(line, "seconds"), &seconds)) {
        r->steps = step;
        r->seconds += seconds;
    }
    if (!ls_json_number(ls_json_get(line, x->target->metric), &value)) return;
    if (isnan(r->best) || ls_goal_is_better(x->target, value, r->best)) r->best = value;
    if (ls_goal_is_reached(x->target, value)) r->reached = true;
}

ls_status ls_seeds_read(const char *run, const ls_goal *t, ls_seeds_run *r_p, ls_error *e) {
    reading x = {.target = t, .run = {.best = NAN}};
    LS_TRY(ls_history_scan(run, add_line, &x, e));
    if (isnan(x.run.best))
        return ls_fail(e, LS_EINVAL,
                       "--target: '%s' is in no line of %s/metrics.jsonl; use a number of its "
                       "evaluations, e.g. val_loss",
                       t->metric, run);
    *r_p = x.run;
    return LS_OK;
}

/* ---- all runs ---- */

static int ascending(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

bool ls_seeds_score_of(const double *values, int n, ls_seeds_score *s_p) {
    double sorted[LS_SEEDS_MOST], sum = 0, squares = 0;
    int from = n >= LS_SEEDS_TRIMMED ? 1 : 0, kept = n - 2 * from;
    memcpy(sorted, values, (size_t)n * sizeof *sorted);
    qsort(sorted, (size_t)n, sizeof *sorted, ascending);
    for (int i = from; i < from + kept; i++) {
        if (!isfinite(sorted[i])) return false;
        sum += sorted[i];
    }
    double mean = sum / kept;
    for (int i = from; i < from + kept; i++) squares += (sorted[i] - mean) * (sorted[i] - mean);
    *s_p = (ls_seeds_score){mean, sqrt(squares / (kept - 1))};
    return true;
}

/* ---- training ---- */

/* Where packages of results have the log of training i: results/SYSTEM/BENCHMARK/result_0.txt. */
static ls_status make_log_path(const ls_seeds_request *o, int i, char **path_p, ls_error *e) {
    char host[HOST_NAME_MAX + 1] = "host";
    gethostname(host, sizeof host - 1);
    char *dir = ls_format("%s/results/%s/%s", o->mllog, host, o->name);
    ls_status s = ls_file_make_dirs(dir, e);
    *path_p = ls_format("%s/result_%d.txt", dir, i);
    free(dir);
    return s;
}

static ls_status train_trial(const ls_seeds_request *o, ls_trial *t, const char *log, ls_error *e) {
    const ls_sharing sharing = {.workers = o->workers, .jobs = 1};
    LS_TRY(ls_trial_open(t, e));
    ls_log("seed %lld: training %s", (long long)t->config->train.seed, t->dir);
    ls_runner *r = ls_runner_open(&sharing, t->config);
    ls_status s = ls_runner_train(r, &t, 1, e);
    ls_runner_close(r);
    LS_TRY(s);
    if (t->diverged)
        return ls_fail(e, LS_EINVAL, "%s: diverged: its loss is no number any more", t->dir);
    if (!log || ls_file_exists(log)) return LS_OK;
    return ls_fail(e, LS_EINVAL,
                   "%s: was trained without --mllog, and a log is written while it trains; choose "
                   "another directory with -o",
                   t->dir);
}

/* The i-th training. */
static ls_status train(const ls_seeds_request *o, const ls_config *c, int i, ls_seeds_run *r,
                       ls_error *e) {
    char *log = NULL, *name = ls_format("benchmark=%s", o->name);
    char *dir = ls_format("%s/seed-%lld", o->dir, (long long)c->train.seed);
    ls_status s = o->mllog ? make_log_path(o, i, &log, e) : LS_OK;
    const char *const more[] = {"--mllog", log, "--target", o->target, "--submission", name};
    ls_trial t = {
        .dir = dir, .config = c, .until = c->train.steps, .more = more, .nmore = o->mllog ? 6 : 0};
    if (s == LS_OK) s = train_trial(o, &t, log, e);
    if (s == LS_OK) s = ls_seeds_read(dir, &o->goal, r, e);
    free(dir);
    free(name);
    free(log);
    return s;
}

ls_status ls_seeds_train(const ls_seeds_request *o, const ls_config *c, ls_seeds *s_p,
                         ls_error *e) {
    double steps[LS_SEEDS_MOST], seconds[LS_SEEDS_MOST];
    int reached = 0;
    LS_TRY(ls_file_make_dirs(o->dir, e));
    ls_config *with = LS_NEW(ls_config);
    *with = *c;
    ls_status s = LS_OK;
    for (int i = 0; s == LS_OK && i < o->n; i++) {
        ls_seeds_run r = {0};
        with->train.seed = c->train.seed + i;
        s = train(o, with, i, &r, e);
        if (s != LS_OK) break;
        o->each(o->arg, with->train.seed, &r);
        steps[i] = r.reached ? (double)r.steps : INFINITY;
        seconds[i] = r.reached ? r.seconds : INFINITY;
        reached += r.reached;
    }
    free(with);
    LS_TRY(s);
    if (ls_seeds_score_of(steps, o->n, &s_p->steps) &&
        ls_seeds_score_of(seconds, o->n, &s_p->seconds))
        return LS_OK;
    return ls_fail(e, LS_EINVAL,
                   "--target %s: %d of %d seeds reach it, and %s miss it; train longer "
                   "(train.steps), or set another target",
                   o->target, reached, o->n,
                   o->n < LS_SEEDS_TRIMMED ? "of fewer than 5 none may" : "only the slowest may");
}
