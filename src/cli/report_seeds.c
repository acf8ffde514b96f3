/* report_seeds.c - see report_seeds.h. */
#include "cli/report_seeds.h"

#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/file.h"
#include "base/json.h"
#include "base/log.h"
#include "base/print.h"
#include "cli/batch_trial.h"
#include "perf/seeds.h"

/* Where packages of results have the log of training i: results/SYSTEM/BENCHMARK/result_0.txt. */
static ls_status make_log_path(const cli_seeds *o, int i, char **path_p, ls_error *e) {
    char host[HOST_NAME_MAX + 1] = "host";
    gethostname(host, sizeof host - 1);
    char *dir = ls_format("%s/results/%s/%s", o->mllog, host, o->name);
    ls_status s = ls_file_make_dirs(dir, e);
    *path_p = ls_format("%s/result_%d.txt", dir, i);
    free(dir);
    return s;
}

static ls_status train_trial(const cli_trial *t, const ls_config *c, const char *log, ls_error *e) {
    LS_TRY(cli_trial_open(t, c, e));
    ls_log("seed %lld: training %s", (long long)c->train.seed, t->dir);
    LS_TRY(cli_trial_train(t, c->train.steps, e));
    if (!log || ls_file_exists(log)) return LS_OK;
    return ls_fail(e, LS_EINVAL,
                   "%s: was trained without --mllog, and a log is written while it trains; choose "
                   "another directory with -o",
                   t->dir);
}

/* The i-th training. */
static ls_status train(const cli_seeds *o, const ls_config *c, int i, const ls_goal *t,
                       ls_seeds_run *r, ls_error *e) {
    char *log = NULL, *name = ls_format("benchmark=%s", o->name);
    char *dir = ls_format("%s/seed-%lld", o->dir, (long long)c->train.seed);
    ls_status s = o->mllog ? make_log_path(o, i, &log, e) : LS_OK;
    const char *const more[] = {"--mllog", log, "--target", o->target, "--submission", name};
    const cli_trial trial = {
        .dir = dir, .workers = o->workers, .more = more, .nmore = o->mllog ? 6 : 0};
    if (s == LS_OK) s = train_trial(&trial, c, log, e);
    if (s == LS_OK) s = ls_seeds_read(dir, t, r, e);
    free(dir);
    free(name);
    free(log);
    return s;
}

static void print_run(const ls_seeds_run *r, int64_t seed, bool json) {
    if (!json && r->reached)
        ls_print("%12lld %10lld %12.3f %12.6g\n", (long long)seed, (long long)r->steps, r->seconds,
                 r->best);
    if (!json && !r->reached)
        ls_print("%12lld %10s %12s %12.6g\n", (long long)seed, "-", "-", r->best);
    if (!json) return;
    ls_json *o = ls_json_new_object();
    ls_json_set_integer(o, "seed", seed);
    ls_json_set(o, "reached", ls_json_new_bool(r->reached));
    ls_json_set_integer(o, "steps", r->steps);
    ls_json_set_number(o, "seconds", r->seconds);
    ls_json_set_number(o, "best", r->best);
    ls_print_json(o);
    ls_json_free(o);
}

static void put_score(const ls_seeds_score *s, const char *unit) {
    ls_print("%.4g %s (+- %.3g)", s->mean, unit, s->spread);
}

static void print_score(const ls_seeds_score *steps, const ls_seeds_score *seconds,
                        const cli_seeds *o) {
    if (!o->json) {
        if (o->n < LS_SEEDS_TRIMMED)
            ls_print("\nmean of all %d seeds: ", o->n);
        else
            ls_print("\n%d of %d seeds, without the fastest and the slowest: ", o->n - 2, o->n);
        put_score(steps, "steps");
        ls_print(", ");
        put_score(seconds, "seconds");
        ls_print("\nto %s\n", o->target);
        return;
    }
    ls_json *j = ls_json_new_object();
    ls_json_set_text(j, "target", o->target);
    ls_json_set_integer(j, "seeds", o->n);
    ls_json_set_number(j, "steps", steps->mean);
    ls_json_set_number(j, "steps_spread", steps->spread);
    ls_json_set_number(j, "seconds", seconds->mean);
    ls_json_set_number(j, "seconds_spread", seconds->spread);
    ls_print_json(j);
    ls_json_free(j);
}

ls_status cli_seeds_run(const cli_seeds *o, const ls_config *c, ls_error *e) {
    double steps[LS_SEEDS_MOST], seconds[LS_SEEDS_MOST];
    ls_goal t;
    ls_seeds_score s, time;
    int reached = 0;
    LS_TRY(ls_goal_read(o->target, &t, e));
    LS_TRY(ls_file_make_dirs(o->dir, e));
    if (!o->json) ls_print("%12s %10s %12s %12s\n", "seed", "steps", "seconds", "best");
    for (int i = 0; i < o->n; i++) {
        ls_config with = *c;
        ls_seeds_run r;
        with.train.seed = c->train.seed + i;
        LS_TRY(train(o, &with, i, &t, &r, e));
        print_run(&r, with.train.seed, o->json);
        steps[i] = r.reached ? (double)r.steps : INFINITY;
        seconds[i] = r.reached ? r.seconds : INFINITY;
        reached += r.reached;
    }
    if (!ls_seeds_score_of(steps, o->n, &s) || !ls_seeds_score_of(seconds, o->n, &time))
        return ls_fail(e, LS_EINVAL,
                       "--target %s: %d of %d seeds reach it, and %s miss it; train longer "
                       "(train.steps), or set another target",
                       o->target, reached, o->n,
                       o->n < LS_SEEDS_TRIMMED ? "of fewer than 5 none may"
                                               : "only the slowest may");
    print_score(&s, &time, o);
    return LS_OK;
}
