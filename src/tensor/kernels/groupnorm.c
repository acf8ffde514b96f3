/* groupnorm.c - group norm over NHWC, forward and backward. Wu & He, arXiv 1803.08494.
 *
 * Sixteen channels of all pixels at a time, whatever the groups' size; then the channels' sums are
 * joined by group.
 */
#include "tensor/kernels/each.h"
#include "tensor/kernels/variant.h"

#define UNROLL _Pragma("GCC unroll 4")

/* Four chains of each channel: pixel p belongs to chain p mod 4. */
typedef struct chains {
    v16 c[4];
} chains;

static inline chains chains_zero(void) {
    const v16 zero = v_set1(0.0f);
    return (chains){{zero, zero, zero, zero}};
}
static inline v16 chains_sum(const chains *s) {
    return v_add(v_add(s->c[0], s->c[2]), v_add(s->c[1], s->c[3]));
}

/* The sums of up to 16 channels over pixels C apart; n >= 16 is known when it is compiled. */
INLINE v16 sum_of(const float *x, int64_t pixels, int64_t C, int64_t n) {
    chains s = chains_zero();
    for (; pixels > 3; pixels -= 4, x += 4 * C)
        UNROLL for (int k = 0; k < 4; k++) s.c[k] = v_add(s.c[k], v_load_n(x + k * C, n));
    UNROLL for (int k = 0; k < 3; k++) if (k < pixels) s.c[k] =
        v_add(s.c[k], v_load_n(x + k * C, n));
    return chains_sum(&s);
}

INLINE v16 add_square(v16 sum, v16 x, v16 mean) {
    v16 d = v_sub(x, mean);
    return v_fma(d, d, sum);
}

/* The same of the squares of differences from the mean. */
INLINE v16 squares_of(const float *x, int64_t pixels, int64_t C, int64_t n, v16 mean) {
    chains s = chains_zero();
    for (; pixels > 3; pixels -= 4, x += 4 * C)
        UNROLL for (int k = 0; k < 4; k++) s.c[k] =
            add_square(s.c[k], v_load_n(x + k * C, n), mean);
    UNROLL for (int k = 0; k < 3; k++) if (k < pixels) s.c[k] =
        add_square(s.c[k], v_load_n(x + k * C, n), mean);
    return chains_sum(&s);
}

/* Values of groups, one for each of the n channels from c on. */
static v16 spread(const ls_group_norm_job *g, const float *by_group, int64_t c, int64_t n) {
    float t[LS_LANES] = {0};
    int64_t size = g->C / g->groups;
    for (int64_t i = 0; i < n && i < LS_LANES; i++) t[i] = by_group[(c + i) / size];
    return v_load(t);
}

/* The mean of a group's values, from its channels' sums. */
static void group_means(const ls_group_norm_job *g, const float *sums, float *means) {
    int64_t size = g->C / g->groups;
    for (int64_t i = 0; i < g->groups; i++, sums += size) {
        v16 sum = v_set1(0.0f);
        for (int64_t d = 0; d < size; d += LS_LANES) sum = v_add(sum, v_load_n(sums + d, size - d));
        means[i] = v_sum(sum) / ((float)size * (float)g->pixels);
    }
}

/* The channels' sums lie in the first pixel of y until y is computed. */
static void sample_moments(const ls_group_norm_job *g, const float *x, float *y, float *mean,
                           float *rstd) {
    int64_t C = g->C;
    for (int64_t c = 0; c < C; c += LS_LANES) {
        int64_t n = C - c;
        v16 sum =
            n < LS_LANES ? sum_of(x + c, g->pixels, C, n) : sum_of(x + c, g->pixels, C, LS_LANES);
        v_store_n(y + c, sum, n);
    }
    group_means(g, y, mean);
    for (int64_t c = 0; c < C; c += LS_LANES) {
        int64_t n = C - c;
        v16 mu = spread(g, mean, c, n);
        v16 sum = n < LS_LANES ? squares_of(x + c, g->pixels, C, n, mu)
                               : squares_of(x + c, g->pixels, C, LS_LANES, mu);
        v_store_n(y + c, sum, n);
    }
    group_means(g, y, rstd);
    for (int64_t i = 0; i < g->groups; i++) rstd[i] = 1.0f / sqrtf(rstd[i] + g->eps);
}

/* Up to 16 channels of a sample: what is the same for all pixels. */
typedef struct channels {
    v16 mean, rstd, gamma, beta;
    int64_t n;
    bool relu;
} channels;

static channels channels_at(const ls_group_norm_job *g, int64_t sample, int64_t c) {
    int64_t n = g->C - c;
    channels a = {.mean = spread(g, g->mean + sample * g->groups, c, n),
                  .rstd = spread(g, g->rstd + sample * g->groups, c, n),
                  .gamma = v_load_n(g->gamma + c, n),
                  .beta = v_set1(0.0f),
                  .n = n,
                  .relu = g->relu};
    if (g->beta) a.beta = v_load_n(g->beta + c, n);
    return a;
}

/* The normalized values of a pixel. */
INLINE v16 normalized(const channels *a, const float *x, int64_t n) {
    return v_mul(v_sub(v_load_n(x, n), a->mean), a->rstd);
}

INLINE void apply(const channels *a, const float *x, float *y, int64_t size, int64_t C, int64_t n) {
    const v16 zero = v_set1(0.0f);
    for (int64_t i = 0; i < size; i += C) {
        v16 out = v_fma(normalized(a, x + i, n), a->gamma, a->beta);
        v_store_n(y + i, a->relu ? v_max(zero, out) : out, n);
    }
}

