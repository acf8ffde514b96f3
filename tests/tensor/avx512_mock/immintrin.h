/* immintrin.h - what vec_avx512.h uses of the compiler's header of that name, in plain C.
 *
 * The compiler finds this header first, so the AVX-512 variant can be compiled and run on any
 * processor, and its bits compared. It has only the intrinsics in use; each does, lane by lane,
 * what Intel's Intrinsics Guide says of its operation.
 */
#ifndef LS_TEST_IMMINTRIN_H
#define LS_TEST_IMMINTRIN_H

#include <assert.h>
#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "tensor/bf16_chain.h"

typedef struct __m128 {
    float f[4];
} __m128;

typedef struct __m256 {
    float f[8];
} __m256;

typedef struct __m512 {
    float f[16];
} __m512;

typedef struct __m512i {
    uint32_t u[16];
} __m512i;

typedef struct __m128i {
    uint8_t b[16];
} __m128i;

typedef struct __m256i {
    uint16_t h[16];
} __m256i;

#define MOCK_EACH(type, member, n, expression)                                                     \
    type r;                                                                                        \
    for (int i = 0; i < (n); i++) r.member[i] = (expression);                                      \
    return r
#define MOCK_512(expression)  MOCK_EACH(__m512, f, 16, expression)
#define MOCK_512I(expression) MOCK_EACH(__m512i, u, 16, expression)
#define MOCK_256(expression)  MOCK_EACH(__m256, f, 8, expression)

static inline __m512 _mm512_set1_ps(float x) { MOCK_512(x); }
static inline __m512 _mm512_loadu_ps(const void *p) {
    __m512 r;
    memcpy(&r, p, sizeof r);
    return r;
}
static inline void _mm512_storeu_ps(void *p, __m512 a) { memcpy(p, &a, sizeof a); }
static inline void _mm512_stream_si512(__m512i *p, __m512i a) {
    assert((uintptr_t)p % sizeof a == 0);
    memcpy(p, &a, sizeof a);
}
static inline void _mm_sfence(void) {}
static inline __m512 _mm512_sub_ps(__m512 a, __m512 b) { MOCK_512(a.f[i] - b.f[i]); }
static inline __m512 _mm512_mul_ps(__m512 a, __m512 b) { MOCK_512(a.f[i] * b.f[i]); }
static inline __m512 _mm512_div_ps(__m512 a, __m512 b) { MOCK_512(a.f[i] / b.f[i]); }
static inline __m512 _mm512_sqrt_ps(__m512 a) { MOCK_512(sqrtf(a.f[i])); }
/* Where one is NaN or both are zeros, the second. */
static inline __m512 _mm512_max_ps(__m512 a, __m512 b) {
    MOCK_512(a.f[i] > b.f[i] ? a.f[i] : b.f[i]);
}
static inline __m512 _mm512_min_ps(__m512 a, __m512 b) {
    MOCK_512(a.f[i] < b.f[i] ? a.f[i] : b.f[i]);
}
typedef uint16_t __mmask16;
enum { _CMP_UNORD_Q = 0x03, _CMP_GT_OQ = 0x1e };
/* Only for these. */
static inline __mmask16 _mm512_cmp_ps_mask(__m512 a, __m512 b, int how) {
    unsigned mask = 0;
    for (int i = 0; i < 16; i++) {
        bool unordered = isnan(a.f[i]) || isnan(b.f[i]);
        mask |= (unsigned)(how == _CMP_GT_OQ ? a.f[i] > b.f[i] : unordered) << i;
    }
    return (__mmask16)mask;
}
/* Where the mask's bit is set, the second. */
static inline __m512 _mm512_mask_blend_ps(__mmask16 mask, __m512 a, __m512 b) {
    MOCK_512(mask >> i & 1 ? b.f[i] : a.f[i]);
}
/* The elements whose bits are set, one after the other; then zeros. */
static inline __m512i _mm512_maskz_compress_epi32(__mmask16 mask, __m512i a) {
    __m512i r = {{0}};
    for (int i = 0, n = 0; i < 16; i++)
        if (mask >> i & 1) r.u[n++] = a.u[i];
    return r;
}
/* The mode of the thread, one for all files that include this header. */
__attribute__((weak)) _Thread_local unsigned mock_mode = 0x1f80;
enum { MOCK_FLUSH = 0x8040 };
static inline unsigned _mm_getcsr(void) { return mock_mode; }
static inline void _mm_setcsr(unsigned mode) { mock_mode = mode; }

