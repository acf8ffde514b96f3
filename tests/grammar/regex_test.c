/* regex_test.c - regular expressions as automata, against PCRE2: random expressions on random
 * texts, what can be completed, what is refused. */
#include "grammar/grammar.h"

#include "base/mem.h"
#include "base/random.h"
#include "grammar/walker.h"
#include "test.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

enum { LONGEST_TEXT = 24 };

/* ---- random numbers ---- */

static uint64_t drawn;
static uint32_t draw(uint32_t n) {
    return (uint32_t)(ls_random_uniform(7, LS_STREAM_SAMPLE, 1, drawn++) * n);
}

/* ---- random expressions ---- */

static const char *const atoms[] = {
    "a", "b",     "c", "ab",  "[ab]", "[^a]",  ".", "\\d", "\\w",  "\\s", "[a-c]",  "[^\\d]",
    "é", "[é-ü]", "€", "\\.", "[b€]", "\\x41", "😀", "\\n", "[^€]", "\\S", "[\\]a]", "-"};

static void put_expression(ls_buf *b, int depth) {
    static const char *const repeats[] = {"*", "+", "?", "{2}", "{1,3}", "{2,}", "{0,2}", "*?"};
    uint32_t kind = draw(depth > 3 ? 2 : 7);
    if (kind < 2) {
        const char *atom = atoms[draw(sizeof atoms / sizeof *atoms)];
        ls_buf_append(b, atom, strlen(atom));
    } else if (kind < 4) {
        put_expression(b, depth + 1);
        put_expression(b, depth + 1);
    } else if (kind == 4) {
        ls_buf_printf(b, "(");
        put_expression(b, depth + 1);
        ls_buf_printf(b, "|");
        put_expression(b, depth + 1);
        ls_buf_printf(b, ")");
    } else {
        ls_buf_printf(b, "(?:");
        put_expression(b, depth + 1);
        ls_buf_printf(b, ")%s", repeats[draw(sizeof repeats / sizeof *repeats)]);
    }
}

static size_t put_text(char *text) {
    static const char *const chars[] = {"a", "b", "c",  "é", "€", "1",
                                        " ", "A", "\n", "😀", ".", "-"};
    size_t n = 0;
    for (uint32_t k = draw(6); k > 0; k--) {
        const char *c = chars[draw(sizeof chars / sizeof *chars)];
        memcpy(text + n, c, strlen(c));
        n += strlen(c);
    }
    return n;
}

/* ---- texts that are allowed ---- */

static uint32_t read_all(ls_walker *w, const char *text, size_t n) {
    uint32_t state = LS_WALKER_START;
    for (size_t i = 0; i < n; i++) state = ls_walker_step(w, state, (uint8_t)text[i]);
    return state;
}

static bool allows(ls_walker *w, const char *text, size_t n) {
    return ls_walker_is_end(w, read_all(w, text, n));
}

/* The states from which an end can be reached, by a search over all states. */
static void check_completable(ls_walker *w) {
    enum { MOST = 3000 };
    static uint32_t next[MOST][256];
    static bool good[MOST];
    uint32_t n = 2;
    for (uint32_t s = LS_WALKER_START; s < n && n < MOST; s++)
        for (int b = 0; b < 256; b++) {
            next[s][b] = ls_walker_step(w, s, (uint8_t)b);
            if (next[s][b] >= n) n = next[s][b] + 1;
        }
    if (n >= MOST) return;
    for (uint32_t s = 0; s < n; s++) good[s] = ls_walker_is_end(w, s);
    for (bool changed = true; changed;) {
        changed = false;
        for (uint32_t s = LS_WALKER_START; s < n; s++)
            for (int b = 0; b < 256 && !good[s]; b++)
                if (good[next[s][b]]) good[s] = changed = true;
    }
    assert_false(good[LS_WALKER_DEAD]);
    for (uint32_t s = LS_WALKER_START; s < n; s++) assert_true(good[s]);
}

static ls_walker *walker_of(const char *regex, ls_grammar **g_p) {
    ls_error e = {0};
    if (ls_grammar_of_regex(regex, strlen(regex), NULL, g_p, &e) != LS_OK)
        fail_msg("%s: %s", regex, e.msg);
    return ls_walker_new(*g_p);
}

static void compare(const char *regex) {
    int code = 0;
    PCRE2_SIZE at = 0;
    ls_grammar *g = NULL;
    ls_walker *w = walker_of(regex, &g);
    pcre2_code *p = pcre2_compile((PCRE2_SPTR)regex, PCRE2_ZERO_TERMINATED,
                                  PCRE2_UTF | PCRE2_ANCHORED | PCRE2_ENDANCHORED, &code, &at, NULL);
    if (!p) fail_msg("PCRE2 does not know %s", regex);
    pcre2_match_data *m = pcre2_match_data_create_from_pattern(p, NULL);
    for (int i = 0; i < 200; i++) {
        char text[LONGEST_TEXT];
        size_t n = put_text(text);
        bool matches = pcre2_match(p, (PCRE2_SPTR)text, n, 0, 0, m, NULL) > 0;
        if (matches != allows(w, text, n)) fail_msg("%s on '%.*s'", regex, (int)n, text);
    }
    check_completable(w);
    pcre2_match_data_free(m);
    pcre2_code_free(p);
    ls_walker_free(w);
    ls_grammar_free(g);
}

