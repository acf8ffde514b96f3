/* added_tokens_test.c - which names are found in a text; expectations worked out by hand, most of
 * them after examples in the documentation of Hugging Face's tokenizers. */
#include "data/added_tokens.h"

#include "base/mem.h"
#include "test.h"

/* Names with flags: s special, w single word, l lstrip, r rstrip, n normalized. The id of a token
 * is its place. */
static ls_added_tokens make(const char *const (*tokens)[2]) {
    ls_added_tokens a = {0};
    for (uint32_t i = 0; tokens[i][0]; i++) {
        ls_error e = {0};
        const char *flags = tokens[i][1];
        ls_buf content = {0};
        ls_buf_append(&content, tokens[i][0], strlen(tokens[i][0]));
        ls_added_token t = {.content = content.data,
                            .nbytes = content.len,
                            .id = i,
                            .special = strchr(flags, 's'),
                            .single_word = strchr(flags, 'w'),
                            .lstrip = strchr(flags, 'l'),
                            .rstrip = strchr(flags, 'r'),
                            .normalized = strchr(flags, 'n')};
        assert_ls_ok(ls_added_tokens_add(&a, &t, content.data, content.len, "t.json", &e), e);
        ls_buf_free(&content);
    }
    return a;
}

/* The parts of a text as "text|<id>spelling|". */
static void check(const ls_added_tokens *a, const char *text, const ls_added_query *q,
                  const char *want) {
    ls_added_spans out = {0};
    ls_buf got = {0};
    ls_buf_append(&got, "", 0);
    ls_added_tokens_split(a, (const uint8_t *)text, strlen(text), q, &out);
    for (size_t i = 0; i < out.n; i++) {
        const ls_added_span *s = &out.spans[i];
        if (s->id != LS_NO_TOKEN) ls_buf_printf(&got, "<%u>", s->id);
        ls_buf_printf(&got, "%.*s|", (int)(s->to - s->from), text + s->from);
    }
    if (strcmp(got.data, want) != 0) fail_msg("\"%s\": \"%s\", not \"%s\"", text, got.data, want);
    ls_buf_free(&got);
    free(out.spans);
}

static void test_longest(void **state) {
    (void)state;
    static const char *const tokens[][2] = {
        {"ab", ""}, {"abcd", ""}, {"bc", ""}, {"<x>", "s"}, {0}};
    static const ls_added_query q = {.special = true};
    ls_added_tokens a = make(tokens);
    check(&a, "", &q, "");
    check(&a, "x", &q, "x|");
    check(&a, "ab", &q, "<0>ab|");
    check(&a, "abcd", &q, "<1>abcd|");
    check(&a, "abc", &q, "<0>ab|c|"); /* the leftmost, not the later bc */
    check(&a, "xbcab", &q, "x|<2>bc|<0>ab|");
    check(&a, "aab", &q, "a|<0>ab|");
    check(&a, "<x><x", &q, "<3><x>|<x|");
    check(&a, "\xC3\xA9<x>\xC3\xA9", &q, "\xC3\xA9|<3><x>|\xC3\xA9|");
    assert_ptr_equal(ls_added_tokens_find(&a, "bc", 2), &a.tokens[2]);
    assert_null(ls_added_tokens_find(&a, "b", 1));
    ls_added_tokens_free(&a);
}

static void test_special_on_request(void **state) {
    (void)state;
    static const char *const tokens[][2] = {{"<s>", "s"}, {"tool", ""}, {"s>t", ""}, {0}};
    static const ls_added_query plain = {0}, special = {.special = true};
    ls_added_tokens a = make(tokens);
    check(&a, "<s>tool", &special, "<0><s>|<1>tool|");
    check(&a, "<s>tool", &plain, "<s>|<1>tool|"); /* passed over as a whole: s>t is not found */
    ls_added_tokens_free(&a);
}

