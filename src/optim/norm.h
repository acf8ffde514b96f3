/* norm.h - the norm of the whole gradient, and the factor that clips it.
 *
 * Squares are summed over fixed blocks of LS_BLOCK elements, then over the blocks in order, in
 * double precision, so the bits don't depend on which worker sums which blocks. Clipping as in
 * Pascanu, Mikolov & Bengio, ICML 2013.
 */
#ifndef LS_OPTIM_NORM_H
#define LS_OPTIM_NORM_H

#include <stddef.h>

#include "model/model.h"

/* A flat gradient, in which running values (ls_param.momentum) do not count. */
typedef struct ls_norm_input {
    const ls_model *model;
    ls_dtype type;
    const void *x; /* [nfloats] */
} ls_norm_input;

/* sums[b] = sum of squares of block b, for the blocks of x's elements [first, end); both are
 * multiples of LS_BLOCK. */
void ls_norm_blocks(const ls_compute *, const ls_norm_input *, size_t first, size_t end,
                    double *sums);

/* The root of the sum of n block sums. */
double ls_norm_total(const double *sums, size_t n);

/* The factor by which the gradient is multiplied: limit / norm if the norm exceeds the limit, else
 * 1. limit 0: off. */
double ls_clip_factor(double norm, double limit);

#endif
