/* math_test.c - our scalar functions against the C library's. */
#include "base/math.h"

#include <math.h>

#include "test.h"

static const double PI = 3.14159265358979323846;

/* |a - b| within 1e-14 of the larger of |b| and `floor_`. */
static void check_close(double a, double b, double floor_) {
    double scale = fabs(b) > floor_ ? fabs(b) : floor_;
    if (fabs(a - b) <= 1e-14 * scale) return;
    print_error("%.17g, not %.17g\n", a, b);
    fail();
}

static void test_log(void **state) {
    (void)state;
    assert_true(ls_math_log(1.0) == 0.0);
    for (int i = -1022; i < 1024; i++)
        check_close(ls_math_log(ldexp(1.0, i)), log(ldexp(1.0, i)), 0);
    for (int i = 1; i <= 20000; i++) {
        double u = i / 20000.0;
        check_close(ls_math_log(u), log(u), 0);
        check_close(ls_math_log(1 + u), log(1 + u), 0);
        check_close(ls_math_log(exp(1400 * u - 700)), log(exp(1400 * u - 700)), 0);
    }
    for (int k = 1; k < 50; k++) { /* close to 1, where the value is tiny */
        check_close(ls_math_log(1 + ldexp(1, -k)), log1p(ldexp(1, -k)), 0);
        check_close(ls_math_log(1 - ldexp(1, -k)), log1p(-ldexp(1, -k)), 0);
    }
}

static void test_exp(void **state) {
    (void)state;
    assert_true(ls_math_exp(0.0) == 1.0);
    for (int i = -19999; i < 20000; i++) { /* up to 699.97 */
        check_close(ls_math_exp(i * 0.035), exp(i * 0.035), 0);
        check_close(ls_math_exp(i * 1e-5), exp(i * 1e-5), 0);
    }
    assert_true(ls_math_exp(-700.1) == 0.0 && ls_math_exp(-INFINITY) == 0.0);
    assert_true(ls_math_exp(701) == ls_math_exp(700) && isfinite(ls_math_exp(INFINITY)));
}

static void test_cospi(void **state) {
    (void)state;
    assert_true(ls_math_cospi(0) == 1 && ls_math_cospi(1) == -1 && ls_math_cospi(0.5) == 0);
    for (int i = 0; i <= 20000; i++) {
        double x = i / 20000.0;
        /* near 1/2 against the sine: cos(pi x) of the C library loses digits there */
        double want = fabs(x - 0.5) < 0.25 ? sin(PI * (0.5 - x)) : cos(PI * x);
        check_close(ls_math_cospi(x), want, 0);
        assert_true(ls_math_cospi(1 - x) == -ls_math_cospi(1 - (1 - x)) || x > 0.5);
    }
}

static void test_pow_int(void **state) {
    (void)state;
    assert_true(ls_math_pow_int(0.9, 0) == 1 && ls_math_pow_int(0.9, 1) == 0.9);
    assert_true(ls_math_pow_int(2, 1000) == ldexp(1, 1000) && ls_math_pow_int(0, 0) == 1);
    assert_true(ls_math_pow_int(-3, 3) == -27);
    for (int n = 0; n < 100; n++) check_close(ls_math_pow_int(0.95, (uint64_t)n), pow(0.95, n), 0);
    assert_true(ls_math_pow_int(0.9, UINT64_MAX) == 0); /* terminates quickly */
}

/* Whole numbers of thousandths, against integers. */
static void test_times(void **state) {
    (void)state;
    static const int64_t counts[] = {1, 3, 7, 25, 100, 111, 1000, 12345, 1000000, 123456789};
    for (int64_t k = 0; k <= 2000; k++)
        for (size_t i = 0; i < sizeof counts / sizeof *counts; i++) {
            double product = ls_math_times((double)k / 1000, (double)counts[i]);
            assert_int_equal((int64_t)product, k * counts[i] / 1000);
            assert_int_equal((int64_t)ceil(product), (k * counts[i] + 999) / 1000);
        }
    assert_true(0.29 * 100 < 29 && ls_math_times(0.29, 100) == 29);
    assert_true(0.07 * 100 > 7 && ls_math_times(0.07, 100) == 7);
    assert_true(ls_math_times(-0.29, 100) == -29 && ls_math_times(0.5, 3) == 1.5);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_log),     cmocka_unit_test(test_exp),   cmocka_unit_test(test_cospi),
        cmocka_unit_test(test_pow_int), cmocka_unit_test(test_times),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
