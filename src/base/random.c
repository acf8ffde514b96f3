/* random.c - see random.h. */
#include "base/random.h"

#include <math.h>
#include <stdbool.h>

#include "base/math.h"

#define KEY_STEP_0 0x9E3779B9u
#define KEY_STEP_1 0xBB67AE85u

static inline void philox_round(uint32_t c[4], uint32_t k0, uint32_t k1) {
    uint64_t a = (uint64_t)0xD2511F53u * c[0];
    uint64_t b = (uint64_t)0xCD9E8D57u * c[2];
    uint32_t c1 = c[1], c3 = c[3];
    c[0] = (uint32_t)(b >> 32) ^ c1 ^ k0;
    c[1] = (uint32_t)b;
    c[2] = (uint32_t)(a >> 32) ^ c3 ^ k1;
    c[3] = (uint32_t)a;
}

static void philox(uint32_t c[4], uint32_t k0, uint32_t k1) {
    for (int i = 0; i < 10; i++) {
        philox_round(c, k0, k1);
        k0 += KEY_STEP_0;
        k1 += KEY_STEP_1;
    }
}

/* The counter is (index, substream); the key is the seed, mixed with the stream. */
void ls_random_words(uint64_t seed, ls_stream stream, uint64_t substream, uint64_t index,
                     uint32_t out[4]) {
    uint64_t key = ls_random_key(seed, stream);
    out[0] = (uint32_t)index;
    out[1] = (uint32_t)(index >> 32);
    out[2] = (uint32_t)substream;
    out[3] = (uint32_t)(substream >> 32);
    philox(out, (uint32_t)key, (uint32_t)(key >> 32));
}

/* The upper 53 of 64 bits, times 2^-53. Each operation is exact. */
static inline double to_unit(uint32_t hi, uint32_t lo) {
    return ((double)hi * 0x1p21 + (double)(lo >> 11)) * 0x1p-53;
}

double ls_random_uniform(uint64_t seed, ls_stream stream, uint64_t substream, uint64_t index) {
    uint32_t w[4];
    ls_random_words(seed, stream, substream, index, w);
    return to_unit(w[0], w[1]);
}

/* ---- normal deviates: Marsaglia's polar method, LANES pairs at a time ---- */

enum { LANES = 16 }; /* more than compilers unroll, so that they vectorize the loop */

/* Points in the square from -1 to 1, and their squared distances from its centre. */
typedef struct points {
    double u[LANES], v[LANES], s[LANES];
} points;

static inline bool is_inside(double s) { return s < 1.0 && s != 0.0; }

static inline void point_set(points *p, int i, const uint32_t w[4]) {
    p->u[i] = 2.0 * to_unit(w[0], w[1]) - 1.0;
    p->v[i] = 2.0 * to_unit(w[2], w[3]) - 1.0;
    p->s[i] = p->u[i] * p->u[i] + p->v[i] * p->v[i];
}

/* After a rejected attempt, a pair draws again 2^48 places further. */
static void draw_again(points *p, int i, uint64_t seed, ls_stream stream, uint64_t substream,
                       uint64_t pair) {
    uint32_t w[4];
    for (uint64_t attempt = 1; !is_inside(p->s[i]); attempt++) {
        ls_random_words(seed, stream, substream, pair + (attempt << 48), w);
        point_set(p, i, w);
    }
}

/* ls_random_words() of LANES places from `index` on: word k of place i is out[k][i]. */
static inline __attribute__((always_inline)) void lanes_words(uint64_t seed, ls_stream stream,
                                                              uint64_t substream, uint64_t index,
                                                              uint32_t out[4][LANES]) {
    uint64_t key = ls_random_key(seed, stream);
    uint32_t k0 = (uint32_t)key, k1 = (uint32_t)(key >> 32);
    for (int i = 0; i < LANES; i++) {
        out[0][i] = (uint32_t)(index + (uint64_t)i);
        out[1][i] = (uint32_t)((index + (uint64_t)i) >> 32);
        out[2][i] = (uint32_t)substream;
        out[3][i] = (uint32_t)(substream >> 32);
    }
    for (int round = 0; round < 10; round++) {
        for (int i = 0; i < LANES; i++) {
            uint32_t c[4] = {out[0][i], out[1][i], out[2][i], out[3][i]};
            philox_round(c, k0, k1);
            for (int k = 0; k < 4; k++) out[k][i] = c[k];
        }
        k0 += KEY_STEP_0;
        k1 += KEY_STEP_1;
    }
}

