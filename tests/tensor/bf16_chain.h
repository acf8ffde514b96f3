/* bf16_chain.h - the arithmetic of products in bf16, written from the rule and not from the
 * kernels: one multiply-add is the exact sum, rounded to 24 digits as if exponents had no end; what
 * is then below 2^-126 is zero, and so are such operands. */
#ifndef LS_TEST_BF16_CHAIN_H
#define LS_TEST_BF16_CHAIN_H

#include <math.h>
#include <stdint.h>
#include <string.h>

static const float SMALLEST = 0x1p-126f;

static inline float f32_of_u32(uint32_t u) {
    float x;
    memcpy(&x, &u, sizeof x);
    return x;
}
static inline uint32_t u32_of_f32(float x) {
    uint32_t u;
    memcpy(&u, &x, sizeof u);
    return u;
}

static inline float normal_or_zero(float x) {
    return isnan(x) || fabsf(x) >= SMALLEST ? x : copysignf(0, x);
}

/* The nearest bf16: of the two neighbours the nearer one, or that with an even last digit. */
static inline float nearest_bf16(float x) {
    uint32_t down = u32_of_f32(x) & 0xffff0000u;
    float low = f32_of_u32(down), high = f32_of_u32(down + 0x10000u);
    if (isnan(x) || isinf(x)) return x;
    if (fabsf(x) < SMALLEST) return copysignf(0, x);
    double to_low = fabs((double)x - (double)low), to_high = fabs((double)high - (double)x);
    if (isinf(high)) to_high = 0x1p128 - fabs((double)x);
    return to_low < to_high || (to_low <= to_high && !(down & 0x10000u)) ? low : high;
}

/* a + b, rounded to odd: the last of 53 digits is 1 if any further one is. Rounding it again gives
 * what rounding the exact sum gives. Boldo & Melquiond, IEEE Trans. Computers 57 (2008) 462-471. */
static inline double add_to_odd(double a, double b) {
    double sum = a + b, part = sum - a, error = (a - (sum - part)) + (b - part);
    uint64_t u = 0;
    memcpy(&u, &sum, sizeof u);
    if (!isfinite(sum) || error == 0 || u & 1) return sum;
    u = (error > 0) == (sum > 0) ? u + 1 : u - 1;
    memcpy(&sum, &u, sizeof u);
    return sum;
}

static inline float chain_step(float a, float b, float c) {
    double product = (double)normal_or_zero(a) * (double)normal_or_zero(b);
    double sum = add_to_odd(product, (double)normal_or_zero(c));
    if (fabs(sum) > 0x1p-100 || isnan(sum) || sum == 0) return (float)sum;
    float scaled = (float)(sum * 0x1p60);
    return fabsf(scaled) < 0x1p-66f ? copysignf(0, scaled) : scaled * 0x1p-60f;
}

static inline int same_or_nan(float a, float b) {
    return (isnan(a) && isnan(b)) || u32_of_f32(a) == u32_of_f32(b);
}

#endif