/* Only these two instructions obey the mode. */
static inline __m512 _mm512_add_ps(__m512 a, __m512 b) {
    if (mock_mode & MOCK_FLUSH) {
        MOCK_512(flushed_sum(a.f[i], b.f[i]));
    }
    MOCK_512(a.f[i] + b.f[i]);
}
static inline __m512 _mm512_fmadd_ps(__m512 a, __m512 b, __m512 c) {
    if (mock_mode & MOCK_FLUSH) {
        MOCK_512(chain_step(a.f[i], b.f[i], c.f[i]));
    }
    MOCK_512(fmaf(a.f[i], b.f[i], c.f[i]));
}
static inline __m512i _mm512_set1_epi32(int x) { MOCK_512I((uint32_t)x); }
static inline __m512i _mm512_mullo_epi32(__m512i a, __m512i b) { MOCK_512I(a.u[i] * b.u[i]); }
static inline __m512i _mm512_add_epi32(__m512i a, __m512i b) { MOCK_512I(a.u[i] + b.u[i]); }
static inline __m512i _mm512_slli_epi32(__m512i a, unsigned by) {
    MOCK_512I(by < 32 ? a.u[i] << by : 0);
}
static inline __m512i _mm512_srli_epi32(__m512i a, unsigned by) {
    MOCK_512I(by < 32 ? a.u[i] >> by : 0);
}
static inline __m128i _mm_set_epi64x(long long high, long long low) {
    __m128i r;
    memcpy(r.b, &low, 8);
    memcpy(r.b + 8, &high, 8);
    return r;
}
static inline __m512i _mm512_cvtepu8_epi32(__m128i a) { MOCK_512I(a.b[i]); }
static inline __m512i _mm512_cvtepi8_epi32(__m128i a) {
    MOCK_512I((uint32_t)(a.b[i] < 128 ? a.b[i] : a.b[i] - 256));
}
static inline __m512 _mm512_cvtepi32_ps(__m512i a) { MOCK_512((float)(int32_t)a.u[i]); }
static inline __m256i _mm256_loadu_si256(const __m256i *p) {
    __m256i r;
    memcpy(&r, p, sizeof r);
    return r;
}
static inline __m512i _mm512_cvtepu16_epi32(__m256i a) { MOCK_512I(a.h[i]); }
static inline __m256i _mm512_cvtepi32_epi16(__m512i a) {
    MOCK_EACH(__m256i, h, 16, (uint16_t)a.u[i]);
}
/* A NaN becomes a quiet one. */
static inline float mock_widen(uint16_t h) {
    uint32_t rest = h & 0x3ffu, sign = (h & 0x8000u) << 16, u = sign | 0xffu << 23;
    float x =
        ldexpf((float)(rest + (h & 0x7c00u ? 1024 : 0)), (h >> 10 & 31 ? h >> 10 & 31 : 1) - 25);
    if ((h & 0x7c00u) != 0x7c00u) return sign ? -x : x;
    if (rest) u |= 1u << 22 | rest << 13;
    memcpy(&x, &u, sizeof x);
    return x;
}
static inline __m512 _mm512_cvtph_ps(__m256i a) { MOCK_512(mock_widen(a.h[i])); }
static inline __m512i _mm512_castps_si512(__m512 a) {
    __m512i r;
    memcpy(&r, &a, sizeof r);
    return r;
}
static inline __m512 _mm512_castsi512_ps(__m512i a) {
    __m512 r;
    memcpy(&r, &a, sizeof r);
    return r;
}

