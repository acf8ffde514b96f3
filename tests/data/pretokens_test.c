/* pretokens_test.c - words of random texts, against the expressions written out as plain C. */
#include "data/pretokens.h"

#include "base/random.h"
#include "test.h"

/* ---- the reference: texts of the characters below, one code each ---- */

typedef enum what { LETTER, NUMBER, SPACE, OTHER } what;

static const struct {
    const char *utf8;
    what what;
} chars[] = {
    {"a", LETTER},
    {"S", LETTER},
    {"\xC3\xA9", LETTER},
    {"\xE6\x97\xA5", LETTER},
    {"t", LETTER},
    {"7", NUMBER},
    {"0", NUMBER},
    {"\xC2\xB2", NUMBER},
    {"\xD9\xA3", NUMBER},
    {" ", SPACE},
    {" ", SPACE},
    {"\n", SPACE},
    {"\r", SPACE},
    {"\t", SPACE},
    {"\xC2\xA0", SPACE},
    {"\xE3\x80\x80", SPACE},
    {"'", OTHER},
    {"(", OTHER},
    {"\xE2\x82\xAC", OTHER},
    {"\x01", OTHER},
    {"l", LETTER},
    {"\xCC\x81", OTHER},
    {"\xE1\xA0\x8E", OTHER},
    {"\x7F", OTHER},
    {"\xC5\xBF", LETTER},
    {"\x1C", OTHER},
    {"\xF0\x9F\x98\x80", OTHER},
};
enum { NCHARS = sizeof chars / sizeof *chars, MOST = 24 };

typedef struct sample {
    int c[MOST]; /* [n] indices into chars */
    int n;
} sample;

static bool is(const sample *s, int at, what w) { return at < s->n && chars[s->c[at]].what == w; }
static bool has(const sample *s, int at, const char *utf8) {
    return at < s->n && strcmp(chars[s->c[at]].utf8, utf8) == 0;
}
static int run(const sample *s, int at, what w) {
    while (is(s, at, w)) at++;
    return at;
}

/* 's|'t|'re|'ve|'m|'ll|'d, of which the sample's characters allow three. */
static int contraction(const sample *s, int at, bool any_case) {
    if (!has(s, at, "'")) return at;
    if (has(s, at + 1, "t")) return at + 2;
    if (any_case && (has(s, at + 1, "S") || has(s, at + 1, "\xC5\xBF"))) return at + 2;
    return has(s, at + 1, "l") && has(s, at + 2, "l") ? at + 3 : at;
}

/* \s+(?!\S)|\s+ */
static int spaces(const sample *s, int at) {
    int end = run(s, at, SPACE);
    return end == s->n || end == at + 1 ? end : end - 1;
}

static int gpt2(const sample *s, int at) {
    static const what kinds[] = {LETTER, NUMBER, OTHER};
    int end = contraction(s, at, false), begin = has(s, at, " ") ? at + 1 : at;
    for (int i = 0; end == at && i < 3; i++)
        if (run(s, begin, kinds[i]) > begin) end = run(s, begin, kinds[i]);
    return end > at ? end : spaces(s, at);
}

static int lines(const sample *s, int at) { /* \s*[\r\n]+ */
    int end = run(s, at, SPACE);
    while (end > at && !has(s, end - 1, "\r") && !has(s, end - 1, "\n")) end--;
    return end;
}

static int llama3(const sample *s, int at, int digits) {
    int end = contraction(s, at, true);
    if (end > at) return end;
    bool line = has(s, at, "\r") || has(s, at, "\n");
    int letters = is(s, at, LETTER) || is(s, at, NUMBER) || line ? at : at + 1;
    if (is(s, letters, LETTER)) return run(s, letters, LETTER);
    if (is(s, at, NUMBER)) {
        end = run(s, at, NUMBER);
        return end - at > digits ? at + digits : end;
    }
    int others = has(s, at, " ") ? at + 1 : at;
    if (is(s, others, OTHER)) {
        end = run(s, others, OTHER);
        while (has(s, end, "\r") || has(s, end, "\n")) end++;
        return end;
    }
    return lines(s, at) > at ? lines(s, at) : spaces(s, at);
}

typedef enum rule { GPT2, LLAMA3, QWEN2, DIGITS, DIGIT_GPT2, SPACES, EACH_SPACE, NRULES } rule;

static int reference(rule r, const sample *s, int at) {
    sample piece = *s;
    int end = at;
    switch (r) {
    case GPT2: return gpt2(s, at);
    case LLAMA3: return llama3(s, at, 3);
    case QWEN2: return llama3(s, at, 1);
    case DIGITS:
        if (is(s, at, NUMBER)) return run(s, at, NUMBER);
        while (end < s->n && !is(s, end, NUMBER)) end++;
        return end;
    case DIGIT_GPT2: /* each digit is a word, and the text ends before it */
        if (is(s, at, NUMBER)) return at + 1;
        while (end < s->n && !is(s, end, NUMBER)) end++;
        piece.n = end;
        return gpt2(&piece, at);
    default:
        end = at + 1;
        while (end < s->n && !(has(s, end, " ") && (r == EACH_SPACE || !has(s, end - 1, " "))))
            end++;
        return end;
    }
}

/* ---- the comparison ---- */

