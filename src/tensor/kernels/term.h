/* term.h - terms of softmax. */
#ifndef LS_TENSOR_KERNELS_TERM_H
#define LS_TENSOR_KERNELS_TERM_H

#include "tensor/vec.h"

/* e^d for d <= 0: 0 below v_exp's range, at 1.2e-38, NaN for NaN, which v_exp would clamp. */
static inline v16 term(v16 d) {
    const v16 least = v_set1(-87.3f), zero = v_set1(0.0f);
    v16 e = v_select(least, d, zero, v_exp(d));
    return v_fma(v_max(least, d), zero, e);
}

#endif
