/* tokenizer_test.c - against a naive BPE, an example worked out by hand, and hostile files. */
#include "data/tokenizer.h"

#include <ctype.h>
#include <stdbool.h>

#include "base/random.h"
#include "test.h"

static const char *const nasty[] = {
    "a",
    " ",
    "\n",
    "In the beginning God created the heaven and the earth.",
    "don't we'll I'VE 'tis ''s",
    "\xF0\x9F\x98\x80\xF0\x9F\x91\xA9\xE2\x80\x8D\xF0\x9F\x91\xA7 emoji",
    "\xE6\x97\xA5\xE6\x9C\xAC\xE8\xAA\x9E\xE3\x80\x80\xE4\xB8\xAD\xE6\x96\x87\xE3\x80\x82",
    "e\xCC\x81\xCC\x82 n\xCC\x83",
    "one\r\n\r\ntwo\r\n \t\t three   ",
    "no\xC2\xA0 line\xC2\xA0\xC2\xA0 \xE1\xA0\x8E \xC2\x85 \xE2\x80\xA8 \xEF\xBB\xBF",
    "\xC2\xBD \xC2\xB2 \xE2\x85\xA7 \xD9\xA1\xD9\xA2 1234567890",
    "\xF4\x8F\xBF\xBF\xEF\xBF\xBF\x7F\x01\x1B[0m",
    "<|endoftext|>",
};
enum { NNASTY = sizeof nasty / sizeof *nasty };

/* ---- the naive reference, for ASCII texts ---- */

enum { REF_TOKENS = 320, REF_TEXT = 600, REF_LEN = REF_TEXT, REF_MERGES = 1024 };

typedef struct reference {
    char text[REF_TOKENS][REF_LEN];
    size_t nbytes[REF_TOKENS];
    uint32_t ntokens;
    uint32_t merges[REF_MERGES][3];
    uint32_t nmerges;
    uint32_t symbols[REF_TEXT]; /* the text's words, each followed by REF_END */
    uint32_t nsymbols;
    uint32_t count[REF_TOKENS][REF_TOKENS];
} reference;
#define REF_END UINT32_MAX

static size_t ref_word(const char *s) {
    static const char *const tails[] = {"'s", "'t", "'re", "'ve", "'m", "'ll", "'d"};
    for (int i = 0; i < 7; i++)
        if (strncmp(s, tails[i], strlen(tails[i])) == 0) return strlen(tails[i]);
    size_t at = s[0] == ' ', n = at;
    while (isalpha((unsigned char)s[n])) n++;
    if (n > at) return n;
    while (isdigit((unsigned char)s[n])) n++;
    if (n > at) return n;
    while (s[n] && !isspace((unsigned char)s[n]) && !isalnum((unsigned char)s[n])) n++;
    if (n > at) return n;
    n = 0;
    while (isspace((unsigned char)s[n])) n++;
    return s[n] && n > 1 ? n - 1 : n;
}

/* The id of a single byte: visible Latin-1 first, then the rest, as GPT-2's alphabet sorts them. */
static uint32_t ref_byte_id(int byte) {
    uint32_t id = 0;
    bool visible = false;
    for (int pass = 1; pass >= 0; pass--)
        for (int b = 0; b < 256; b++) {
            visible = (b >= '!' && b <= '~') || (b >= 0xA1 && b <= 0xAC) || b >= 0xAE;
            if (visible != pass) continue;
            if (b == byte) return id;
            id++;
        }
    return id;
}

static void ref_load(reference *r, const char *s) {
    r->nsymbols = 0;
    while (*s) {
        size_t n = ref_word(s);
        for (size_t i = 0; i < n; i++) r->symbols[r->nsymbols++] = ref_byte_id((unsigned char)s[i]);
        r->symbols[r->nsymbols++] = REF_END;
        s += n;
    }
}

static void ref_merge(reference *r, uint32_t at, uint32_t id) {
    r->symbols[at] = id;
    r->nsymbols--;
    memmove(r->symbols + at + 1, r->symbols + at + 2, (r->nsymbols - at - 1) * sizeof(uint32_t));
}

static bool ref_is(const reference *r, uint32_t at, uint32_t a, uint32_t b) {
    return at + 1 < r->nsymbols && r->symbols[at] == a && r->symbols[at + 1] == b;
}

