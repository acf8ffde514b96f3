/* report_seeds.c - see report_seeds.h. */
#include "cli/report_seeds.h"

#include <math.h>
#include <stdlib.h>

#include "base/file.h"
#include "base/json.h"
#include "base/log.h"
#include "base/print.h"
#include "cli/batch_trial.h"
#include "perf/seeds.h"

static ls_status train(const cli_seeds *o, const ls_config *c, const ls_seeds_target *t,
                       ls_seeds_run *r, ls_error *e) {
    cli_trial trial = {ls_format("%s/seed-%lld", o->dir, (long long)c->train.seed), o->workers};
    ls_status s = cli_trial_open(&trial, c, e);
    if (s == LS_OK) ls_log("seed %lld: training %s", (long long)c->train.seed, trial.dir);
    if (s == LS_OK) s = cli_trial_train(&trial, c->train.steps, e);
    if (s == LS_OK) s = ls_seeds_read(trial.dir, t, r, e);
    free(trial.dir);
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

static void print_score(const ls_seeds_score *steps, const ls_seeds_score *seconds,
                        const cli_seeds *o) {
    if (!o->json) {
        ls_print(
            "\n%d of %d seeds, without the fastest and the slowest: %.4g steps (+- %.3g), %.4g "
            "seconds (+- %.3g)\nto %s\n",
            o->n - 2, o->n, steps->mean, steps->spread, seconds->mean, seconds->spread, o->target);
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
    ls_seeds_target t;
    ls_seeds_score s, time;
    int reached = 0;
    LS_TRY(ls_seeds_read_target(o->target, &t, e));
    LS_TRY(ls_file_make_dirs(o->dir, e));
    if (!o->json) ls_print("%12s %10s %12s %12s\n", "seed", "steps", "seconds", "best");
    for (int i = 0; i < o->n; i++) {
        ls_config with = *c;
        ls_seeds_run r;
        with.train.seed = c->train.seed + i;
        LS_TRY(train(o, &with, &t, &r, e));
        print_run(&r, with.train.seed, o->json);
        steps[i] = r.reached ? (double)r.steps : INFINITY;
        seconds[i] = r.reached ? r.seconds : INFINITY;
        reached += r.reached;
    }
    if (!ls_seeds_score_of(steps, o->n, &s) || !ls_seeds_score_of(seconds, o->n, &time))
        return ls_fail(e, LS_EINVAL,
                       "--target %s: %d of %d seeds reach it, and only the slowest may miss it; "
                       "train longer (train.steps), or set another target",
                       o->target, reached, o->n);
    print_score(&s, &time, o);
    return LS_OK;
}
