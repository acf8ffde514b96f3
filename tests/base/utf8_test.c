/* utf8_test.c - characters of UTF-8: valid, invalid, overlong, truncated. */
#include "base/utf8.h"

#include "test.h"

static void is(const char *text, size_t n, size_t length, uint32_t point) {
    uint32_t got = 0;
    assert_int_equal(ls_utf8_decode(text, n, &got), length);
    if (length) assert_int_equal(got, point);
}

static void test_decode(void **state) {
    (void)state;
    is("", 0, 0, 0);
    is("a", 1, 1, 'a');
    is("\x7f", 1, 1, 0x7f);
    is("\xc3\xa9", 2, 2, 0xe9);
    is("\xe2\x80\xae", 3, 3, 0x202e);
    is("\xf0\x9f\x98\x80", 4, 4, 0x1f600);
    is("\xf4\x8f\xbf\xbf", 4, 4, 0x10ffff);
    is("\xc3\xa9", 1, 0, 0);             /* cut */
    is("\xc0\x80", 2, 0, 0);             /* overlong */
    is("\xe0\x9f\xbf", 3, 0, 0);         /* overlong */
    is("\xed\xa0\x80", 3, 0, 0);         /* a surrogate */
    is("\xf4\x90\x80\x80", 4, 0, 0);     /* above the last */
    is("\xf8\x88\x80\x80\x80", 5, 0, 0); /* five bytes */
    is("\x80", 1, 0, 0);
    is("\xc3(", 2, 0, 0);
}

static void test_valid(void **state) {
    (void)state;
    assert_true(ls_utf8_is_valid("", 0));
    assert_true(ls_utf8_is_valid("caf\xc3\xa9", 5));
    assert_false(ls_utf8_is_valid("caf\xe9", 4));
    assert_false(ls_utf8_is_valid("caf\xc3\xa9", 4));
}

static void test_complete(void **state) {
    (void)state;
    static const char text[] = "a\xf0\x9f\x98\x80";
    assert_int_equal(ls_utf8_complete(text, 0), 0);
    assert_int_equal(ls_utf8_complete(text, 1), 1);
    for (size_t n = 2; n < 5; n++) assert_int_equal(ls_utf8_complete(text, n), 1);
    assert_int_equal(ls_utf8_complete(text, 5), 5);
    assert_int_equal(ls_utf8_complete("\xe2\x80", 2), 0);
    assert_int_equal(ls_utf8_complete("\x80\x80\x80\x80", 4), 4); /* no character begins here */
    assert_int_equal(ls_utf8_complete("\xff", 1), 1);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_decode),
        cmocka_unit_test(test_valid),
        cmocka_unit_test(test_complete),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
