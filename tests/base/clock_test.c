/* clock_test.c - seconds in nanoseconds, and a system that counts processor time in ticks. */
#include "base/clock.h"

#include <math.h>
#include <time.h>

#include "test.h"

static void test_ns_of(void **state) {
    (void)state;
    assert_int_equal(ls_clock_ns_of(0), 0);
    assert_int_equal(ls_clock_ns_of(1.5), 1500000000);
    assert_int_equal(ls_clock_ns_of(-1), -1);
    assert_int_equal(ls_clock_ns_of(-INFINITY), -1);
    assert_int_equal(ls_clock_ns_of(NAN), -1);
    int64_t most = ls_clock_ns_of(INFINITY);
    assert_true(most > 0 && ls_clock_ns() + most > most);
    assert_int_equal(ls_clock_ns_of(1e10), most);
    assert_int_equal(ls_clock_ns_of(1e300), most);
}

static int64_t now_us = 5000000;

/* In place of the C library's: a call takes 30 us, and a thread has ticks of 10 ms. */
int clock_gettime(clockid_t id, struct timespec *t) {
    int64_t us = now_us += 30;
    if (id == CLOCK_THREAD_CPUTIME_ID) us = us / 10000 * 10000;
    *t = (struct timespec){.tv_sec = us / 1000000, .tv_nsec = us % 1000000 * 1000};
    return 0;
}

static void test_ticks(void **state) {
    (void)state;
    for (int i = 0; i < 3; i++) {
        double begin = ls_clock_thread_s();
        now_us += 270;
        double passed = ls_clock_thread_s() - begin;
        assert_true(passed > 299e-6 && passed < 301e-6);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_ns_of), cmocka_unit_test(test_ticks)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
