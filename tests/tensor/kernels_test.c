/* kernels_test.c - the results of every kernel of every variant, against formulas in double
 * precision. Where the header promises an order of summation, the reference is that sum in f32 and
 * the bits must match. variant_bits.c compares variants with each other. */
#include "tensor/kernels.h"

#include "tensor/check_group.h"

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
        float mean = fmaf(v->in[0][c] - v->in[1][c], 0.25f, v->in[1][c]);
        assert_memory_equal(&v->out[4][c], &mean, sizeof mean);
        squares += (double)v->in[0][c] * (double)v->in[0][c];
    }
    assert_untouched(v, 4, n);
    assert_close(v->out[3][0], squares, 1e-6 * squares, "sum of squares", n, 0);
    for (int i = 0; i < 3; i++) assert_untouched(v, i, n);
}

static void test_sums(void **state) {
    (void)state;
    each(do_sums, check_sums);
}

/* All variants have the same sum of squares, and the same sum of products in the same order. */
static void check_squares_and_dot(const ls_kernels *k, const values *v, int64_t n, float squares) {
    float lanes[16] = {0}, out[2];
    for (int64_t i = 0; i < n; i++) lanes[i % 16] = fmaf(v->in[0][i], v->in[1][i], lanes[i % 16]);
    for (int half = 8; half; half /= 2)
        for (int i = 0; i < half; i++) lanes[i] += lanes[i + half];
    k->squares_and_dot(n, v->in[0], v->in[1], out);
    assert_memory_equal(&out[0], &squares, sizeof squares);
    assert_memory_equal(&out[1], &lanes[0], sizeof squares);
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
        check_squares_and_dot(k, &v, sizes[s], got);
    }
}

/* A chain over rows continues from the value in the output: two calls give the bits of one. */
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
    for (int i = 3; i < 5; i++) assert_memory_equal(v->out[0], v->out[i], sizeof v->out[0]);
    for (int i = 0; i < 5; i++) assert_untouched(v, i, n);
}

static void test_gelu(void **state) {
    (void)state;
    each(do_gelu, check_gelu);
}

