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

/* A text of another encoding is named; the same text in UTF-8 is taken. */
static void test_check(void **state) {
    (void)state;
    static const struct {
        const char *text;
        size_t n;
        const char *says; /* NULL: it is UTF-8 */
    } all[] = {
        {"", 0, NULL},
        {"a", 1, NULL},
        {"a\0b\0c\n", 6, NULL}, /* zeros alone are no other encoding */
        {"\xef\xbb\xbf"
         "a",
         4, NULL},
        {"\xff\xfe"
         "a\0",
         4, "x: is UTF-16LE, not UTF-8; convert it: iconv -f UTF-16LE -t UTF-8"},
        {"\xfe\xff\0a", 4, "is UTF-16BE"},
        {"\xff\xfe\0\0a\0\0\0", 8, "is UTF-32LE"},
        {"\0\0\xfe\xff\0\0\0a", 8, "is UTF-32BE"},
        {"{\0\"\0a\0\"\0:\0001\0}\0\n\0", 16, "is UTF-16LE"},
        {"\0{\0\"\0a\0\"\0:\0001\0}\0\n", 16, "is UTF-16BE"},
        {"{\0\0\0\"\0\0\0a\0\0\0\"\0\0\0", 16, "is UTF-32LE"},
        {"\0\0\0{\0\0\0\"\0\0\0a\0\0\0\"", 16, "is UTF-32BE"},
        {"a\nb\nc\xe9", 6, "x: is not UTF-8 at byte 5 (line 3)"},
    };
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        ls_error e = {0};
        const char *s = all[i].text;
        if (all[i].says)
            assert_ls_fails(ls_utf8_check(s, all[i].n, "x", &e), LS_EINVAL, all[i].says, e);
        else
            assert_ls_ok(ls_utf8_check(s, all[i].n, "x", &e), e);
    }
    assert_int_equal(ls_utf8_mark("\xef\xbb\xbf", 3), 3);
    assert_int_equal(ls_utf8_mark("\xef\xbb\xbf", 2), 0);
    assert_int_equal(ls_utf8_mark("abc", 3), 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_decode),
        cmocka_unit_test(test_valid),
        cmocka_unit_test(test_complete),
        cmocka_unit_test(test_check),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