static void test_plain_ranges(void **state) {
    (void)state;
    static const char *const tokens[][2] = {{"<s>", "s"}, {"x", ""}, {0}};
    static const ls_text_range ranges[] = {{3, 7}, {10, 12}};
    static const ls_added_query q = {.special = true, .plain = ranges, .nplain = 2};
    ls_added_tokens a = make(tokens);
    check(&a, "<s><s>x<s>a", &q, "<0><s>|<s>|<1>x|<0><s>|a|");
    check(&a, "aaaa<<s><s>", &q, "aaaa<<s><s>|"); /* overlaps are not recognised either */
    check(&a, "aaaaaa<s>aaa<s>", &q, "aaaaaa<s>aaa|<0><s>|");
    ls_added_tokens_free(&a);
}

static void test_strip(void **state) {
    (void)state;
    static const char *const tokens[][2] = {{"<l>", "l"}, {"<r>", "r"}, {"<b>", "lr"}, {0}};
    static const ls_added_query q = {0};
    ls_added_tokens a = make(tokens);
    check(&a, "a <l> b", &q, "a|<0> <l>| b|");
    check(&a, "a <r> \n b", &q, "a |<1><r> \n |b|");
    check(&a, "a \xE3\x80\x80<b>\xC2\xA0 b", &q, "a|<2> \xE3\x80\x80<b>\xC2\xA0 |b|");
    check(&a, " <l> <l>", &q, "<0> <l>|<0> <l>|");
    check(&a, "<r> <l>", &q, "<1><r> |<0><l>|"); /* the space is taken once */
    check(&a, "  <b>  ", &q, "<2>  <b>  |");
    ls_added_tokens_free(&a);
}

static void test_single_word(void **state) {
    (void)state;
    static const char *const tokens[][2] = {{"ing", "w"}, {0}};
    static const ls_added_query q = {0};
    ls_added_tokens a = make(tokens);
    check(&a, "ing", &q, "<0>ing|");
    check(&a, "dancing", &q, "dancing|");
    check(&a, "I am ing-ing", &q, "I am |<0>ing|-|<0>ing|");
    check(&a, "ings \xC3\xA9ing ing\xCC\x81 _ing ing0", &q,
          "ings \xC3\xA9ing ing\xCC\x81 _ing ing0|");
    check(&a, "\xE2\x82\xACing\xE3\x80\x82", &q, "\xE2\x82\xAC|<0>ing|\xE3\x80\x82|");
    ls_added_tokens_free(&a);
}

/* Names of the normalized text are another set. */
static void test_two_sets(void **state) {
    (void)state;
    static const char *const tokens[][2] = {{"raw", ""}, {"norm", "n"}, {0}};
    static const ls_added_query raw = {0}, normalized = {.normalized = true};
    ls_added_tokens a = make(tokens);
    check(&a, "raw norm", &raw, "<0>raw| norm|");
    check(&a, "raw norm", &normalized, "raw |<1>norm|");
    ls_added_tokens_free(&a);
}

static void test_refused(void **state) {
    (void)state;
    static const char *const tokens[][2] = {{"a", ""}, {0}};
    ls_error e;
    ls_added_tokens a = make(tokens);
    char text[2000];
    memset(text, 'x', sizeof text);
    ls_added_token t = {.content = text, .nbytes = 1, .id = 7};
    assert_ls_fails(ls_added_tokens_add(&a, &t, "a", 1, "t.json", &e), LS_EINVAL,
                    "t.json: added tokens 0 and 7 have the same text, a", e);
    assert_ls_fails(ls_added_tokens_add(&a, &t, "", 0, "t.json", &e), LS_EINVAL,
                    "added token 7 has 0 bytes", e);
    assert_ls_fails(ls_added_tokens_add(&a, &t, text, 1025, "t.json", &e), LS_EINVAL,
                    "has 1025 bytes; 1 to 1024", e);
    ls_added_tokens_free(&a);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_longest),      cmocka_unit_test(test_special_on_request),
        cmocka_unit_test(test_plain_ranges), cmocka_unit_test(test_strip),
        cmocka_unit_test(test_single_word),  cmocka_unit_test(test_two_sets),
        cmocka_unit_test(test_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
