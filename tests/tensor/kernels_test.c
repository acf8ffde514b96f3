/* kernels_test.c - every kernel: the same bits from every variant, on ordinary and on wild numbers;
 * and the right numbers, by formulas in double precision. Where the header promises an order of
 * sums, the reference is that sum in f32 and the bits must agree. */
#include "tensor/kernels.h"

#include <float.h>
#include <math.h>

#include "base/random.h"
#include "test.h"

enum { ROWS = 3, MAX_N = 100, CELLS = ROWS * MAX_N + 260, NOUT = 8 };

static const int64_t sizes[] = {0, 1, 7, 15, 16, 17, 33, MAX_N};
enum { NSIZES = sizeof sizes / sizeof *sizes };

/* Inputs, and what the kernels write: each array is followed by cells that must stay UNTOUCHED. */
typedef struct values {
    float in[4][CELLS];
    float out[NOUT][CELLS];
} values;

static const float UNTOUCHED = -77.25f;

static void fill(values *v, bool wild) {
    static const float odd[] = {1e18f,  -1e18f,  3e8f, -100.0f, 88.5f, -0.0f,
                                1e-41f, -1e-41f, 0.0f, 1e-20f,  -3e8f, FLT_MIN};
    for (uint64_t i = 0; i < 4; i++) {
        ls_random_normal(5, LS_STREAM_SAMPLE, i, 0, CELLS, 2.0f, v->in[i]);
        for (size_t j = 0; wild && j < CELLS; j++)
            if ((j * 7 + i) % 5 < 2) v->in[i][j] = odd[(j + 5 * i) % 12];
    }
    for (int i = 0; i < NOUT; i++)
        for (int j = 0; j < CELLS; j++) v->out[i][j] = UNTOUCHED;
}

/* Output i begins as input j. */
static void start_from(values *v, int i, int j, int64_t n) {
    memcpy(v->out[i], v->in[j], (size_t)n * sizeof(float));
}

static void assert_untouched(const values *v, int i, int64_t from) {
    for (int64_t j = from; j < CELLS; j++) assert_true(v->out[i][j] == UNTOUCHED);
}

/* |got - want| <= tolerance; says where not. */
static void assert_close(float got, double want, double tolerance, const char *what, int64_t n,
                         int64_t i) {
    if (fabs((double)got - want) <= tolerance) return;
    print_error("%s, size %lld, element %lld: %.9g, not %.9g within %g\n", what, (long long)n,
                (long long)i, (double)got, want, tolerance);
    fail();
}

/* ---- each group of kernels once, on rows of n; the outputs go to v->out ---- */

typedef void group_fn(const ls_kernels *, int64_t n, values *);

static void do_layernorm(const ls_kernels *k, int64_t n, values *v) {
    int64_t rows = n ? ROWS : 0; /* a row of nothing has no mean */
    float *mean = v->out[1], *rstd = v->out[2];
    k->layernorm(rows, n, v->in[0], v->in[1], v->in[2], v->out[0], mean, rstd);
    k->layernorm_dx(rows, n, v->in[3], v->in[0], v->in[1], mean, rstd, NULL, v->out[3]);
    start_from(v, 4, 2, rows * n); /* in place of the residual */
    k->layernorm_dx(rows, n, v->in[3], v->in[0], v->in[1], mean, rstd, v->out[4], v->out[4]);
    start_from(v, 5, 2, n);
    start_from(v, 6, 1, n);
    k->layernorm_dparams(rows, n, n / 3, n, v->in[3], v->in[0], mean, rstd, v->out[5], v->out[6]);
}

static void do_sums(const ls_kernels *k, int64_t n, values *v) {
    start_from(v, 0, 1, n);
    k->column_sum(ROWS, n, n / 3, n - n / 4, v->in[0], v->out[0]);
    k->add(n, v->in[0], v->in[1], v->out[1]);
    start_from(v, 2, 0, n);
    k->add(n, v->out[2], v->out[2], v->out[2]);
    v->out[3][0] = k->sum_squares(n, v->in[0]);
}