typedef void words_fn(uint64_t, ls_stream, uint64_t, uint64_t, uint32_t[4][LANES]);

static void words_portable(uint64_t seed, ls_stream stream, uint64_t substream, uint64_t index,
                           uint32_t out[4][LANES]) {
    lanes_words(seed, stream, substream, index, out);
}

/* The two deviates of each of LANES pairs, from `pair` on. */
static inline __attribute__((always_inline)) void lanes_normal(uint64_t seed, ls_stream stream,
                                                               uint64_t substream, uint64_t pair,
                                                               double out[2 * LANES]) {
    uint32_t words[4][LANES];
    points p;
    lanes_words(seed, stream, substream, pair, words);
    for (int i = 0; i < LANES; i++) {
        uint32_t w[4] = {words[0][i], words[1][i], words[2][i], words[3][i]};
        point_set(&p, i, w);
    }
    for (int i = 0; i < LANES; i++)
        if (!is_inside(p.s[i])) draw_again(&p, i, seed, stream, substream, pair + (uint64_t)i);
    for (int i = 0; i < LANES; i++) {
        double f = sqrt(-2.0 * ls_math_log(p.s[i]) / p.s[i]);
        out[2 * i] = p.u[i] * f;
        out[2 * i + 1] = p.v[i] * f;
    }
}

typedef void normal_fn(uint64_t, ls_stream, uint64_t, uint64_t, double[2 * LANES]);

static void normal_portable(uint64_t seed, ls_stream stream, uint64_t substream, uint64_t pair,
                            double out[2 * LANES]) {
    lanes_normal(seed, stream, substream, pair, out);
}

#if defined(__x86_64__)
__attribute__((target("avx2"))) static void normal_avx2(uint64_t seed, ls_stream stream,
                                                        uint64_t substream, uint64_t pair,
                                                        double out[2 * LANES]) {
    lanes_normal(seed, stream, substream, pair, out);
}

static normal_fn *normal_pick(void) {
    return __builtin_cpu_supports("avx2") ? normal_avx2 : normal_portable;
}

__attribute__((target("avx2"))) static void words_avx2(uint64_t seed, ls_stream stream,
                                                       uint64_t substream, uint64_t index,
                                                       uint32_t out[4][LANES]) {
    lanes_words(seed, stream, substream, index, out);
}

static words_fn *words_pick(void) {
    return __builtin_cpu_supports("avx2") ? words_avx2 : words_portable;
}
#else
static normal_fn *normal_pick(void) { return normal_portable; }
static words_fn *words_pick(void) { return words_portable; }
#endif

void ls_random_words16(ls_random_place first, uint32_t out[4][16]) {
    words_pick()(first.seed, first.stream, first.substream, first.index, out);
}

void ls_random_uniform_f32(ls_random_place first, size_t n, float bound, float *out) {
    for (size_t i = 0; i < n; i++) {
        double u = ls_random_uniform(first.seed, first.stream, first.substream, first.index + i);
        out[i] = (float)((2 * u - 1) * (double)bound);
    }
}

void ls_random_normal(ls_random_place first, size_t n, float std, float *out) {
    normal_fn *normal = normal_pick();
    double values[2 * LANES];
    for (size_t i = 0, at = first.index % 2; i < n; at = 0) {
        normal(first.seed, first.stream, first.substream, (first.index + i) / 2, values);
        for (; at < 2 * LANES && i < n; at++, i++) out[i] = (float)(values[at] * (double)std);
    }
}
