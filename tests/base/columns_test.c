/* columns_test.c - how much text fits into a number of columns. */
#include <pty.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/columns.h"
#include "test.h"

static size_t cut(const char *text, int most) { return ls_columns_cut(text, strlen(text), most); }

static void test_cut(void **state) {
    (void)state;
    assert_int_equal(cut("", 5), 0);
    assert_int_equal(cut("abcde", 0), 0);
    assert_int_equal(cut("abcde", 4), 4);
    assert_int_equal(cut("abcde", 5), 5);
    assert_int_equal(cut("abcde", 6), 5);
    assert_int_equal(cut("\xc3\xa9"
                         "bc",
                         2),
                     3);                                     /* e acute: one column, two bytes */
    assert_int_equal(cut("\xe6\xbc\xa2\xe5\xad\x97", 4), 6); /* two Han characters: two each */
    assert_int_equal(cut("\xe6\xbc\xa2\xe5\xad\x97", 3), 3);
    assert_int_equal(cut("\xe6\xbc\xa2\xe5\xad\x97", 1), 0);
    assert_int_equal(cut("e\xcc\x81"
                         "f",
                         1),
                     3); /* a combining accent stays with its letter */
    assert_int_equal(cut("a\xff"
                         "b",
                         2),
                     2); /* not a character */
    assert_int_equal(cut("\xf0\x9f\x98\x80x", 2), 4);
}

static void test_of(void **state) {
    (void)state;
    int pty = -1, side = -1, pipes[2];
    struct winsize w = {.ws_row = 24, .ws_col = 33};
    assert_int_equal(openpty(&pty, &side, NULL, NULL, &w), 0);
    assert_int_equal(ls_columns_of(side, 80), 33);
    w.ws_col = 132;
    assert_int_equal(ioctl(pty, TIOCSWINSZ, &w), 0);
    assert_int_equal(ls_columns_of(side, 80), 132);
    w.ws_col = 0;
    assert_int_equal(ioctl(pty, TIOCSWINSZ, &w), 0);
    assert_int_equal(ls_columns_of(side, 80), 80);
    assert_int_equal(pipe(pipes), 0);
    assert_int_equal(ls_columns_of(pipes[1], 77), 77);
    close(pty);
    close(side);
    close(pipes[0]);
    close(pipes[1]);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_cut), cmocka_unit_test(test_of)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