static void do_gelu(const ls_kernels *k, int64_t n, values *v) {
    k->gelu(n, v->in[0], v->out[0]);
    k->gelu_dx(n, v->in[0], v->in[1], v->out[1]);
    start_from(v, 2, 1, n);
    k->gelu_dx(n, v->in[0], v->out[2], v->out[2]); /* in place of dy */
}

/* The first query sees one key, half of them, or all. */
static void do_softmax(const ls_kernels *k, int64_t n, values *v, int64_t first) {
    start_from(v, 0, 0, ROWS * n);
    k->softmax_causal(ROWS, n, first, 0.3f, v->out[0], v->out[1]);
    start_from(v, 2, 0, ROWS * n);
    k->softmax_causal_again(ROWS, n, first, 0.3f, v->out[2], v->out[1]);
    start_from(v, 3, 1, ROWS * n);
    k->softmax_causal_dx(ROWS, n, 0.3f, v->out[0], v->out[3]);
}
static void do_softmax_one(const ls_kernels *k, int64_t n, values *v) { do_softmax(k, n, v, 0); }
static void do_softmax_half(const ls_kernels *k, int64_t n, values *v) {
    do_softmax(k, n, v, n / 2);
}
static void do_softmax_all(const ls_kernels *k, int64_t n, values *v) { do_softmax(k, n, v, n); }

static void do_cross_entropy(const ls_kernels *k, int64_t n, values *v) {
    if (n == 0) return; /* a target there must be */
    v->out[2][0] = k->cross_entropy(n, v->in[0], v->out[1]);
    start_from(v, 0, 0, n);
    k->cross_entropy_dx(n, v->out[0], v->out[1], n / 2, 0.125f);
}

static const ls_adamw_step STEP = {.lr = 1e-3f,
                                   .beta1 = 0.9f,
                                   .beta2 = 0.95f,
                                   .eps = 1e-8f,
                                   .weight_decay = 0.1f,
                                   .correct1 = 1 / (1 - 0.81f),
                                   .correct2 = 1 / (1 - 0.9025f),
                                   .grad_scale = 0.7f};

static void do_adamw(const ls_kernels *k, int64_t n, values *v) {
    start_from(v, 0, 1, n);
    start_from(v, 1, 2, n);
    for (int64_t i = 0; i < n; i++) v->out[2][i] = fabsf(v->in[3][i]); /* a mean of squares */
    k->adamw(n, &STEP, v->in[0], v->out[0], v->out[1], v->out[2]);
}

/* Tiles [tile_m, tile_n] of a matrix with rows 4 longer. */
static void do_gemm_parts(const ls_kernels *k, int64_t n, values *v) {
    k->pack_a(n, ROWS, v->in[0], ROWS, 1, v->out[0]);
    k->pack_a(n, ROWS, v->in[0], 1, n, v->out[1]);
    k->pack_b(ROWS, n, v->in[1], n, 1, v->out[2]);
    k->pack_b(ROWS, n, v->in[1], 1, ROWS, v->out[3]);
    int64_t depth = n < 10 ? n : 10, ldc = k->tile_n + 4;
    start_from(v, 4, 3, k->tile_m * ldc);
    k->gemm_tile(depth, v->in[0], 1, k->tile_m, v->in[1], NULL, v->out[4], ldc);
    k->gemm_tile(depth, v->in[0], 1, k->tile_m, v->in[1], v->in[2], v->out[5], ldc);
    v->out[6][0] = k->fma_peak(n % 4);
    v->out[7][0] = (float)k->tile_m;
    v->out[7][1] = (float)k->tile_n;
}

/* ---- the same bits; what is packed is each variant's own matter: products are gemm_test.c's ----
 */