/* GELU far from 0: nothing overflows, and the slope is the derivative. */
static void test_gelu_range(void **state) {
    (void)state;
    const ls_kernels *k = NULL;
    ls_error e;
    assert_ls_ok(ls_kernels_pick(&k, &e), e);
    for (int i = -1000; i <= 1000; i++) {
        float x = (float)i * (i % 10 ? 0.01f : 10.0f), one = 1.0f, y = 0, dx = 0, again = 1;
        double wide = (double)x, step = 1e-6;
        k->gelu(1, &x, &y);
        k->gelu_back(1, &x, &one, &dx, &again);
        assert_memory_equal(&again, &y, sizeof y);
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

/* Keys after a query have no influence, not even as a NaN. */
static void test_softmax_masks(void **state) {
    (void)state;
    float s[6] = {1, 2, NAN, 1, 2, INFINITY}, stat[4];
    const ls_kernels *k = ls_kernels_named("portable");
    k->softmax_causal(1, 6, 1, 1.0f, s, stat);
    assert_close(s[0], 1 / (1 + exp(1)), 1e-7, "softmax", 6, 0);
    assert_close(s[1], 1 / (1 + exp(-1)), 1e-7, "softmax", 6, 1);
    for (int i = 2; i < 6; i++) assert_true(s[i] == 0);
}

static void check_draw(int64_t n, const values *v) {
    int64_t count = ROWS * n, nparts = (count + LS_MAXIMA - 1) / LS_MAXIMA;
    double chains[8] = {0}, want = 0, sum;
    for (int64_t part = 0; part < nparts; part++) {
        float most = -INFINITY;
        for (int64_t i = part * LS_MAXIMA; i < count && i < (part + 1) * LS_MAXIMA; i++)
            most = fmaxf(most, v->in[0][i]);
        assert_true(v->out[0][part] == most);
    }
    double top = -INFINITY, all = 0;
    for (int64_t i = 0; i < count; i++) top = fmax(top, (double)v->in[0][i]);
    for (int64_t i = 0; i < count; i++) all += exp(((double)v->in[0][i] - top) * (double)DRAW_BY);
    for (int64_t i = 0; i < count; i++) {
        double p = exp(((double)v->in[0][i] - top) * (double)DRAW_BY) / all;
        assert_close(v->out[2][i], p, 4e-6 * p + 1e-30, "weights", n, i);
        chains[i % 8] += (double)v->out[2][i];
    }
    for (int k = 0; k < 8; k++) want += chains[k];
    memcpy(&sum, v->out[1], sizeof sum);
    assert_true(sum == want);
    assert_untouched(v, 0, nparts);
    assert_untouched(v, 1, 2);
    assert_untouched(v, 2, count);
}

static void test_draw(void **state) {
    (void)state;
    each(do_draw, check_draw);
}

/* What is not a number is no maximum. */
static void test_maxima_nan(void **state) {
    (void)state;
    const ls_kernels *k = NULL;
    for (int i = 0; (k = ls_kernels_at(i)); i++)
        for (int at = 0; at < 20; at++) {
            float x[20], most = 0;
            for (int j = 0; j < 20; j++) x[j] = j == at ? NAN : (float)-j;
            k->maxima(20, x, &most);
            assert_true(most == (at == 0 ? -1 : 0));
            x[0] = NAN;
            k->maxima(1, x, &most);
            assert_true(most == -INFINITY);
        }
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

/* With maximum 0 and 1/sum 1, the gradient of other elements is e^x itself, within the 2 ulp of
 * vec.h. */
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
    const double lr = (double)SCALARS.lr, b1 = (double)SCALARS.beta1, b2 = (double)SCALARS.beta2;
    for (int64_t i = 0; i < n; i++) {
        double g = (double)v->in[0][i] * (double)SCALARS.grad_scale, p = (double)v->in[1][i];
        double m = b1 * (double)v->in[2][i] + (1 - b1) * g;
        double s = b2 * fabs((double)v->in[3][i]) + (1 - b2) * g * g;
        double ratio = m * (double)SCALARS.correct1 /
                       (sqrt(s * (double)SCALARS.correct2) + (double)SCALARS.eps);
        double want = p - lr * (double)SCALARS.weight_decay * p - lr * ratio;
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
    assert_ptr_equal(k, ls_kernels_at(0));
    for (int i = 0; (k = ls_kernels_at(i)); i++) assert_ptr_equal(k, ls_kernels_named(k->name));
}

static int place_of(const char *name) {
    const ls_kernels *k = NULL;
    for (int i = 0; (k = ls_kernels_at(i)); i++)
        if (strcmp(k->name, name) == 0) return i;
    return -1;
}

static bool is_amd(void) {
    char line[256];
    bool amd = false;
    FILE *f = fopen("/proc/cpuinfo", "r");
    assert_non_null(f);
    while (!amd && fgets(line, sizeof line, f)) amd = strstr(line, "AuthenticAMD");
    fclose(f);
    return amd;
}

/* The instruction for pairs of bf16 runs at full rate on AMD alone. */
static void test_pairs(void **state) {
    (void)state;
    const ls_kernels *first = ls_kernels_at(0);
    int pairs = place_of("avx512bf16"), fma = place_of("avx512");
    setenv("LOCKSTEP_CPU", "portable", 1);
    assert_string_equal(ls_kernels_why(first), "LOCKSTEP_CPU names them");
    unsetenv("LOCKSTEP_CPU");
    assert_non_null(strstr(ls_kernels_why(first), "widest"));
    if (pairs < 0 || fma < 0)
        skip_because("this processor has no AVX512-BF16, or the kernels for it were not built");
    assert_int_equal(pairs < fma, is_amd());
    assert_int_equal(strstr(ls_kernels_why(first), "fast instruction") != NULL, is_amd());
}

int main(void) {
    unsetenv("LOCKSTEP_CPU");
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_layernorm),     cmocka_unit_test(test_sums),
        cmocka_unit_test(test_lanes),         cmocka_unit_test(test_chains),
        cmocka_unit_test(test_gelu),          cmocka_unit_test(test_gelu_range),
        cmocka_unit_test(test_softmax),       cmocka_unit_test(test_draw),
        cmocka_unit_test(test_maxima_nan),    cmocka_unit_test(test_softmax_masks),
        cmocka_unit_test(test_cross_entropy), cmocka_unit_test(test_exp),
        cmocka_unit_test(test_adamw),         cmocka_unit_test(test_gemm_parts),
        cmocka_unit_test(test_pick),          cmocka_unit_test(test_pairs),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
