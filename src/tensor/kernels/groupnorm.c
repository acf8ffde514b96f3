/* groupnorm.c - group norm over NHWC, forward and backward. Wu & He, arXiv 1803.08494.
 *
 * Sixteen channels of all pixels at a time, whatever the groups' size; then the channels' sums are
 * joined by group.
 */
#include "tensor/kernels/channels.h"

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

/* The mean over a group's values of gamma * dy or of gamma * dy * h, from its channels' sums. */
static float weighted_mean(const ls_group_norm_job *g, const float *sums, int64_t group) {
    int64_t size = g->C / g->groups, end = (group + 1) * size;
    v16 sum = v_set1(0.0f);
    for (int64_t c = group * size; c < end; c += LS_LANES)
        sum = v_fma(v_load_n(sums + c, end - c), v_load_n(g->gamma + c, end - c), sum);
    return v_sum(sum) / ((float)size * (float)g->pixels);
}

/* The weighted means of the groups of the n channels from c on. */
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
    for (int64_t c = 0; c < C; c += LS_LANES) {
        channels a = channels_at(g, sample, c);
        back_sums s = a.n < LS_LANES ? back_sums_of(&a, x + c, dy + c, size - c, C, a.n)
                                     : back_sums_of(&a, x + c, dy + c, size - c, C, LS_LANES);
        v_store_n(sum_dyh + c, s.dyh, a.n);
        v_store_n(sum_dy + c, s.dy, a.n);
    }
}

/* dx = rstd * (gamma * dy - mean(gamma * dy) - h * mean(gamma * dy * h)). */
static void sample_dx(const ls_group_norm_job *g, int64_t sample, const float *sum_dyh,
                      const float *sum_dy) {
    int64_t C = g->C, at = sample * g->pixels * C, end = at + g->pixels * C;
    for (int64_t c = 0; c < C; c += LS_LANES, at += LS_LANES) {
        channels a = channels_at(g, sample, c);
        back_sums means = {weighted_means(g, sum_dyh, c, a.n), weighted_means(g, sum_dy, c, a.n)};
        back_rows rows = {g->x + at, g->dy + at, g->dx + at, end - at, C};
        if (a.n < LS_LANES)
            apply_dx(&a, &means, &rows, a.n);
        else
            apply_dx(&a, &means, &rows, LS_LANES);
    }
}

void LS_K(group_norm_dx)(const ls_group_norm_job *g) {
    for (int64_t s = 0; s < g->samples; s++) {
        float *sum_dyh = g->sums + 2 * s * g->C, *sum_dy = sum_dyh + g->C;
        sample_sums(g, s, sum_dyh, sum_dy);
        if (g->dx) sample_dx(g, s, sum_dyh, sum_dy);
    }
}
