/* elements.h - blocks of elements of any type, for combine_test.c and variant_bits.c: random bit
 * patterns and special numbers; 16-bit floats by their definition. */
#ifndef LS_TEST_ELEMENTS_H
#define LS_TEST_ELEMENTS_H

#include <math.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "base/random.h"
#include "tensor/dtype.h"

enum { MAX_ELEMENTS = 1000, BLOCK = MAX_ELEMENTS + 64 };

/* Elements of any type, from index 1 on, so that they have only the alignment of an element. */
typedef union block {
    double f64[BLOCK];
    float f32[BLOCK];
    uint16_t h[BLOCK];
    int64_t i64[BLOCK];
    int32_t i32[BLOCK];
    int8_t i8[BLOCK];
    uint8_t u8[BLOCK];
    uint16_t u16[BLOCK];
    uint32_t u32[BLOCK];
    uint64_t u64[BLOCK];
    int16_t i16[BLOCK];
    ls_f64_i64 f64_i64[BLOCK];
    ls_f32_i32 f32_i32[BLOCK];
    ls_i64_i64 i64_i64[BLOCK];
    ls_i32_i32 i32_i32[BLOCK];
    unsigned char bytes[BLOCK * sizeof(ls_f64_i64)];
} block;

static inline void *block_at(block *b, ls_dtype dtype) { return b->bytes + ls_dtype_size(dtype); }

static inline double number_of(ls_dtype dtype, unsigned h) {
    int digits = dtype == LS_BF16 ? 7 : 10, bias = dtype == LS_BF16 ? 127 : 15;
    int exponent = (int)(h & 0x7fff) >> digits, mantissa = (int)(h & ((1u << digits) - 1));
    double sign = h & 0x8000 ? -1 : 1;
    if (exponent == 2 * bias + 1) return mantissa ? NAN : sign * INFINITY;
    if (exponent == 0) return sign * ldexp(mantissa, 1 - bias - digits);
    return sign * ldexp(mantissa + (1 << digits), exponent - bias - digits);
}

/* Rounds to nearest; rint() rounds ties to even. */
static inline uint16_t pattern_of(ls_dtype dtype, double x) {
    int digits = dtype == LS_BF16 ? 7 : 10, bias = dtype == LS_BF16 ? 127 : 15;
    int infinity = (2 * bias + 1) << digits, sign = signbit(x) ? 0x8000 : 0;
    if (isnan(x)) return (uint16_t)(infinity | 1 << (digits - 1));
    if (isinf(x)) return (uint16_t)(sign | infinity);
    int exponent = x == 0 || ilogb(x) < 1 - bias ? 1 - bias : ilogb(x);
    if (exponent > bias) return (uint16_t)(sign | infinity);
    int h = (exponent + bias - 1) * (1 << digits) + (int)rint(ldexp(fabs(x), digits - exponent));
    return (uint16_t)(sign | h);
}

static inline uint64_t random_bits(uint64_t which, uint64_t i) {
    uint32_t w[4];
    ls_random_words(11, LS_STREAM_SAMPLE, which, i, w);
    return (uint64_t)w[0] << 32 | w[1];
}

/* Bit patterns, every third of a moderate number; some infinities, zeros of both signs and, on
 * request, NaNs. */
static inline void fill_block(block *v, ls_dtype dtype, uint64_t which, bool nans) {
    static const double odd[] = {0.0, -0.0, INFINITY, -INFINITY, NAN, 1e-40, 65504, -1};
    for (size_t i = 0; i < BLOCK; i++) {
        uint64_t u = random_bits(which, i);
        double x = (double)(int64_t)u / 1e18;
        if (u % 16 < 8) x = odd[(u >> 8) % 8];
        bool pattern = i % 3 == 0;
        if (dtype == LS_F64) memcpy(&v->f64[i], &u, sizeof u);
        if (dtype == LS_F32) memcpy(&v->f32[i], &u, sizeof v->f32[i]);
        if (dtype == LS_BF16 || dtype == LS_F16)
            v->h[i] = pattern ? (uint16_t)u : pattern_of(dtype, x);
        if (dtype == LS_F64 && (!pattern || isnan(v->f64[i]))) v->f64[i] = x;
        if (dtype == LS_F32 && (!pattern || isnan(v->f32[i]))) v->f32[i] = (float)x;
        if (dtype == LS_F64 && !nans && isnan(v->f64[i])) v->f64[i] = 1;
        if (dtype == LS_F32 && !nans && isnan(v->f32[i])) v->f32[i] = 1;
        if (dtype == LS_I64 || dtype == LS_U64) v->i64[i] = (int64_t)u;
        if (dtype == LS_I32 || dtype == LS_U32) v->i32[i] = (int32_t)(uint32_t)u;
        if (dtype == LS_U16 || dtype == LS_I16) v->u16[i] = (uint16_t)u;
        if (ls_dtype_size(dtype) == 1) v->u8[i] = (uint8_t)u;
        if (dtype == LS_BOOL) v->u8[i] = u % 2;
        /* Few values, so that many are equal. */
        double few = u % 8 < 6 ? odd[u % 5] : (double)(u >> 8 & 3);
        int64_t index = (int64_t)(u >> 16 & 7) - 3;
        if (dtype == LS_F64_I64) v->f64_i64[i] = (ls_f64_i64){few, index};
        if (dtype == LS_F32_I32) v->f32_i32[i] = (ls_f32_i32){(float)few, (int32_t)index};
        if (dtype == LS_I64_I64) v->i64_i64[i] = (ls_i64_i64){(int64_t)(u & 3) - 2, index};
        if (dtype == LS_I32_I32) v->i32_i32[i] = (ls_i32_i32){(int32_t)(u & 3) - 2, (int32_t)index};
    }
}

/* A NaN from a sum or product of f32 or f64 may have any payload. */
static inline bool any_nan(ls_dtype dtype, ls_op op) {
    return ls_op_takes(LS_AVG, dtype) && ls_dtype_size(dtype) >= 4 && op != LS_MIN && op != LS_MAX;
}

static inline void settle_nans(block *v, ls_dtype dtype, ls_op op) {
    for (size_t i = 0; i < BLOCK && any_nan(dtype, op); i++) {
        if (dtype == LS_F64 && isnan(v->f64[i])) v->f64[i] = NAN;
        if (dtype == LS_F32 && isnan(v->f32[i])) v->f32[i] = NAN;
    }
}

#endif
