/* target.c - see target.h. */
#include "search/target.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/json.h"
#include "config/needs.h"
#include "config/phases.h"
#include "config/relations.h"
#include "data/batches.h"
#include "optim/learning_rate.h"
#include "report/history.h"

enum { EVALUATIONS = 64 }; /* of a training */

/* ---- configs ---- */

static double rate_factor(const ls_config *c, int64_t batch) {
    double times = (double)batch / (double)c->train.batch;
    bool linear = c->optim.optimizer == LS_OPTIMIZER_SGD || c->optim.optimizer == LS_OPTIMIZER_LARS;
    return linear ? times : sqrt(times);
}

/* The samples of the config's warm-up; in epochs it is left as it is. One that the config leaves
 * open is at most a tenth of the training, as of any run. */
static void set_warmup(const ls_config *c, int64_t nsamples, ls_config *to) {
    const ls_batches b = ls_batches_of(c);
    const ls_config_span warmup = ls_config_warmup(c);
    if (warmup.unit != LS_SPAN_STEPS) return;
    double n = (double)ls_batches_sum(&b, (uint64_t)warmup.n);
    if (c->optim.warmup.n == LS_AUTO) n = fmin(n, floor((double)nsamples / 10));
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
    set_warmup(c, t->samples, &to);
    ls_config_forget_written(&to); /* it is not as it was written */
    LS_TRY(ls_config_check(&to, "--batches", e));
    LS_TRY(ls_schedule_check(&to, 0, e));
    *c_p = to;
    return LS_OK;
}

/* ---- a training ---- */

typedef struct reading {
    ls_target_curve *to;
    int64_t until;
    bool gap; /* lines of some steps were lost */
} reading;

/* An evaluation that was repeated may have two lines. */
static void add_line(void *arg, int64_t step, const ls_json *line) {
    reading *r = arg;
    ls_target_curve *c = r->to;
    double loss = 0;
    int64_t first = 0;
    if (ls_json_integer(ls_json_at(ls_json_get(line, "gap"), 0), &first) && first <= r->until)
        r->gap = true;
    if (step > r->until) return;
    if (ls_json_number(ls_json_get(line, "val_loss"), &loss)) {
        if (c->n && c->steps[c->n - 1] >= step) return;
        c->steps = ls_grow(c->steps, (size_t)c->n, sizeof *c->steps);
        c->losses = ls_grow(c->losses, (size_t)c->n, sizeof *c->losses);
        c->steps[c->n] = step;
        c->losses[c->n++] = loss;
    } else if (step == c->nsteps + 1 && ls_json_number(ls_json_get(line, "loss"), &loss)) {
        c->train = ls_grow(c->train, (size_t)c->nsteps, sizeof *c->train);
        c->train[c->nsteps++] = loss;
    }
}

ls_status ls_target_read(const char *run, int64_t batch, int64_t until, ls_target_curve *c_p,
                         ls_error *e) {
    ls_target_curve c = {.batch = batch};
    reading r = {.to = &c, .until = until};
    ls_status s = ls_history_scan(run, add_line, &r, e);
    if (s == LS_OK && r.gap)
        s = ls_fail(e, LS_EINVAL,
                    "%s/metrics.jsonl: has no losses of some steps up to step %lld; remove the "
                    "directory, and start again",
                    run, (long long)until);
    if (s == LS_OK)
        *c_p = c;
    else
        ls_target_curve_free(&c);
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
