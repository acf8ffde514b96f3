/* schedule.h - the learning rate: linear warm-up, then half a cosine down to a floor.
 *
 * Source: Loshchilov & Hutter, "SGDR", ICLR 2017, without restarts. */
#ifndef LS_OPTIM_SCHEDULE_H
#define LS_OPTIM_SCHEDULE_H

#include <stdint.h>

typedef struct ls_schedule {
    double lr, min_lr;
    int64_t warmup, steps;
} ls_schedule;

/* The rate of step `step`, counted from 0. The last step of the warm-up has the full rate. */
double ls_schedule_rate(const ls_schedule *, int64_t step);

#endif