/* The most frequent pair; false: no pair is left. */
static bool ref_best(reference *r, uint32_t *a_p, uint32_t *b_p) {
    uint32_t best = 0;
    memset(r->count, 0, sizeof r->count);
    for (uint32_t i = 0; i + 1 < r->nsymbols; i++)
        if (r->symbols[i] != REF_END && r->symbols[i + 1] != REF_END)
            r->count[r->symbols[i]][r->symbols[i + 1]]++;
    for (uint32_t a = 0; a < r->ntokens; a++)
        for (uint32_t b = 0; b < r->ntokens; b++)
            if (r->count[a][b] > best) {
                best = r->count[a][b];
                *a_p = a;
                *b_p = b;
            }
    return best > 0;
}

static uint32_t ref_join(reference *r, uint32_t a, uint32_t b) {
    char *joined = r->text[r->ntokens];
    size_t n = r->nbytes[a] + r->nbytes[b];
    assert_true(n <= REF_LEN);
    memcpy(joined, r->text[a], r->nbytes[a]);
    memcpy(joined + r->nbytes[a], r->text[b], r->nbytes[b]);
    for (uint32_t i = 0; i < r->ntokens; i++)
        if (r->nbytes[i] == n && memcmp(r->text[i], joined, n) == 0) return i;
    r->nbytes[r->ntokens] = n;
    return r->ntokens++;
}

static void ref_train(reference *r, const char *s, uint32_t vocab) {
    r->ntokens = 256;
    r->nmerges = 0;
    for (int b = 0; b < 256; b++) {
        r->text[ref_byte_id(b)][0] = (char)b;
        r->nbytes[ref_byte_id(b)] = 1;
    }
    ref_load(r, s);
    uint32_t a = 0, b = 0;
    while (r->ntokens < vocab && ref_best(r, &a, &b)) {
        uint32_t id = ref_join(r, a, b);
        assert_true(r->nmerges < REF_MERGES);
        r->merges[r->nmerges][0] = a;
        r->merges[r->nmerges][1] = b;
        r->merges[r->nmerges++][2] = id;
        for (uint32_t i = 0; i < r->nsymbols; i++)
            if (ref_is(r, i, a, b)) ref_merge(r, i, id);
    }
}

/* Leaves the text's tokens in r->symbols. */
static void ref_encode(reference *r, const char *s) {
    ref_load(r, s);
    for (uint32_t m = 0; m < r->nmerges;) {
        uint32_t at = 0;
        while (at < r->nsymbols && !ref_is(r, at, r->merges[m][0], r->merges[m][1])) at++;
        if (at < r->nsymbols) {
            ref_merge(r, at, r->merges[m][2]);
            m = 0; /* an earlier merge may have become possible */
        } else {
            m++;
        }
    }
    uint32_t n = 0;
    for (uint32_t i = 0; i < r->nsymbols; i++)
        if (r->symbols[i] != REF_END) r->symbols[n++] = r->symbols[i];
    r->nsymbols = n;
}

/* ---- helpers ---- */

static ls_status cut_and_train(const uint8_t *text, size_t nbytes, const char *what, uint32_t vocab,
                               ls_tokenizer **t_p, ls_error *e) {
    ls_text_cut cut;
    LS_TRY(ls_text_cut_make(text, nbytes, what, &cut, e));
    ls_status s = ls_tokenizer_train_cut(&cut, what, vocab, t_p, e);
    ls_text_cut_free(&cut);
    return s;
}

static ls_tokenizer *train(const char *s, uint32_t vocab) {
    ls_error e = {0};
    ls_tokenizer *t = NULL;
    assert_ls_ok(cut_and_train((const uint8_t *)s, strlen(s), "text", vocab, &t, &e), e);
    assert_int_equal(ls_tokenizer_vocab(t), vocab);
    return t;
}

static ls_tokenizer *parse(const char *json) {
    ls_error e = {0};
    ls_tokenizer *t = NULL;
    assert_ls_ok(ls_tokenizer_parse(json, strlen(json), "t.json", &t, &e), e);
    return t;
}

static uint32_t *encode(const ls_tokenizer *t, const char *s, size_t nbytes, size_t *n_p) {
    ls_error e = {0};
    ls_token_list list = {0};
    assert_ls_ok(ls_tokenizer_encode(t, (const uint8_t *)s, nbytes, &(ls_encoding){.what = "text"},
                                     &list, &e),
                 e);
    *n_p = list.n;
    return list.ids;
}

static void check_encodes(const ls_tokenizer *t, const char *s, const uint32_t *want, size_t n) {
    size_t got = 0;
    uint32_t *ids = encode(t, s, strlen(s), &got);
    assert_int_equal(got, n);
    assert_memory_equal(ids, want, n * sizeof *ids);
    free(ids);
}

