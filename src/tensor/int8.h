/* int8.h - products of weights in blocks with activations that are quantized to int8.
 *
 * Activations are quantized by rows, 32 at a time (i is an element of the 32):
 *
 *     d = max |x[i]| / 127                 rounded to f32; below 2^-126: d = 0, and all q[i] = 0
 *     q[i] = x[i] / d                      rounded to f32, then to an integer, ties to even
 *
 * If an x[i] is infinite or NaN, d is NaN and all q[i] are 0: that row's results are NaN.
 *
 * Weights are w[i] = D (p[i] - c) + M with integers p[i] and f32 scales D and M of a group
 * (block.h; types without M or c have 0): Q4_0, Q4_1, Q5_0, Q5_1, Q8_0 and IQ4_NL of a block; Q4_K,
 * Q5_K and IQ4_XS of 32 elements, Q6_K, Q3_K and Q2_K of 16, with D = d s and M = -(m t), where
 * IQ4_XS and Q3_K have s - 32 for s. For each group, in order, the result continues its chain,
 * which begins at the bias or at 0:
 *
 *     y = fma(D * d, sum of (p[i] - c) q[i], y)
 *     y = fma(M, d * sum of q[i], y)       of types with M
 *
 * Sums of integers are exact, products D * d and d * sum are rounded to f32. So a result does not
 * depend on other rows, blocking, threads or the kind of processor. It differs from that of the
 * weights' values in f32, mostly by the rounding of activations.
 *
 * Source of the quantization: the activations of llama.cpp (ggml/src/ggml-quants.c, q8_0), which
 * rounds d to f16 after use, and ties away from 0.
 */
#ifndef LS_TENSOR_INT8_H
#define LS_TENSOR_INT8_H

#include "tensor/compute.h"
#include "tensor/stored.h"

/* Weights that can be multiplied so: those in blocks. */
bool ls_int8_takes(ls_block_type);

typedef struct ls_int8_product {
    int64_t M, V, C;
    ls_stored w;    /* [V, C]; rows are whole blocks */
    const float *x; /* [M, C], rows ldx apart */
    int64_t ldx;
    const float *bias; /* [V]; NULL: chains start at 0, or, to add, at y; may be y, if M is 1 */
    bool add;
    float *y; /* [M, V], rows ldy apart */
    int64_t ldy;
} ls_int8_product;

/* Uses all threads of the worker, and the work memory of ls_gemm(). Must not be called inside
 * ls_pool_run(). ls_gemm() and ls_gemv_table() call it for weights with `int8` set. */
void ls_int8_multiply(const ls_compute *, const ls_int8_product *);

#endif
