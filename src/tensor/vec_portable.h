/* vec_portable.h - v16 in plain C, the reference for the other variants. See vec.h. */
#ifndef LS_TENSOR_VEC_PORTABLE_H
#define LS_TENSOR_VEC_PORTABLE_H

#include <math.h>
#include <stdint.h>
#include <string.h>

typedef struct v16 {
    float f[LS_LANES];
} v16;
enum { LS_V16S = 8 };

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
static inline v16 v_select(v16 a, v16 b, v16 x, v16 y) {
    V_EACH(a.f[i] > b.f[i] ? x.f[i] : y.f[i]);
}
static inline uint32_t v_over(v16 a, v16 b) {
    uint32_t bits = 0;
    for (int i = 0; i < LS_LANES; i++) bits |= (uint32_t)(a.f[i] > b.f[i]) << i;
    return bits;
}
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
static inline vr v_first(v16 a) { return r_load(a.f); }
static inline v16 v_of_first(vr a) {
    v16 r = {{0}};
    memcpy(r.f, a.f, sizeof a.f);
    return r;
}
static inline vr r_add(vr a, vr b) {
    for (int i = 0; i < LS_VR; i++) a.f[i] = a.f[i] + b.f[i];
    return a;
}
static inline vr r_fma(vr a, vr b, vr c) {
    for (int i = 0; i < LS_VR; i++) c.f[i] = fmaf(a.f[i], b.f[i], c.f[i]);
    return c;
}
static inline vr r_mul(vr a, vr b) {
    for (int i = 0; i < LS_VR; i++) a.f[i] = a.f[i] * b.f[i];
    return a;
}

typedef struct vb {
    uint8_t b[4 * LS_VR];
} vb;
typedef struct vsum {
    int32_t i[LS_VR];
} vsum;
enum { LS_B_MIDDLE = 0 };

static inline vb b_load(const uint8_t *p) {
    vb r;
    memcpy(r.b, p, sizeof r.b);
    return r;
}
static inline vb b_nibbles(vb a, int high) {
    for (int i = 0; i < 4 * LS_VR; i++) a.b[i] = high ? a.b[i] >> 4 : a.b[i] & 15;
    return a;
}
static inline vb b_signed(vb a) { return a; }
static inline vsum b_dot(int most, int n, const vb *w, const int8_t *x) {
    vsum sum = {{0}};
    (void)most;
    for (int k = 0; k < n; k++)
        for (int i = 0; i < 4 * LS_VR; i++) sum.i[i / 4] += (int8_t)w[k].b[i] * x[4 * k + i % 4];
    return sum;
}
static inline vr r_of_sums(vsum a, int32_t less) {
    vr r;
    for (int i = 0; i < LS_VR; i++) r.f[i] = (float)(a.i[i] - less);
    return r;
}

#endif
