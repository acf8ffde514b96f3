/* vec_neon.h - v16 as four registers of NEON on AArch64; see vec.h.
 *
 * vmaxq_f32 and vminq_f32 treat NaN and zeros differently from v_max and v_min, which are therefore
 * a comparison and a selection.
 */
#ifndef LS_TENSOR_VEC_NEON_H
#define LS_TENSOR_VEC_NEON_H

#include <arm_neon.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

typedef struct v16 {
    float32x4_t a, b, c, d;
} v16;
enum { LS_V16S = 8 };

static inline v16 v_set1(float x) {
    float32x4_t r = vdupq_n_f32(x);
    return (v16){r, r, r, r};
}
static inline v16 v_load(const float *p) {
    return (v16){vld1q_f32(p), vld1q_f32(p + 4), vld1q_f32(p + 8), vld1q_f32(p + 12)};
}
static inline void v_store(float *p, v16 x) {
    vst1q_f32(p, x.a);
    vst1q_f32(p + 4, x.b);
    vst1q_f32(p + 8, x.c);
    vst1q_f32(p + 12, x.d);
}
static inline v16 v_add(v16 x, v16 y) {
    return (v16){vaddq_f32(x.a, y.a), vaddq_f32(x.b, y.b), vaddq_f32(x.c, y.c),
                 vaddq_f32(x.d, y.d)};
}
static inline v16 v_sub(v16 x, v16 y) {
    return (v16){vsubq_f32(x.a, y.a), vsubq_f32(x.b, y.b), vsubq_f32(x.c, y.c),
                 vsubq_f32(x.d, y.d)};
}
static inline v16 v_mul(v16 x, v16 y) {
    return (v16){vmulq_f32(x.a, y.a), vmulq_f32(x.b, y.b), vmulq_f32(x.c, y.c),
                 vmulq_f32(x.d, y.d)};
}
static inline v16 v_div(v16 x, v16 y) {
    return (v16){vdivq_f32(x.a, y.a), vdivq_f32(x.b, y.b), vdivq_f32(x.c, y.c),
                 vdivq_f32(x.d, y.d)};
}
static inline v16 v_sqrt(v16 x) {
    return (v16){vsqrtq_f32(x.a), vsqrtq_f32(x.b), vsqrtq_f32(x.c), vsqrtq_f32(x.d)};
}
static inline float32x4_t v_max_quarter(float32x4_t x, float32x4_t y) {
    return vbslq_f32(vcgtq_f32(x, y), x, y);
}
static inline v16 v_max(v16 x, v16 y) {
    return (v16){v_max_quarter(x.a, y.a), v_max_quarter(x.b, y.b), v_max_quarter(x.c, y.c),
                 v_max_quarter(x.d, y.d)};
}
static inline float32x4_t v_min_quarter(float32x4_t x, float32x4_t y) {
    return vbslq_f32(vcltq_f32(x, y), x, y);
}
static inline v16 v_min(v16 x, v16 y) {
    return (v16){v_min_quarter(x.a, y.a), v_min_quarter(x.b, y.b), v_min_quarter(x.c, y.c),
                 v_min_quarter(x.d, y.d)};
}
static inline v16 v_select(v16 a, v16 b, v16 x, v16 y) {
    return (v16){vbslq_f32(vcgtq_f32(a.a, b.a), x.a, y.a), vbslq_f32(vcgtq_f32(a.b, b.b), x.b, y.b),
                 vbslq_f32(vcgtq_f32(a.c, b.c), x.c, y.c),
                 vbslq_f32(vcgtq_f32(a.d, b.d), x.d, y.d)};
}
static inline uint32_t v_quarter_over(float32x4_t a, float32x4_t b) {
    static const uint32_t bits[4] = {1, 2, 4, 8};
    return vaddvq_u32(vandq_u32(vcgtq_f32(a, b), vld1q_u32(bits)));
}
static inline uint32_t v_over(v16 a, v16 b) {
    return v_quarter_over(a.a, b.a) | v_quarter_over(a.b, b.b) << 4 |
           v_quarter_over(a.c, b.c) << 8 | v_quarter_over(a.d, b.d) << 12;
}
#define V_BYTES
static inline v16 v_of_u8(uint64_t lo, uint64_t hi) {
    uint16x8_t x = vmovl_u8(vcreate_u8(lo)), y = vmovl_u8(vcreate_u8(hi));
    return (v16){vcvtq_f32_u32(vmovl_u16(vget_low_u16(x))), vcvtq_f32_u32(vmovl_high_u16(x)),
                 vcvtq_f32_u32(vmovl_u16(vget_low_u16(y))), vcvtq_f32_u32(vmovl_high_u16(y))};
}
static inline v16 v_of_i8(uint64_t lo, uint64_t hi) {
    int16x8_t x = vmovl_s8(vcreate_s8(lo)), y = vmovl_s8(vcreate_s8(hi));
    return (v16){vcvtq_f32_s32(vmovl_s16(vget_low_s16(x))), vcvtq_f32_s32(vmovl_high_s16(x)),
                 vcvtq_f32_s32(vmovl_s16(vget_low_s16(y))), vcvtq_f32_s32(vmovl_high_s16(y))};
}
static inline float32x4_t v_quarter_i8(float32x4_t a, int i) {
    int32x4_t up = vshlq_s32(vreinterpretq_s32_f32(a), vdupq_n_s32(24 - 8 * i));
    return vcvtq_f32_s32(vshrq_n_s32(up, 24));
}
static inline v16 v_pick_i8(v16 a, int i) {
    return (v16){v_quarter_i8(a.a, i), v_quarter_i8(a.b, i), v_quarter_i8(a.c, i),
                 v_quarter_i8(a.d, i)};
}
static inline float32x4_t v_quarter_down(float32x4_t a, int by) {
    return vreinterpretq_f32_u32(vshlq_u32(vreinterpretq_u32_f32(a), vdupq_n_s32(-by)));
}
static inline v16 v_down(v16 a, int by) {
    return (v16){v_quarter_down(a.a, by), v_quarter_down(a.b, by), v_quarter_down(a.c, by),
                 v_quarter_down(a.d, by)};
}
static inline v16 v_up(v16 a, int by) { return v_down(a, -by); }
static inline float32x4_t v_quarter_mask(float32x4_t a, uint32_t bits) {
    return vreinterpretq_f32_u32(vandq_u32(vreinterpretq_u32_f32(a), vdupq_n_u32(bits)));
}
static inline v16 v_mask(v16 a, uint32_t bits) {
    return (v16){v_quarter_mask(a.a, bits), v_quarter_mask(a.b, bits), v_quarter_mask(a.c, bits),
                 v_quarter_mask(a.d, bits)};
}
static inline float32x4_t v_quarter_join(float32x4_t a, float32x4_t b) {
    return vreinterpretq_f32_u32(vorrq_u32(vreinterpretq_u32_f32(a), vreinterpretq_u32_f32(b)));
}
static inline v16 v_join(v16 a, v16 b) {
    return (v16){v_quarter_join(a.a, b.a), v_quarter_join(a.b, b.b), v_quarter_join(a.c, b.c),
                 v_quarter_join(a.d, b.d)};
}
static inline float32x4_t v_quarter_times(float32x4_t a, uint32_t by) {
    return vreinterpretq_f32_u32(vmulq_n_u32(vreinterpretq_u32_f32(a), by));
}
static inline v16 v_times(v16 a, uint32_t by) {
    return (v16){v_quarter_times(a.a, by), v_quarter_times(a.b, by), v_quarter_times(a.c, by),
                 v_quarter_times(a.d, by)};
}
static inline float32x4_t v_quarter_bits(float32x4_t a, int at, int n) {
    uint32x4_t down = vreinterpretq_u32_f32(v_quarter_down(a, at));
    return vcvtq_f32_u32(vandq_u32(down, vdupq_n_u32((1u << n) - 1)));
}
static inline v16 v_pick_bits(v16 a, int at, int n) {
    return (v16){v_quarter_bits(a.a, at, n), v_quarter_bits(a.b, at, n), v_quarter_bits(a.c, at, n),
                 v_quarter_bits(a.d, at, n)};
}
static inline v16 v_pick_u4(v16 a, int i) { return v_pick_bits(a, 4 * i, 4); }
static inline float32x4_t v_quarter_entries(float32x4_t a, uint8x16_t table) {
    return vreinterpretq_f32_u8(vqtbl1q_u8(table, vreinterpretq_u8_f32(a)));
}
static inline v16 v_entries(v16 a, const uint8_t table[16]) {
    uint8x16_t of = vld1q_u8(table);
    return (v16){v_quarter_entries(a.a, of), v_quarter_entries(a.b, of), v_quarter_entries(a.c, of),
                 v_quarter_entries(a.d, of)};
}
/* words[k] = word k of 4 rows. */
static inline void v_quarter_rows4(const uint8_t *p, int64_t stride, float32x4_t words[4]) {
    float32x4_t r0 = vreinterpretq_f32_u8(vld1q_u8(p));
    float32x4_t r1 = vreinterpretq_f32_u8(vld1q_u8(p + stride));
    float32x4_t r2 = vreinterpretq_f32_u8(vld1q_u8(p + 2 * stride));
    float32x4_t r3 = vreinterpretq_f32_u8(vld1q_u8(p + 3 * stride));
    float32x4_t even = vzip1q_f32(r0, r2), odd = vzip1q_f32(r1, r3);
    words[0] = vzip1q_f32(even, odd), words[1] = vzip2q_f32(even, odd);
    even = vzip2q_f32(r0, r2), odd = vzip2q_f32(r1, r3);
    words[2] = vzip1q_f32(even, odd), words[3] = vzip2q_f32(even, odd);
}
static inline void v_rows4(const uint8_t *p, int64_t stride, v16 words[4]) {
    float32x4_t a[4], b[4], c[4], d[4];
    v_quarter_rows4(p, stride, a);
    v_quarter_rows4(p + 4 * stride, stride, b);
    v_quarter_rows4(p + 8 * stride, stride, c);
    v_quarter_rows4(p + 12 * stride, stride, d);
    for (int k = 0; k < 4; k++) words[k] = (v16){a[k], b[k], c[k], d[k]};
}
/* x * y + z: NEON takes the addend first. */
static inline v16 v_fma(v16 x, v16 y, v16 z) {
    return (v16){vfmaq_f32(z.a, x.a, y.a), vfmaq_f32(z.b, x.b, y.b), vfmaq_f32(z.c, x.c, y.c),
                 vfmaq_f32(z.d, x.d, y.d)};
}
static inline float32x4_t v_pow2_quarter(float32x4_t t) {
    uint32x4_t i = vshlq_n_u32(vreinterpretq_u32_f32(t), 23);
    return vreinterpretq_f32_u32(vaddq_u32(i, vdupq_n_u32(0x3f800000)));
}
static inline v16 v_pow2(v16 t) {
    return (v16){v_pow2_quarter(t.a), v_pow2_quarter(t.b), v_pow2_quarter(t.c),
                 v_pow2_quarter(t.d)};
}

