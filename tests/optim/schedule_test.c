/* schedule_test.c - the learning rate's end points, its shape, and its formula. */
#include "optim/schedule.h"

#include <math.h>

#include "test.h"

static void assert_near(double got, double want) {
    if (!(fabs(got - want) <= 1e-12 * (fabs(want) + 1e-3)))
        print_error("%.17g, not %.17g\n", got, want);
    assert_true(fabs(got - want) <= 1e-12 * (fabs(want) + 1e-3));
}

static void test_end_points(void **state) {
    (void)state;
    const ls_schedule s = {3e-4, 3e-5, 100, 1100};
    assert_near(ls_schedule_rate(&s, 0), 3e-6);
    assert_near(ls_schedule_rate(&s, 49), 1.5e-4);
    assert_near(ls_schedule_rate(&s, 99), 3e-4);
    assert_near(ls_schedule_rate(&s, 100), 3e-4);
    assert_near(ls_schedule_rate(&s, 600), (3e-4 + 3e-5) / 2);
    assert_near(ls_schedule_rate(&s, 1100), 3e-5);
    assert_near(ls_schedule_rate(&s, 1000000), 3e-5);
}

static void test_formula(void **state) {
    (void)state;
    const ls_schedule s = {1e-2, 1e-4, 7, 93};
    for (int64_t i = 0; i < 110; i++) {
        double done = fmin((double)(i - 7) / 86.0, 1.0);
        double want = i < 7 ? 1e-2 * (double)(i + 1) / 7.0
                            : 1e-4 + (1e-2 - 1e-4) * (1 + cos(acos(-1.0) * done)) / 2;
        assert_near(ls_schedule_rate(&s, i), want);
    }
}

static void test_monotone(void **state) {
    (void)state;
    for (int64_t warmup = 0; warmup <= 30; warmup += 15) {
        const ls_schedule s = {1, 0.1, warmup, 200};
        for (int64_t i = 1; i < 220; i++) {
            double before = ls_schedule_rate(&s, i - 1), now = ls_schedule_rate(&s, i);
            if (i < warmup) assert_true(now > before);
            if (i > warmup && i <= 200) assert_true(now < before);
            assert_true(now > 0 && now <= 1);
            if (i >= warmup) assert_true(now >= 0.1);
        }
    }
}

/* No warm-up starts at the full rate; all warm-up ends there; a run of no steps is the floor. */
static void test_extremes(void **state) {
    (void)state;
    assert_near(ls_schedule_rate(&(ls_schedule){0.5, 0.1, 0, 10}, 0), 0.5);
    assert_near(ls_schedule_rate(&(ls_schedule){0.5, 0.1, 10, 10}, 9), 0.5);
    assert_near(ls_schedule_rate(&(ls_schedule){0.5, 0.1, 10, 10}, 10), 0.1);
    assert_near(ls_schedule_rate(&(ls_schedule){0.5, 0.1, 0, 0}, 0), 0.1);
    assert_near(ls_schedule_rate(&(ls_schedule){0.5, 0.5, 0, 10}, 5), 0.5);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_end_points),
        cmocka_unit_test(test_formula),
        cmocka_unit_test(test_monotone),
        cmocka_unit_test(test_extremes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
