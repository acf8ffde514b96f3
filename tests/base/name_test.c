/* name_test.c - the program's name in quoted commands. */
#include "base/name.h"

#include <string.h>

#include "test.h"

static void expect_copy(const char *text, size_t room, const char *copy) {
    char out[128] = "";
    size_t n = ls_name_copy(text, strlen(text), out, room);
    assert_true(n <= room);
    out[n] = 0;
    assert_string_equal(out, copy);
}

static void test_copy(void **state) {
    (void)state;
    assert_string_equal(ls_name(), "lockstep");
    expect_copy("see 'lockstep help'", 100, "see 'lockstep help'");
    ls_name_set("mine");
    expect_copy("see 'lockstep help' and `lockstep run`", 100, "see 'mine help' and `mine run`");
    expect_copy("lockstep plan, 'lockstep', 'lockstepped on'", 100,
                "lockstep plan, 'lockstep', 'lockstepped on'");
    expect_copy("'lockstep ", 100, "'mine ");
    expect_copy("'lockstep", 100, "'lockstep");
    expect_copy("", 100, "");
    for (size_t room = 0; room < 12; room++) { /* cut off, never beyond */
        char whole[] = "a 'mine run'";
        whole[room] = 0;
        expect_copy("a 'lockstep run'", room, whole);
    }
    ls_name_set("a_name_of_more_than_thirty_one_letters");
    assert_int_equal(strlen(ls_name()), LS_NAME_NBYTES - 1);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_copy)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