/* Four by four: zips of rows 0 and 2, 1 and 3, and zips of those. */
static inline void v_transpose4(const float *const p[4], float *out, int64_t row) {
    for (int64_t k = 0; k < 8; k += 4, out += 4 * row) {
        float32x4_t r0 = vld1q_f32(p[0] + k), r1 = vld1q_f32(p[1] + k);
        float32x4_t r2 = vld1q_f32(p[2] + k), r3 = vld1q_f32(p[3] + k);
        float32x4_t even = vzip1q_f32(r0, r2), odd = vzip1q_f32(r1, r3);
        vst1q_f32(out, vzip1q_f32(even, odd));
        vst1q_f32(out + row, vzip2q_f32(even, odd));
        even = vzip2q_f32(r0, r2), odd = vzip2q_f32(r1, r3);
        vst1q_f32(out + 2 * row, vzip1q_f32(even, odd));
        vst1q_f32(out + 3 * row, vzip2q_f32(even, odd));
    }
}

/* In this mode numbers below 1.2e-38 are zeros. A result is flushed before it is rounded, which a
 * flag reports; x86-64 flushes after rounding. */
#define V_FLUSH
enum { V_FLUSH_REPEATS = 1 };
typedef uint64_t v_flush_state;

static inline v_flush_state v_flush_begin(void) {
    uint64_t control = 0, status = 0;
    __asm__ volatile("mrs %0, fpcr" : "=r"(control));
    __asm__ volatile("mrs %0, fpsr" : "=r"(status));
    __asm__ volatile("msr fpsr, %0" ::"r"(status & ~(uint64_t)8) : "memory");
    __asm__ volatile("msr fpcr, %0" ::"r"(control | 1u << 24) : "memory");
    return control;
}
/* Has nothing been flushed? */
static inline bool v_flush_end(v_flush_state before) {
    uint64_t status = 0;
    __asm__ volatile("mrs %0, fpsr" : "=r"(status)::"memory");
    __asm__ volatile("msr fpcr, %0" ::"r"(before) : "memory");
    return !(status & 8);
}

