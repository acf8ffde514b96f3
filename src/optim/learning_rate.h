/* learning_rate.h - the learning rate: linear warm-up, then one of several curves.
 *
 * Curves are functions of the samples: a step with twice the batch advances twice as far. Where all
 * steps have the same batch, they are functions of the steps. The warm-up counts steps; if it is
 * given in samples or epochs, it has the number of steps that these take.
 *
 * Cosine: Loshchilov & Hutter, "SGDR", ICLR 2017, without restarts. WSD (warm-up, stable, decay):
 * Hu et al., "MiniCPM", arXiv 2404.06395, with a linear decay. */
#ifndef LS_OPTIM_LEARNING_RATE_H
#define LS_OPTIM_LEARNING_RATE_H

#include "data/batches.h"

typedef struct ls_schedule {
    ls_schedule_kind kind;
    double lr, min_lr; /* min_lr: at the end of cosine, linear and wsd */
    int64_t warmup, steps;
    double decay_fraction; /* wsd: of all steps, at the end */
    int64_t step_every;    /* step: steps between changes, counted from the warm-up's end */
    double step_factor;    /* step: of the rate, at each change */
    ls_batches batches;    /* n 0: all steps have the same batch */
    ls_scale_kind scale;   /* of the rates, with the step's batch */
    double scale_batch;    /* the batch that lr and min_lr are for */
} ls_schedule;

/* The schedule of a config whose data set has nsamples to train on; 0: not known, then a warm-up in
 * epochs has no steps. */
ls_schedule ls_schedule_of(const ls_config *, uint64_t nsamples);
/* LS_EINVAL: the warm-up is longer than the run. */
ls_status ls_schedule_check(const ls_config *, uint64_t nsamples, ls_error *);

/* The rate of step `step`, counted from 0. The last step of the warm-up has the full rate. */
double ls_schedule_rate(const ls_schedule *, int64_t step);

#endif