static void test_random(void **state) {
    (void)state;
    for (int i = 0; i < ncases(150, 5000); i++) {
        ls_buf b = {0};
        put_expression(&b, 0);
        compare(b.data);
        ls_buf_free(&b);
    }
}

/* ---- by hand ---- */

static void test_allowed(void **state) {
    static const struct {
        const char *regex, *good, *bad;
    } cases[] = {{"^[0-9]{3}-[0-9]{4}$", "555-1234", "555-123"},
                 {"^a|b$", "a", "ab"},
                 {"(?<year>\\d{4})", "2026", "26"},
                 {"[a-z]+@[a-z]+\\.(com|org)", "me@here.org", "me@here.net"},
                 {"", "", "a"},
                 {"(a*)*b", "aab", "aa"},
                 {"[]a]+", "]a", "b"},
                 {"[\\w-]+", "a-b", "a b"},
                 {"\\u20ac+", "€€", "$"},
                 {"[\\s\\S]", "\xe3\x80\x80", "ab"},
                 {"\\s", "\xe3\x80\x80", "a"},
                 {"[^\\s]", "\xc2\x85", "\xef\xbb\xbf"},
                 {"\\s", "\xc2\xa0", "\xef\xbb\xbf"},
                 {".", "\x0b", "\xe2\x80\xa8"},
                 {"a{0,2}|x", "x", "aaa"}};
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        ls_grammar *g = NULL;
        ls_walker *w = walker_of(cases[i].regex, &g);
        assert_true(allows(w, cases[i].good, strlen(cases[i].good)));
        assert_false(allows(w, cases[i].bad, strlen(cases[i].bad)));
        check_completable(w);
        ls_walker_clear(w);
        assert_true(allows(w, cases[i].good, strlen(cases[i].good)));
        ls_walker_free(w);
        ls_grammar_free(g);
    }
}

static void test_refused(void **state) {
    static const char *const cases[][2] = {{"a(", "not closed"},
                                           {"a)", "not opened"},
                                           {"[a", "not closed"},
                                           {"*a", "nothing to repeat"},
                                           {"a**", "can't be repeated"},
                                           {"a{,2}", "{n,m}"},
                                           {"a{3,2}", "m is less"},
                                           {"a{20000}", "at most 10000"},
                                           {"(?=a)", "look-around"},
                                           {"(?i)a", "look-around"},
                                           {"\\bword", "\\b is not supported"},
                                           {"(a)\\1", "\\1 is not supported"},
                                           {"\\p{L}", "\\p is not supported"},
                                           {"a^b", "at the ends"},
                                           {"(a$)", "at the ends"},
                                           {"[z-a]", "no range"},
                                           {"[^\\s\\S]", "no characters"},
                                           {"[[:alpha:]]", "by name"},
                                           {"\\", "backslash"},
                                           {"\xff", "UTF-8"},
                                           {"\\ud800", "no text is allowed"},
                                           {"((a{100}){100}){100}", "too large"},
                                           {"(a|b)*a(a|b){30}", "too large"}};
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        ls_grammar *g = NULL;
        ls_error e = {0};
        assert_ls_fails(ls_grammar_of_regex(cases[i][0], strlen(cases[i][0]), NULL, &g, &e),
                        LS_EINVAL, cases[i][1], e);
    }
    ls_buf deep = {0};
    for (int i = 0; i < 200; i++) ls_buf_printf(&deep, "(");
    ls_grammar *g = NULL;
    ls_error e = {0};
    assert_ls_fails(ls_grammar_of_regex(deep.data, deep.len, NULL, &g, &e), LS_EINVAL, "nested", e);
    ls_buf_free(&deep);
}

/* Bytes that no token has are left out, and with them what needs them. */
static void test_bytes(void **state) {
    (void)state;
    ls_byte_set ascii = {{false}};
    for (int b = ' '; b < 127; b++) ascii.has[b] = true;
    ls_grammar *g = NULL;
    ls_error e = {0};
    assert_ls_ok(ls_grammar_of_regex("(a|é)+.", 8, &ascii, &g, &e), e);
    ls_walker *w = ls_walker_new(g);
    assert_true(allows(w, "ab", 2));
    assert_int_equal(read_all(w, "\xc3", 1), LS_WALKER_DEAD);
    assert_int_equal(read_all(w, "a\xc3", 2), LS_WALKER_DEAD);
    ls_walker_free(w);
    ls_grammar_free(g);
    assert_ls_fails(ls_grammar_of_regex("aé", 3, &ascii, &g, &e), LS_EINVAL, "no text", e);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_random), cmocka_unit_test(test_allowed),
        cmocka_unit_test(test_refused), cmocka_unit_test(test_bytes)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