/* A register, for the GEMM's tile: of 32, 24 hold the tile, 3 a row of b, the rest values of a. */
typedef float32x4_t vr;
enum { LS_VR = 4, LS_TILE_ROWS = 8, LS_TILE_REGS = 3 };

static inline vr r_set1(float x) { return vdupq_n_f32(x); }
static inline vr r_load(const float *p) { return vld1q_f32(p); }
static inline void r_store(float *p, vr a) { vst1q_f32(p, a); }
static inline vr v_first(v16 a) { return a.a; }
static inline v16 v_of_first(vr a) {
    return (v16){a, vdupq_n_f32(0), vdupq_n_f32(0), vdupq_n_f32(0)};
}
static inline vr r_add(vr a, vr b) { return vaddq_f32(a, b); }
static inline vr r_fma(vr a, vr b, vr c) { return vfmaq_f32(c, a, b); }

static inline vr r_mul(vr a, vr b) { return vmulq_f32(a, b); }
typedef int8x16_t vb;
typedef int32x4_t vsum;
enum { LS_B_MIDDLE = 0 };

static inline vb b_load(const uint8_t *p) { return vreinterpretq_s8_u8(vld1q_u8(p)); }
static inline vb b_nibbles(vb a, int high) {
    uint8x16_t bytes = vreinterpretq_u8_s8(a);
    return vreinterpretq_s8_u8(high ? vshrq_n_u8(bytes, 4) : vandq_u8(bytes, vdupq_n_u8(15)));
}
static inline vb b_signed(vb a) { return a; }
/* SDOT where the compiler may use it. Else a product has 16 bits, and the sums of two are those of
 * half a lane. */
static inline vsum b_dot(int most, int n, const vb *w, const int8_t *x) {
    vsum low = vdupq_n_s32(0), high = low;
    (void)most;
    for (int k = 0; k < n; k++) {
        int32_t word = 0;
        memcpy(&word, x + 4 * k, sizeof word);
        int8x16_t all = vreinterpretq_s8_s32(vdupq_n_s32(word));
#ifdef __ARM_FEATURE_DOTPROD
        low = vdotq_s32(low, w[k], all);
#else
        low = vpadalq_s16(low, vmull_s8(vget_low_s8(w[k]), vget_low_s8(all)));
        high = vpadalq_s16(high, vmull_high_s8(w[k], all));
#endif
    }
#ifdef __ARM_FEATURE_DOTPROD
    return vaddq_s32(low, high);
#else
    return vpaddq_s32(low, high);
#endif
}
static inline vr r_of_sums(vsum a, int32_t less) {
    return vcvtq_f32_s32(vsubq_s32(a, vdupq_n_s32(less)));
}

#endif
