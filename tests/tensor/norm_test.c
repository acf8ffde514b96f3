/* norm_test.c - group norm, RMS norm and batch norm, forward and backward, against formulas in
 * double precision. Tolerances are those of f32 sums of up to 300 terms. */
#include "tensor/norm.h"

#include "tensor/check_group.h"
#include "tensor/layer_groups.h"

/* A set of elements that are normalized together: element j is at place(set, j). */
typedef struct set {
    const float *x, *dy, *gamma, *beta;
    int64_t first, count; /* the first run, and the number of runs */
    int64_t run, stride;  /* elements of a run, and from run to run */
    int64_t channel;      /* of the first */
    double eps;
} set;

static int64_t place(const set *s, int64_t j) {
    return s->first + j / s->run * s->stride + j % s->run;
}

typedef struct moments {
    double mean, variance, rstd, mean_g, mean_gh;
} moments;

static moments moments_of(const set *s) {
    moments m = {0};
    int64_t count = s->count * s->run;
    for (int64_t j = 0; j < count; j++) m.mean += (double)s->x[place(s, j)] / (double)count;
    for (int64_t j = 0; j < count; j++)
        m.variance += pow((double)s->x[place(s, j)] - m.mean, 2) / (double)count;
    m.rstd = 1 / sqrt(m.variance + s->eps);
    for (int64_t j = 0; j < count; j++) {
        double g = (double)s->dy[place(s, j)] * (double)s->gamma[s->channel + j % s->run];
        m.mean_g += g / (double)count;
        m.mean_gh += g * ((double)s->x[place(s, j)] - m.mean) * m.rstd / (double)count;
    }
    return m;
}

static void check_set(const set *s, const float *y, const float *dx, const char *what) {
    moments m = moments_of(s);
    for (int64_t j = 0; j < s->count * s->run; j++) {
        int64_t at = place(s, j), c = s->channel + j % s->run;
        double gamma = (double)s->gamma[c], h = ((double)s->x[at] - m.mean) * m.rstd;
        double want = m.rstd * ((double)s->dy[at] * gamma - m.mean_g - h * m.mean_gh);
        double tolerance = 2e-6 * (1 + m.rstd);
        assert_close(y[at], h * gamma + (double)s->beta[c], 4 * tolerance, what, s->run, at);
        assert_close(dx[at], want, 20 * tolerance * (1 + m.rstd), what, s->run, at);
    }
}

/* ---- group norm ---- */

static void check_group_norm(int64_t n, const values *v, bool tall) {
    if (n == 0) return;
    ls_group_norm_job g = group_norm_of(n, tall, (values *)(uintptr_t)v);
    int64_t size = g.pixels * g.C, width = g.C / g.groups;
    for (int64_t i = 0; i < g.samples * g.groups; i++) {
        int64_t sample = i / g.groups, channel = i % g.groups * width;
        set s = {.x = g.x,
                 .dy = g.dy,
                 .gamma = g.gamma,
                 .beta = g.beta,
                 .channel = channel,
                 .first = sample * size + channel,
                 .count = g.pixels,
                 .run = width,
                 .stride = g.C,
                 .eps = 1e-5};
        moments m = moments_of(&s);
        assert_close(g.mean[i], m.mean, 2e-6, "mean", n, i);
        assert_close(g.rstd[i], m.rstd, 4e-6 * m.rstd * (1 + m.rstd), "rstd", n, i);
        check_set(&s, g.y, g.dx, "group norm");
        for (int64_t d = 0; d < width; d++) {
            double dyh = 0, dy = 0;
            for (int64_t p = 0; p < g.pixels; p++) {
                int64_t at = s.first + p * g.C + d;
                dyh += (double)g.dy[at] * ((double)g.x[at] - m.mean) * m.rstd;
                dy += (double)g.dy[at];
            }
            int64_t at = 2 * sample * g.C + channel + d;
            assert_close(g.sums[at], dyh, 2e-5 * (1 + m.rstd), "sum of dy h", n, at);
            assert_close(g.sums[at + g.C], dy, 2e-5, "sum of dy", n, at);
        }
    }
    assert_memory_equal(v->out[5], v->out[3], sizeof v->out[3]);
    int64_t stats = g.samples * g.groups;
    const int64_t written[] = {g.samples * size, stats, stats, g.samples * size,
                               2 * g.samples * g.C};
    for (int i = 0; i < 5; i++) assert_untouched(v, i, written[i]);
}
static void check_group_norm_wide(int64_t n, const values *v) { check_group_norm(n, v, false); }
static void check_group_norm_tall(int64_t n, const values *v) { check_group_norm(n, v, true); }

