/* vec_avx2.h - v16 as two registers of AVX2; see vec.h. */
#ifndef LS_TENSOR_VEC_AVX2_H
#define LS_TENSOR_VEC_AVX2_H

#include <immintrin.h>

#include "tensor/vec_dot.h"
#include "tensor/vec_flush.h"
#include "tensor/vec_transpose.h"

typedef struct v16 {
    __m256 lo, hi;
} v16;
enum { LS_V16S = 8 };

static inline v16 v_set1(float x) { return (v16){_mm256_set1_ps(x), _mm256_set1_ps(x)}; }
static inline v16 v_load(const float *p) {
    return (v16){_mm256_loadu_ps(p), _mm256_loadu_ps(p + 8)};
}
static inline void v_store(float *p, v16 a) {
    _mm256_storeu_ps(p, a.lo);
    _mm256_storeu_ps(p + 8, a.hi);
}
static inline v16 v_add(v16 a, v16 b) {
    return (v16){_mm256_add_ps(a.lo, b.lo), _mm256_add_ps(a.hi, b.hi)};
}
static inline v16 v_sub(v16 a, v16 b) {
    return (v16){_mm256_sub_ps(a.lo, b.lo), _mm256_sub_ps(a.hi, b.hi)};
}
static inline v16 v_mul(v16 a, v16 b) {
    return (v16){_mm256_mul_ps(a.lo, b.lo), _mm256_mul_ps(a.hi, b.hi)};
}
static inline v16 v_div(v16 a, v16 b) {
    return (v16){_mm256_div_ps(a.lo, b.lo), _mm256_div_ps(a.hi, b.hi)};
}
static inline v16 v_sqrt(v16 a) { return (v16){_mm256_sqrt_ps(a.lo), _mm256_sqrt_ps(a.hi)}; }
/* a > b ? a : b, also for NaN and zeros. */
static inline v16 v_max(v16 a, v16 b) {
    return (v16){_mm256_max_ps(a.lo, b.lo), _mm256_max_ps(a.hi, b.hi)};
}
static inline v16 v_min(v16 a, v16 b) {
    return (v16){_mm256_min_ps(a.lo, b.lo), _mm256_min_ps(a.hi, b.hi)};
}
static inline v16 v_select(v16 a, v16 b, v16 x, v16 y) {
    return (v16){_mm256_blendv_ps(y.lo, x.lo, _mm256_cmp_ps(a.lo, b.lo, _CMP_GT_OQ)),
                 _mm256_blendv_ps(y.hi, x.hi, _mm256_cmp_ps(a.hi, b.hi, _CMP_GT_OQ))};
}
static inline uint32_t v_half_over(__m256 a, __m256 b) {
    return (uint32_t)_mm256_movemask_ps(_mm256_cmp_ps(a, b, _CMP_GT_OQ));
}
static inline uint32_t v_over(v16 a, v16 b) {
    return v_half_over(a.lo, b.lo) | v_half_over(a.hi, b.hi) << 8;
}
#define V_HALF
static inline __m256 v_widen_bf16(const uint16_t *p) {
    __m128i h = _mm_loadu_si128((const __m128i *)p);
    return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(h), 16));
}
static inline v16 v_load_bf16(const uint16_t *p) {
    return (v16){v_widen_bf16(p), v_widen_bf16(p + 8)};
}
static inline v16 v_load_f16(const uint16_t *p) {
    return (v16){_mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)p)),
                 _mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)(p + 8)))};
}
static inline v16 v_pick_bf16(v16 a, int odd) {
    __m256i lo = _mm256_castps_si256(a.lo), hi = _mm256_castps_si256(a.hi);
    if (odd) {
        __m256i upper = _mm256_set1_epi32((int)0xffff0000u);
        lo = _mm256_and_si256(lo, upper), hi = _mm256_and_si256(hi, upper);
    } else {
        lo = _mm256_slli_epi32(lo, 16), hi = _mm256_slli_epi32(hi, 16);
    }
    return (v16){_mm256_castsi256_ps(lo), _mm256_castsi256_ps(hi)};
}
static inline v16 v_pick_f16(v16 a, int odd) {
    __m256i lo = _mm256_castps_si256(a.lo), hi = _mm256_castps_si256(a.hi);
    if (odd) {
        lo = _mm256_srli_epi32(lo, 16), hi = _mm256_srli_epi32(hi, 16);
    } else {
        __m256i lower = _mm256_set1_epi32(0xffff);
        lo = _mm256_and_si256(lo, lower), hi = _mm256_and_si256(hi, lower);
    }
    __m256i h = _mm256_permute4x64_epi64(_mm256_packus_epi32(lo, hi), 0xd8);
    return (v16){_mm256_cvtph_ps(_mm256_castsi256_si128(h)),
                 _mm256_cvtph_ps(_mm256_extracti128_si256(h, 1))};
}
#define V_BYTES
static inline __m256 v_half_of_u8(uint64_t bytes) {
    return _mm256_cvtepi32_ps(_mm256_cvtepu8_epi32(_mm_cvtsi64_si128((long long)bytes)));
}
static inline __m256 v_half_of_i8(uint64_t bytes) {
    return _mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(_mm_cvtsi64_si128((long long)bytes)));
}
static inline v16 v_of_u8(uint64_t lo, uint64_t hi) {
    return (v16){v_half_of_u8(lo), v_half_of_u8(hi)};
}
static inline v16 v_of_i8(uint64_t lo, uint64_t hi) {
    return (v16){v_half_of_i8(lo), v_half_of_i8(hi)};
}
static inline __m256 v_half_pick_i8(__m256 a, int i) {
    __m256i up = _mm256_slli_epi32(_mm256_castps_si256(a), 24 - 8 * i);
    return _mm256_cvtepi32_ps(_mm256_srai_epi32(up, 24));
}
static inline v16 v_pick_i8(v16 a, int i) {
    return (v16){v_half_pick_i8(a.lo, i), v_half_pick_i8(a.hi, i)};
}
static inline __m256 v_half_down(__m256 a, int by) {
    return _mm256_castsi256_ps(_mm256_srli_epi32(_mm256_castps_si256(a), by));
}
static inline v16 v_down(v16 a, int by) {
    return (v16){v_half_down(a.lo, by), v_half_down(a.hi, by)};
}
static inline __m256 v_half_up(__m256 a, int by) {
    return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_castps_si256(a), by));
}
static inline v16 v_up(v16 a, int by) { return (v16){v_half_up(a.lo, by), v_half_up(a.hi, by)}; }
static inline v16 v_mask(v16 a, uint32_t bits) {
    __m256 b = _mm256_castsi256_ps(_mm256_set1_epi32((int)bits));
    return (v16){_mm256_and_ps(a.lo, b), _mm256_and_ps(a.hi, b)};
}
static inline v16 v_join(v16 a, v16 b) {
    return (v16){_mm256_or_ps(a.lo, b.lo), _mm256_or_ps(a.hi, b.hi)};
}
static inline __m256 v_half_times(__m256 a, uint32_t by) {
    return _mm256_castsi256_ps(
        _mm256_mullo_epi32(_mm256_castps_si256(a), _mm256_set1_epi32((int)by)));
}
static inline v16 v_times(v16 a, uint32_t by) {
    return (v16){v_half_times(a.lo, by), v_half_times(a.hi, by)};
}
static inline __m256 v_half_pick_bits(__m256 a, int at, int n) {
    __m256i down = _mm256_castps_si256(v_half_down(a, at));
    return _mm256_cvtepi32_ps(_mm256_and_si256(down, _mm256_set1_epi32((1 << n) - 1)));
}
static inline v16 v_pick_bits(v16 a, int at, int n) {
    return (v16){v_half_pick_bits(a.lo, at, n), v_half_pick_bits(a.hi, at, n)};
}
static inline v16 v_pick_u4(v16 a, int i) { return v_pick_bits(a, 4 * i, 4); }
/* Bits stay where they are, since moving them takes an instruction: the scale that they are
 * multiplied with is made smaller instead. */
