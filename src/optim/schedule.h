/* schedule.h - the learning rate: linear warm-up, then one of several curves.
 *
 * Cosine: Loshchilov & Hutter, "SGDR", ICLR 2017, without restarts. WSD (warm-up, stable, decay):
 * Hu et al., "MiniCPM", arXiv 2404.06395, with a linear decay. */
#ifndef LS_OPTIM_SCHEDULE_H
#define LS_OPTIM_SCHEDULE_H

#include "config/config.h"

typedef struct ls_schedule {
    ls_schedule_kind kind;
    double lr, min_lr; /* min_lr: at the end of cosine, linear and wsd */
    int64_t warmup, steps;
    double decay_fraction; /* wsd: of all steps, at the end */
    int64_t step_every;    /* step: steps between changes, counted from the warm-up's end */
    double step_factor;    /* step: of the rate, at each change */
} ls_schedule;

/* That of a config. */
ls_schedule ls_schedule_of(const ls_config *);

/* The rate of step `step`, counted from 0. The last step of the warm-up has the full rate. */
double ls_schedule_rate(const ls_schedule *, int64_t step);

#endif