static void check_round_trip(const ls_tokenizer *t, const char *s, size_t nbytes) {
    size_t n = 0;
    ls_buf back = {0};
    uint32_t *ids = encode(t, s, nbytes, &n);
    for (size_t i = 0; i < n; i++) {
        size_t len = 0;
        const uint8_t *bytes = ls_tokenizer_bytes(t, ids[i], &len);
        ls_buf_append(&back, bytes, len);
    }
    assert_int_equal(back.len, nbytes);
    if (nbytes) assert_memory_equal(back.data, s, nbytes);
    ls_buf_free(&back);
    free(ids);
}

/* The tokenizer of "aaabdaaabac": merges aa, then ab before (aa, a) by its lower ids, then aaab. */
static const char hand_text[] = "aaabdaaabac";
enum { ID_A = 'a' - '!', HAND_VOCAB = 259 };

static char *hand_json(void) {
    ls_tokenizer *t = train(hand_text, HAND_VOCAB);
    ls_buf b = {0};
    ls_tokenizer_write(t, &b);
    ls_tokenizer_free(t);
    return b.data;
}

/* A copy of s with the first `from`, which must occur, replaced. */
static char *replaced(const char *s, const char *from, const char *to) {
    const char *at = strstr(s, from);
    if (!at) fail_msg("'%s' is not in the json", from);
    ls_buf b = {0};
    ls_buf_append(&b, s, (size_t)(at - s));
    ls_buf_append(&b, to, strlen(to));
    ls_buf_append(&b, at + strlen(from), strlen(at + strlen(from)));
    return b.data;
}

/* ---- tests ---- */

static void test_example_by_hand(void **state) {
    (void)state;
    static const char *const bytes[] = {"aa", "ab", "aaab"};
    static const uint32_t want[] = {258, ID_A + 3, 258, ID_A, ID_A + 2};
    static const uint32_t odd[] = {256, ID_A};
    ls_tokenizer *t = train(hand_text, HAND_VOCAB);
    for (uint32_t i = 0; i < 3; i++) {
        size_t n = 0;
        const uint8_t *got = ls_tokenizer_bytes(t, 256 + i, &n);
        assert_int_equal(n, strlen(bytes[i]));
        assert_memory_equal(got, bytes[i], n);
    }
    check_encodes(t, hand_text, want, 5);
    check_encodes(t, "aaa", odd, 2);
    ls_tokenizer_free(t);
}

/* The tokenizer must be the reference's: vocabulary, tokens of the text, and of another one. */
static void check_equals(const ls_tokenizer *t, reference *r, const char *text, const char *probe) {
    assert_int_equal(ls_tokenizer_vocab(t), r->ntokens);
    for (uint32_t i = 0; i < r->ntokens; i++) {
        size_t n = 0;
        const uint8_t *bytes = ls_tokenizer_bytes(t, i, &n);
        assert_int_equal(n, r->nbytes[i]);
        assert_memory_equal(bytes, r->text[i], n);
    }
    ref_encode(r, text);
    check_encodes(t, text, r->symbols, r->nsymbols);
    ref_encode(r, probe);
    check_encodes(t, probe, r->symbols, r->nsymbols);
}

/* Random texts over small alphabets. If the reference runs out of pairs, so must the tokenizer. */
static void test_against_reference(void **state) {
    (void)state;
    static const char *const alphabets[] = {"a", "ab ", "aaab", "abc 12'st\n.", "the tokens' re\n"};
    enum { N = REF_TEXT / 2, NPROBE = 100 };
    reference *r = LS_NEW(reference);
    for (uint64_t round = 0; round < 40; round++) {
        char s[N + 1] = {0}, probe[NPROBE + 1] = {0};
        const char *alphabet = alphabets[round % 5];
        uint32_t vocab = 256 + (uint32_t)(round % 7) * 5, w[4];
        for (uint64_t i = 0; i < N + NPROBE; i++) {
            ls_random_words(5, LS_STREAM_SAMPLE, round, i, w);
            *(i < N ? &s[i] : &probe[i - N]) = alphabet[w[0] % strlen(alphabet)];
        }
        ref_train(r, s, vocab);
        if (r->ntokens < vocab) {
            char text[64];
            ls_error e;
            ls_tokenizer *none = NULL;
            snprintf(text, sizeof text, "at most %u", r->ntokens);
            assert_ls_fails(cut_and_train((uint8_t *)s, N, "s", vocab, &none, &e), LS_EINVAL, text,
                            e);
        }
        ls_tokenizer *t = train(s, r->ntokens);
        check_equals(t, r, s, probe);
        ls_tokenizer_free(t);
    }
    free(r);
}

