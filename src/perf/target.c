/* target.c - see target.h. */
#include "perf/target.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/json.h"
#include "base/lines.h"
#include "config/needs.h"
#include "config/phases.h"
#include "config/relations.h"
#include "data/batches.h"
#include "optim/schedule.h"
#include "report/history.h"

enum { EVALUATIONS = 64 }; /* of a training */

/* ---- configs ---- */

static double rate_factor(const ls_config *c, int64_t batch) {
    double times = (double)batch / (double)c->train.batch;
    bool linear = c->optim.optimizer == LS_OPTIMIZER_SGD || c->optim.optimizer == LS_OPTIMIZER_LARS;
    return linear ? times : sqrt(times);
}

/* The samples of the config's warm-up; in epochs it is left as it is. */
static void set_warmup(const ls_config *c, ls_config *to) {
    const ls_batches b = ls_batches_of(c);
    if (c->optim.warmup.unit != LS_SPAN_STEPS) return;
    double n = (double)ls_batches_sum(&b, (uint64_t)c->optim.warmup.n);
    to->optim.warmup = (ls_config_span){n, LS_SPAN_SAMPLES};
}

ls_status ls_target_config(const ls_config *c, const ls_target *t, int64_t batch, double factor,
                           ls_config *c_p, ls_error *e) {
    ls_config to = *c;
    int64_t V = c->train.virtual_workers, every = t->samples / EVALUATIONS / batch;
    if (c->sync.mode == LS_SYNC_ASYNC || c->optim.optimizer == LS_OPTIMIZER_SCHEDULE_FREE)
        return ls_fail(
            e, LS_EINVAL, "--steps-to: not with %s, whose rates and batches can't be set like this",
            c->sync.mode == LS_SYNC_ASYNC ? "sync.mode async" : "optim.optimizer schedule-free");
    ls_config_set_batch(&to, batch);
    if (batch >= V && to.train.micro_batch > batch / V) to.train.micro_batch = batch / V;
    to.train.steps = (t->samples + batch - 1) / batch;
    to.train.eval_every = every > 0 ? every : 1;
    to.train.patience = 0;
    to.checkpoint.every = 0;
    to.checkpoint.minutes = 0;
    to.checkpoint.best = LS_BEST_OFF;
    to.optim.schedule = LS_SCHEDULE_CONSTANT;
    to.optim.lr = c->optim.lr * factor * rate_factor(c, batch);
    if (to.optim.lr > 1000)
        return ls_fail(e, LS_EINVAL,
                       "--rates %g: with a batch of %lld the learning rate is %g, and 1000 is the "
                       "most; use lower ones",
                       factor, (long long)batch, to.optim.lr);
    to.optim.scale_lr = LS_SCALE_OFF;
    to.optim.scale_batch = 0;
    set_warmup(c, &to);
    ls_config_forget_written(&to); /* it is not as it was written */
    LS_TRY(ls_config_check(&to, "--batches", e));
    LS_TRY(ls_schedule_check(&to, 0, e));
    *c_p = to;
    return LS_OK;
}

/* ---- a training ---- */

static void add_line(ls_target_curve *c, const ls_line *line) {
    ls_json *j = NULL;
    int64_t step = 0;
    double loss = 0;
    if (line->too_long || !line->whole) return;
    if (ls_json_parse(line->text, line->nbytes, "a line", &j, NULL) != LS_OK) return;
    bool has_step = ls_json_integer(ls_json_get(j, "step"), &step);
    if (has_step && ls_json_number(ls_json_get(j, "val_loss"), &loss)) {
        c->steps = ls_grow(c->steps, (size_t)c->n, sizeof *c->steps);
        c->losses = ls_grow(c->losses, (size_t)c->n, sizeof *c->losses);
        c->steps[c->n] = step;
        c->losses[c->n++] = loss;
    } else if (has_step && step == c->nsteps + 1 && ls_json_number(ls_json_get(j, "loss"), &loss)) {
        c->train = ls_grow(c->train, (size_t)c->nsteps, sizeof *c->train);
        c->train[c->nsteps++] = loss;
    }
    ls_json_free(j);
}

ls_status ls_target_read(const char *run, int64_t batch, ls_target_curve *c_p, ls_error *e) {
    char *path = ls_metrics_path(run);
    ls_lines *lines = NULL;
    ls_line line;
    bool there = false;
    *c_p = (ls_target_curve){.batch = batch};
    ls_status s = ls_lines_open(path, false, &lines, e);
    free(path);
    LS_TRY(s);
    while ((s = ls_lines_next(lines, &line, &there, e)) == LS_OK && there) add_line(c_p, &line);
    ls_lines_close(lines);
    if (s != LS_OK) ls_target_curve_free(c_p);
    return s;
}

void ls_target_curve_free(ls_target_curve *c) {
    free(c->steps);
    free(c->losses);
    free(c->train);
    *c = (ls_target_curve){0};
}

double ls_target_steps(const ls_target_curve *c, double loss) {
    for (int i = 0; i < c->n; i++) {
        if (!(c->losses[i] <= loss)) continue;
        if (i == 0) return (double)c->steps[0];
        double part = (c->losses[i - 1] - loss) / (c->losses[i - 1] - c->losses[i]);
        return (double)c->steps[i - 1] + part * (double)(c->steps[i] - c->steps[i - 1]);
    }
    return INFINITY;
}

double ls_target_val(const ls_target_curve *c, double steps) {
    double loss = NAN;
    for (int i = 0; i < c->n && (double)c->steps[i] <= steps; i++) loss = c->losses[i];
    return loss;
}

double ls_target_train(const ls_target_curve *c, double steps, double samples) {
    int64_t end = (int64_t)steps, n = (int64_t)ceil(samples / (double)c->batch);
    double sum = 0;
    if (end > c->nsteps) end = c->nsteps;
    if (n > end) n = end;
    for (int64_t i = end - n; i < end; i++) sum += c->train[i];
    return n > 0 ? sum / (double)n : NAN;
}

/* ---- all batches ---- */

void ls_target_regimes(const int64_t *batches, const double *steps, int n,
                       ls_target_regime *regimes) {
    double least = INFINITY;
    int before = -1; /* the last batch that reached the target */
    for (int i = 0; i < n; i++) {
        regimes[i] = LS_REGIME_UNREACHED;
        if (!isfinite(steps[i])) continue;
        double samples = steps[i] * (double)batches[i];
        least = fmin(least, samples);
        regimes[i] = samples <= 1.25 * least ? LS_REGIME_PERFECT : LS_REGIME_DIMINISHING;
        if (before >= 0 && regimes[i] == LS_REGIME_DIMINISHING) {
            double doublings = log2((double)batches[i] / (double)batches[before]);
            if (log2(steps[before] / steps[i]) < 0.1 * doublings) regimes[i] = LS_REGIME_STAGNATION;
        }
        before = i;
    }
}

const char *ls_target_regime_name(ls_target_regime r) {
    static const char *const names[] = {"perfect scaling", "diminishing returns", "stagnation",
                                        "not reached"};
    return names[r];
}
