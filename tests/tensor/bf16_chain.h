/* bf16_chain.h - the arithmetic of products in bf16, written from the rule and not from the
 * kernels: one multiply-add is the exact sum, rounded to 24 digits as if exponents had no end; what
 * is then below 2^-126 is zero, and so are such operands. A product's sum is in blocks of 32. */
#ifndef LS_TEST_BF16_CHAIN_H
#define LS_TEST_BF16_CHAIN_H

#include <math.h>
#include <stdint.h>
#include <string.h>

/* Most of the time of tests that are compiled without optimization is spent here. */
#if defined __GNUC__ && !defined __clang__
#pragma GCC push_options
#pragma GCC optimize("O2")
#endif

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

static inline float flushed_sum(float a, float b) {
    return normal_or_zero(normal_or_zero(a) + normal_or_zero(b));
}

/* A sum in blocks of 32: the blocks before, and of this one the chains of even and of odd
 * places. */
typedef struct block_sum {
    float before, chains[2];
    int64_t n;
} block_sum;

static inline block_sum block_sum_from(float start) { return (block_sum){.before = start}; }

static inline float block_sum_value(const block_sum *s) {
    return s->n % 32 ? flushed_sum(s->before, flushed_sum(s->chains[0], s->chains[1])) : s->before;
}

/* The next block begins. */
static inline void block_sum_restart(block_sum *s) { *s = block_sum_from(block_sum_value(s)); }

static inline void block_sum_add(block_sum *s, float a, float b) {
    float *chain = &s->chains[s->n % 2];
    *chain = chain_step(a, b, *chain);
    if (++s->n < 32) return;
    *s = block_sum_from(flushed_sum(s->before, flushed_sum(s->chains[0], s->chains[1])));
}

static inline int same_or_nan(float a, float b) {
    return (isnan(a) && isnan(b)) || u32_of_f32(a) == u32_of_f32(b);
}

#if defined __GNUC__ && !defined __clang__
#pragma GCC pop_options
#endif

#endif
