/* targets.c - see targets.h. */
#include "search/targets.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/log.h"
#include "search/batch_svg.h"
#include "storage/lock.h"

enum { FIRST_PART = 8 }; /* of the samples, that all rates train at first */

/* A trial of one batch with one rate. */
typedef struct candidate {
    ls_config config;
    ls_trial trial;
    double factor;
    ls_target_curve curve;
    double steps; /* to the target; INFINITY: not reached yet */
    double loss;  /* its latest evaluation; INFINITY: it failed */
} candidate;

/* ---- one batch ---- */

static ls_status open_candidate(const ls_targets_request *o, int64_t batch, double factor,
                                candidate *x, ls_error *e) {
    x->factor = factor;
    x->steps = x->loss = INFINITY;
    LS_TRY(ls_target_config(o->config, &o->target, batch, factor, &x->config, e));
    x->trial.dir = ls_format("%s/batch-%lld-rate-%g", o->output, (long long)batch, factor);
    x->trial.config = &x->config;
    return ls_trial_open(&x->trial, e);
}

static void close_candidate(candidate *x) {
    ls_target_curve_free(&x->curve);
    free(x->trial.dir);
}

/* What a trial has come to at its rung. One whose loss is no number any more is out. */
static ls_status read_candidate(const ls_target *target, candidate *x, ls_error *e) {
    if (x->trial.diverged) {
        ls_log("batch: batch %lld, rate %.4g: diverged", (long long)x->config.train.batch,
               x->config.optim.lr);
        x->loss = INFINITY;
        return LS_OK;
    }
    ls_target_curve_free(&x->curve);
    LS_TRY(ls_target_read(x->trial.dir, x->config.train.batch, x->trial.until, &x->curve, e));
    x->steps = ls_target_steps(&x->curve, target->loss);
    x->loss = x->curve.n ? x->curve.losses[x->curve.n - 1] : INFINITY;
    return LS_OK;
}

/* Candidates that reached the target come first, by steps; then those with lower losses. */
static int better_first(const void *a, const void *b) {
    const candidate *x = *(candidate *const *)a, *y = *(candidate *const *)b;
    if (x->steps != y->steps) return x->steps < y->steps ? -1 : 1;
    if (x->loss != y->loss) return x->loss < y->loss ? -1 : 1;
    return x->factor < y->factor ? -1 : 1;
}

/* The step of a rung: a multiple of those between evaluations, one at least. */
static int64_t rung_of(const ls_config *c, int64_t part) {
    int64_t every = c->train.eval_every, all = c->train.steps;
    int64_t steps = (all / part + every - 1) / every * every;
    if (steps < every) steps = every;
    return steps < all ? steps : all;
}

/* Trains all up to their next rung. */
static ls_status train(const ls_targets_request *o, ls_runner *r, candidate **order, int n,
                       int64_t part, ls_error *e) {
    ls_trial *trials[LS_TARGET_RATES];
    for (int i = 0; i < n; i++) {
        trials[i] = &order[i]->trial;
        trials[i]->until = rung_of(&order[i]->config, part);
    }
    LS_TRY(ls_runner_train(r, trials, n, e));
    for (int i = 0; i < n; i++) LS_TRY(read_candidate(&o->target, order[i], e));
    return LS_OK;
}

/* order [n]: the best one is first in the end. */
static ls_status halve(const ls_targets_request *o, ls_runner *r, candidate **order, int n,
                       ls_error *e) {
    for (int64_t part = FIRST_PART;; part /= 2) {
        LS_TRY(train(o, r, order, n, part, e));
        qsort(order, (size_t)n, sizeof *order, better_first);
        if (isfinite(order[0]->steps) || part == 1 || !isfinite(order[0]->loss)) return LS_OK;
        n = (n + 1) / 2;
    }
}

/* Takes the curve. */
static ls_target_best best_of(candidate *x) {
    const ls_target_best b = {.batch = x->config.train.batch,
                              .trained = x->curve.nsteps,
                              .lr = x->config.optim.lr,
                              .steps = x->steps,
                              .curve = x->curve};
    bool reached = isfinite(b.steps);
    x->curve = (ls_target_curve){0};
    ls_log("batch: batch %lld: %s%.0f steps, rate %.4g", (long long)b.batch,
           reached ? "target after " : "target not reached in ",
           reached ? b.steps : (double)b.trained, b.lr);
    return b;
}

static ls_status find_best(const ls_targets_request *o, ls_runner *r, int64_t batch,
                           ls_target_best *b_p, ls_error *e) {
    candidate *all = LS_NEW_ARRAY(candidate, (size_t)o->nfactors), *order[LS_TARGET_RATES];
    ls_status s = LS_OK;
    for (int i = 0; s == LS_OK && i < o->nfactors; i++) {
        s = open_candidate(o, batch, o->factors[i], &all[i], e);
        order[i] = &all[i];
    }
    if (s == LS_OK) s = halve(o, r, order, o->nfactors, e);
    if (s == LS_OK) *b_p = best_of(order[0]);
    for (int i = 0; i < o->nfactors; i++) close_candidate(&all[i]);
    free(all);
    return s;
}

