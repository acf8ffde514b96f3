/* vec.h - sixteen f32 lanes, the only vector type that kernels use.
 *
 * A kernel is written once over these functions and compiled once for each kind of processor; every
 * variant does the same IEEE operations in the same order, so the bits are the same (tests compare
 * with memcmp). v_fma rounds once; nothing else is ever fused (-ffp-contract=off). Sixteen lanes
 * are one AVX-512 register, two of AVX2, four of NEON.
 *
 * Included by src/tensor/kernels/ only.
 */
#ifndef LS_TENSOR_VEC_H
#define LS_TENSOR_VEC_H

#include <math.h>
#include <stdint.h>
#include <string.h>

enum { LS_LANES = 16 };

#if defined(LS_VARIANT_avx2)

#include <immintrin.h>

typedef struct v16 {
    __m256 lo, hi;
} v16;

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

/* out[k * row + i] = p[i][k] for i in 0..3, k in 0..7: any 32 bits, not aligned. */
static inline void v_transpose4(const float *const p[4], float *out, int64_t row) {
    __m256 a[4];
    for (int i = 0; i < 4; i += 2) {
        __m256 x = _mm256_loadu_ps(p[i]), y = _mm256_loadu_ps(p[i + 1]);
        a[i] = _mm256_unpacklo_ps(x, y);
        a[i + 1] = _mm256_unpackhi_ps(x, y);
    }
    for (int k = 0; k < 4; k++) {
        __m256 t = k & 1 ? _mm256_shuffle_ps(a[k / 2], a[k / 2 + 2], 0xee)
                         : _mm256_shuffle_ps(a[k / 2], a[k / 2 + 2], 0x44);
        _mm_storeu_ps(out + k * row, _mm256_castps256_ps128(t));
        _mm_storeu_ps(out + (k + 4) * row, _mm256_extractf128_ps(t, 1));
    }
}

/* A register, for the GEMM's tile: of 16, 12 hold the tile, 3 a row of b, 1 a value of a. */
typedef __m256 vr;
enum { LS_VR = 8, LS_TILE_ROWS = 4, LS_TILE_REGS = 3 };

static inline vr r_set1(float x) { return _mm256_set1_ps(x); }
static inline vr r_load(const float *p) { return _mm256_loadu_ps(p); }
static inline void r_store(float *p, vr a) { _mm256_storeu_ps(p, a); }
/* a * b + c. Written out, because compilers would read b from memory again for each use: the
 * ports that load are what the tile is short of. */
static inline vr r_fma(vr a, vr b, vr c) {
    __asm__("vfmadd231ps %2, %1, %0" : "+x"(c) : "x"(a), "x"(b));
    return c;
}

#else /* portable */

typedef struct v16 {
    float f[LS_LANES];
} v16;

#define V_EACH(expression)                                                                         \
    v16 r;                                                                                         \
    for (int i = 0; i < LS_LANES; i++) r.f[i] = (expression);                                      \
    return r

static inline v16 v_set1(float x) { V_EACH(x); }
static inline v16 v_load(const float *p) { V_EACH(p[i]); }
static inline void v_store(float *p, v16 a) { memcpy(p, a.f, sizeof a.f); }
static inline v16 v_add(v16 a, v16 b) { V_EACH(a.f[i] + b.f[i]); }
static inline v16 v_sub(v16 a, v16 b) { V_EACH(a.f[i] - b.f[i]); }
static inline v16 v_mul(v16 a, v16 b) { V_EACH(a.f[i] * b.f[i]); }
static inline v16 v_div(v16 a, v16 b) { V_EACH(a.f[i] / b.f[i]); }
static inline v16 v_sqrt(v16 a) { V_EACH(sqrtf(a.f[i])); }
static inline v16 v_max(v16 a, v16 b) { V_EACH(a.f[i] > b.f[i] ? a.f[i] : b.f[i]); }
static inline v16 v_min(v16 a, v16 b) { V_EACH(a.f[i] < b.f[i] ? a.f[i] : b.f[i]); }
static inline v16 v_fma(v16 a, v16 b, v16 c) { V_EACH(fmaf(a.f[i], b.f[i], c.f[i])); }
static inline v16 v_pow2(v16 t) {
    uint32_t u[LS_LANES];
    memcpy(u, t.f, sizeof u);
    for (int i = 0; i < LS_LANES; i++) u[i] = (u[i] << 23) + 0x3f800000u;
    memcpy(t.f, u, sizeof u);
    return t;
}
static inline void v_transpose4(const float *const p[4], float *out, int64_t row) {
    for (int k = 0; k < 8; k++)
        for (int i = 0; i < 4; i++) memcpy(out + k * row + i, p[i] + k, sizeof *out);
}

typedef struct vr {
    float f[8];
} vr;
enum { LS_VR = 8, LS_TILE_ROWS = 4, LS_TILE_REGS = 1 };

static inline vr r_set1(float x) {
    vr r;
    for (int i = 0; i < LS_VR; i++) r.f[i] = x;
    return r;
}
static inline vr r_load(const float *p) {
    vr r;
    memcpy(r.f, p, sizeof r.f);
    return r;
}
static inline void r_store(float *p, vr a) { memcpy(p, a.f, sizeof a.f); }
static inline vr r_fma(vr a, vr b, vr c) {
    for (int i = 0; i < LS_VR; i++) c.f[i] = fmaf(a.f[i], b.f[i], c.f[i]);
    return c;
}

#endif

/* ---- the same for every variant ---- */

/* Sixteen 16-bit floats in f32, exactly: those at p, or of each lane of `a`, which has two, the
 * second if `odd`, else the first. */
