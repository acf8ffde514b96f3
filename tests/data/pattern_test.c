/* pattern_test.c - which regular expressions are taken, what they match, and that a slow one ends.
 * The expected matches are worked out by hand from Oniguruma's documentation. */
#include "data/pattern.h"

#include "base/mem.h"

#include "test.h"

static ls_pattern *create(const char *regex) {
    ls_error e = {0};
    ls_pattern *p = NULL;
    assert_ls_ok(ls_pattern_create(regex, "t.json: pattern", &p, &e), e);
    return p;
}

/* The matches in a text as "from-to from-to ". */
static void check_matches(const char *regex, const char *text, const char *want) {
    char got[256] = "";
    size_t n = strlen(text);
    ls_pattern *p = create(regex);
    ls_matcher *m = ls_matcher_create(p);
    for (size_t at = 0; at < n;) {
        ls_error e = {0};
        ls_match found;
        assert_ls_ok(ls_matcher_find(m, (const uint8_t *)text, n, at, &found, &e), e);
        if (found.from < n)
            snprintf(got + strlen(got), sizeof got - strlen(got), "%zu-%zu ", found.from, found.to);
        at = found.to;
    }
    if (strcmp(got, want) != 0) fail_msg("%s in \"%s\": %s, not %s", regex, text, got, want);
    ls_matcher_free(m);
    ls_pattern_free(p);
}

