/* wait_policy_test.c - the values of LOCKSTEP_WAIT_POLICY. */
#include "base/wait_policy.h"

#include <stdlib.h>

#include "test.h"

static void test_values(void **state) {
    (void)state;
    ls_error e;
    assert_int_equal(unsetenv("LOCKSTEP_WAIT_POLICY"), 0);
    assert_ls_ok(ls_wait_policy_check(&e), e);
    assert_false(ls_wait_is_passive());
    static const char *const active[] = {"", "active"};
    for (int i = 0; i < 2; i++) {
        assert_int_equal(setenv("LOCKSTEP_WAIT_POLICY", active[i], 1), 0);
        assert_ls_ok(ls_wait_policy_check(&e), e);
        assert_false(ls_wait_is_passive());
    }
    assert_int_equal(setenv("LOCKSTEP_WAIT_POLICY", "passive", 1), 0);
    assert_ls_ok(ls_wait_policy_check(&e), e);
    assert_true(ls_wait_is_passive());
}

static void test_bad(void **state) {
    (void)state;
    static const char *const bad[] = {"PASSIVE", "passive ", "0", "sleep"};
    for (int i = 0; i < 4; i++) {
        ls_error e;
        assert_int_equal(setenv("LOCKSTEP_WAIT_POLICY", bad[i], 1), 0);
        assert_ls_fails(ls_wait_policy_check(&e), LS_EINVAL, "use active or passive", e);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_values), cmocka_unit_test(test_bad)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