static ls_pretokenizer make(rule r) {
    static const struct {
        ls_cut_kind kinds[2];
        const char *regex;
        int n;
    } rules[NRULES] = {
        [GPT2] = {{LS_CUT_GPT2}, NULL, 1},
        [LLAMA3] = {{LS_CUT_EXPRESSION}, LS_REGEX_LLAMA3, 1},
        [QWEN2] = {{LS_CUT_EXPRESSION}, LS_REGEX_QWEN2, 1},
        [DIGITS] = {{LS_CUT_DIGITS}, NULL, 1},
        [DIGIT_GPT2] = {{LS_CUT_DIGIT, LS_CUT_GPT2}, NULL, 2},
        [SPACES] = {{LS_CUT_SPACES}, NULL, 1},
        [EACH_SPACE] = {{LS_CUT_SPACE}, NULL, 1},
    };
    ls_error e = {0};
    ls_pretokenizer p = {0};
    for (int i = 0; i < rules[r].n; i++)
        assert_ls_ok(ls_pretokenizer_add(&p, rules[r].kinds[i], rules[r].regex, "p", &e), e);
    return p;
}

static void check(ls_pretokens *words, rule r, const sample *s) {
    char text[4 * MOST + 1] = "";
    size_t place[MOST + 1] = {0};
    for (int i = 0; i < s->n; i++) {
        strcat(text, chars[s->c[i]].utf8);
        place[i + 1] = strlen(text);
    }
    ls_pretokens_begin(words, (const uint8_t *)text, strlen(text));
    for (int at = 0, end; at < s->n; at = end) {
        ls_error e = {0};
        const uint8_t *word = NULL;
        size_t nbytes = 0;
        end = reference(r, s, at);
        assert_ls_ok(ls_pretokens_next(words, "text", &word, &nbytes, &e), e);
        if ((const char *)word != text + place[at] || nbytes != place[end] - place[at])
            fail_msg("rule %d: \"%s\" at byte %zu: %zu bytes, not %zu", (int)r, text, place[at],
                     nbytes, place[end] - place[at]);
    }
    const uint8_t *word = NULL;
    size_t nbytes = 1;
    assert_int_equal(ls_pretokens_next(words, "text", &word, &nbytes, NULL), LS_OK);
    assert_int_equal(nbytes, 0);
}

static void test_random_texts(void **state) {
    (void)state;
    for (int r = 0; r < NRULES; r++) {
        ls_pretokenizer p = make((rule)r);
        ls_pretokens *words = ls_pretokens_create(&p);
        for (uint64_t i = 0; i < 4000; i++) {
            sample s = {.n = (int)(i % MOST) + 1};
            for (int k = 0; k < s.n; k++) {
                uint32_t w[4];
                ls_random_words(9, LS_STREAM_SAMPLE, i, (uint64_t)k, w);
                /* Runs of one character, and of ASCII, are frequent. */
                bool same = k > 0 && w[0] % 3 == 0;
                s.c[k] = same ? s.c[k - 1] : (int)(w[1] % NCHARS);
            }
            check(words, (rule)r, &s);
        }
        ls_pretokens_free(words);
        ls_pretokenizer_free(&p);
    }
}

/* Two matches with a gap between them, at both ends, and none at all. */
static void test_gaps(void **state) {
    (void)state;
    static const char *const cases[][2] = {
        {"xbby", "x|bb|y|"}, {"bb", "bb|"}, {"xy", "xy|"}, {"bxb", "b|x|b|"}, {"", ""}};
    ls_error e = {0};
    ls_pretokenizer p = {0};
    assert_ls_ok(ls_pretokenizer_add(&p, LS_CUT_EXPRESSION, "b+", "p", &e), e);
    ls_pretokens *words = ls_pretokens_create(&p);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char got[32] = "";
        const uint8_t *word = NULL;
        ls_pretokens_begin(words, (const uint8_t *)cases[i][0], strlen(cases[i][0]));
        for (size_t n = 1; n;) {
            assert_ls_ok(ls_pretokens_next(words, "text", &word, &n, &e), e);
            if (n) snprintf(got + strlen(got), 16, "%.*s|", (int)n, (const char *)word);
        }
        assert_string_equal(got, cases[i][1]);
    }
    ls_pretokens_free(words);
    ls_pretokenizer_free(&p);
}

static void test_no_step(void **state) {
    (void)state;
    ls_pretokenizer p = {0};
    ls_pretokens *words = ls_pretokens_create(&p);
    const uint8_t *word = NULL;
    size_t n = 0;
    ls_pretokens_begin(words, (const uint8_t *)"a b", 3);
    assert_int_equal(ls_pretokens_next(words, "text", &word, &n, NULL), LS_OK);
    assert_int_equal(n, 3);
    assert_int_equal(ls_pretokens_next(words, "text", &word, &n, NULL), LS_OK);
    assert_int_equal(n, 0);
    ls_pretokens_free(words);
}

static void test_errors(void **state) {
    (void)state;
    ls_error e;
    ls_pretokenizer p = {0};
    const uint8_t *word = NULL;
    uint8_t text[2000];
    size_t n = 0;
    memset(text, 'a', sizeof text);
    assert_int_equal(ls_pretokenizer_add(&p, LS_CUT_EXPRESSION, "(a+)+[bc]", "p", &e), LS_OK);
    ls_pretokens *words = ls_pretokens_create(&p);
    ls_pretokens_begin(words, text, sizeof text);
    assert_ls_fails(ls_pretokens_next(words, "a.txt", &word, &n, &e), LS_EINVAL,
                    "a.txt: can't be cut into words: ", e);
    ls_pretokens_free(words);
    for (int i = 1; i < LS_MAX_CUT_STEPS; i++)
        assert_int_equal(ls_pretokenizer_add(&p, LS_CUT_DIGIT, NULL, "p", &e), LS_OK);
    assert_ls_fails(ls_pretokenizer_add(&p, LS_CUT_DIGIT, NULL, "p", &e), LS_EINVAL,
                    "more than 6 steps", e);
    ls_pretokenizer_free(&p);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_random_texts),
        cmocka_unit_test(test_gaps),
        cmocka_unit_test(test_no_step),
        cmocka_unit_test(test_errors),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
