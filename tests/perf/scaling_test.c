/* scaling_test.c - speedups and serial shares of known step times. */
#include "perf/scaling.h"

#include <math.h>

#include "test.h"

static const int COUNTS[] = {1, 2, 4, 8, 16};
enum { N = sizeof COUNTS / sizeof *COUNTS };

/* Step times by Amdahl's law, or, with a batch that grows, by Gustafson's. */
static ls_scaling make(bool strong, double serial) {
    ls_scaling s = {.strong = strong, .n = N};
    for (int i = 0; i < N; i++) {
        double n = COUNTS[i], speedup = n - serial * (n - 1);
        double step = strong ? serial + (1 - serial) / n : n / speedup;
        s.points[i] = (ls_scaling_point){.nworkers = COUNTS[i],
                                         .batch = strong ? 64 : 64 * COUNTS[i],
                                         .times = {[LS_SCALING_SIMULATED] = {.step_s = step}}};
    }
    return s;
}

static void test_serial(void **state) {
    static const double shares[] = {0, 0.01, 0.25, 1};
    (void)state;
    for (int strong = 0; strong < 2; strong++)
        for (int i = 0; i < 4; i++) {
            ls_scaling s = make(strong, shares[i]);
            assert_true(fabs(ls_scaling_serial(&s, LS_SCALING_SIMULATED) - shares[i]) < 1e-9);
        }
}

static void test_speedup(void **state) {
    (void)state;
    ls_scaling strong = make(true, 0.25), weak = make(false, 0.25);
    /* of 4 workers: 1 / (0.25 + 0.75 / 4), and 4 - 0.25 * 3 */
    assert_true(fabs(ls_scaling_speedup(&strong, 2, LS_SCALING_SIMULATED) - 1 / 0.4375) < 1e-9);
    assert_true(fabs(ls_scaling_efficiency(&strong, 2, LS_SCALING_SIMULATED) - 0.25 / 0.4375) <
                1e-9);
    assert_true(fabs(ls_scaling_speedup(&weak, 2, LS_SCALING_SIMULATED) - 3.25) < 1e-9);
    assert_true(ls_scaling_speedup(&strong, 2, LS_SCALING_MEASURED) == 0); /* not known */
}

/* One measured point says nothing; speedups above linear, and times that grow, have limits. */
static void test_limits(void **state) {
    (void)state;
    ls_scaling s = make(true, 0.1);
    s.points[0].times[LS_SCALING_MEASURED].step_s = 1;
    assert_true(ls_scaling_serial(&s, LS_SCALING_MEASURED) < 0);
    s.points[1].times[LS_SCALING_MEASURED].step_s = 0.4;
    assert_true(ls_scaling_serial(&s, LS_SCALING_MEASURED) == 0);
    s.points[1].times[LS_SCALING_MEASURED].step_s = 3;
    assert_true(ls_scaling_serial(&s, LS_SCALING_MEASURED) == 1);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_serial),
        cmocka_unit_test(test_speedup),
        cmocka_unit_test(test_limits),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
