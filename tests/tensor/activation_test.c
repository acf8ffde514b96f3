/* activation_test.c - activations and their derivatives, against formulas in double precision. */
#include "tensor/kernels.h"

#include "tensor/check_group.h"
#include "tensor/layer_groups.h"

static double sigmoid(double x) { return 1 / (1 + exp(-x)); }

static double value(int i, double x) {
    if (i == LS_RELU) return x > 0 ? x : 0;
    if (i == LS_SIGMOID) return sigmoid(x);
    return i == LS_TANH ? tanh(x) : x * sigmoid(x);
}

static double slope(int i, double x) {
    double s = sigmoid(x), t = tanh(x);
    if (i == LS_RELU) return x > 0;
    if (i == LS_SIGMOID) return s * (1 - s);
    return i == LS_TANH ? 1 - t * t : s + x * s * (1 - s);
}

static void check_activations(int64_t n, const values *v) {
    for (int i = 0; i < LS_NACTIVATIONS; i++) {
        for (int64_t j = 0; j < n; j++) {
            double x = (double)v->in[0][j], dy = (double)v->in[1][j], want = value(i, x);
            assert_close(v->out[2 * i][j], want, 5e-7 * fabs(want), "activation", n, j);
            assert_close(v->out[2 * i + 1][j], dy * slope(i, x), 1e-6 * fabs(dy), "dx", n, j);
        }
        assert_untouched(v, 2 * i, n);
        assert_untouched(v, 2 * i + 1, n);
    }
}

static void test_activations(void **state) {
    (void)state;
    each(do_activations, check_activations);
}

/* Row `r` of outputs 4 and 5: x turned by the angles whose cosines and sines are in[3]. */
static void check_turned(int64_t D, int64_t r, const values *v) {
    const float *x = v->in[1] + r * D, *turn = v->in[3];
    for (int64_t i = 0; i < D / 2; i++) {
        double a = (double)x[i], b = (double)x[D / 2 + i], most = 1e-6 * (1 + fabs(a) + fabs(b));
        double c = (double)turn[i], s = (double)turn[D / 2 + i];
        most *= 1 + fabs(c) + fabs(s);
        assert_close(v->out[4][r * D + i], a * c - b * s, most, "rope", D, i);
        assert_close(v->out[4][r * D + D / 2 + i], b * c + a * s, most, "rope", D, i);
        assert_close(v->out[5][r * D + i], a * c + b * s, most, "rope back", D, i);
        assert_close(v->out[5][r * D + D / 2 + i], b * c - a * s, most, "rope back", D, i);
    }
}

static void check_gates(int64_t n, const values *v) {
    for (int64_t j = 0; j < n; j++) {
        double g = (double)v->in[0][j], x = (double)v->in[1][j], dy = (double)v->in[2][j];
        double y = value(LS_SILU, g), most = 1e-6 * (1 + fabs(g)) * (1 + fabs(x)) * (1 + fabs(dy));
        assert_close(v->out[0][j], y * x, most, "silu_gate", n, j);
        assert_true(v->out[0][j] == v->out[1][j]);
        assert_close(v->out[2][j], dy * x * slope(LS_SILU, g), most, "dgate", n, j);
        assert_close(v->out[3][j], dy * y, most, "dx", n, j);
    }
    for (int64_t r = 0; r < ROWS; r++) check_turned(n / 2 * 2, r, v);
    for (int i = 0; i < 6; i++) assert_untouched(v, i, i < 4 ? n : ROWS * (n / 2 * 2));
}

static void test_gates(void **state) {
    (void)state;
    each(do_gates, check_gates);
}

/* Values are within 4 ulp over the whole range, and tanh is odd. */
static void test_ulps(void **state) {
    (void)state;
    const ls_kernels *k = NULL;
    ls_error e;
    assert_ls_ok(ls_kernels_pick(&k, &e), e);
    for (int i = LS_SIGMOID; i < LS_NACTIVATIONS; i++)
        for (int j = -200000; j <= 200000; j++) {
            float x = (float)j * (j % 2 ? 4e-4f : 1e-5f), y = 0, minus = -x, opposite = 0;
            k->activation[i](1, &x, &y);
            double want = value(i, (double)x), size = fabs(want);
            double ulp = (double)(nextafterf((float)size, INFINITY) - (float)size);
            assert_close(y, want, 4 * ulp, "activation", i, j);
            if (i != LS_TANH) continue;
            k->activation[i](1, &minus, &opposite);
            assert_true(opposite == -y);
        }
}

/* The ends of the range, and NaN. */
static void test_ends(void **state) {
    (void)state;
    const float x[] = {-INFINITY, -1e38f, 1e38f, INFINITY, NAN};
    static const double want[LS_NACTIVATIONS][4] = {
        [LS_RELU] = {0, 0, 1e38, INFINITY},
        [LS_SIGMOID] = {0, 0, 1, 1},
        [LS_TANH] = {-1, -1, 1, 1},
        [LS_SILU] = {NAN, 0, 1e38, INFINITY},
    };
    const ls_kernels *k = NULL;
    for (int which = 0; (k = ls_kernels_at(which)); which++)
        for (int i = 0; i < LS_NACTIVATIONS; i++) {
            float y[5], dx[5], dy[5] = {1, 1, 1, 1, 1};
            k->activation[i](5, x, y);
            for (int j = 0; j < 4; j++)
                if (!isnan(want[i][j])) assert_true(y[j] == (float)want[i][j]);
            assert_true(isnan(y[4]));
            k->activation_dx[i](3, i == LS_SILU ? x + 1 : y + 1, dy, dx);
            assert_true(dx[0] == 0);
            assert_true(dx[1] == (i == LS_RELU || i == LS_SILU ? 1.0f : 0.0f));
        }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_activations),
        cmocka_unit_test(test_gates),
        cmocka_unit_test(test_ulps),
        cmocka_unit_test(test_ends),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
