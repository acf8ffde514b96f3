/* wrap_test.c - wraps text to lines of at most 80 columns. */
#include "base/wrap.h"

#include "test.h"

static void becomes(const char *text, int at, int indent, const char *want) {
    ls_buf b = {0};
    ls_buf_wrap(&b, text, at, indent);
    assert_string_equal(b.data, want);
    ls_buf_free(&b);
}

#define TEN     "aaaaaaaaa "
#define E_ACUTE "\xc3\xa9"

static void test_wrap(void **state) {
    (void)state;
    becomes("", 0, 4, "\n");
    becomes("  a\n  b  ", 0, 4, "a b\n");
    /* 80 columns fit, 81 don't */
    becomes(TEN TEN TEN TEN TEN TEN TEN "1234567890", 0, 2,
            TEN TEN TEN TEN TEN TEN TEN "1234567890\n");
    becomes(TEN TEN TEN TEN TEN TEN TEN "12345678901", 0, 2,
            TEN TEN TEN TEN TEN TEN "aaaaaaaaa\n  12345678901\n");
    becomes(TEN TEN "b", 60, 2, TEN "aaaaaaaaa\n  b\n");
    /* columns are characters */
    becomes(TEN TEN TEN TEN TEN TEN TEN "123456789" E_ACUTE, 0, 2,
            TEN TEN TEN TEN TEN TEN TEN "123456789" E_ACUTE "\n");
    /* a word that is longer than a line */
    char longer[101];
    memset(longer, 'x', 100);
    longer[100] = 0;
    ls_buf text = {0}, want = {0};
    ls_buf_printf(&text, "a %s b", longer);
    ls_buf_printf(&want, "a\n %s\n b\n", longer);
    becomes(text.data, 0, 1, want.data);
    ls_buf_free(&text);
    ls_buf_free(&want);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_wrap)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
