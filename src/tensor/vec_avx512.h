/* vec_avx512.h - v16 as one register of AVX-512; see vec.h. Needs only AVX512F.
 *
 * tests/tensor/avx512_mock/ has these intrinsics in plain C, for processors without them.
 */
#ifndef LS_TENSOR_VEC_AVX512_H
#define LS_TENSOR_VEC_AVX512_H

#include <immintrin.h>

#include "tensor/vec_dot.h"
#include "tensor/vec_flush.h"
#include "tensor/vec_transpose.h"

typedef struct v16 {
    __m512 all;
} v16;
enum { LS_V16S = 32 };

static inline v16 v_set1(float x) { return (v16){_mm512_set1_ps(x)}; }
static inline v16 v_load(const float *p) { return (v16){_mm512_loadu_ps(p)}; }
static inline void v_store(float *p, v16 a) { _mm512_storeu_ps(p, a.all); }
static inline v16 v_add(v16 a, v16 b) { return (v16){_mm512_add_ps(a.all, b.all)}; }
static inline v16 v_sub(v16 a, v16 b) { return (v16){_mm512_sub_ps(a.all, b.all)}; }
static inline v16 v_mul(v16 a, v16 b) { return (v16){_mm512_mul_ps(a.all, b.all)}; }
static inline v16 v_div(v16 a, v16 b) { return (v16){_mm512_div_ps(a.all, b.all)}; }
static inline v16 v_sqrt(v16 a) { return (v16){_mm512_sqrt_ps(a.all)}; }
static inline v16 v_max(v16 a, v16 b) { return (v16){_mm512_max_ps(a.all, b.all)}; }
static inline v16 v_min(v16 a, v16 b) { return (v16){_mm512_min_ps(a.all, b.all)}; }
static inline v16 v_select(v16 a, v16 b, v16 x, v16 y) {
    return (v16){_mm512_mask_blend_ps(_mm512_cmp_ps_mask(a.all, b.all, _CMP_GT_OQ), y.all, x.all)};
}
static inline uint32_t v_over(v16 a, v16 b) {
    return (uint32_t)_mm512_cmp_ps_mask(a.all, b.all, _CMP_GT_OQ);
}
#define V_PACK
static inline int64_t v_pack_numbers(uint32_t bits, uint32_t first, uint32_t *out) {
    const __m512i lanes = _mm512_set_epi32(15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0);
    __m512i numbers = _mm512_add_epi32(lanes, _mm512_set1_epi32((int)first));
    _mm512_storeu_ps(out,
                     _mm512_castsi512_ps(_mm512_maskz_compress_epi32((__mmask16)bits, numbers)));
    return __builtin_popcount(bits);
}
#define V_HALF
static inline v16 v_widen_bf16(__m512i low) {
    return (v16){_mm512_castsi512_ps(_mm512_slli_epi32(low, 16))};
}
static inline v16 v_load_bf16(const uint16_t *p) {
    return v_widen_bf16(_mm512_cvtepu16_epi32(_mm256_loadu_si256((const __m256i *)p)));
}
static inline v16 v_load_f16(const uint16_t *p) {
    return (v16){_mm512_cvtph_ps(_mm256_loadu_si256((const __m256i *)p))};
}
static inline __m512i v_picked(v16 a, int odd) {
    __m512i pairs = _mm512_castps_si512(a.all);
    return odd ? _mm512_srli_epi32(pairs, 16) : pairs;
}
static inline v16 v_pick_bf16(v16 a, int odd) { return v_widen_bf16(v_picked(a, odd)); }
static inline v16 v_pick_f16(v16 a, int odd) {
    return (v16){_mm512_cvtph_ps(_mm512_cvtepi32_epi16(v_picked(a, odd)))};
}
#define V_BYTES
static inline v16 v_of_u8(uint64_t lo, uint64_t hi) {
    __m128i bytes = _mm_set_epi64x((long long)hi, (long long)lo);
    return (v16){_mm512_cvtepi32_ps(_mm512_cvtepu8_epi32(bytes))};
}
static inline v16 v_of_i8(uint64_t lo, uint64_t hi) {
    __m128i bytes = _mm_set_epi64x((long long)hi, (long long)lo);
    return (v16){_mm512_cvtepi32_ps(_mm512_cvtepi8_epi32(bytes))};
}
/* n bits from `at` on, with those of `flip` inverted, less `middle`: they become the low part of a
 * float's mantissa, and the float without them is subtracted, too. */