static void test_group_norm(void **state) {
    (void)state;
    each(do_group_norm_wide, check_group_norm_wide);
    each(do_group_norm_tall, check_group_norm_tall);
}

/* A sample's bits do not depend on the other samples of the call. */
static void test_samples(void **state) {
    (void)state;
    static values all, one;
    const ls_kernels *k = NULL;
    ls_error e;
    assert_ls_ok(ls_kernels_pick(&k, &e), e);
    fill(&all, false);
    fill(&one, false);
    do_group_norm_tall(k, 97, &all);
    ls_group_norm_job g = group_norm_of(97, true, &one);
    g.samples = 1;
    for (int s = 0; s < 2; s++) {
        k->norm.group_norm(&g);
        k->norm.group_norm_dx(&g);
        g.x += 194, g.y += 194, g.dy += 194, g.dx += 194, g.mean++, g.rstd++, g.sums += 4;
    }
    for (int i = 0; i < 5; i++) assert_memory_equal(all.out[i], one.out[i], sizeof one.out[i]);
}

/* A mean far from 0 costs no more than the numbers' own rounding, over many pixels. */
static void test_offset(void **state) {
    (void)state;
    enum { PIXELS = 50000 };
    static float x[2 * PIXELS], y[2 * PIXELS];
    const float gamma[2] = {1, 1}, beta[2] = {0, 0};
    float mean = 0, rstd = 0;
    const ls_kernels *k = NULL;
    ls_error e;
    assert_ls_ok(ls_kernels_pick(&k, &e), e);
    for (int i = 0; i < 2 * PIXELS; i++) x[i] = 100.0f + (float)(i % 5 - 2);
    k->norm.group_norm(&(ls_group_norm_job){.samples = 1,
                                            .pixels = PIXELS,
                                            .C = 2,
                                            .groups = 1,
                                            .eps = 0,
                                            .gamma = gamma,
                                            .beta = beta,
                                            .x = x,
                                            .y = y,
                                            .mean = &mean,
                                            .rstd = &rstd});
    assert_close(mean, 100, 1e-3, "mean", PIXELS, 0);
    assert_close(rstd, sqrt(0.5), 1e-5, "rstd", PIXELS, 0);
}

/* ---- RMS norm ---- */

static void check_rms_norm(int64_t n, const values *v) {
    ls_rms_norm_job m = rms_norm_of(n, (values *)(uintptr_t)v);
    double dgamma[MAX_N] = {0};
    for (int64_t r = 0; r < m.rows; r++) {
        double square = 0, mean_gh = 0;
        for (int64_t i = r * n; i < r * n + n; i++) square += pow((double)m.x[i], 2) / (double)n;
        double rstd = 1 / sqrt(square + 1e-6);
        assert_close(m.rstd[r], rstd, 1e-6 * rstd, "rstd", n, r);
        for (int64_t c = 0; c < n; c++) {
            double h = (double)m.x[r * n + c] * rstd, dy = (double)m.dy[r * n + c];
            mean_gh += dy * (double)m.gamma[c] * h / (double)n;
            dgamma[c] += dy * h;
        }
        for (int64_t c = 0; c < n; c++) {
            int64_t at = r * n + c;
            double gamma = (double)m.gamma[c], h = (double)m.x[at] * rstd;
            double dx = rstd * ((double)m.dy[at] * gamma - h * mean_gh);
            double tolerance = 1e-5 * (1 + rstd) * (1 + rstd);
            assert_close(m.y[at], h * gamma, 2e-6 * (1 + fabs(h * gamma)), "rms norm", n, at);
            assert_close(m.dx[at], dx, tolerance, "dx", n, at);
            assert_close(v->out[3][at], dx + (double)v->in[2][at], tolerance, "dx", n, at);
        }
    }
    for (int64_t c = 0; c < n; c++) {
        double add = m.rows && c >= n / 3 ? dgamma[c] : 0;
        assert_close(m.dgamma[c], (double)v->in[2][c] + add, c < n / 3 ? 0 : 2e-5, "dgamma", n, c);
    }
    for (int i = 0; i < 5; i++) assert_untouched(v, i, i == 1 ? m.rows : i == 4 ? n : ROWS * n);
}

