/* learning_rate.c - see learning_rate.h. */
#include "optim/learning_rate.h"

#include <math.h>

#include "base/math.h"

static uint64_t samples(const ls_schedule *s, int64_t steps) {
    return s->batches.n ? ls_batches_sum(&s->batches, (uint64_t)steps) : (uint64_t)steps;
}

/* From 0 at step `first` to 1 at `end`, with 1 from there on. */
static double done(const ls_schedule *s, int64_t step, int64_t first, int64_t end) {
    uint64_t from = samples(s, first);
    return step >= end ? 1 : (double)(samples(s, step) - from) / (double)(samples(s, end) - from);
}

/* The part of the way from min_lr to lr that is left. */
static double left(const ls_schedule *s, int64_t step) {
    int64_t decay = s->steps - (int64_t)ls_math_times(s->decay_fraction, (double)s->steps);
    if (decay < s->warmup) decay = s->warmup;
    switch (s->kind) {
    case LS_SCHEDULE_COSINE:
        return step >= s->steps ? 0
                                : 0.5 * (1.0 + ls_math_cospi(done(s, step, s->warmup, s->steps)));
    case LS_SCHEDULE_LINEAR: return 1 - done(s, step, s->warmup, s->steps);
    case LS_SCHEDULE_WSD: return step < decay ? 1 : 1 - done(s, step, decay, s->steps);
    case LS_SCHEDULE_CONSTANT:
    case LS_SCHEDULE_STEP: break;
    }
    return 1;
}

/* Goyal et al., "Accurate, large minibatch SGD", arXiv 1706.02677: linear; Malladi et al., "On the
 * SDEs and scaling rules for adaptive gradient algorithms", NeurIPS 2022: the root. */
static double scale_at(const ls_schedule *s, int64_t step) {
    if (s->scale == LS_SCALE_OFF) return 1;
    double times = (double)ls_batches_size(&s->batches, (uint64_t)step) / s->scale_batch;
    return s->scale == LS_SCALE_SQRT ? sqrt(times) : times;
}

/* More than all steps of the run: train.steps + 1. */
static int64_t warmup_of(const ls_config *c, const ls_batches *b, uint64_t nsamples) {
    const ls_config_span w = ls_config_warmup(c);
    int64_t most = c->train.steps + 1;
    switch (w.unit) {
    case LS_SPAN_SAMPLES: return ls_batches_steps(b, w.n, 0, most);
    case LS_SPAN_EPOCHS:
        return nsamples ? ls_batches_steps(b, ls_math_times(w.n, (double)nsamples), nsamples, most)
                        : 0;
    case LS_SPAN_STEPS: break;
    }
    return (int64_t)w.n;
}

ls_status ls_schedule_check(const ls_config *c, uint64_t nsamples, ls_error *e) {
    static const char *const units[] = {"steps", "samples", "epochs"};
    const ls_batches b = ls_batches_of(c);
    if (warmup_of(c, &b, nsamples) <= c->train.steps) return LS_OK;
    return ls_fail(e, LS_EINVAL,
                   "optim.warmup %.15g %s: train.steps %lld are fewer; use a shorter warm-up, or "
                   "more steps",
                   c->optim.warmup.n, units[c->optim.warmup.unit], (long long)c->train.steps);
}

ls_schedule ls_schedule_of(const ls_config *c, uint64_t nsamples) {
    const ls_batches b = ls_batches_of(c);
    return (ls_schedule){.kind = c->optim.schedule,
                         .lr = c->optim.lr,
                         .min_lr = c->optim.min_lr,
                         .warmup = warmup_of(c, &b, nsamples),
                         .steps = c->train.steps,
                         .decay_fraction = c->optim.decay_fraction,
                         .step_every = c->optim.step_every,
                         .step_factor = c->optim.step_factor,
                         .batches = b,
                         .scale = c->optim.scale_lr,
                         .scale_batch = (double)c->optim.scale_batch};
}

double ls_schedule_rate(const ls_schedule *s, int64_t step) {
    double scale = scale_at(s, step), lr = scale * s->lr, min_lr = scale * s->min_lr;
    if (step < s->warmup) return lr * (double)(step + 1) / (double)s->warmup;
    if (s->kind == LS_SCHEDULE_CONSTANT) return lr;
    if (s->kind == LS_SCHEDULE_STEP)
        return lr * ls_math_pow_int(s->step_factor, (uint64_t)((step - s->warmup) / s->step_every));
    return min_lr + (lr - min_lr) * left(s, step);
}