static void test_round_trip(void **state) {
    (void)state;
    ls_buf all = {0};
    for (int i = 0; i < NNASTY; i++) ls_buf_append(&all, nasty[i], strlen(nasty[i]));
    ls_tokenizer *bytes = train("", 256), *t = train(all.data, 330);
    for (int i = 0; i < NNASTY; i++) {
        check_round_trip(bytes, nasty[i], strlen(nasty[i]));
        check_round_trip(t, nasty[i], strlen(nasty[i]));
    }
    check_round_trip(t, all.data, all.len);
    check_round_trip(t, "a\0b\0\0 \0", 7);
    ls_buf_free(&all);
    ls_tokenizer_free(bytes);
    ls_tokenizer_free(t);
}

/* One word of 100000 letters, for which quadratic time would be noticed. */
static void test_long_word(void **state) {
    (void)state;
    enum { N = 100000 };
    char *s = ls_alloc(N + 1);
    memset(s, 'a', N);
    ls_tokenizer *t = train(s, 270);
    size_t n = 0;
    uint32_t *ids = encode(t, s, N, &n);
    assert_true(n < N / 1000);
    free(ids);
    check_round_trip(t, s, N);
    ls_tokenizer_free(t);
    free(s);
}

/* Cuts that differ between regular expressions: without the cut, the tokens would join. */
static void test_cuts(void **state) {
    (void)state;
    static const struct {
        const char *text; /* each merged as far as the cuts allow: it has n tokens */
        size_t n;
    } cuts[] = {
        {"ab", 1},
        {"ab cd", 2},
        {"ab  cd", 3},
        {"ab \n cd", 3},
        {"ab12", 2},
        {" ab\xC3\xA9"
         "cd",
         1},                    /* a letter that is not ASCII continues the word */
        {"ab\xE2\x80\x99s", 3}, /* ... another character does not */
        {"don't", 2},
        {"DON'T", 3},
        {"x\xC2\xA0y", 3},
        {"x\xE1\xA0\x8Ey", 3}, /* U+180E is not white space, nor a letter */
        {" \xE1\xA0\x8Ey", 2}, /* ... so that the space before it belongs to it */
        {" \xE2\x80\x83y", 3}, /* U+2003 is: the spaces split before the last */
        {"e\xCC\x81", 2},      /* a combining mark is not a letter */
        {"\xC2\xBD"
         "1",
         1}, /* one half is a number */
        {"ab   ", 2},
    };
    for (size_t i = 0; i < sizeof cuts / sizeof *cuts; i++) {
        ls_error e = {0};
        ls_tokenizer *t = NULL;
        const uint8_t *s = (const uint8_t *)cuts[i].text;
        size_t nbytes = strlen(cuts[i].text), n = 0;
        uint32_t vocab = 256;
        assert_int_equal(cut_and_train(s, nbytes, "s", 1000, &t, &e), LS_EINVAL);
        assert_int_equal(sscanf(strstr(e.msg, "at most"), "at most %u", &vocab), 1);
        t = train(cuts[i].text, vocab);
        uint32_t *ids = encode(t, cuts[i].text, nbytes, &n);
        if (n != cuts[i].n) fail_msg("text %zu: %zu tokens, not %zu", i, n, cuts[i].n);
        free(ids);
        ls_tokenizer_free(t);
    }
}

static void test_deterministic(void **state) {
    (void)state;
    char *a = hand_json(), *b = hand_json();
    assert_string_equal(a, b);
    free(a);
    free(b);
}

/* Documents are trained on and encoded as texts of their own: no word and no merge spans two.
 * Behind each stands the last token, which is special, and which no text becomes. */