static void test_same_bits(void **state) {
    (void)state;
    static group_fn *const groups[] = {do_layernorm,     do_sums,         do_gelu,
                                       do_softmax_one,   do_softmax_half, do_softmax_all,
                                       do_cross_entropy, do_adamw};
    static values portable, avx2;
    const ls_kernels *k = ls_kernels_named("avx2");
    if (!k) {
        print_message("skipped: no avx2 kernels on this processor\n");
        skip();
    }
    for (size_t g = 0; g < sizeof groups / sizeof *groups; g++)
        for (int s = 0; s < NSIZES; s++)
            for (int wild = 0; wild < 2; wild++) {
                fill(&portable, wild);
                fill(&avx2, wild);
                groups[g](ls_kernels_named("portable"), sizes[s], &portable);
                groups[g](k, sizes[s], &avx2);
                if (memcmp(&portable, &avx2, sizeof portable) != 0) {
                    print_error("group %zu, size %lld, wild %d\n", g, (long long)sizes[s], wild);
                    fail();
                }
            }
}

/* ---- the right numbers ---- */

/* fn for every variant and size, with what the group's kernels made of ordinary numbers. */
static void each(group_fn *group, void (*check)(int64_t n, const values *)) {
    static const char *const names[] = {"portable", "avx2"};
    static values v;
    for (int i = 0; i < 2; i++)
        for (int s = 0; s < NSIZES && ls_kernels_named(names[i]); s++) {
            fill(&v, false);
            group(ls_kernels_named(names[i]), sizes[s], &v);
            check(sizes[s], &v);
        }
}

/* Mean and 1/deviation of a row in double precision. */
static void moments(const float *x, int64_t n, double *mean_p, double *rstd_p) {
    double mean = 0, square = 0;
    for (int64_t i = 0; i < n; i++) mean += (double)x[i] / (double)n;
    for (int64_t i = 0; i < n; i++) square += pow((double)x[i] - mean, 2);
    *mean_p = mean;
    *rstd_p = 1 / sqrt(square / (double)n + 1e-5);
}

/* Row r of y, and of dx without and with the residual. f32 with sums of up to 100: 2e-6 of the size
 * of the terms. */
static void check_layernorm_row(int64_t n, const values *v, int64_t r) {
    const float *x = v->in[0] + r * n, *dy = v->in[3] + r * n;
    double mean = 0, rstd = 0, mean_g = 0, mean_gh = 0;
    moments(x, n, &mean, &rstd);
    assert_close(v->out[1][r], mean, 2e-6, "mean", n, r);
    assert_close(v->out[2][r], rstd, 4e-6 * rstd, "rstd", n, r);
    for (int64_t i = 0; i < n; i++) {
        double g = (double)dy[i] * (double)v->in[1][i], h = ((double)x[i] - mean) * rstd;
        mean_g += g / (double)n;
        mean_gh += g * h / (double)n;
    }
    for (int64_t i = 0; i < n; i++) {
        int64_t at = r * n + i;
        double gamma = (double)v->in[1][i], h = ((double)x[i] - mean) * rstd;
        double dx = rstd * ((double)dy[i] * gamma - mean_g - h * mean_gh);
        double from = (double)v->in[2][at];
        assert_close(v->out[0][at], h * gamma + (double)v->in[2][i], 1e-5, "layernorm", n, at);
        assert_close(v->out[3][at], dx, 4e-5 * rstd, "dx", n, at);
        assert_close(v->out[4][at], dx + from, 4e-5 * rstd, "dx + residual", n, at);
    }
}

static void check_layernorm(int64_t n, const values *v) {
    int64_t rows = n ? ROWS : 0;
    for (int64_t r = 0; r < rows; r++) check_layernorm_row(n, v, r);
    for (int64_t c = 0; c < n; c++) {
        double dgamma = (double)v->in[2][c], dbeta = (double)v->in[1][c];
        for (int64_t r = 0; r < rows && c >= n / 3; r++) {
            double mean = 0, rstd = 0, dy = (double)v->in[3][r * n + c];
            moments(v->in[0] + r * n, n, &mean, &rstd);
            dgamma += dy * ((double)v->in[0][r * n + c] - mean) * rstd;
            dbeta += dy;
        }
        double tolerance = c < n / 3 ? 0 : 2e-5; /* columns before the range keep their bits */
        assert_close(v->out[5][c], dgamma, tolerance, "dgamma", n, c);
        assert_close(v->out[6][c], dbeta, tolerance, "dbeta", n, c);
    }
    static const int width[] = {ROWS, 0, 0, ROWS, ROWS, 1, 1};
    for (int i = 0; i < 7; i++) assert_untouched(v, i, i == 1 || i == 2 ? rows : width[i] * n);
}