static inline v16 v_pick(v16 a, int at, int n, int flip, int middle) {
    __m512i words = _mm512_castps_si512(a.all);
    if (at + n > 23) words = _mm512_srli_epi32(words, 16), at -= 16;
    int bits = (1 << n) - 1, zero = (127 + 23 - at) << 23;
    __m512i one = _mm512_ternarylogic_epi32(words, _mm512_set1_epi32(bits << at),
                                            _mm512_set1_epi32(zero | flip << at), 0x6a);
    return (v16){_mm512_sub_ps(_mm512_castsi512_ps(one),
                               _mm512_set1_ps((float)((1 << (23 - at)) + middle)))};
}
static inline v16 v_pick_i8(v16 a, int i) { return v_pick(a, 8 * i, 8, 128, 128); }
static inline v16 v_pick_bits(v16 a, int at, int n) { return v_pick(a, at, n, 0, 0); }
static inline v16 v_down(v16 a, int by) {
    return (v16){_mm512_castsi512_ps(_mm512_srli_epi32(_mm512_castps_si512(a.all), (unsigned)by))};
}
static inline v16 v_up(v16 a, int by) {
    return (v16){_mm512_castsi512_ps(_mm512_slli_epi32(_mm512_castps_si512(a.all), (unsigned)by))};
}
static inline v16 v_mask(v16 a, uint32_t bits) {
    __m512i b = _mm512_set1_epi32((int)bits);
    return (v16){_mm512_castsi512_ps(_mm512_and_si512(_mm512_castps_si512(a.all), b))};
}
static inline v16 v_join(v16 a, v16 b) {
    return (v16){_mm512_castsi512_ps(
        _mm512_or_si512(_mm512_castps_si512(a.all), _mm512_castps_si512(b.all)))};
}
static inline v16 v_times(v16 a, uint32_t by) {
    __m512i b = _mm512_set1_epi32((int)by);
    return (v16){_mm512_castsi512_ps(_mm512_mullo_epi32(_mm512_castps_si512(a.all), b))};
}
/* Permuting reads the low four bits of an index. */
static inline v16 v_pick_u4(v16 a, int i) {
    const __m512 of = _mm512_set_ps(15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0);
    __m512i at = _mm512_srli_epi32(_mm512_castps_si512(a.all), (unsigned)(4 * i));
    return (v16){_mm512_permutexvar_ps(at, of)};
}
/* Less 8. */
static inline v16 v_pick_s4(v16 a, int i) {
    const __m512 of = _mm512_set_ps(7, 6, 5, 4, 3, 2, 1, 0, -1, -2, -3, -4, -5, -6, -7, -8);
    __m512i at = _mm512_srli_epi32(_mm512_castps_si512(a.all), (unsigned)(4 * i));
    return (v16){_mm512_permutexvar_ps(at, of)};
}
#define V_NUMBER
static inline int v_raised(int most, int i) { return (void)most, (void)i, 0; }
static inline v16 v_number(int most, int middle, v16 a, int i) {
    if (most == 128) return v_pick_i8(a, i);
    if (most == 15) return middle ? v_pick_s4(a, 2 * i) : v_pick_u4(a, 2 * i);
    return v_pick(a, 8 * i, __builtin_popcount((unsigned)most), 0, middle);
}
/* AVX512F has no permutations of bytes: both halves as with AVX2. */
static inline v16 v_entries(v16 a, const uint8_t table[16]) {
    __m256i of = _mm256_broadcastsi128_si256(_mm_loadu_si128((const __m128i *)table));
    __m512i all = _mm512_castps_si512(a.all);
    __m256i lo = _mm256_shuffle_epi8(of, _mm512_castsi512_si256(all));
    __m256i hi = _mm256_shuffle_epi8(of, _mm512_extracti64x4_epi64(all, 1));
    return (v16){_mm512_castsi512_ps(_mm512_inserti64x4(_mm512_castsi256_si512(lo), hi, 1))};
}
/* 16 bytes of rows i, 4 + i, 8 + i, 12 + i. */
static inline __m512i v_four_rows(const uint8_t *p, int64_t stride) {
    __m512i x = _mm512_castsi128_si512(_mm_loadu_si128((const __m128i *)p));
    x = _mm512_inserti32x4(x, _mm_loadu_si128((const __m128i *)(p + 4 * stride)), 1);
    x = _mm512_inserti32x4(x, _mm_loadu_si128((const __m128i *)(p + 8 * stride)), 2);
    return _mm512_inserti32x4(x, _mm_loadu_si128((const __m128i *)(p + 12 * stride)), 3);
}
/* In assembly: compilers would compute the addresses of all rows. */
static inline const uint8_t *v_next_row(const uint8_t *p, int64_t stride) {
    p += stride;
    __asm__("" : "+r"(p));
    return p;
}
static inline void v_rows4(const uint8_t *p, int64_t stride, v16 words[4]) {
    __m512i a = v_four_rows(p, stride);
    p = v_next_row(p, stride);
    __m512i b = v_four_rows(p, stride);
    p = v_next_row(p, stride);
    __m512i c = v_four_rows(p, stride);
    p = v_next_row(p, stride);
    __m512i d = v_four_rows(p, stride);
    __m512i ab = _mm512_unpacklo_epi32(a, b), cd = _mm512_unpacklo_epi32(c, d);
    words[0].all = _mm512_castsi512_ps(_mm512_unpacklo_epi64(ab, cd));
    words[1].all = _mm512_castsi512_ps(_mm512_unpackhi_epi64(ab, cd));
    ab = _mm512_unpackhi_epi32(a, b), cd = _mm512_unpackhi_epi32(c, d);
    words[2].all = _mm512_castsi512_ps(_mm512_unpacklo_epi64(ab, cd));
    words[3].all = _mm512_castsi512_ps(_mm512_unpackhi_epi64(ab, cd));
}
static inline v16 v_fma(v16 a, v16 b, v16 c) { return (v16){_mm512_fmadd_ps(a.all, b.all, c.all)}; }
static inline v16 v_pow2(v16 t) {
    __m512i i = _mm512_slli_epi32(_mm512_castps_si512(t.all), 23);
    return (v16){_mm512_castsi512_ps(_mm512_add_epi32(i, _mm512_set1_epi32(0x3f800000)))};
}

