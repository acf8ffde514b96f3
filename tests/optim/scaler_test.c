/* scaler_test.c - the loss scale, step by step. */
#include "optim/scaler.h"

#include "test.h"

static const ls_scaler_config config = {
    .initial = 1024, .lowest = 128, .window = 3, .hysteresis = 2};

static void test_grows(void **state) {
    (void)state;
    ls_scaler s = ls_scaler_start(&config);
    for (int i = 0; i < 2; i++) assert_true(ls_scaler_next(&s, &config, false));
    assert_true(s.scale == 1024);
    assert_true(ls_scaler_next(&s, &config, false));
    assert_true(s.scale == 2048);
    assert_int_equal(s.skipped, 0);
}

/* An overflow restarts the window; only the second since the scale last grew halves it, and from
 * then on each. */
static void test_shrinks(void **state) {
    (void)state;
    ls_scaler s = ls_scaler_start(&config);
    assert_true(ls_scaler_next(&s, &config, false));
    assert_true(ls_scaler_next(&s, &config, false));
    assert_true(ls_scaler_next(&s, &config, true));
    assert_true(s.scale == 1024);
    assert_true(ls_scaler_next(&s, &config, false));
    assert_true(s.scale == 1024);
    assert_true(ls_scaler_next(&s, &config, true));
    assert_true(s.scale == 512);
    assert_true(ls_scaler_next(&s, &config, true));
    assert_true(s.scale == 256);
    assert_int_equal(s.skipped, 3);
    for (int i = 0; i < 3; i++) assert_true(ls_scaler_next(&s, &config, false));
    assert_true(s.scale == 512);
    assert_true(ls_scaler_next(&s, &config, true)); /* the hysteresis was reset */
    assert_true(s.scale == 512);
}

static void test_ends(void **state) {
    (void)state;
    ls_scaler s = ls_scaler_start(&config);
    for (int i = 0; i < 4; i++) assert_true(ls_scaler_next(&s, &config, true));
    assert_true(s.scale == 128);
    assert_false(ls_scaler_next(&s, &config, true));
    assert_int_equal(s.skipped, 5);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_grows), cmocka_unit_test(test_shrinks),
                                       cmocka_unit_test(test_ends)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
