/* vec.h - sixteen f32 lanes, the only vector type that kernels use.
 *
 * A kernel is written once over these functions and compiled once for each kind of processor; every
 * variant does the same IEEE operations in the same order, so the bits are the same (tests compare
 * with memcmp). v_fma rounds once; nothing else is ever fused (-ffp-contract=off). Sixteen lanes
 * are one AVX-512 register, two of AVX2, four of NEON.
 *
 * vec_NAME.h is a variant's part:
 *  - v16, LS_V16S, the number of them that registers hold, and v_set1, v_load, v_store, v_add,
 *    v_sub, v_mul, v_div, v_sqrt;
 *  - v_max, v_min: a > b ? a : b and a < b ? a : b, also for NaN and zeros;
 *  - v_select: a > b ? x : y, y also where a or b is NaN;
 *  - v_over: a number with bit i set if a > b in lane i;
 *  - if it has an instruction that packs lanes: V_PACK; v_pack_numbers: writes the numbers of the
 *    bits that are set, plus `first`, and anything up to 16 words; returns how many are set;
 *  - v_fma: a * b + c, rounded once;
 *  - v_pow2: 2^i for the integer i in the low bits of the pattern (see v_exp);
 *  - v_transpose4: out[k * row + i] = p[i][k] for i in 0..3, k in 0..7; any 32-bit values, not
 *    aligned;
 *  - if the processor has instructions for 16-bit floats: V_HALF, and the functions under it below;
 *  - if it has instructions that widen bytes: V_BYTES, and the functions under it below;
 *  - if the processor can take numbers below 1.2e-38 as zeros: V_FLUSH, v_flush_begin, and
 *    v_flush_end, which returns false if the results since then are not those that x86-64 has;
 *    V_FLUSH_REPEATS: it may. What is computed in between is a call of a function in another file,
 *    or the compiler could move it;
 *  - for the GEMM's tile: vr, a register of LS_VR lanes, and r_set1, r_load, r_store, r_fma, r_add;
 *    v_first, the first lanes of a v16; v_of_first, a v16 of them, whose others are zeros. The tile
 *    has LS_TILE_ROWS rows of LS_TILE_REGS registers: a multiple of 4 rows and of 4 columns;
 *  - for products of bytes: vb, a register of LS_VR lanes of four bytes, and vsum, one of as many
 *    integers: b_load; b_nibbles, the low or the high four bits of each byte; b_signed, bytes from
 *    -128 to 127 as b_dot takes them, each plus LS_B_MIDDLE; b_dot, in each lane the exact sum of
 *    the products of w [n], n at most 8, and x [4 n], which every lane has, -127 to 127. Bytes of w
 *    are 0 to `most`, below 64; 128 stands for those of b_signed. r_of_sums: the sums, less one
 *    integer, as floats; r_mul;
 *  - if it has an instruction for pairs of bf16: V_PAIRS; r_dot: c + the product of the high
 *    halves, then + that of the low halves. A word has the first value in its high half, and in the
 *    low one the second next, the other one of a chain (LS_SUM_BLOCK in kernels.h). r_line_f32 and
 *    r_line_bf16: 32 values as 16 words, those of even and of odd places in turn; r_rows_f32 and
 *    r_rows_bf16: 16 values of two rows as words; r_even_words, r_odd_words: of four values, as
 *    v_rows4 has them, the first and the third, the second and the fourth; r_store_half: lanes 0 to
 *    7 or 8 to 15; r_store_line_bf16 writes 32 values as bf16 in their order; r_stream_bf16 writes
 *    them to a multiple of 64 bytes, past the caches, a NaN as 0x7fc0, and v_stream_end comes after
 *    the last.
 *
 * Included by src/tensor/kernels/ only.
 */
#ifndef LS_TENSOR_VEC_H
#define LS_TENSOR_VEC_H

#include <math.h>
#include <stdint.h>
#include <string.h>

enum { LS_LANES = 16 };

#if defined(LS_VARIANT_avx512)
#include "tensor/vec_avx512.h"
#include "tensor/vec_avx512bf16.h"
#elif defined(LS_VARIANT_avx2)
#include "tensor/vec_avx2.h"
#elif defined(LS_VARIANT_neon)
#include "tensor/vec_neon.h"
#else
#include "tensor/vec_portable.h"
#endif

/* Sixteen 16-bit floats widened to f32, exactly: those at p, or one of the two in each lane of `a`,
 * the second if `odd`, else the first. */
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
/* A product raises the exponent by 127 - 15, which also normalizes subnormals; infinity and NaN,
 * which have the largest exponent, get f32's largest; a NaN becomes a quiet one, as by processors'
 * instructions. */