static void test_layernorm(void **state) {
    (void)state;
    each(do_layernorm, check_layernorm);
}

static void check_sums(int64_t n, const values *v) {
    double squares = 0;
    for (int64_t c = 0; c < n; c++) {
        float chain = v->in[1][c];
        for (int64_t r = 0; r < ROWS && c >= n / 3 && c < n - n / 4; r++)
            chain += v->in[0][r * n + c];
        float sum = v->in[0][c] + v->in[1][c], twice = 2 * v->in[0][c];
        assert_memory_equal(&v->out[0][c], &chain, sizeof chain);
        assert_memory_equal(&v->out[1][c], &sum, sizeof sum);
        assert_memory_equal(&v->out[2][c], &twice, sizeof twice);
        squares += (double)v->in[0][c] * (double)v->in[0][c];
    }
    assert_close(v->out[3][0], squares, 1e-6 * squares, "sum of squares", n, 0);
    for (int i = 0; i < 3; i++) assert_untouched(v, i, n);
}

static void test_sums(void **state) {
    (void)state;
    each(do_sums, check_sums);
}

/* Sum of squares: lane i mod 16 by fused steps, then halves of the lanes, in f32. */
static void test_lanes(void **state) {
    (void)state;
    static values v;
    fill(&v, false);
    const ls_kernels *k = ls_kernels_named("portable");
    for (int s = 0; s < NSIZES; s++) {
        float lanes[16] = {0};
        for (int64_t i = 0; i < sizes[s]; i++)
            lanes[i % 16] = fmaf(v.in[0][i], v.in[0][i], lanes[i % 16]);
        for (int half = 8; half; half /= 2)
            for (int i = 0; i < half; i++) lanes[i] += lanes[i + half];
        float got = k->sum_squares(sizes[s], v.in[0]);
        assert_memory_equal(&got, &lanes[0], sizeof got);
    }
}

/* A chain over rows goes on from what the output holds: two calls give the bits of one. */
static void test_chains(void **state) {
    (void)state;
    static values v;
    fill(&v, false);
    const ls_kernels *k = NULL;
    ls_error e;
    assert_ls_ok(ls_kernels_pick(&k, &e), e);
    const float *x = v.in[0], *dy = v.in[1], *mean = v.in[2], *rstd = v.in[3];
    const int64_t n = 33;
    k->column_sum(ROWS, n, 0, n, x, v.out[0]);
    k->column_sum(1, n, 0, n, x, v.out[1]);
    k->column_sum(ROWS - 1, n, 0, n, x + n, v.out[1]);
    assert_memory_equal(v.out[0], v.out[1], sizeof v.out[0]);
    k->layernorm_dparams(ROWS, n, 0, n, dy, x, mean, rstd, v.out[2], v.out[3]);
    k->layernorm_dparams(2, n, 0, n, dy, x, mean, rstd, v.out[4], v.out[5]);
    k->layernorm_dparams(ROWS - 2, n, 0, 5, dy + 2 * n, x + 2 * n, mean + 2, rstd + 2, v.out[4],
                         v.out[5]);
    k->layernorm_dparams(ROWS - 2, n, 5, n, dy + 2 * n, x + 2 * n, mean + 2, rstd + 2, v.out[4],
                         v.out[5]);
    assert_memory_equal(v.out[2], v.out[4], sizeof v.out[2]);
    assert_memory_equal(v.out[3], v.out[5], sizeof v.out[3]);
}

static double gelu(double x) {
    return 0.5 * x * (1 + tanh(sqrt(2 / M_PI) * (x + 0.044715 * x * x * x)));
}

static double gelu_slope(double x) {
    double t = tanh(sqrt(2 / M_PI) * (x + 0.044715 * x * x * x));
    return 0.5 * (1 + t) + 0.5 * x * (1 - t * t) * sqrt(2 / M_PI) * (1 + 3 * 0.044715 * x * x);
}