/* ---- all batches ---- */

/* At the most samples, and the most steps, that all best trainings have. */
static void compare(ls_targets *w) {
    w->samples = w->steps = INFINITY;
    for (int i = 0; i < w->asked->nbatches; i++) {
        const ls_target_best *x = &w->best[i];
        if (x->trained == 0) continue; /* all rates diverged */
        w->samples = fmin(w->samples, (double)x->trained * (double)x->batch);
        w->steps = fmin(w->steps, (double)x->trained);
    }
    for (int i = 0; i < w->asked->nbatches; i++) {
        ls_target_best *x = &w->best[i];
        double at = w->samples / (double)x->batch;
        x->val = ls_target_val(&x->curve, at);
        x->train = ls_target_train(&x->curve, at, w->samples / 8);
        x->val_steps = ls_target_val(&x->curve, w->steps);
        x->train_steps = ls_target_train(&x->curve, w->steps, w->steps * (double)x->batch / 8);
    }
}

static void find_regimes(ls_targets *w) {
    double steps[LS_TARGET_BATCHES];
    ls_target_regime regimes[LS_TARGET_BATCHES];
    int n = w->asked->nbatches;
    for (int i = 0; i < n; i++) steps[i] = w->best[i].steps;
    ls_target_regimes(w->asked->batches, steps, n, regimes);
    for (int i = 0; i < n; i++) w->best[i].regime = regimes[i];
}

static ls_status predict(ls_targets *w, ls_error *e) {
    const ls_targets_request *o = w->asked;
    LS_TRY(ls_costs_open(&o->cost, &w->costs, e));
    for (int i = 0; i < o->nbatches; i++)
        ls_costs_add(&w->costs, o->config, o->batches[i], INFINITY);
    return LS_OK;
}

/* All configs are possible, before anything is trained. */
static ls_status check_configs(const ls_targets_request *o, ls_error *e) {
    ls_config *c = LS_NEW(ls_config);
    ls_status s = LS_OK;
    for (int i = 0; i < o->nbatches; i++)
        for (int k = 0; s == LS_OK && k < o->nfactors; k++)
            s = ls_target_config(o->config, &o->target, o->batches[i], o->factors[k], c, e);
    free(c);
    return s;
}

ls_status ls_targets_run(const ls_targets_request *o, ls_targets *w, ls_error *e) {
    ls_lock lock = LS_LOCK_NONE;
    *w = (ls_targets){.asked = o};
    LS_TRY(ls_sharing_check(&o->sharing, o->config, e));
    LS_TRY(check_configs(o, e));
    LS_TRY(predict(w, e));
    LS_TRY(ls_file_make_dirs(o->output, e));
    LS_TRY(ls_lock_take(o->output, 0, &lock, e));
    ls_runner *r = ls_runner_open(&o->sharing, o->config);
    ls_status s = LS_OK;
    for (int i = 0; s == LS_OK && i < o->nbatches; i++) {
        s = find_best(o, r, o->batches[i], &w->best[i], e);
        w->costs.rows[i].steps = w->best[i].steps;
    }
    ls_runner_close(r);
    ls_lock_drop(&lock);
    LS_TRY(s);
    compare(w);
    find_regimes(w);
    return LS_OK;
}

void ls_targets_free(ls_targets *w) {
    for (int i = 0; i < w->asked->nbatches; i++) ls_target_curve_free(&w->best[i].curve);
    ls_machine_free(&w->costs.machine);
}

ls_status ls_targets_draw(const ls_targets *w, char **path_p, ls_error *e) {
    double batches[LS_TARGET_BATCHES], steps[LS_TARGET_BATCHES], perfect[LS_TARGET_BATCHES];
    double samples = NAN;
    for (int i = 0; i < w->asked->nbatches; i++) {
        batches[i] = (double)w->asked->batches[i];
        steps[i] = w->best[i].steps;
        if (isnan(samples) && isfinite(steps[i])) samples = steps[i] * batches[i];
        perfect[i] = samples / batches[i];
    }
    char *title = ls_format("steps to a validation loss of %g", w->asked->target.loss);
    const ls_batch_picture p = {
        .title = title,
        .unit = "batch, samples",
        .batches = batches,
        .n = w->asked->nbatches,
        .nlines = 2,
        .lines = {{"steps", steps, NULL, false}, {"perfect scaling", perfect, NULL, true}},
        .log_values = true};
    char *path = ls_format("%s/steps.svg", w->asked->output);
    ls_status s = ls_batch_svg_write(path, &p, e);
    free(title);
    if (s == LS_OK)
        *path_p = path;
    else
        free(path);
    return s;
}
