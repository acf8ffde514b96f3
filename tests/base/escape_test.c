/* escape_test.c - text of unknown origin is safe to show: in messages, tables and JSON. */
#include "base/escape.h"

#include "base/utf8.h"
#include "test.h"

/* Both functions escape `in` to `out`, and escaping `out` again changes nothing. */
static void becomes_n(ls_escape_kind kind, const char *in, size_t n, const char *out) {
    char text[512], again[512];
    ls_buf b = {0};
    assert_int_equal(ls_escape(kind, in, n, text, sizeof text), strlen(out));
    assert_string_equal(text, out);
    ls_buf_escape(&b, kind, in, n);
    assert_string_equal(b.data, out);
    ls_buf_free(&b);
    ls_escape(kind, text, strlen(text), again, sizeof again);
    assert_string_equal(again, text);
}

static void becomes(const char *in, const char *out) {
    becomes_n(LS_ESCAPE_LINE, in, strlen(in), out);
}

static void test_line(void **state) {
    (void)state;
    becomes("plain caf\xc3\xa9 \\ \xf0\x9f\x98\x80", "plain caf\xc3\xa9 \\ \xf0\x9f\x98\x80");
    becomes("\x1b[31m", "\\x1b[31m");
    becomes("\x1b]0;title\a", "\\x1b]0;title\\x07");
    becomes("a\nb\tc\rd\x7f", "a\\nb\\tc\\rd\\x7f");
    becomes("\xc2\x9b"
            "31m",
            "\\u009b31m"); /* CSI as UTF-8 */
    becomes("\x9b"
            "31m",
            "\\x9b31m"); /* and as one byte */
    becomes("\xe2\x80\xae"
            "evil",
            "\\u202eevil");
    becomes("\xe2\x81\xa6\xe2\x81\xa9\xd8\x9c", "\\u2066\\u2069\\u061c");
    becomes("\xe2\x80\xa8\xe2\x80\xa7\xe2\x80\xaf", "\\u2028\xe2\x80\xa7\xe2\x80\xaf");
    becomes("\xe2\x80", "\\xe2\\x80"); /* cut */
    becomes_n(LS_ESCAPE_LINE, "a\0b", 3, "a\\x00b");
}

static void test_text_and_json(void **state) {
    (void)state;
    becomes_n(LS_ESCAPE_TEXT, "a\nb\tc\x1b\r", 7, "a\nb\tc\\x1b\\r");
    becomes_n(LS_ESCAPE_JSON, "{\"a\": \"\x7f\xc2\x85\xe2\x80\xae\"}\n", 16,
              "{\"a\": \"\\u007f\\u0085\\u202e\"}\n");
}

/* Text that does not fit is cut off between characters. */
static void test_room(void **state) {
    (void)state;
    char out[8];
    assert_int_equal(ls_escape(LS_ESCAPE_LINE, "abc\x1b", 4, out, sizeof out), 7);
    assert_string_equal(out, "abc\\x1b");
    assert_int_equal(ls_escape(LS_ESCAPE_LINE, "abcd\x1b", 5, out, sizeof out), 4);
    assert_string_equal(out, "abcd");
    assert_int_equal(ls_escape(LS_ESCAPE_LINE, "\xc3\xa9", 2, out, 2), 0);
    assert_int_equal(ls_escape(LS_ESCAPE_LINE, "a", 1, out, 1), 0);
    assert_string_equal(out, "");
}

/* Every byte and every pair of bytes: no control character is left. */
static void test_all_pairs(void **state) {
    (void)state;
    for (int a = 0; a < 256; a++)
        for (int b = 0; b < 256; b++) {
            char in[2] = {(char)a, (char)b}, out[16];
            size_t n = ls_escape(LS_ESCAPE_LINE, in, 2, out, sizeof out);
            assert_true(ls_utf8_is_valid(out, n));
            uint32_t point = 0;
            for (size_t at = 0; at < n; at += ls_utf8_decode(out + at, n - at, &point)) {
                ls_utf8_decode(out + at, n - at, &point);
                assert_true(point >= 0x20 && (point < 0x7f || point >= 0xa0));
            }
        }
}

/* Every message is escaped; one that is too long is cut between characters. */
static void test_messages(void **state) {
    (void)state;
    ls_error e = {0};
    assert_int_equal(ls_fail(&e, LS_EINVAL, "%s: unknown key '%s'", "a\nb", "lr\x1b[31m"),
                     LS_EINVAL);
    assert_string_equal(e.msg, "a\\nb: unknown key 'lr\\x1b[31m'");
    char longer[2 * sizeof e.msg + 1];
    for (size_t i = 0; i + 1 < sizeof longer; i += 2) memcpy(longer + i, "\xc3\xa9", 2);
    longer[sizeof longer - 1] = 0;
    ls_fail(&e, LS_EINVAL, "%s", longer);
    assert_true(strlen(e.msg) >= sizeof e.msg - 2);
    assert_true(ls_utf8_is_valid(e.msg, strlen(e.msg)));
    assert_null(strchr(e.msg, '\\'));
}

/* As printf writes it, but for what is escaped in texts. */
static void test_format(void **state) {
    (void)state;
    ls_buf b = {0};
    char want[512];
#define FORMAT                                                                                     \
    "%d|%5lld|%-7ld|%zu|%08x|%+.3f|%10.4g|%*d|%-*d|%.*f|%c|%%|%s|%8s|%-8s|%.2s|%5.1s|%u|%#"        \
    "llx\n\t%td"
#define VALUES                                                                                     \
    -3, -12LL, 9L, (size_t)7, 0xbeefu, 2.5, 1e-9, 6, 42, 6, 42, 2, 3.14159, 'x', "ab", "ab", "ab", \
        "abc", "abc", 4294967295u, 0xffffffffffffffffULL, (ptrdiff_t)-5
    ls_buf_put(&b, FORMAT, VALUES);
    snprintf(want, sizeof want, FORMAT, VALUES);
    assert_string_equal(b.data, want);
    ls_buf_free(&b);
    b = (ls_buf){0};
    ls_buf_put(&b, "[%s]\n\t[%8s] [%-8s] [%.3s] %c", "a\tb\nc\x1b", "\t", "\n", "x\ny\n", '\r');
    assert_string_equal(b.data, "[a\\tb\\nc\\x1b]\n\t[      \\t] [\\n      ] [x\\ny] \\r");
    ls_buf_free(&b);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_line),     cmocka_unit_test(test_text_and_json),
        cmocka_unit_test(test_room),     cmocka_unit_test(test_all_pairs),
        cmocka_unit_test(test_messages), cmocka_unit_test(test_format),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