static void check_gelu(int64_t n, const values *v) {
    for (int64_t i = 0; i < n; i++) {
        double x = (double)v->in[0][i], dy = (double)v->in[1][i];
        assert_close(v->out[0][i], gelu(x), 1e-6 * fabs(x), "gelu", n, i);
        assert_close(v->out[1][i], dy * gelu_slope(x), 2e-6 * fabs(dy), "gelu dx", n, i);
    }
    assert_memory_equal(v->out[1], v->out[2], sizeof v->out[1]);
    for (int i = 0; i < 3; i++) assert_untouched(v, i, n);
}

static void test_gelu(void **state) {
    (void)state;
    each(do_gelu, check_gelu);
}

/* Far from 0, too: nothing overflows, and the slope is the derivative. */
static void test_gelu_range(void **state) {
    (void)state;
    const ls_kernels *k = NULL;
    ls_error e;
    assert_ls_ok(ls_kernels_pick(&k, &e), e);
    for (int i = -1000; i <= 1000; i++) {
        float x = (float)i * (i % 10 ? 0.01f : 10.0f), one = 1.0f, y = 0, dx = 0;
        double wide = (double)x, step = 1e-6;
        k->gelu(1, &x, &y);
        k->gelu_dx(1, &x, &one, &dx);
        assert_close(y, gelu(wide), 1e-6 * fabs(wide), "gelu", 1, i);
        assert_close(dx, gelu_slope(wide), 2e-6, "gelu dx", 1, i);
        if (fabs(wide) > 20) continue;
        double difference = (gelu(wide + step) - gelu(wide - step)) / (2 * step);
        assert_close(dx, difference, 3e-6, "gelu dx by differences", 1, i);
    }
}

/* Rows whose first query sees first + 1 keys. Tolerance: 2e-6 of a value. */
static void check_softmax(int64_t n, const values *v, int64_t first) {
    const double scale = (double)0.3f;
    for (int64_t r = 0; r < ROWS && n; r++) {
        const float *s = v->in[0] + r * n, *p = v->out[0] + r * n, *dp = v->in[1] + r * n;
        int64_t seen = first + r + 1 < n ? first + r + 1 : n;
        double max = -INFINITY, sum = 0, dot = 0;
        for (int64_t i = 0; i < seen; i++) max = fmax(max, scale * (double)s[i]);
        for (int64_t i = 0; i < seen; i++) sum += exp(scale * (double)s[i] - max);
        for (int64_t i = 0; i < seen; i++)
            dot += exp(scale * (double)s[i] - max) / sum * (double)dp[i];
        assert_close(v->out[1][2 * r], max, 1e-6, "maximum", n, r);
        assert_close(v->out[1][2 * r + 1], 1 / sum, 2e-6 / sum, "1/sum", n, r);
        for (int64_t i = 0; i < n; i++) {
            double want = i < seen ? exp(scale * (double)s[i] - max) / sum : 0;
            assert_close(p[i], want, 2e-6 * want, "softmax", n, r * n + i);
            assert_close(v->out[3][r * n + i], scale * want * ((double)dp[i] - dot), 1e-5 * want,
                         "softmax dx", n, r * n + i);
        }
    }
    assert_memory_equal(v->out[0], v->out[2], sizeof v->out[0]); /* again */
    for (int i = 0; i < 4; i++) assert_untouched(v, i, i == 1 ? 2 * ROWS : ROWS * n);
}
static void check_softmax_one(int64_t n, const values *v) { check_softmax(n, v, 0); }
static void check_softmax_half(int64_t n, const values *v) { check_softmax(n, v, n / 2); }
static void check_softmax_all(int64_t n, const values *v) { check_softmax(n, v, n); }

static void test_softmax(void **state) {
    (void)state;
    each(do_softmax_one, check_softmax_one);
    each(do_softmax_half, check_softmax_half);
    each(do_softmax_all, check_softmax_all);
}