static inline v16 v_widen_f16(uint32_t u[LS_LANES]) {
    uint32_t rest[LS_LANES];
    for (int i = 0; i < LS_LANES; i++) rest[i] = (u[i] & 0x7fffu) << 13;
    float moved[LS_LANES];
    v_store(moved, v_mul(v_of_bits(rest), v_set1(0x1p112f)));
    memcpy(rest, moved, sizeof rest);
    for (int i = 0; i < LS_LANES; i++) {
        uint32_t special = 0u - ((u[i] & 0x7c00u) == 0x7c00u);
        uint32_t nan = 0u - ((u[i] & 0x7fffu) > 0x7c00u);
        u[i] = rest[i] | (special & 0xffu << 23) | (nan & 1u << 22) | (u[i] & 0x8000u) << 16;
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

/* Numbers of 8 and 4 bits as f32. Sixteen bytes: those of `lo`, the lowest first, then those of
 * `hi`. */
#ifndef V_BYTES
static inline v16 v_of_u8(uint64_t lo, uint64_t hi) {
    uint8_t bytes[LS_LANES];
    float t[LS_LANES];
    memcpy(bytes, &lo, sizeof lo);
    memcpy(bytes + 8, &hi, sizeof hi);
    for (int i = 0; i < LS_LANES; i++) t[i] = bytes[i];
    return v_load(t);
}
static inline v16 v_of_i8(uint64_t lo, uint64_t hi) {
    int8_t bytes[LS_LANES];
    float t[LS_LANES];
    memcpy(bytes, &lo, sizeof lo);
    memcpy(bytes + 8, &hi, sizeof hi);
    for (int i = 0; i < LS_LANES; i++) t[i] = bytes[i];
    return v_load(t);
}
/* Byte i of each lane, as i8. */
static inline v16 v_pick_i8(v16 a, int i) {
    uint32_t u[LS_LANES];
    float t[LS_LANES];
    memcpy(u, &a, sizeof u);
    for (int k = 0; k < LS_LANES; k++) t[k] = (int8_t)(u[k] >> 8 * i & 255);
    return v_load(t);
}
/* n bits of each lane, from bit `at` on, as an unsigned number; n is at most 8. */
static inline v16 v_pick_bits(v16 a, int at, int n) {
    uint32_t u[LS_LANES];
    float t[LS_LANES];
    memcpy(u, &a, sizeof u);
    for (int k = 0; k < LS_LANES; k++) t[k] = (float)(u[k] >> at & ((1u << n) - 1));
    return v_load(t);
}
/* Nibble i of each lane, the lowest being 0. */
static inline v16 v_pick_u4(v16 a, int i) { return v_pick_bits(a, 4 * i, 4); }
/* The bits of each lane, moved down. */
static inline v16 v_down(v16 a, int by) {
    uint32_t u[LS_LANES];
    memcpy(u, &a, sizeof u);
    for (int k = 0; k < LS_LANES; k++) u[k] >>= by;
    memcpy(&a, u, sizeof u);
    return a;
}
/* The bits of each lane: moved up, those of a mask, those of either. */
static inline v16 v_up(v16 a, int by) {
    uint32_t u[LS_LANES];
    memcpy(u, &a, sizeof u);
    for (int k = 0; k < LS_LANES; k++) u[k] <<= by;
    memcpy(&a, u, sizeof u);
    return a;
}
static inline v16 v_mask(v16 a, uint32_t bits) {
    uint32_t u[LS_LANES];
    memcpy(u, &a, sizeof u);
    for (int k = 0; k < LS_LANES; k++) u[k] &= bits;
    memcpy(&a, u, sizeof u);
    return a;
}
static inline v16 v_join(v16 a, v16 b) {
    uint32_t u[LS_LANES], w[LS_LANES];
    memcpy(u, &a, sizeof u);
    memcpy(w, &b, sizeof w);
    for (int k = 0; k < LS_LANES; k++) u[k] |= w[k];
    memcpy(&a, u, sizeof u);
    return a;
}
/* Each lane, an integer, times one. */
static inline v16 v_times(v16 a, uint32_t by) {
    uint32_t u[LS_LANES];
    memcpy(u, &a, sizeof u);
    for (int k = 0; k < LS_LANES; k++) u[k] *= by;
    memcpy(&a, u, sizeof u);
    return a;
}
/* Each byte, 0 to 15, becomes that entry of a table. */
static inline v16 v_entries(v16 a, const uint8_t table[16]) {
    uint8_t bytes[4 * LS_LANES];
    memcpy(bytes, &a, sizeof bytes);
    for (int i = 0; i < 4 * LS_LANES; i++) bytes[i] = table[bytes[i]];
    memcpy(&a, bytes, sizeof bytes);
    return a;
}
/* words[k], lane i = word k of the 16 bytes at p + i * stride. */
static inline void v_rows4(const uint8_t *p, int64_t stride, v16 words[4]) {
    float t[4][LS_LANES];
    for (int i = 0; i < LS_LANES; i++)
        for (int k = 0; k < 4; k++) memcpy(&t[k][i], p + i * stride + 4 * k, sizeof t[k][i]);
    for (int k = 0; k < 4; k++) words[k] = v_load(t[k]);
}
#endif

/* A number of four in each lane, byte i, times 2^v_raised(most, i): 0 to `most`, the byte's higher
 * bits being anything, less `middle`; or, with `most` 128, signed. Exact. */
#ifndef V_NUMBER
static inline int v_raised(int most, int i) { return (void)most, (void)i, 0; }
static inline v16 v_number(int most, int middle, v16 a, int i) {
    if (most == 128) return v_pick_i8(a, i);
    v16 q = v_pick_bits(a, 8 * i, __builtin_popcount((unsigned)most));
    return middle ? v_sub(q, v_set1((float)middle)) : q;
}
#endif

/* Prefetches memory that is needed soon. Any address is allowed. Always inlined: gcc removes calls
 * of a function that does nothing but prefetch. */
#define V_PREFETCH static inline __attribute__((always_inline)) void
V_PREFETCH v_prefetch(const void *p) { __builtin_prefetch(p, 0, 3); }
/* Into the second-level cache only. */
V_PREFETCH v_prefetch_far(const void *p) { __builtin_prefetch(p, 0, 2); }

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

/* The sum of the lanes in a fixed tree: i with i+8, i+4, i+2, i+1. */
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

/* e^x: x = i ln 2 + r, |r| <= ln 2 / 2; a polynomial in r; times 2^i. Below -87.3 the result is
 * the smallest normal number, above 88 it is 1.65e38. Polynomial: Moshier, Cephes `expf`. Error: 2
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
