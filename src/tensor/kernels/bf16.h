/* bf16.h - the arithmetic of products in bf16, one element, in plain C.
 *
 * x86-64's processors find out whether a result is below 1.2e-38 after they have rounded it to 24
 * digits. A sum whose rounding as a denormal gives 1.2e-38 may have been smaller: then it counts as
 * zero. In double precision such a sum is exact: a product has 16 digits, and both terms are either
 * of about its size, or zero, or too small to matter.
 */
#ifndef LS_TENSOR_KERNELS_BF16_H
#define LS_TENSOR_KERNELS_BF16_H

#include <float.h>
#include <math.h>
#include <stdint.h>

#include "tensor/kernels.h"
#include "tensor/kernels/half.h"

/* Rounded to a bf16, to nearest, ties to even. Denormals become zeros; a NaN stays one. Infinity,
 * whose lower half is 0, rounds to itself. */
INLINE float bf16_round(float x) {
    uint32_t u = bits_f32(x), nan = 0u - (x != x), zero = 0u - ((u & 0x7f800000u) == 0);
    uint32_t rounded = (u + ((0x7fffu + (u >> 16 & 1)) & ~nan)) | (nan & 0x400000u);
    return f32_of(rounded & 0xffff0000u & ~(zero & 0x7fffffffu));
}

INLINE uint16_t bf16_bits(float x) { return (uint16_t)(bits_f32(bf16_round(x)) >> 16); }

enum { BF16_LINE = LS_SUM_BLOCK }; /* values of a line that are rounded at a time */

/* n <= BF16_LINE values; y may be x. */
INLINE void bf16_line(int64_t n, const float *x, char *y) {
    uint16_t some[BF16_LINE];
    EACH for (int64_t i = 0; i < n; i++) some[i] = bf16_bits(x[i]);
    memcpy(y, some, (size_t)n * sizeof *some);
}

/* Value k of a line of an operand: where it is, and the bf16 nearest to it. */
INLINE const void *value_at(const ls_gemm_lines *x, int64_t line, int64_t k) {
    return (const char *)x->p + (line * x->line + k * x->step) * (x->bf16 ? 2 : 4);
}
INLINE uint16_t value_bits(const ls_gemm_lines *x, int64_t line, int64_t k) {
    uint16_t half = 0;
    float f = 0;
    const void *p = value_at(x, line, k);
    if (x->bf16)
        memcpy(&half, p, sizeof half);
    else
        memcpy(&f, p, sizeof f);
    return x->bf16 ? half : bf16_bits(f);
}

INLINE float flushed(float x) { return fabsf(x) < FLT_MIN ? copysignf(0.0f, x) : x; }

/* a * b + c for bf16 a and b. */
INLINE float bf16_fma(float a, float b, float c) {
    float x = flushed(a), y = flushed(b), z = flushed(c), r = fmaf(x, y, z);
    if (fabsf(r) != FLT_MIN) return flushed(r);
    double exact = (double)x * (double)y + (double)z;
    return fabs(exact) < 0x1p-126 * (1 - 0x1p-25) ? copysignf(0.0f, r) : r;
}

/* A sum in blocks (LS_SUM_BLOCK in kernels.h), value by value; at its end, bf16_sum_of(). Sums of
 * two numbers below 1.2e-38 are exact, so it does not matter when they are found to be so. */
typedef struct bf16_sum {
    float sum, even, odd;
    int n; /* values of the block */
} bf16_sum;

INLINE float bf16_sum_of(const bf16_sum *s) {
    return s->n ? flushed(flushed(s->sum) + flushed(s->even + s->odd)) : s->sum;
}

INLINE void bf16_add(bf16_sum *s, float a, float b) {
    float *chain = s->n % 2 ? &s->odd : &s->even;
    *chain = bf16_fma(a, b, *chain);
    if (++s->n == LS_SUM_BLOCK) *s = (bf16_sum){.sum = bf16_sum_of(s)};
}

#endif
