/* sigmoid.h - the sigmoid function, for activations and losses. */
#ifndef LS_TENSOR_KERNELS_SIGMOID_H
#define LS_TENSOR_KERNELS_SIGMOID_H

#include "tensor/vec.h"

/* 1 / (1 + e^-x) within 4 ulp; 0 below -88, where e^-x would overflow v_exp. v_exp clamps NaN to a
 * number, so the sum with 0 * x restores it. */
static inline v16 v_sigmoid(v16 x) {
    const v16 zero = v_set1(0.0f), one = v_set1(1.0f), least = v_set1(-88.0f);
    v16 s = v_div(one, v_add(one, v_exp(v_sub(zero, x))));
    s = v_select(least, x, zero, s);
    v16 finite = v_min(v_set1(88.0f), v_max(least, x)); /* or NaN */
    return v_fma(finite, zero, s);
}

#endif