#define V_NUMBER
static inline int v_raised(int most, int i) { return most == 128 ? 24 : 8 * i; }
static inline v16 v_number(int most, int middle, v16 a, int i) {
    if (most == 128) {
        if (i < 3) a = v_up(a, 24 - 8 * i);
        if (i > 0) a = v_mask(a, 0xff000000u);
    } else {
        a = v_mask(a, (uint32_t)most << 8 * i);
    }
    v16 q = {_mm256_cvtepi32_ps(_mm256_castps_si256(a.lo)),
             _mm256_cvtepi32_ps(_mm256_castps_si256(a.hi))};
    return middle ? v_sub(q, v_set1((float)(middle << 8 * i))) : q;
}
static inline v16 v_entries(v16 a, const uint8_t table[16]) {
    __m256i of = _mm256_broadcastsi128_si256(_mm_loadu_si128((const __m128i *)table));
    __m256i lo = _mm256_castps_si256(a.lo), hi = _mm256_castps_si256(a.hi);
    return (v16){_mm256_castsi256_ps(_mm256_shuffle_epi8(of, lo)),
                 _mm256_castsi256_ps(_mm256_shuffle_epi8(of, hi))};
}
/* 16 bytes of rows i, 4 + i. */
static inline __m256i v_two_rows(const uint8_t *p, int64_t stride) {
    __m256i x = _mm256_castsi128_si256(_mm_loadu_si128((const __m128i *)p));
    return _mm256_inserti128_si256(x, _mm_loadu_si128((const __m128i *)(p + 4 * stride)), 1);
}
/* words[k] = word k of 8 rows. */
static inline void v_half_rows4(const uint8_t *p, int64_t stride, __m256 words[4]) {
    __m256i a = v_two_rows(p, stride), b = v_two_rows(p + stride, stride);
    __m256i c = v_two_rows(p + 2 * stride, stride), d = v_two_rows(p + 3 * stride, stride);
    __m256i ab = _mm256_unpacklo_epi32(a, b), cd = _mm256_unpacklo_epi32(c, d);
    words[0] = _mm256_castsi256_ps(_mm256_unpacklo_epi64(ab, cd));
    words[1] = _mm256_castsi256_ps(_mm256_unpackhi_epi64(ab, cd));
    ab = _mm256_unpackhi_epi32(a, b), cd = _mm256_unpackhi_epi32(c, d);
    words[2] = _mm256_castsi256_ps(_mm256_unpacklo_epi64(ab, cd));
    words[3] = _mm256_castsi256_ps(_mm256_unpackhi_epi64(ab, cd));
}
static inline void v_rows4(const uint8_t *p, int64_t stride, v16 words[4]) {
    __m256 lo[4], hi[4];
    v_half_rows4(p, stride, lo);
    v_half_rows4(p + 8 * stride, stride, hi);
    for (int k = 0; k < 4; k++) words[k] = (v16){lo[k], hi[k]};
}
/* a * b + c, rounded once. */
static inline v16 v_fma(v16 a, v16 b, v16 c) {
    return (v16){_mm256_fmadd_ps(a.lo, b.lo, c.lo), _mm256_fmadd_ps(a.hi, b.hi, c.hi)};
}
static inline __m256 v_pow2_half(__m256 t) {
    __m256i i = _mm256_slli_epi32(_mm256_castps_si256(t), 23);
    return _mm256_castsi256_ps(_mm256_add_epi32(i, _mm256_set1_epi32(0x3f800000)));
}
/* 2^i for the integer i in the low bits of t's pattern (see v_exp). */
static inline v16 v_pow2(v16 t) { return (v16){v_pow2_half(t.lo), v_pow2_half(t.hi)}; }

