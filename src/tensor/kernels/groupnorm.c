/* groupnorm.c - group norm over NHWC, forward and backward. Wu & He, arXiv 1803.08494.
 *
 * Sixteen channels of all pixels at a time, whatever the groups' size; then the channels' sums are
 * joined by group.
 */
#include "tensor/kernels/variant.h"

/* Four chains of each channel, which take turns: c[0] is the next pixel's. The sum does not depend
 * on whose turn it is. */
typedef struct chains {
    v16 c[4];
} chains;

static inline chains chains_zero(void) {
    const v16 zero = v_set1(0.0f);
    return (chains){{zero, zero, zero, zero}};
}
/* `next` is c[0], continued. */
static inline void chains_turn(chains *s, v16 next) {
    *s = (chains){{s->c[1], s->c[2], s->c[3], next}};
}
static inline v16 chains_sum(const chains *s) {
    return v_add(v_add(s->c[0], s->c[2]), v_add(s->c[1], s->c[3]));
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
    int64_t C = g->C, size = g->pixels * C;
    for (int64_t c = 0; c < C; c += LS_LANES) {
        int64_t n = C - c;
        chains s = chains_zero();
        for (int64_t i = c; i < size; i += C) chains_turn(&s, v_add(s.c[0], v_load_n(x + i, n)));
        v_store_n(y + c, chains_sum(&s), n);
    }
    group_means(g, y, mean);
    for (int64_t c = 0; c < C; c += LS_LANES) {
        int64_t n = C - c;
        chains s = chains_zero();
        v16 mu = spread(g, mean, c, n);
        for (int64_t i = c; i < size; i += C) {
            v16 d = v_sub(v_load_n(x + i, n), mu);
            chains_turn(&s, v_fma(d, d, s.c[0]));
        }
        v_store_n(y + c, chains_sum(&s), n);
    }
    group_means(g, y, rstd);
    for (int64_t i = 0; i < g->groups; i++) rstd[i] = 1.0f / sqrtf(rstd[i] + g->eps);
}

void LS_K(group_norm)(const ls_group_norm_job *g) {
    int64_t C = g->C, size = g->pixels * C;
    for (int64_t s = 0; s < g->samples; s++) {
        const float *x = g->x + s * size;
        float *y = g->y + s * size, *mean = g->mean + s * g->groups,
              *rstd = g->rstd + s * g->groups;
        sample_moments(g, x, y, mean, rstd);
        for (int64_t c = 0; c < C; c += LS_LANES) {
            int64_t n = C - c;
            v16 mu = spread(g, mean, c, n), rs = spread(g, rstd, c, n);
            v16 gamma = v_load_n(g->gamma + c, n), beta = v_load_n(g->beta + c, n);
            for (int64_t i = c; i < size; i += C) {
                v16 hat = v_mul(v_sub(v_load_n(x + i, n), mu), rs);
                v16 out = v_fma(hat, gamma, beta);
                v_store_n(y + i, g->relu ? v_max(v_set1(0.0f), out) : out, n);
            }
        }
    }
}

/* dy through the ReLU that follows the norm: as relu_dx() (activation.c). */
static inline v16 behind_relu(v16 h, v16 gamma, v16 beta, v16 dy) {
    return v_select(v_set1(1e-45f), v_fma(h, gamma, beta), v_set1(0.0f), dy);
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

/* The channels' sums over a sample's pixels, of dy * h and of dy. */
static void sample_sums(const ls_group_norm_job *g, int64_t sample, float *sum_dyh, float *sum_dy) {
    int64_t C = g->C, size = g->pixels * C;
    const float *x = g->x + sample * size, *dy = g->dy + sample * size;
    const float *mean = g->mean + sample * g->groups, *rstd = g->rstd + sample * g->groups;
    for (int64_t c = 0; c < C; c += LS_LANES) {
        int64_t n = C - c;
        v16 mu = spread(g, mean, c, n), rs = spread(g, rstd, c, n);
        v16 gamma = v_load_n(g->gamma + c, n), beta = gamma;
        if (g->relu) beta = v_load_n(g->beta + c, n);
        chains dyh = chains_zero(), plain = chains_zero();
        for (int64_t i = c; i < size; i += C) {
            v16 d = v_load_n(dy + i, n), h = v_mul(v_sub(v_load_n(x + i, n), mu), rs);
            if (g->relu) d = behind_relu(h, gamma, beta, d);
            chains_turn(&dyh, v_fma(d, h, dyh.c[0]));
            chains_turn(&plain, v_add(plain.c[0], d));
        }
        v_store_n(sum_dyh + c, chains_sum(&dyh), n);
        v_store_n(sum_dy + c, chains_sum(&plain), n);
    }
}

/* dx = rstd * (gamma * dy - mean(gamma * dy) - h * mean(gamma * dy * h)). */
static void sample_dx(const ls_group_norm_job *g, int64_t sample, const float *sum_dyh,
                      const float *sum_dy) {
    int64_t C = g->C, size = g->pixels * C;
    const float *x = g->x + sample * size, *dy = g->dy + sample * size;
    const float *mean = g->mean + sample * g->groups, *rstd = g->rstd + sample * g->groups;
    float *dx = g->dx + sample * size;
    for (int64_t c = 0; c < C; c += LS_LANES) {
        int64_t n = C - c;
        v16 mu = spread(g, mean, c, n), rs = spread(g, rstd, c, n);
        v16 mean_g = weighted_means(g, sum_dy, c, n), mean_gh = weighted_means(g, sum_dyh, c, n);
        v16 gamma = v_load_n(g->gamma + c, n), beta = gamma;
        if (g->relu) beta = v_load_n(g->beta + c, n);
        for (int64_t i = c; i < size; i += C) {
            v16 d = v_load_n(dy + i, n), h = v_mul(v_sub(v_load_n(x + i, n), mu), rs);
            if (g->relu) d = behind_relu(h, gamma, beta, d);
            d = v_sub(v_mul(d, gamma), mean_g);
            v_store_n(dx + i, v_mul(v_sub(d, v_mul(h, mean_gh)), rs), n);
        }
    }
}

void LS_K(group_norm_dx)(const ls_group_norm_job *g) {
    for (int64_t s = 0; s < g->samples; s++) {
        float *sum_dyh = g->sums + 2 * s * g->C, *sum_dy = sum_dyh + g->C;
        sample_sums(g, s, sum_dyh, sum_dy);
        if (g->dx) sample_dx(g, s, sum_dyh, sum_dy);
    }
}