static inline __m256 _mm256_loadu_ps(const float *p) { MOCK_256(p[i]); }
static inline void _mm256_storeu_ps(float *p, __m256 a) { memcpy(p, &a, sizeof a); }
/* In each half of 128 bits: two values of it from a and two from b, alternating. */
static inline __m256 _mm256_unpacklo_ps(__m256 a, __m256 b) {
    MOCK_256((i & 1 ? b : a).f[(i & 4) + (i & 2) / 2]);
}
static inline __m256 _mm256_unpackhi_ps(__m256 a, __m256 b) {
    MOCK_256((i & 1 ? b : a).f[(i & 4) + (i & 2) / 2 + 2]);
}
/* In each half: two values chosen from a, then two from b, by two bits of `which` each. */
static inline __m256 _mm256_shuffle_ps(__m256 a, __m256 b, int which) {
    MOCK_256((i & 2 ? b : a).f[(i & 4) + (which >> (i & 3) * 2 & 3)]);
}
static inline __m128 _mm256_castps256_ps128(__m256 a) {
    __m128 r;
    memcpy(&r, &a, sizeof r);
    return r;
}
static inline __m128 _mm256_extractf128_ps(__m256 a, int half) {
    __m128 r;
    memcpy(&r, a.f + (half & 1) * 4, sizeof r);
    return r;
}
static inline void _mm_storeu_ps(float *p, __m128 a) { memcpy(p, &a, sizeof a); }

/* Numbers of 4 bits, and rows of words. */
static inline __m512i _mm512_srai_epi32(__m512i a, unsigned by) {
    uint32_t high = by < 32 ? ~(0xffffffffu >> by) : 0xffffffffu;
    MOCK_512I((by < 32 ? a.u[i] >> by : 0) | (a.u[i] >> 31 ? high : 0));
}
static inline __m512 _mm512_set_ps(float p, float o, float n, float m, float l, float k, float j,
                                   float h, float g, float f, float e, float d, float c, float b,
                                   float a, float first) {
    const float x[] = {first, a, b, c, d, e, f, g, h, j, k, l, m, n, o, p};
    MOCK_512(x[i]);
}
/* Each bit is that of `table` whose number the three bits of a, b and c are. */
static inline __m512i _mm512_ternarylogic_epi32(__m512i a, __m512i b, __m512i c, unsigned table) {
    __m512i r = {{0}};
    for (int i = 0; i < 16; i++)
        for (int k = 0; k < 32; k++) {
            uint32_t at = (a.u[i] >> k & 1) << 2 | (b.u[i] >> k & 1) << 1 | (c.u[i] >> k & 1);
            r.u[i] |= (table >> at & 1) << k;
        }
    return r;
}
static inline __m512 _mm512_permutexvar_ps(__m512i at, __m512 a) { MOCK_512(a.f[at.u[i] & 15]); }
static inline __m128i _mm_loadu_si128(const __m128i *p) {
    __m128i r;
    memcpy(&r, p, sizeof r);
    return r;
}
static inline __m512i _mm512_castsi128_si512(__m128i a) {
    __m512i r = {{0}};
    memcpy(&r, &a, sizeof a);
    return r;
}
static inline __m512i _mm512_inserti32x4(__m512i a, __m128i b, int quarter) {
    memcpy(a.u + (quarter & 3) * 4, &b, sizeof b);
    return a;
}
/* In each quarter of 128 bits: two words of it from a and two from b, alternating. */
static inline __m512i _mm512_unpacklo_epi32(__m512i a, __m512i b) {
    MOCK_512I((i & 1 ? b : a).u[(i & 12) + (i & 2) / 2]);
}
static inline __m512i _mm512_unpackhi_epi32(__m512i a, __m512i b) {
    MOCK_512I((i & 1 ? b : a).u[(i & 12) + (i & 2) / 2 + 2]);
}
/* In each quarter: the first double word of a and of b, or the second ones. */
static inline __m512i _mm512_unpacklo_epi64(__m512i a, __m512i b) {
    MOCK_512I((i & 2 ? b : a).u[(i & 12) + (i & 1)]);
}
static inline __m512i _mm512_unpackhi_epi64(__m512i a, __m512i b) {
    MOCK_512I((i & 2 ? b : a).u[(i & 12) + 2 + (i & 1)]);
}