void LS_K(group_norm)(const ls_group_norm_job *g) {
    int64_t C = g->C, size = g->pixels * C;
    for (int64_t s = 0; s < g->samples; s++) {
        const float *x = g->x + s * size;
        float *y = g->y + s * size;
        sample_moments(g, x, y, g->mean + s * g->groups, g->rstd + s * g->groups);
        for (int64_t c = 0; c < C; c += LS_LANES) {
            channels a = channels_at(g, s, c);
            if (a.n < LS_LANES)
                apply(&a, x + c, y + c, size - c, C, a.n);
            else
                apply(&a, x + c, y + c, size - c, C, LS_LANES);
        }
    }
}

/* A pixel's dy, through the ReLU that follows the norm: as relu_dx() (activation.c). */
INLINE v16 dy_of(const channels *a, const float *dy, v16 h, int64_t n) {
    v16 d = v_load_n(dy, n);
    if (!a->relu) return d;
    return v_select(v_set1(1e-45f), v_fma(h, a->gamma, a->beta), v_set1(0.0f), d);
}

/* The mean over a group's values of gamma * dy or of gamma * dy * h, from its channels' sums. */
static float weighted_mean(const ls_group_norm_job *g, const float *sums, int64_t group) {
    int64_t size = g->C / g->groups, end = (group + 1) * size;
    v16 sum = v_set1(0.0f);
    for (int64_t c = group * size; c < end; c += LS_LANES)
        sum = v_fma(v_load_n(sums + c, end - c), v_load_n(g->gamma + c, end - c), sum);
    return v_sum(sum) / ((float)size * (float)g->pixels);
}

/* The same for the groups of the n channels from c on. */
static v16 weighted_means(const ls_group_norm_job *g, const float *sums, int64_t c, int64_t n) {
    float t[LS_LANES] = {0};
    int64_t size = g->C / g->groups, last = -1;
    for (int64_t i = 0; i < n && i < LS_LANES; i++) {
        int64_t group = (c + i) / size;
        t[i] = group == last ? t[i - 1] : weighted_mean(g, sums, group);
        last = group;
    }
    return v_load(t);
}

/* Sums over the pixels of a sample. */
typedef struct back_sums {
    v16 dyh, dy;
} back_sums;

INLINE back_sums back_sums_of(const channels *a, const float *x, const float *dy, int64_t size,
                              int64_t C, int64_t n) {
    chains dyh = chains_zero(), plain = chains_zero();
    for (int64_t i = 0; i < size; i += 4 * C)
        UNROLL for (int k = 0; k < 4; k++) if (i + k * C < size) {
            v16 h = normalized(a, x + i + k * C, n), d = dy_of(a, dy + i + k * C, h, n);
            dyh.c[k] = v_fma(d, h, dyh.c[k]);
            plain.c[k] = v_add(plain.c[k], d);
        }
    return (back_sums){chains_sum(&dyh), chains_sum(&plain)};
}

/* The channels' sums over a sample's pixels, of dy * h and of dy. */
static void sample_sums(const ls_group_norm_job *g, int64_t sample, float *sum_dyh, float *sum_dy) {
    int64_t C = g->C, size = g->pixels * C;
    const float *x = g->x + sample * size, *dy = g->dy + sample * size;
    for (int64_t c = 0; c < C; c += LS_LANES) {
        channels a = channels_at(g, sample, c);
        back_sums s = a.n < LS_LANES ? back_sums_of(&a, x + c, dy + c, size - c, C, a.n)
                                     : back_sums_of(&a, x + c, dy + c, size - c, C, LS_LANES);
        v_store_n(sum_dyh + c, s.dyh, a.n);
        v_store_n(sum_dy + c, s.dy, a.n);
    }
}

/* The channels from element `at` on, n of them, of all pixels up to element `end`. */
INLINE void apply_dx(const ls_group_norm_job *g, const channels *a, const back_sums *means,
                     int64_t at, int64_t end, int64_t n) {
    const float *x = g->x, *dy = g->dy;
    float *dx = g->dx;
    for (int64_t i = at; i < end; i += g->C) {
        v16 h = normalized(a, x + i, n), d = dy_of(a, dy + i, h, n);
        d = v_sub(v_mul(d, a->gamma), means->dy);
        v_store_n(dx + i, v_mul(v_sub(d, v_mul(h, means->dyh)), a->rstd), n);
    }
}

/* dx = rstd * (gamma * dy - mean(gamma * dy) - h * mean(gamma * dy * h)). */
static void sample_dx(const ls_group_norm_job *g, int64_t sample, const float *sum_dyh,
                      const float *sum_dy) {
    int64_t C = g->C, at = sample * g->pixels * C, end = at + g->pixels * C;
    for (int64_t c = 0; c < C; c += LS_LANES, at += LS_LANES) {
        channels a = channels_at(g, sample, c);
        back_sums means = {weighted_means(g, sum_dyh, c, a.n), weighted_means(g, sum_dy, c, a.n)};
        if (a.n < LS_LANES)
            apply_dx(g, &a, &means, at, end, a.n);
        else
            apply_dx(g, &a, &means, at, end, LS_LANES);
    }
}

void LS_K(group_norm_dx)(const ls_group_norm_job *g) {
    for (int64_t s = 0; s < g->samples; s++) {
        float *sum_dyh = g->sums + 2 * s * g->C, *sum_dy = sum_dyh + g->C;
        sample_sums(g, s, sum_dyh, sum_dy);
        if (g->dx) sample_dx(g, s, sum_dyh, sum_dy);
    }
}
