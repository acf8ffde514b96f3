/* update_device.h - updates of optimizers (kernels.h), queued on the device of a compute, in
 * f32. */
#ifndef LS_TENSOR_UPDATE_DEVICE_H
#define LS_TENSOR_UPDATE_DEVICE_H

#include "tensor/compute.h"

/* Does a device have a kernel for the rule? */
bool ls_update_device_has(ls_update_rule);
/* Of n elements, as ls_update_kernel. */
typedef struct ls_update_device_call {
    ls_update_rule rule;
    int64_t n;
    const ls_update_scalars *scalars;
    const float *grad;
    float *param;
    float *const *states;
} ls_update_device_call;
void ls_update_device(const ls_compute *, const ls_update_device_call *);
/* first: the mean begins with x. */
void ls_update_device_ema(const ls_compute *, int64_t n, float weight, bool first, const float *x,
                          float *mean);
/* Of n running values x (ls_param.momentum), by the sum [n] of a batch's. */
typedef struct ls_running_call {
    int64_t n;
    float momentum, samples;
    bool balances;
} ls_running_call;
void ls_update_device_running(const ls_compute *, const ls_running_call *, const float *sum,
                              float *x);
/* sums[b] = the sum of the squares of block b of x, for nblocks blocks of `size` numbers. Those
 * from 16 i on do not count where bit i of `without` is set; then blocks have at most 1024. */
typedef struct ls_squares_call {
    int64_t nblocks, size;
    uint64_t without;
} ls_squares_call;
void ls_update_device_squares(const ls_compute *, const ls_squares_call *, const float *x,
                              double *sums);

#endif