static void test_documents(void **state) {
    (void)state;
    static const char text[] = "ababab ab<|endoftext|>abab", alone[] = "abab";
    const ls_text_range list[] = {{0, 3}, {3, 22}, {22, 26}};
    ls_documents d = {list, 3, 259};
    ls_text_cut cut;
    ls_error e = {0};
    ls_tokenizer *t = NULL, *again = NULL;
    ls_token_list a = {0}, b = {0}, one = {0};
    assert_ls_ok(ls_text_cut_documents((const uint8_t *)text, &d, "text", &cut, &e), e);
    assert_ls_ok(ls_tokenizer_train_cut(&cut, "text", 260, &t, &e), e);
    assert_int_equal(ls_tokenizer_vocab(t), 260);
    assert_int_equal(ls_tokenizer_merges(t), 3);
    assert_int_equal(ls_tokenizer_end_of_text(t), 259);
    assert_int_equal(ls_tokenizer_text_nbytes(t, 259), 0);
    assert_ls_ok(ls_tokenizer_encode_cut(t, &cut, "text", &a, &e), e);
    ls_buf json = {0};
    ls_tokenizer_write(t, &json);
    assert_ls_ok(ls_tokenizer_parse(json.data, json.len, "t", &again, &e), e);
    const ls_encoding how = {.what = "text", .documents = &d};
    assert_ls_ok(ls_tokenizer_encode(again, (const uint8_t *)text, strlen(text), &how, &b, &e), e);
    assert_int_equal(a.n, b.n);
    assert_memory_equal(a.ids, b.ids, a.n * sizeof *a.ids);
    for (size_t i = 0; i < 3; i++) {
        assert_int_equal(a.ends[i], b.ends[i]);
        assert_int_equal(a.ids[a.ends[i] - 1], 259);
    }
    for (size_t i = 0, k = 0; i < a.n; i++) /* the name in the text is text */
        if (a.ids[i] == 259) assert_int_equal(i + 1, a.ends[k++]);
    assert_ls_ok(ls_tokenizer_encode(t, (const uint8_t *)alone, 4, &(ls_encoding){.what = "alone"},
                                     &one, &e),
                 e);
    assert_int_equal(a.ends[2] - a.ends[1], one.n + 1);
    assert_memory_equal(a.ids + a.ends[1], one.ids, one.n * sizeof *one.ids);
    assert_ls_fails(ls_tokenizer_train_cut(&cut, "text", 256, &t, &e), LS_EINVAL,
                    "model.vocab is 256; a byte-level tokenizer has at least 257 tokens, with that "
                    "at the end of each document",
                    e);
    free(a.ids);
    free(a.ends);
    free(b.ids);
    free(b.ends);
    free(one.ids);
    ls_buf_free(&json);
    ls_text_cut_free(&cut);
    ls_tokenizer_free(t);
    ls_tokenizer_free(again);
}

static void test_empty(void **state) {
    (void)state;
    ls_error e = {0};
    ls_tokenizer *t = train("", 256);
    ls_token_list list = {.n = 9};
    assert_ls_ok(ls_tokenizer_encode(t, NULL, 0, &(ls_encoding){.what = "text"}, &list, &e), e);
    assert_int_equal(list.n, 0);
    free(list.ids);
    ls_tokenizer_free(t);
    assert_ls_fails(cut_and_train(NULL, 0, "text", 257, &t, &e), LS_EINVAL, "at most 256", e);
}

static void test_not_utf8(void **state) {
    (void)state;
    static const struct {
        const char *text, *message;
    } bad[] = {
        {"\x80", "c.txt: is not UTF-8 at byte 0 (line 1); convert it, e.g. with iconv"},
        {"one\ntwo\nna\xEFve", "at byte 10 (line 3)"},
        {"abc\xC3", "at byte 3 (line 1)"},            /* cut short */
        {"\xC0\xAF", "at byte 0 (line 1)"},           /* overlong */
        {"ok \xED\xA0\x80", "at byte 3 (line 1)"},    /* a surrogate */
        {"\n\xF4\x90\x80\x80", "at byte 1 (line 2)"}, /* above U+10FFFF */
        {"\xFF\xFE"
         "a",
         "is UTF-16LE, not UTF-8"},
    };
    ls_tokenizer *t = train("", 256), *none = NULL;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        ls_error e;
        ls_token_list list;
        size_t nbytes = strlen(bad[i].text);
        const uint8_t *s = (const uint8_t *)bad[i].text;
        assert_ls_fails(
            ls_tokenizer_encode(t, s, nbytes, &(ls_encoding){.what = "c.txt"}, &list, &e),
            LS_EINVAL, bad[i].message, e);
        assert_ls_fails(cut_and_train(s, nbytes, "c.txt", 256, &none, &e), LS_EINVAL,
                        bad[i].message, e);
    }
    ls_tokenizer_free(t);
}

