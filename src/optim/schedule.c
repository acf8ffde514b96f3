/* schedule.c - see schedule.h. */
#include "optim/schedule.h"

#include <math.h>

#include "base/math.h"

/* From 0 at `first` to 1 at `end`, with 1 from there on. */
static double done(int64_t step, int64_t first, int64_t end) {
    return step >= end ? 1 : (double)(step - first) / (double)(end - first);
}

/* The part of the way from min_lr to lr that is left. */
static double left(const ls_schedule *s, int64_t step) {
    int64_t decay = s->steps - (int64_t)(s->decay_fraction * (double)s->steps);
    if (decay < s->warmup) decay = s->warmup;
    switch (s->kind) {
    case LS_SCHEDULE_COSINE:
        return step >= s->steps ? 0 : 0.5 * (1.0 + ls_math_cospi(done(step, s->warmup, s->steps)));
    case LS_SCHEDULE_LINEAR: return 1 - done(step, s->warmup, s->steps);
    case LS_SCHEDULE_WSD: return step < decay ? 1 : 1 - done(step, decay, s->steps);
    case LS_SCHEDULE_CONSTANT:
    case LS_SCHEDULE_STEP: break;
    }
    return 1;
}

/* Goyal et al., "Accurate, large minibatch SGD", arXiv 1706.02677: linear; Malladi et al., "On the
 * SDEs and scaling rules for adaptive gradient algorithms", NeurIPS 2022: the root. */
static double scale_of(const ls_config *c) {
    if (c->optim.scale_lr == LS_SCALE_OFF) return 1;
    double times = (double)c->train.batch / (double)c->optim.scale_batch;
    return c->optim.scale_lr == LS_SCALE_SQRT ? sqrt(times) : times;
}

ls_schedule ls_schedule_of(const ls_config *c) {
    double scale = scale_of(c);
    return (ls_schedule){.kind = (ls_schedule_kind)c->optim.schedule,
                         .lr = scale * c->optim.lr,
                         .min_lr = scale * c->optim.min_lr,
                         .warmup = c->optim.warmup,
                         .steps = c->train.steps,
                         .decay_fraction = c->optim.decay_fraction,
                         .step_every = c->optim.step_every,
                         .step_factor = c->optim.step_factor};
}

double ls_schedule_rate(const ls_schedule *s, int64_t step) {
    if (step < s->warmup) return s->lr * (double)(step + 1) / (double)s->warmup;
    if (s->kind == LS_SCHEDULE_CONSTANT) return s->lr;
    if (s->kind == LS_SCHEDULE_STEP)
        return s->lr *
               ls_math_pow_int(s->step_factor, (uint64_t)((step - s->warmup) / s->step_every));
    return s->min_lr + (s->lr - s->min_lr) * left(s, step);
}
