/* gradient_norm.h - the norm of the whole gradient, and the factor that clips it.
 *
 * Squares are summed over fixed blocks of LS_BLOCK elements, then over the blocks in order, in
 * double precision, so the bits don't depend on which worker sums which blocks. Clipping as in
 * Pascanu, Mikolov & Bengio, ICML 2013.
 */
#ifndef LS_OPTIM_GRADIENT_NORM_H
#define LS_OPTIM_GRADIENT_NORM_H

#include <stddef.h>

#include "model/model.h"

/* A flat gradient, in which running values (ls_param.momentum) do not count. */
typedef struct ls_norm_input {
    const ls_model *model;
    ls_dtype type;
    const void *x; /* [nfloats] */
} ls_norm_input;

/* sums[b] = sum of squares of block b, for the blocks of x's elements [first, end); both are
 * multiples of LS_BLOCK. On a device, which has x and sums, all in f32, it is queued. */
void ls_norm_blocks(const ls_compute *, const ls_norm_input *, size_t first, size_t end,
                    double *sums);

/* A block of x in f32, with 0 for running values: in place, or in room [LS_BLOCK]. *param_p: the
 * first parameter that may have elements in it; on return the same of the next block. */
const float *ls_norm_read_block(const ls_kernels *, const ls_norm_input *, size_t block,
                                int *param_p, float *room);

/* The root of the sum of n block sums. */
double ls_norm_total(const double *sums, size_t n);

/* The factor by which the gradient is multiplied: limit / norm if the norm exceeds the limit, else
 * 1. limit 0: off. */
double ls_clip_factor(double norm, double limit);

#endif