static void test_vocab_out_of_range(void **state) {
    (void)state;
    ls_error e;
    ls_tokenizer *t = NULL;
    const uint8_t *s = (const uint8_t *)hand_text;
    assert_ls_fails(cut_and_train(s, 11, "s", 255, &t, &e), LS_EINVAL, "at least 256", e);
    /* After aa, ab, aaab: aaab + d, that + aaab, + a, + c. */
    assert_ls_fails(cut_and_train(s, 11, "s", 264, &t, &e), LS_EINVAL,
                    "s: has only 263 distinct tokens to learn; set model.vocab to at most 263", e);
    assert_ls_fails(cut_and_train(s, 11, "s", UINT32_MAX, &t, &e), LS_EINVAL, "263", e);
    ls_tokenizer_free(train(hand_text, 263));
}

static void test_json_round_trip(void **state) {
    (void)state;
    static const uint32_t want[] = {258, ID_A + 3, 258, ID_A, ID_A + 2};
    char *json = hand_json();
    ls_tokenizer *t = parse(json);
    ls_buf again = {0};
    ls_tokenizer_write(t, &again);
    assert_string_equal(again.data, json);
    check_encodes(t, hand_text, want, 5);
    for (int i = 0; i < NNASTY; i++) check_round_trip(t, nasty[i], strlen(nasty[i]));
    ls_buf_free(&again);
    ls_tokenizer_free(t);
    free(json);
}

/* The features of GPT-2's own file: merges as pairs or as text, and an added token, in the
 * vocabulary or not. */
static void test_json_dialects(void **state) {
    (void)state;
    static const char *const edits[][2] = {
        {"\"a a\"", "[\"a\", \"a\"]"},
        {"\"unk_token\": null", "\"unk_token\": \"\""},
        {"\"type\": \"BPE\",", ""},
        {"\"added_tokens\": []",
         "\"added_tokens\": [{\"id\": 259, \"content\": \"<|end \xC3\xA9|>\", \"special\": true}]"},
    };
    static const uint32_t want[] = {258, ID_A + 3, 258, ID_A, ID_A + 2};
    char *json = hand_json();
    for (size_t i = 0; i < sizeof edits / sizeof *edits; i++) {
        char *edited = replaced(json, edits[i][0], edits[i][1]);
        ls_tokenizer *t = parse(edited);
        check_encodes(t, hand_text, want, 5);
        ls_buf again = {0};
        ls_tokenizer_write(t, &again);
        ls_tokenizer *u = parse(again.data); /* added tokens are in its model.vocab */
        assert_int_equal(ls_tokenizer_vocab(u), ls_tokenizer_vocab(t));
        size_t n = 0;
        const uint8_t *bytes = ls_tokenizer_bytes(u, ls_tokenizer_vocab(u) - 1, &n);
        assert_int_equal(n, i < 3 ? 4 : 10);
        assert_memory_equal(bytes, i < 3 ? "aaab" : "<|end \xC3\xA9|>", n);
        ls_buf_free(&again);
        ls_tokenizer_free(u);
        ls_tokenizer_free(t);
        free(edited);
    }
    free(json);
}