static void test_matches(void **state) {
    (void)state;
    static const char *const cases[][3] = {
        {"b", "abcb", "1-2 3-4 "},
        {"a|bc", "xbca", "1-3 3-4 "},
        {"\\p{L}+", "ab1\xC3\xA9", "0-2 3-5 "},
        {"\\P{L}", "a1", "1-2 "},
        {"[^\\p{L}\\s]+", "a1 2", "1-2 3-4 "},
        {"\\p{N}{1,3}", "12345", "0-3 3-5 "},
        {"x{2}", "xxxxx", "0-2 2-4 "},
        {"x{2,}", "xxxxx", "0-5 "},
        {"x+?", "xx", "0-1 1-2 "},
        {"x++", "xx", "0-2 "},
        {"\\d", "1\xC2\xBD", "0-1 "},
        {"\\D", "1a", "1-2 "},
        {".", "a\n\r", "0-1 2-3 "},
        {"\\s", "\xE1\xA0\x8E\xC2\x85", "3-5 "}, /* not U+180E, but U+0085 */
        {"\\S", "\xE1\xA0\x8E\xC2\x85", "0-3 "},
        {"[\\s]", "a\xE3\x80\x80", "1-4 "},
        {"a(?!b)", "abac", "2-3 "},
        {"a(?=b)", "abac", "0-1 "},
        {"(?<=a)b", "abb", "1-2 "},
        {"(?<!a)b", "abb", "2-3 "},
        {"(ab)+", "abab", "0-4 "},
        {"(?:ab)+", "abab", "0-4 "},
        {"(?i:'s|k)", "'S\xC5\xBF'\xC5\xBFK\xE2\x84\xAA", "0-2 4-7 7-8 8-11 "},
        {"(?i:a(b))c", "ABcabC", "0-3 "},
        {"[a-c-]", "bd-", "0-1 2-3 "},
        {"[-a]", "-", "0-1 "},
        {"[\\]\\-\\\\]", "]-\\", "0-1 1-2 2-3 "},
        {"\\.\\*\\(", "x.*(", "1-4 "},
        {"[.*+?|(){}$]", "a$", "1-2 "},
        {"#  b", "#  b", "0-4 "},
        {"[\xE6\x97\xA5-\xE6\x9C\xAC]", "\xE6\x97\xA6", "0-3 "},
        {"&[&]", "&&", "0-2 "},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        check_matches(cases[i][0], cases[i][1], cases[i][2]);
}

/* What means something else to Oniguruma, or nothing. */
static void test_refused(void **state) {
    (void)state;
    static const char *const cases[][2] = {
        {"\\w", "has \\w at byte 0"},
        {"a\\b", "has \\b at byte 1"},
        {"\\h", "has \\h"},
        {"\\x41", "has \\x"},
        {"\\1", "has \\1"},
        {"\\pL", "has \\p at"},
        {"\\p{Han}", "has \\p{Han} at"},
        {"\\p{^L}", "has \\p{^L} at"},
        {"\\p{L", "has \\p"},
        {"\\", "has \\ at byte 0"},
        {"^a", "has ^ at byte 0"},
        {"a$", "has $ at byte 1"},
        {"[a&&b]", "has && at byte 2"},
        {"[a[b]]", "has [b at byte 2"},
        {"[[:alpha:]]", "has [: at"},
        {"[]a]", "has []"},
        {"[", "has [ at byte 0"},
        {"[a", "has [ at byte 0"},
        {"[\\S]", "has \\S"},
        {"[\\s-z]", "has - at"},
        {"[a-\\s]", "has [a-\\s at"},
        {"[\\p{L}-z]", "has - at"},
        {"a{,3}", "has {"},
        {"a{2", "has {"},
        {"a{}", "has {"},
        {"a{2}?", "has {2}?"},
        {"a{2}+", "has {2}+"},
        {"a}", "has }"},
        {"(?i)a", "has (?"},
        {"(?<x>a)", "has (?<x>"},
        {"(?>a)", "has (?>"},
        {"(?#a)b", "has (?"},
        {"(?=a)*b", "has )* at"},
        {"a)", "has ) at byte 1"},
        {"(?i:ss)", "has ss at"},
        {"(?i:Fi)", "has Fi at"},
        {"(?i:\xC3\x9F)", "at byte 4"},
        {"(a", "is not a regular expression"},
        {"a**", "is not a regular expression"},
        {"+", "is not a regular expression"},
        {"a{70000}", "is not a regular expression"},
        {"(?<=a+)b", "is not a regular expression"},
        {"a{9,3}", "is not a regular expression"},
        {"", "can match an empty text"},
        {"a*", "can match an empty text"},
        {"a|", "can match an empty text"},
        {"(?=a)", "can match an empty text"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        ls_error e;
        ls_pattern *p = NULL;
        assert_ls_fails(ls_pattern_create(cases[i][0], "t.json: pattern", &p, &e), LS_EINVAL,
                        cases[i][1], e);
        assert_memory_equal(e.msg, "t.json: pattern: ", 17);
    }
}

static void test_too_large(void **state) {
    (void)state;
    static const char *const parts[] = {"(", "(?:a{60000}){60000}", "x"};
    static const char *const messages[] = {"which is not supported", "is not a regular expression",
                                           "has 5000 bytes; at most 4096"};
    for (int i = 0; i < 3; i++) {
        ls_error e;
        ls_pattern *p = NULL;
        ls_buf regex = {0};
        for (size_t n = i == 0 ? 100 : i == 1 ? 1 : 5000; n > 0; n--)
            ls_buf_append(&regex, parts[i], strlen(parts[i]));
        assert_ls_fails(ls_pattern_create(regex.data, "p", &p, &e), LS_EINVAL, messages[i], e);
        ls_buf_free(&regex);
    }
}

/* Expressions that try all ways to divide a text end with an error. */
static void test_backtracking(void **state) {
    (void)state;
    static const char *const slow[] = {"(a+)+[bc]", "(a|aa)+[bc]", "(a|a)*b|c"};
    uint8_t text[4000];
    memset(text, 'a', sizeof text);
    for (int i = 0; i < 3; i++) {
        ls_error e;
        ls_match found;
        ls_pattern *p = create(slow[i]);
        ls_matcher *m = ls_matcher_create(p);
        assert_ls_fails(ls_matcher_find(m, text, sizeof text, 0, &found, &e), LS_EINVAL, "limit",
                        e);
        ls_matcher_free(m);
        ls_pattern_free(p);
    }
}

/* A match of many groups needs more memory than the compiled code has on its stack. */
static void test_deep_match(void **state) {
    (void)state;
    enum { N = 200000 };
    uint8_t *text = LS_NEW_ARRAY(uint8_t, N);
    for (int i = 0; i < N; i++) text[i] = (uint8_t)('a' + i % 2);
    ls_error e = {0};
    ls_match found;
    ls_pattern *p = create("(?:a|b|cd)+");
    ls_matcher *m = ls_matcher_create(p);
    assert_ls_ok(ls_matcher_find(m, text, N, 0, &found, &e), e);
    assert_int_equal(found.to, N);
    ls_matcher_free(m);
    ls_pattern_free(p);
    free(text);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_matches),    cmocka_unit_test(test_refused),
        cmocka_unit_test(test_too_large),  cmocka_unit_test(test_backtracking),
        cmocka_unit_test(test_deep_match),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