#ifndef V_HALF
static inline v16 v_of_bits(const uint32_t u[LS_LANES]) {
    float t[LS_LANES];
    memcpy(t, u, sizeof t);
    return v_load(t);
}
static inline v16 v_widen_bf16(uint32_t u[LS_LANES]) {
    for (int i = 0; i < LS_LANES; i++) u[i] <<= 16;
    return v_of_bits(u);
}
/* The exponent moves up by 127 - 15 with a product, which makes subnormals normal, too; infinity
 * and NaN, which have the largest exponent, get f32's largest. */
static inline v16 v_widen_f16(uint32_t u[LS_LANES]) {
    uint32_t rest[LS_LANES];
    for (int i = 0; i < LS_LANES; i++) rest[i] = (u[i] & 0x7fffu) << 13;
    float moved[LS_LANES];
    v_store(moved, v_mul(v_of_bits(rest), v_set1(0x1p112f)));
    memcpy(rest, moved, sizeof rest);
    for (int i = 0; i < LS_LANES; i++) {
        uint32_t special = 0u - ((u[i] & 0x7c00u) == 0x7c00u);
        u[i] = rest[i] | (special & 0xffu << 23) | (u[i] & 0x8000u) << 16;
    }
    return v_of_bits(u);
}
static inline void v_halves(const uint16_t *p, uint32_t u[LS_LANES]) {
    for (int i = 0; i < LS_LANES; i++) u[i] = p[i];
}
static inline void v_halves_of(v16 a, int odd, uint32_t u[LS_LANES]) {
    float t[LS_LANES];
    v_store(t, a);
    memcpy(u, t, sizeof t);
    for (int i = 0; i < LS_LANES; i++) u[i] = odd ? u[i] >> 16 : u[i] & 0xffffu;
}
static inline v16 v_load_bf16(const uint16_t *p) {
    uint32_t u[LS_LANES];
    v_halves(p, u);
    return v_widen_bf16(u);
}
static inline v16 v_load_f16(const uint16_t *p) {
    uint32_t u[LS_LANES];
    v_halves(p, u);
    return v_widen_f16(u);
}
static inline v16 v_pick_bf16(v16 a, int odd) {
    uint32_t u[LS_LANES];
    v_halves_of(a, odd, u);
    return v_widen_bf16(u);
}
static inline v16 v_pick_f16(v16 a, int odd) {
    uint32_t u[LS_LANES];
    v_halves_of(a, odd, u);
    return v_widen_f16(u);
}
#endif

/* What lies there is needed soon. Any address will do. */
static inline void v_prefetch(const void *p) { __builtin_prefetch(p, 0, 3); }

/* The first n lanes from memory, 0 in the others. n in 1..16. */
static inline v16 v_load_n(const float *p, int64_t n) {
    if (n >= LS_LANES) return v_load(p);
    float t[LS_LANES] = {0};
    memcpy(t, p, (size_t)n * sizeof *t);
    return v_load(t);
}

static inline void v_store_n(float *p, v16 a, int64_t n) {
    if (n >= LS_LANES) {
        v_store(p, a);
        return;
    }
    float t[LS_LANES];
    v_store(t, a);
    memcpy(p, t, (size_t)n * sizeof *t);
}

/* The first n lanes of a, `other` in the rest. */
static inline v16 v_keep(v16 a, int64_t n, float other) {
    if (n >= LS_LANES) return a;
    float t[LS_LANES];
    v_store(t, a);
    for (int64_t i = n; i < LS_LANES; i++) t[i] = other;
    return v_load(t);
}

/* The lanes in a fixed tree: i with i+8, i+4, i+2, i+1. */
static inline float v_sum(v16 a) {
    float t[LS_LANES];
    v_store(t, a);
    for (int w = LS_LANES / 2; w; w /= 2)
        for (int i = 0; i < w; i++) t[i] = t[i] + t[i + w];
    return t[0];
}

static inline float v_max_lane(v16 a) {
    float t[LS_LANES];
    v_store(t, a);
    for (int w = LS_LANES / 2; w; w /= 2)
        for (int i = 0; i < w; i++) t[i] = t[i] > t[i + w] ? t[i] : t[i + w];
    return t[0];
}

/* e^x: x = i ln 2 + r, |r| <= ln 2 / 2; a polynomial in r; times 2^i. Below -87.3 the result stays
 * at the smallest normal number, above 88 at 1.65e38. Polynomial: Moshier, Cephes `expf`. Error: 2
 * ulp. Adding 1.5 * 2^23 rounds to the nearest integer and leaves it in the low bits. */
static inline v16 v_exp(v16 x) {
    const v16 magic = v_set1(12582912.0f);
    x = v_min(v_max(x, v_set1(-87.3f)), v_set1(88.0f));
    v16 t = v_fma(x, v_set1(1.44269504088896341f), magic);
    v16 i = v_sub(t, magic);
    v16 r = v_fma(i, v_set1(-0.693359375f), x);
    r = v_fma(i, v_set1(2.12194440e-4f), r);
    v16 p = v_set1(1.9875691500e-4f);
    p = v_fma(p, r, v_set1(1.3981999507e-3f));
    p = v_fma(p, r, v_set1(8.3334519073e-3f));
    p = v_fma(p, r, v_set1(4.1665795894e-2f));
    p = v_fma(p, r, v_set1(1.6666665459e-1f));
    p = v_fma(p, r, v_set1(5.0000001201e-1f));
    p = v_add(v_fma(p, v_mul(r, r), r), v_set1(1.0f));
    return v_mul(p, v_pow2(t));
}

#endif