/* Each edit makes a valid file invalid; the message says where. */
static const char *const broken[][3] = {
    {"\"!\": 0", "\"!\": 1", "both have id 1"},
    {"\"!\": 0", "\"!\": 259", "token \"!\" has id 259; with 259 tokens, ids are 0 to 258"},
    {"\"!\": 0", "\"!\": -1", "has id -1"},
    {"\"!\": 0", "\"!\": 0.0", "has id 0.0"},
    {"\"!\": 0", "\"!\": \"0\"", "has id \"0\""},
    {"\"!\": 0", "\"!\": null", "has id null"},
    {"\"!\": 0", "\"!\": 9000000000000000000", "has id 9000000000000000000"},
    {"\"!\": 0", "\"!\": 4294967296", "has id 4294967296"},
    {"\"!\": 0", "\"!\": 99999999999999999999", "has a number that is too large"},
    {"\"!\": 0", "\"!\": 0, \"!\": 0", "is not valid JSON"},
    {"\"!\": 0", "\"\\u0000\": 0", "is not valid JSON"},
    {"\"!\": 0", "\"\xFF\": 0", "is not valid JSON"},
    {"\"!\": 0,", "", "ids are 0 to 257"},
    {"\"!\": 0", "\"\": 0", "(id 0) is empty"},
    {"\"!\": 0", "\"!!\": 0", "no token for byte 0x21"},
    {"\"!\": 0", "\"\xE6\x97\xA5\": 0", "is not spelt in GPT-2's byte alphabet"},
    {"\"!\": 0", "\"\xC5\x84\": 0", "is not spelt in GPT-2's byte alphabet"},
    {"\"!\": 0", "\"a b\": 0", "is not spelt in GPT-2's byte alphabet"},
    {"\"a a\"", "\"zz a\"", "model.merges[0], \"zz a\": the first half is not in model.vocab"},
    {"\"a a\"", "\"a zz\"", "the second half is not"},
    {"\"a a\"", "\"a !\"", "the result is not"},
    {"\"a b\"", "\"a a\"", "model.merges[1], \"a a\", is a duplicate"},
    {"\"a a\"", "\"aa\"", "model.merges[0] is \"aa\""},
    {"\"a a\"", "\"a a a\"", "model.merges[0] is \"a a a\""},
    {"\"a a\"", "\"\"", "model.merges[0] is \"\""},
    {"\"a a\"", "\" \"", "model.merges[0], \" \""},
    {"\"a a\"", "5", "model.merges[0] is 5"},
    {"\"a a\"", "{\"a\": 1, \"b\": 2}", "model.merges[0] is {"},
    {"\"a a\"", "[\"a\"]", "model.merges[0] is [\"a\"]"},
    {"\"a a\"", "[\"a\", 1]", "model.merges[0] is [\"a\", 1]"},
    {"\"a a\"", "[\"a\", \"a\", \"a\"]", "model.merges[0] is"},
    {"\"merges\"", "\"emerges\"", "model.merges is missing"},
    {"\"vocab\": {", "\"vocab\": [], \"x\": {", "model.vocab is missing"},
    {"\"vocab\": {", "\"vocab\": {}, \"x\": {", "model.x is not supported"},
    {"\"BPE\"", "\"Unigram\"", "model.type is \"Unigram\"; only \"BPE\" is supported"},
    {"\"BPE\"", "[[[[[[[[[[[[]]]]]]]]]]]]", "model.type is [[[["},
    {"\"dropout\": null", "\"dropout\": 0.1", "model.dropout is 0.1"},
    {"\"byte_fallback\": false", "\"byte_fallback\": true", "model.byte_fallback is true"},
    {"\"ignore_merges\": false", "\"ignore_merges\": 1", "model.ignore_merges is 1"},
    {"\"normalizer\": null", "\"normalizer\": {\"type\": \"NFKC\"}", "normalizer.type is \"NFKC\""},
    {"\"truncation\": null", "\"truncation\": 5", "truncation is 5"},
    {"\"truncation\": null", "\"truncation\": {\"x\": 1}", "truncation.x is not supported"},
    {"\"padding\": null", "\"padding\": true", "padding is true"},
    {"\"type\": \"ByteLevel\"", "\"type\": \"Metaspace\"",
     "pre_tokenizer.trim_offsets is not supported"},
    {"\"pre_tokenizer\": {", "\"x\": {", "pre_tokenizer has no ByteLevel"},
    {"\"add_prefix_space\": false", "\"add_prefix_space\": true", "add_prefix_space is true"},
    {"\"use_regex\": true", "\"use_regex\": 5", "pre_tokenizer.use_regex is 5"},
    {"\"added_tokens\": []", "\"added_tokens\": {}", "added_tokens is not a list"},
    {"\"added_tokens\": []", "\"added_tokens\": [1]", "added_tokens[0].content is missing"},
    {"\"added_tokens\": []", "\"added_tokens\": [{\"content\": \"<x>\"}]", "has id null"},
    {"\"added_tokens\": []", "\"added_tokens\": [{\"content\": \"<x>\", \"id\": 0}]",
     "\"!\" and \"<x>\" both have id 0"},
    {"\"added_tokens\": []", "\"added_tokens\": [{\"content\": \"<x>\", \"id\": 260}]",
     "has id 260; with 260 tokens"},
    {"\"added_tokens\": []", "\"added_tokens\": [{\"content\": \"!\", \"id\": 5}]",
     "has another id in model.vocab"},
    {"\"added_tokens\": []",
     "\"added_tokens\": [{\"content\": \"!\", \"id\": 0}, {\"content\": \"!\", \"id\": 0}]",
     "added_tokens[1]: id 0 is added already"},
    {"\"added_tokens\": []", "\"added_tokens\": [{\"content\": \" \", \"id\": 259}]",
     "stand for the same bytes"},
    {"\"added_tokens\": []", "\"added_tokens\": [{\"content\": \"a\", \"id\": 64}]",
     "model.merges[0], \"a a\": the first half is a special token"},
};