/* What follows a query has no influence, not even as a NaN. */
static void test_softmax_masks(void **state) {
    (void)state;
    float s[6] = {1, 2, NAN, 1, 2, INFINITY}, stat[4];
    const ls_kernels *k = ls_kernels_named("portable");
    k->softmax_causal(1, 6, 1, 1.0f, s, stat);
    assert_close(s[0], 1 / (1 + exp(1)), 1e-7, "softmax", 6, 0);
    assert_close(s[1], 1 / (1 + exp(-1)), 1e-7, "softmax", 6, 1);
    for (int i = 2; i < 6; i++) assert_true(s[i] == 0);
}

static void check_cross_entropy(int64_t n, const values *v) {
    const float *x = v->in[0];
    double max = -INFINITY, sum = 0;
    for (int64_t i = 0; i < n; i++) max = fmax(max, (double)x[i]);
    for (int64_t i = 0; i < n; i++) sum += exp((double)x[i] - max);
    for (int64_t i = 0; i < n; i++) {
        double p = exp((double)x[i] - max) / sum;
        double want = 0.125 * (p - (i == n / 2)), tolerance = 4e-7 * (p + (i == n / 2));
        assert_close(v->out[0][i], want, tolerance, "cross-entropy dx", n, i);
    }
    if (n == 0) return;
    assert_true((double)v->out[1][0] == max);
    assert_close(v->out[1][1], 1 / sum, 1e-6 / sum, "1/sum", n, 0);
    assert_close(v->out[2][0], sum, 1e-6 * sum, "sum", n, 0);
    for (int i = 0; i < 3; i++) assert_untouched(v, i, i == 0 ? n : i == 1 ? 2 : 1);
}

static void test_cross_entropy(void **state) {
    (void)state;
    each(do_cross_entropy, check_cross_entropy);
}

/* With maximum 0 and 1/sum 1, the gradient of other elements is e^x itself: 2 ulp, as vec.h says.
 */
static void test_exp(void **state) {
    (void)state;
    const float stat[2] = {0.0f, 1.0f};
    const ls_kernels *k = NULL;
    ls_error e;
    assert_ls_ok(ls_kernels_pick(&k, &e), e);
    enum { STEPS = 20000 };
    static float x[STEPS + 1];
    for (int i = 0; i < STEPS; i++) x[i] = -87.3f + 175.3f * (float)i / STEPS;
    k->cross_entropy_dx(STEPS + 1, x, stat, STEPS, 1.0f);
    for (int i = 0; i < STEPS; i++) {
        double want = exp((double)(-87.3f + 175.3f * (float)i / STEPS));
        double ulp = (double)(nextafterf((float)want, INFINITY) - (float)want);
        assert_close(x[i], want, 2 * ulp, "exp", STEPS, i);
    }
    float ends[] = {-INFINITY, -1e30f, -88.0f, 0.0f, 1e30f, INFINITY, 0.0f};
    k->cross_entropy_dx(7, ends, stat, 6, 1.0f);
    for (int i = 0; i < 3; i++) assert_true(ends[i] > 0 && ends[i] < 1.3e-38f);
    assert_true(ends[3] == 1.0f);
    for (int i = 4; i < 6; i++) assert_true(ends[i] > 1.6e38f && ends[i] < 1.7e38f);
}

/* Algorithm 2 of Loshchilov & Hutter in double precision. */
static void check_adamw(int64_t n, const values *v) {
    const double lr = (double)STEP.lr, b1 = (double)STEP.beta1, b2 = (double)STEP.beta2;
    for (int64_t i = 0; i < n; i++) {
        double g = (double)v->in[0][i] * (double)STEP.grad_scale, p = (double)v->in[1][i];
        double m = b1 * (double)v->in[2][i] + (1 - b1) * g;
        double s = b2 * fabs((double)v->in[3][i]) + (1 - b2) * g * g;
        double ratio =
            m * (double)STEP.correct1 / (sqrt(s * (double)STEP.correct2) + (double)STEP.eps);
        double want = p - lr * (double)STEP.weight_decay * p - lr * ratio;
        assert_close(v->out[0][i], want, 2e-7 * fabs(p) + 1e-6 * lr * fabs(ratio) + 1e-12, "param",
                     n, i);
        assert_close(v->out[1][i], m, 1e-6, "m", n, i);
        assert_close(v->out[2][i], s, 1e-6 * s, "v", n, i);
    }
    for (int i = 0; i < 3; i++) assert_untouched(v, i, n);
}

