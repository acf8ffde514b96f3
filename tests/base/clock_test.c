/* clock_test.c - seconds in nanoseconds. */
#include "base/clock.h"

#include <math.h>

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

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_ns_of)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