/* bf16: first the high halves of pairs, then the low ones. */
typedef __m512i __m512bh;
static inline __m512 _mm512_dpbf16_ps(__m512 c, __m512bh a, __m512bh b) {
    MOCK_512(chain_step(
        f32_of_u32(a.u[i] << 16), f32_of_u32(b.u[i] << 16),
        chain_step(f32_of_u32(a.u[i] & 0xffff0000u), f32_of_u32(b.u[i] & 0xffff0000u), c.f[i])));
}
static inline uint16_t mock_bf16(float x) {
    return isnan(x) ? 0x7fc0 : (uint16_t)(u32_of_f32(nearest_bf16(x)) >> 16);
}
/* b in the low halves of the register, a in the high ones. */
static inline __m512bh _mm512_cvtne2ps_pbh(__m512 a, __m512 b) {
    uint16_t h[32];
    __m512bh r;
    for (int i = 0; i < 16; i++) h[i] = mock_bf16(b.f[i]), h[16 + i] = mock_bf16(a.f[i]);
    memcpy(&r, h, sizeof r);
    return r;
}
static inline __m512i _mm512_permutexvar_epi16(__m512i at, __m512i a) {
    uint16_t places[32], from[32], to[32];
    memcpy(places, &at, sizeof at);
    memcpy(from, &a, sizeof a);
    for (int i = 0; i < 32; i++) to[i] = from[places[i] & 31];
    memcpy(&a, to, sizeof a);
    return a;
}
static inline __m512i _mm512_set_epi32(int p, int o, int n, int m, int l, int k, int j, int h,
                                       int g, int f, int e, int d, int c, int b, int a, int first) {
    const int x[] = {first, a, b, c, d, e, f, g, h, j, k, l, m, n, o, p};
    MOCK_512I((uint32_t)x[i]);
}
static inline __m512i _mm512_loadu_si512(const void *p) {
    __m512i r;
    memcpy(&r, p, sizeof r);
    return r;
}
/* 16-bit lanes of b where the mask's bit is set, else of a. */
static inline __m512i _mm512_mask_blend_epi16(uint32_t mask, __m512i a, __m512i b) {
    uint16_t of_a[32], of_b[32];
    memcpy(of_a, &a, sizeof a);
    memcpy(of_b, &b, sizeof b);
    for (int i = 0; i < 32; i++)
        if (mask >> i & 1) of_a[i] = of_b[i];
    memcpy(&a, of_a, sizeof a);
    return a;
}
static inline __m512i _mm512_inserti64x4(__m512i a, __m256i b, int half) {
    memcpy(a.u + (half & 1) * 8, &b, sizeof b);
    return a;
}
static inline __m256i _mm512_extracti64x4_epi64(__m512i a, int half) {
    __m256i r;
    memcpy(&r, a.u + (half & 1) * 8, sizeof r);
    return r;
}
static inline __m256i _mm512_castsi512_si256(__m512i a) { return _mm512_extracti64x4_epi64(a, 0); }
static inline void _mm256_storeu_si256(__m256i *p, __m256i a) { memcpy(p, &a, sizeof a); }
static inline __m512i _mm512_castsi256_si512(__m256i a) {
    __m512i r = {{0}};
    memcpy(&r, &a, sizeof a);
    return r;
}

/* Products of bytes. In registers of 256 bits: those of AVX2. */
static inline __m512i _mm512_setzero_si512(void) { MOCK_512I(0); }
static inline __m512i _mm512_sub_epi32(__m512i a, __m512i b) { MOCK_512I(a.u[i] - b.u[i]); }
static inline __m512i _mm512_and_si512(__m512i a, __m512i b) { MOCK_512I(a.u[i] & b.u[i]); }
static inline __m512i _mm512_or_si512(__m512i a, __m512i b) { MOCK_512I(a.u[i] | b.u[i]); }
static inline __m512i _mm512_xor_si512(__m512i a, __m512i b) { MOCK_512I(a.u[i] ^ b.u[i]); }
static inline int mock_u8(uint32_t word, int i) { return (int)(word >> 8 * i & 255); }
static inline int mock_i8(uint32_t word, int i) {
    return mock_u8(word, i) < 128 ? mock_u8(word, i) : mock_u8(word, i) - 256;
}
static inline uint32_t mock_dot(uint32_t c, uint32_t a, uint32_t b) {
    for (int i = 0; i < 4; i++) c += (uint32_t)(mock_u8(a, i) * mock_i8(b, i));
    return c;
}
/* c + the products of the unsigned bytes of a and the signed ones of b. */
static inline __m512i _mm512_dpbusd_epi32(__m512i c, __m512i a, __m512i b) {
    MOCK_512I(mock_dot(c.u[i], a.u[i], b.u[i]));
}
/* Has the processor VPDPBUSD? Every other time, so both ways are compared. */
__attribute__((weak)) _Thread_local bool mock_vnni = false;
#define LS_HAS_VNNI() (mock_vnni = !mock_vnni)

