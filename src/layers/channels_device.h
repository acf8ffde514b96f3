/* channels_device.h - the steps of norms of channels (group norm, batch norm) on the call's device,
 * with the bits of tensor/norm.h.
 */
#ifndef LS_LAYERS_CHANNELS_DEVICE_H
#define LS_LAYERS_CHANNELS_DEVICE_H

#include "model/layer.h"

/* Samples of `rows` rows of C channels; `size` channels of a sample, one after the other, have a
 * mean. */
typedef struct ls_channels {
    const ls_compute *compute;
    int64_t samples, rows, C, size;
    int64_t run; /* a sum over rows is one chain over runs of `run` rows */
    float eps;
    bool relu;
    const float *gamma, *beta, *x, *dy;
    float *y, *dx;
    float *mean, *rstd; /* [samples, C / size] */
    float *sums;        /* [samples, 2, C]: of dy h, and of dy */
} ls_channels;

/* sums [samples, C], sums_row apart, of x or, with means, of squared distances from them; divided
 * by `count`. */
void ls_channels_sum(const ls_channels *, const float *mean, float count, float *sums,
                     int64_t sums_row);
/* y [samples, C / size]: the sums of a mean's channels, divided by `count`; with `root`, 1 / the
 * root of that plus eps. */
void ls_channels_join(const ls_channels *, const float *sums, int64_t sums_row, float count,
                      bool root, float *y);
void ls_channels_apply(const ls_channels *);
/* Computes `sums` from x, dy, mean and rstd. */
void ls_channels_sum_back(const ls_channels *);
/* dx, from these. rows of batch norm: those of `sums`. */
void ls_channels_group_dx(const ls_channels *);
void ls_channels_batch_dx(const ls_channels *);

#endif