static void test_rms_norm(void **state) {
    (void)state;
    each(do_rms_norm, check_rms_norm);
}

/* ---- batch norm ---- */

/* dy is masked where ReLU gives 0; of y alone its sign is believed. */
static void check_batch_norm(int64_t n, const values *v, bool tall) {
    if (n == 0) return;
    static float dy[CELLS], y[CELLS];
    ls_batch_norm_job b = batch_norm_of(n, tall, (values *)(uintptr_t)v);
    for (int64_t i = 0; i < b.rows * b.C; i++) dy[i] = tall && b.y[i] <= 0 ? 0 : b.dy[i];
    for (int64_t c = 0; c < b.C; c++) {
        set s = {.x = b.x,
                 .dy = dy,
                 .gamma = b.gamma,
                 .beta = b.beta,
                 .channel = c,
                 .first = c,
                 .count = b.rows,
                 .run = 1,
                 .stride = b.C,
                 .eps = 1e-5};
        moments m = moments_of(&s);
        double sum_dyh = 0, sum_dy = 0;
        for (int64_t i = c; i < b.rows * b.C; i += b.C) {
            double h = ((double)b.x[i] - m.mean) * m.rstd;
            double norm = h * (double)b.gamma[c] + (double)b.beta[c];
            sum_dyh += (double)dy[i] * h;
            sum_dy += (double)dy[i];
            if (tall && b.y[i] <= 0) assert_true(b.y[i] == 0 && norm < 1e-5 * (1 + m.rstd));
            y[i] = tall && b.y[i] <= 0 ? (float)norm : b.y[i];
        }
        assert_close(b.mean[c], m.mean, 2e-6, "mean", n, c);
        assert_close(b.variance[c], m.variance, 2e-6 * (1 + m.variance), "variance", n, c);
        assert_close(b.rstd[c], m.rstd, 4e-6 * m.rstd * (1 + m.rstd), "rstd", n, c);
        assert_close(b.sum_dyh[c], sum_dyh, 2e-5 * (1 + m.rstd), "sum of dy h", n, c);
        assert_close(b.sum_dy[c], sum_dy, tall ? 2e-5 : 4e-6, "sum of dy", n, c);
        check_set(&s, y, b.dx, "batch norm");
    }
    assert_memory_equal(v->out[7], v->out[6], sizeof v->out[6]);
    for (int i = 0; i < 8; i++) assert_untouched(v, i, i == 0 || i >= 6 ? b.rows * b.C : b.C);
}
static void check_batch_norm_wide(int64_t n, const values *v) { check_batch_norm(n, v, false); }
static void check_batch_norm_tall(int64_t n, const values *v) { check_batch_norm(n, v, true); }

static void test_batch_norm(void **state) {
    (void)state;
    each(do_batch_norm_wide, check_batch_norm_wide);
    each(do_batch_norm_tall, check_batch_norm_tall);
}

/* With sums of 0, the mean and the variance are numbers that x does not change. */
static void test_given_moments(void **state) {
    (void)state;
    static values v;
    static const float zeros[MAX_N];
    const ls_kernels *k = NULL;
    for (int i = 0; (k = ls_kernels_at(i)); i++) {
        fill(&v, false);
        ls_batch_norm_job b = batch_norm_of(100, true, &v);
        b.to = b.C;
        k->norm.batch_norm_stats(&b);
        k->norm.batch_norm_rstd(&b);
        b.to = b.rows;
        k->norm.batch_norm_apply(&b);
        b.sum_dyh = b.sum_dy = (float *)(uintptr_t)zeros;
        k->norm.batch_norm_dx(&b);
        for (int64_t at = 0; at < b.rows * b.C; at++) {
            double slope = (double)b.gamma[at % b.C] * (double)b.rstd[at % b.C];
            double want = b.y[at] > 0 ? (double)b.dy[at] * slope : 0;
            assert_close(b.dx[at], want, 1e-6 * fabs(want), "dx", b.rows, at);
        }
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_group_norm), cmocka_unit_test(test_samples),
        cmocka_unit_test(test_offset),     cmocka_unit_test(test_rms_norm),
        cmocka_unit_test(test_batch_norm), cmocka_unit_test(test_given_moments),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
