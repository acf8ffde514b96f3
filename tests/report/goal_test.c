/* goal_test.c - numbers of evaluations and their limits. */
#include "report/goal.h"

#include <math.h>
#include <string.h>

#include "test.h"

static void test_read(void **state) {
    (void)state;
    ls_goal g;
    ls_error e;
    char text[LS_GOAL_TEXT];
    assert_ls_ok(ls_goal_read("val_loss<=2.5", &g, &e), e);
    assert_string_equal(g.metric, "val_loss");
    assert_true(!g.rises && g.value == 2.5);
    assert_ls_ok(ls_goal_read("val_accuracy>=9.30e-1", &g, &e), e);
    assert_true(g.rises && g.value == 0.93);
    ls_goal_write(&g, text);
    assert_string_equal(text, "val_accuracy>=0.93");
    static const char *const wrong[] = {
        "",           "val_loss",    "val_loss<=",   "<=3",
        "val_loss<3", "val_loss<=x", "val_loss<=3x", "val_loss<=inf"};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        assert_int_equal(ls_goal_read(wrong[i], &g, &e), LS_EINVAL);
}

static void test_value(void **state) {
    (void)state;
    const ls_evaluation v = {
        .loss = 2, .bits_per_byte = 1.5, .nmetrics = 1, .metrics = {{"accuracy", 0.75}}};
    const ls_evaluation none = {.loss = 2};
    const ls_goal loss = {.metric = "val_loss", .value = 2};
    const ls_goal bits = {.metric = "val_bits_per_byte", .value = 1};
    const ls_goal accuracy = {.metric = "val_accuracy", .rises = true, .value = 0.75};
    const ls_goal plain = {.metric = "accuracy", .value = 1};
    double x = 0;
    assert_true(ls_goal_value(&loss, &v, &x) && x == 2 && ls_goal_is_reached(&loss, x));
    assert_true(ls_goal_value(&bits, &v, &x) && x == 1.5 && !ls_goal_is_reached(&bits, x));
    assert_true(ls_goal_value(&accuracy, &v, &x) && x == 0.75 && ls_goal_is_reached(&accuracy, x));
    assert_false(ls_goal_is_reached(&accuracy, 0.7499));
    assert_false(ls_goal_is_reached(&accuracy, NAN));
    assert_false(ls_goal_value(&bits, &none, &x));
    assert_false(ls_goal_value(&accuracy, &none, &x));
    assert_false(ls_goal_value(&plain, &v, &x));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_read),
        cmocka_unit_test(test_value),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