/* A register, for the GEMM's tile: of 16, 12 hold the tile, 3 a row of b, 1 a value of a. */
typedef __m256 vr;
enum { LS_VR = 8, LS_TILE_ROWS = 4, LS_TILE_REGS = 3 };

static inline vr r_set1(float x) { return _mm256_set1_ps(x); }
static inline vr r_load(const float *p) { return _mm256_loadu_ps(p); }
static inline void r_store(float *p, vr a) { _mm256_storeu_ps(p, a); }
static inline vr v_first(v16 a) { return a.lo; }
static inline v16 v_of_first(vr a) { return (v16){a, _mm256_setzero_ps()}; }
/* a * b + c, in assembly: compilers would read b from memory again for each use, and load ports are
 * the bottleneck of the tile. */
static inline vr r_add(vr a, vr b) { return _mm256_add_ps(a, b); }
static inline vr r_fma(vr a, vr b, vr c) {
    __asm__("vfmadd231ps %2, %1, %0" : "+x"(c) : "x"(a), "x"(b));
    return c;
}

static inline vr r_mul(vr a, vr b) { return _mm256_mul_ps(a, b); }
typedef __m256i vb;
typedef __m256i vsum;
enum { LS_B_MIDDLE = 0 };

static inline vb b_load(const uint8_t *p) { return _mm256_loadu_si256((const __m256i *)p); }
static inline vb b_nibbles(vb a, int high) {
    if (high) a = _mm256_srli_epi16(a, 4);
    return _mm256_and_si256(a, _mm256_set1_epi8(15));
}
static inline vb b_signed(vb a) { return a; }
static inline vsum b_dot(int most, int n, const vb *w, const int8_t *x) {
    return b_dot_256(most, n, w, x);
}
static inline vr r_of_sums(vsum a, int32_t less) {
    return _mm256_cvtepi32_ps(_mm256_sub_epi32(a, _mm256_set1_epi32(less)));
}

#endif