#define MOCK_256I(expression) MOCK_EACH(__m256i, h, 16, (uint16_t)(expression))
static inline __m256i _mm256_setzero_si256(void) { MOCK_256I(0); }
static inline __m256i _mm256_broadcastsi128_si256(__m128i a) {
    __m256i r;
    memcpy(&r.h[0], &a, sizeof a);
    memcpy(&r.h[8], &a, sizeof a);
    return r;
}
static inline __m256i _mm256_shuffle_epi8(__m256i a, __m256i b) {
    uint8_t x[32], at[32];
    memcpy(x, &a, sizeof x);
    memcpy(at, &b, sizeof at);
    for (int i = 0; i < 32; i++) at[i] = at[i] & 128 ? 0 : x[(i & 16) | (at[i] & 15)];
    memcpy(&b, at, sizeof at);
    return b;
}
static inline __m256i _mm256_set1_epi16(short x) { MOCK_256I(x); }
static inline __m256i _mm256_set1_epi8(char x) { MOCK_256I((x & 255) * 257); }
static inline __m256i _mm256_set1_epi32(int x) { MOCK_256I((uint32_t)x >> 16 * (i & 1)); }
static inline __m256i _mm256_and_si256(__m256i a, __m256i b) { MOCK_256I(a.h[i] & b.h[i]); }
static inline __m256i _mm256_add_epi16(__m256i a, __m256i b) { MOCK_256I(a.h[i] + b.h[i]); }
static inline __m256i _mm256_srli_epi16(__m256i a, int by) {
    MOCK_256I(by < 16 ? a.h[i] >> by : 0);
}
/* Sums of two products of unsigned bytes of a and signed ones of b, cut to 16 bits. */
static inline int mock_pair(uint16_t a, uint16_t b) {
    int sum = mock_u8(a, 0) * mock_i8(b, 0) + mock_u8(a, 1) * mock_i8(b, 1);
    return sum > 32767 ? 32767 : sum < -32768 ? -32768 : sum;
}
static inline __m256i _mm256_maddubs_epi16(__m256i a, __m256i b) {
    MOCK_256I(mock_pair(a.h[i], b.h[i]));
}
/* |-128| is 128, and - -128 is -128. */
static inline int mock_sign(int x, int of) { return of < 0 ? -x : of ? x : 0; }
static inline int mock_both(int low, int high) { return (low & 255) | (high & 255) << 8; }
static inline __m256i _mm256_sign_epi8(__m256i a, __m256i b) {
    MOCK_256I(mock_both(mock_sign(mock_i8(a.h[i], 0), mock_i8(b.h[i], 0)),
                        mock_sign(mock_i8(a.h[i], 1), mock_i8(b.h[i], 1))));
}
static inline __m256i _mm256_abs_epi8(__m256i a) { return _mm256_sign_epi8(a, a); }
static inline int mock_i16(uint16_t x) { return x < 32768 ? x : x - 65536; }
static inline int mock_product(__m256i a, __m256i b, int i) {
    return mock_i16(a.h[i]) * mock_i16(b.h[i]);
}
/* Sums of two products, in 32 bits. */
static inline __m256i _mm256_madd_epi16(__m256i a, __m256i b) {
    MOCK_256I((uint32_t)(mock_product(a, b, i & ~1) + mock_product(a, b, i | 1)) >> 16 * (i & 1));
}
static inline __m256i _mm256_add_epi32(__m256i a, __m256i b) {
    uint32_t x[8], y[8];
    memcpy(x, &a, sizeof x);
    memcpy(y, &b, sizeof y);
    for (int i = 0; i < 8; i++) x[i] += y[i];
    memcpy(&a, x, sizeof a);
    return a;
}

#undef MOCK_256I
#undef MOCK_EACH
#undef MOCK_512
#undef MOCK_512I
#undef MOCK_256

#endif