static void test_adamw(void **state) {
    (void)state;
    each(do_adamw, check_adamw);
}

/* Element (i, k) of strips of `width` lines, 0 beyond line n. */
static void check_strips(const float *out, int64_t n, int64_t width, const float *p, int64_t line,
                         int64_t step) {
    for (int64_t i = 0; i < (n + width - 1) / width * width; i++)
        for (int64_t k = 0; k < ROWS; k++) {
            float want = i < n ? p[i * line + k * step] : 0.0f;
            assert_true(out[i / width * width * ROWS + k * width + i % width] == want);
        }
}

static void check_gemm_parts(int64_t n, const values *v) {
    int64_t tile_m = (int64_t)v->out[7][0], tile_n = (int64_t)v->out[7][1];
    check_strips(v->out[0], n, tile_m, v->in[0], ROWS, 1);
    check_strips(v->out[1], n, tile_m, v->in[0], 1, n);
    check_strips(v->out[2], n, tile_n, v->in[1], 1, n);
    check_strips(v->out[3], n, tile_n, v->in[1], ROWS, 1);
    for (int i = 0; i < 4; i++) {
        int64_t width = i < 2 ? tile_m : tile_n;
        assert_untouched(v, i, (n + width - 1) / width * width * ROWS);
    }
    int64_t depth = n < 10 ? n : 10, ldc = tile_n + 4;
    for (int64_t i = 0; i < tile_m; i++)
        for (int64_t j = 0; j < ldc; j++) {
            float go_on = v->in[3][i * ldc + j], fresh = v->in[2][j];
            for (int64_t k = 0; k < depth && j < tile_n; k++) {
                float a = v->in[0][k * tile_m + i], b = v->in[1][k * tile_n + j];
                go_on = fmaf(a, b, go_on);
                fresh = fmaf(a, b, fresh);
            }
            if (j >= tile_n) fresh = UNTOUCHED; /* the next tile's */
            assert_memory_equal(&v->out[4][i * ldc + j], &go_on, sizeof go_on);
            assert_memory_equal(&v->out[5][i * ldc + j], &fresh, sizeof fresh);
        }
}

static void test_gemm_parts(void **state) {
    (void)state;
    each(do_gemm_parts, check_gemm_parts);
}

static void test_pick(void **state) {
    (void)state;
    const ls_kernels *k = NULL;
    ls_error e;
    assert_null(ls_kernels_named("abacus"));
    assert_string_equal(ls_kernels_named("portable")->name, "portable");
    setenv("LOCKSTEP_CPU", "portable", 1);
    assert_ls_ok(ls_kernels_pick(&k, &e), e);
    assert_string_equal(k->name, "portable");
    setenv("LOCKSTEP_CPU", "abacus", 1);
    assert_ls_fails(ls_kernels_pick(&k, &e), LS_EINVAL, "'abacus'", e);
    unsetenv("LOCKSTEP_CPU");
    assert_ls_ok(ls_kernels_pick(&k, &e), e);
    assert_string_equal(k->name, ls_kernels_named("avx2") ? "avx2" : "portable");
}

int main(void) {
    unsetenv("LOCKSTEP_CPU");
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_same_bits),     cmocka_unit_test(test_layernorm),
        cmocka_unit_test(test_sums),          cmocka_unit_test(test_lanes),
        cmocka_unit_test(test_chains),        cmocka_unit_test(test_gelu),
        cmocka_unit_test(test_gelu_range),    cmocka_unit_test(test_softmax),
        cmocka_unit_test(test_softmax_masks), cmocka_unit_test(test_cross_entropy),
        cmocka_unit_test(test_exp),           cmocka_unit_test(test_adamw),
        cmocka_unit_test(test_gemm_parts),    cmocka_unit_test(test_pick),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
