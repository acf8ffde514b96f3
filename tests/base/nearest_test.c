/* nearest_test.c - distances between words, and which words count as near. */
#include "base/nearest.h"

#include "test.h"

static void test_distance(void **state) {
    (void)state;
    assert_int_equal(ls_edit_distance("", ""), 0);
    assert_int_equal(ls_edit_distance("steps", "steps"), 0);
    assert_int_equal(ls_edit_distance("steps", ""), 5);
    assert_int_equal(ls_edit_distance("", "steps"), 5);
    assert_int_equal(ls_edit_distance("setps", "steps"), 1); /* swapped */
    assert_int_equal(ls_edit_distance("stps", "steps"), 1);
    assert_int_equal(ls_edit_distance("stepps", "steps"), 1);
    assert_int_equal(ls_edit_distance("stehs", "steps"), 1);
    assert_int_equal(ls_edit_distance("ca", "abc"), 3); /* no letter is edited twice */
    char longer[80];
    memset(longer, 'a', sizeof longer - 1);
    longer[sizeof longer - 1] = 0;
    assert_int_equal(ls_edit_distance(longer, "a"), 99);
    assert_int_equal(ls_edit_distance("a", longer), 99);
}

static void test_near(void **state) {
    (void)state;
    assert_true(ls_is_near("trian", "train"));
    assert_true(ls_is_near("virtual_worker", "virtual_workers"));
    assert_true(ls_is_near("heads", "heads"));
    assert_false(ls_is_near("dropout", "context"));
    assert_false(ls_is_near("fly", "eval"));
    assert_false(ls_is_near("lr", "eps"));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_distance),
        cmocka_unit_test(test_near),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