/* What a trainer leaves in the file for its batches changes no ids. */
static void test_batches(void **state) {
    (void)state;
    static const char *const edits[][2] = {
        {"\"truncation\": null", "\"truncation\": {\"direction\": \"Right\", \"max_length\": 2, "
                                 "\"strategy\": \"LongestFirst\", \"stride\": 0}"},
        {"\"padding\": null",
         "\"padding\": {\"strategy\": {\"Fixed\": 9}, \"direction\": \"Left\", "
         "\"pad_to_multiple_of\": 8, \"pad_id\": 1, \"pad_type_id\": 0, \"pad_token\": \"!\"}"}};
    char *json = hand_json();
    for (int i = 0; i < 2; i++) {
        char *edited = replaced(json, edits[i][0], edits[i][1]);
        free(json);
        json = edited;
    }
    static const uint32_t want[] = {258, ID_A + 3, 258, ID_A, ID_A + 2};
    ls_tokenizer *t = parse(json);
    check_encodes(t, hand_text, want, 5);
    ls_tokenizer_free(t);
    free(json);
}

static void check_refused(const char *json, const char *message) {
    ls_error e;
    ls_tokenizer *t = NULL;
    assert_ls_fails(ls_tokenizer_parse(json, strlen(json), "t.json", &t, &e), LS_EINVAL, message,
                    e);
    assert_int_equal(strncmp(e.msg, "t.json:", 7), 0);
    assert_null(strchr(e.msg, '\n'));
}

static void test_broken_json(void **state) {
    (void)state;
    char *json = hand_json();
    for (size_t i = 0; i < sizeof broken / sizeof *broken; i++) {
        char *edited = replaced(json, broken[i][0], broken[i][1]);
        check_refused(edited, broken[i][2]);
        free(edited);
    }
    free(json);
    check_refused("", "is not valid JSON");
    check_refused("[]", "not an object");
    check_refused("{}", "pre_tokenizer has no ByteLevel");
    check_refused("null", "");
    check_refused("{\"a\": 1} x", "is not valid JSON");
}

/* A truncated file is refused; one with a changed byte is refused, or is a working tokenizer. */
static void test_damaged_json(void **state) {
    (void)state;
    char *json = hand_json();
    size_t nbytes = strlen(json);
    for (size_t n = 0; n < nbytes - 2; n += 41) {
        ls_error e;
        ls_tokenizer *t = NULL;
        assert_ls_fails(ls_tokenizer_parse(json, n, "t.json", &t, &e), LS_EINVAL, "t.json", e);
    }
    for (uint64_t i = 0; i < 1000; i++) {
        ls_error e = {0};
        uint32_t w[4];
        ls_random_words(6, LS_STREAM_SAMPLE, 0, i, w);
        char was = json[w[0] % nbytes];
        json[w[0] % nbytes] = w[1] % 2 ? (char)w[2] : "\"{}[],:0 \\"[w[2] % 10];
        ls_tokenizer *t = NULL;
        ls_status s = ls_tokenizer_parse(json, nbytes, "t.json", &t, &e);
        if (s == LS_OK)
            check_round_trip(t, nasty[3], strlen(nasty[3]));
        else
            assert_int_equal(s, LS_EINVAL);
        ls_tokenizer_free(t);
        json[w[0] % nbytes] = was;
    }
    free(json);
}

static void test_load_names_the_file(void **state) {
    (void)state;
    ls_error e;
    ls_tokenizer *t = NULL;
    assert_ls_fails(ls_tokenizer_load("/nonexistent/tokenizer.json", &t, &e), LS_EIO,
                    "/nonexistent/tokenizer.json", e);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_example_by_hand),
        cmocka_unit_test(test_against_reference),
        cmocka_unit_test(test_round_trip),
        cmocka_unit_test(test_long_word),
        cmocka_unit_test(test_cuts),
        cmocka_unit_test(test_deterministic),
        cmocka_unit_test(test_documents),
        cmocka_unit_test(test_empty),
        cmocka_unit_test(test_not_utf8),
        cmocka_unit_test(test_vocab_out_of_range),
        cmocka_unit_test(test_json_round_trip),
        cmocka_unit_test(test_json_dialects),
        cmocka_unit_test(test_batches),
        cmocka_unit_test(test_broken_json),
        cmocka_unit_test(test_damaged_json),
        cmocka_unit_test(test_load_names_the_file),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