/* A register, for the GEMM's tile: of 32, 24 hold the tile, 3 a row of b, 1 a value of a. */
typedef __m512 vr;
enum { LS_VR = 16, LS_TILE_ROWS = 8, LS_TILE_REGS = 3 };

static inline vr r_set1(float x) { return _mm512_set1_ps(x); }
static inline vr r_load(const float *p) { return _mm512_loadu_ps(p); }
static inline void r_store(float *p, vr a) { _mm512_storeu_ps(p, a); }
static inline vr v_first(v16 a) { return a.all; }
static inline v16 v_of_first(vr a) { return (v16){a}; }
static inline vr r_add(vr a, vr b) { return _mm512_add_ps(a, b); }
static inline vr r_fma(vr a, vr b, vr c) { return _mm512_fmadd_ps(a, b, c); }

static inline vr r_mul(vr a, vr b) { return _mm512_mul_ps(a, b); }
#ifdef LS_VNNI
/* VPDPBUSD adds four products of unsigned and signed bytes to 32 bits. Signed bytes become unsigned
 * ones by adding 128. */
typedef __m512i vb;
typedef __m512i vsum;
enum { LS_B_MIDDLE = 128 };

static inline vb b_load(const uint8_t *p) { return _mm512_loadu_si512(p); }
static inline vb b_nibbles(vb a, int high) {
    if (high) a = _mm512_srli_epi32(a, 4);
    return _mm512_and_si512(a, _mm512_set1_epi32(0x0f0f0f0f));
}
static inline vb b_signed(vb a) { return _mm512_xor_si512(a, _mm512_set1_epi32((int)0x80808080u)); }
static inline vsum b_dot(int most, int n, const vb *w, const int8_t *x) {
    vsum sum = _mm512_setzero_si512();
    (void)most;
    _Pragma("GCC unroll 8") for (int k = 0; k < n; k++) {
        int word = 0;
        memcpy(&word, x + 4 * k, sizeof word);
        sum = _mm512_dpbusd_epi32(sum, w[k], _mm512_set1_epi32(word));
    }
    return sum;
}
static inline vr r_of_sums(vsum a, int32_t less) {
    return _mm512_cvtepi32_ps(_mm512_sub_epi32(a, _mm512_set1_epi32(less)));
}
#else
/* AVX512F has no products of bytes: both halves as with AVX2. */
typedef struct vb {
    __m256i lo, hi;
} vb;
typedef vb vsum;
enum { LS_B_MIDDLE = 0 };

static inline vb b_load(const uint8_t *p) {
    return (vb){_mm256_loadu_si256((const __m256i *)p), _mm256_loadu_si256((const __m256i *)p + 1)};
}
static inline __m256i b_half_nibbles(__m256i a, int high) {
    if (high) a = _mm256_srli_epi16(a, 4);
    return _mm256_and_si256(a, _mm256_set1_epi8(15));
}
static inline vb b_nibbles(vb a, int high) {
    return (vb){b_half_nibbles(a.lo, high), b_half_nibbles(a.hi, high)};
}
static inline vb b_signed(vb a) { return a; }
static inline vsum b_dot(int most, int n, const vb *w, const int8_t *x) {
    __m256i lo[8], hi[8];
    for (int k = 0; k < n; k++) lo[k] = w[k].lo, hi[k] = w[k].hi;
    return (vsum){b_dot_256(most, n, lo, x), b_dot_256(most, n, hi, x)};
}
static inline vr r_of_sums(vsum a, int32_t less) {
    __m512i all = _mm512_inserti64x4(_mm512_castsi256_si512(a.lo), a.hi, 1);
    return _mm512_cvtepi32_ps(_mm512_sub_epi32(all, _mm512_set1_epi32(less)));
}
#endif

#endif
