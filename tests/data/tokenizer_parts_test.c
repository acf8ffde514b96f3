/* tokenizer_parts_test.c - tokenizers from the parts that GGUF lists; tokens worked out by hand,
 * and parts that are wrong. SentencePiece's are in sentencepiece_test.c. */
#include "data/tokenizer_parts.h"

#include "small_tokenizer.h"

enum { MOST = 300 };

/* The bytes, and a few more. */
typedef struct parts {
    char spelling[MOST][16];
    ls_part_text tokens[MOST], merges[8];
    int32_t types[MOST];
    ls_tokenizer_parts p;
} parts;

static void token_add(parts *x, const char *text, int type) {
    size_t i = x->p.n++;
    snprintf(x->spelling[i], sizeof x->spelling[i], "%s", text);
    x->tokens[i] = (ls_part_text){x->spelling[i], strlen(x->spelling[i])};
    x->types[i] = type;
}

static void merge_add(parts *x, const char *text) {
    x->merges[x->p.nmerges++] = (ls_part_text){text, strlen(text)};
}

static parts *make(const char *pre) {
    parts *x = LS_NEW(parts);
    x->p = (ls_tokenizer_parts){.model = "gpt2",
                                .pre = pre,
                                .tokens = x->tokens,
                                .types = x->types,
                                .merges = x->merges,
                                .bos = 256,
                                .eos = 257,
                                .unknown = -1};
    for (unsigned byte = 0; byte < 256; byte++) {
        ls_buf spelt = {0};
        uint8_t one = (uint8_t)byte;
        ls_spelling_write(&one, 1, &spelt);
        token_add(x, spelt.data, LS_PART_NORMAL);
        ls_buf_free(&spelt);
    }
    token_add(x, "<bos>", LS_PART_CONTROL);
    token_add(x, "<eos>", LS_PART_CONTROL);
    token_add(x, "<tool>", LS_PART_USER_DEFINED);
    token_add(x, "[PAD]", LS_PART_UNUSED);
    token_add(x, "ab", LS_PART_NORMAL);
    token_add(x,
              "\xC4\xA0"
              "ab",
              LS_PART_NORMAL);
    token_add(x, "123", LS_PART_NORMAL); /* no merge makes it */
    token_add(x, "\xC3\x83\xC2\xA9", LS_PART_NORMAL);
    merge_add(x, "a b");
    merge_add(x, "\xC4\xA0 ab");
    merge_add(x, "\xC3\x83 \xC2\xA9");
    return x;
}

/* The tokens of a text as "piece|piece|", also after the tokenizer was written and read. */
static void check(const parts *x, const char *text, const char *want) {
    ls_error e = {0};
    ls_tokenizer *t[2] = {NULL, NULL};
    ls_buf json = {0};
    assert_ls_ok(ls_tokenizer_create(&x->p, "m.gguf", &t[0], &e), e);
    ls_tokenizer_write(t[0], &json);
    assert_ls_ok(ls_tokenizer_parse(json.data, json.len, "t.json", &t[1], &e), e);
    for (int k = 0; k < 2; k++) {
        const ls_encoding how = {.what = "t", .special = true, .begin = true, .end = true};
        ls_token_list l;
        ls_buf got = {0};
        assert_ls_ok(ls_tokenizer_encode(t[k], (const uint8_t *)text, strlen(text), &how, &l, &e),
                     e);
        for (size_t i = 0; i < l.n; i++) {
            size_t n = 0;
            const uint8_t *bytes = ls_tokenizer_bytes(t[k], l.ids[i], &n);
            ls_buf_printf(&got, "%.*s|", (int)n, (const char *)bytes);
        }
        if (strcmp(got.data, want) != 0) fail_msg("%s: %s, not %s", text, got.data, want);
        ls_buf_free(&got);
        free(l.ids);
        ls_tokenizer_free(t[k]);
    }
    ls_buf_free(&json);
}

static void test_kinds(void **state) {
    (void)state;
    static const struct {
        const char *pre, *want;
    } kinds[] = {
        {"gpt-2", "ab| ab| |1|2|3|<tool>|e|\xCC|\x81|"},
        {"smollm", "ab| ab| |1|2|3|<tool>|e|\xCC|\x81|"},
        {"llama-bpe", "ab| ab| |123|<tool>|e|\xCC|\x81|"},
        {"smaug-bpe", "ab| ab| |123|<tool>|e|\xCC|\x81|"},
        {"qwen2", "ab| ab| |1|2|3|<tool>|\xC3\xA9|"},
        {"deepseek-r1-qwen", "ab| ab| |1|2|3|<tool>|e|\xCC|\x81|"},
        {"dbrx", "ab| ab| |1|2|3|<tool>|e|\xCC|\x81|"},
        {"gpt-4o", "ab| ab| |1|2|3|<tool>|e|\xCC|\x81|"},
        {"tekken", "ab| ab| |1|2|3|<tool>|e|\xCC|\x81|"},
        {"llama3", "ab| ab| |123|<tool>|e|\xCC|\x81|"},
    };
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        parts *x = make(kinds[i].pre);
        check(x, "ab ab 123<tool>e\xCC\x81", kinds[i].want);
        free(x);
    }
}

/* The cuts of gpt-2 and smollm differ where a merge joins digits. */
static void test_digits(void **state) {
    (void)state;
    for (int i = 0; i < 2; i++) {
        parts *x = make(i ? "smollm" : "gpt-2");
        token_add(x, "12", LS_PART_NORMAL);
        merge_add(x, "1 2");
        check(x, "12", i ? "1|2|" : "12|");
        free(x);
    }
}

static void test_ends(void **state) {
    (void)state;
    parts *x = make("llama-bpe");
    x->p.add_bos = true;
    check(x, "ab<eos>ab", "<bos>|ab|<eos>|ab|");
    x->p.add_eos = true;
    check(x, "ab[PAD]", "<bos>|ab|[|P|A|D|]|<eos>|");
    x->p.types = NULL; /* all are normal: <eos> is text, <bos> may still be put before it */
    check(x, "ab<", "<bos>|ab|<|<eos>|");
    free(x);
}

/* Applies `change` to good parts, which must then be refused. */
static void check_refused(void (*change)(parts *), const char *message) {
    ls_error e;
    ls_tokenizer *t = NULL;
    parts *x = make("gpt-2");
    change(x);
    assert_ls_fails(ls_tokenizer_create(&x->p, "m.gguf", &t, &e), LS_EINVAL, message, e);
    assert_memory_equal(e.msg, "m.gguf: ", 8);
    free(x);
}

static void other_model(parts *x) { x->p.model = "bert"; }
static void no_model(parts *x) { x->p.model = NULL; }
static void other_pre(parts *x) { x->p.pre = "default"; }
static void no_pre(parts *x) { x->p.pre = NULL; }
static void no_tokens(parts *x) { x->p.n = 0; }
static void many_tokens(parts *x) { x->p.n = (size_t)1 << 40; }
static void empty_token(parts *x) { x->tokens[40].n = 0; }
static void same_tokens(parts *x) { x->tokens[261] = x->tokens[260]; }
static void bad_spelling(parts *x) { x->tokens[260] = (ls_part_text){"\xE6\x97\xA5", 3}; }
static void cut_spelling(parts *x) { x->tokens[260] = (ls_part_text){"\xC4", 1}; }
static void missing_byte(parts *x) { x->tokens['~'] = (ls_part_text){"zz", 2}; }
static void bad_type(parts *x) { x->types[260] = 0; }
static void huge_type(parts *x) { x->types[260] = INT32_MAX; }
static void byte_type(parts *x) { x->types[260] = LS_PART_BYTE; }
static void name_not_text(parts *x) { x->tokens[258] = (ls_part_text){"\xFF", 1}; }
static void name_with_zero(parts *x) { x->tokens[258] = (ls_part_text){"a\0b", 3}; }
static void bad_merge(parts *x) { merge_add(x, "a"); }
static void empty_merge(parts *x) { merge_add(x, ""); }
static void unknown_merge(parts *x) { merge_add(x, "a c"); }
static void unknown_half(parts *x) { merge_add(x, "q zz"); }
static void unused_merge(parts *x) { merge_add(x, "[ PAD]"); }
static void cyclic_merge(parts *x) { merge_add(x, "ab ab"); }
static void same_merge(parts *x) { merge_add(x, "a b"); }
static void bad_bos(parts *x) { x->p.bos = MOST; }
static void no_eos(parts *x) { x->p.eos = -1, x->p.add_eos = true; }
static void no_scores(parts *x) { x->p.model = "llama"; }

static void test_refused(void **state) {
    (void)state;
    static const struct {
        void (*change)(parts *);
        const char *message;
    } cases[] = {
        {other_model, "model is 'bert'; gpt2 and llama are supported"},
        {no_model, "model is ''"},
        {other_pre, "pre-tokenizer is 'default'; gpt-2, smollm, llama-bpe, smaug-bpe, qwen2"},
        {no_pre, "pre-tokenizer is ''"},
        {no_tokens, "has 0 tokens"},
        {many_tokens, "has 1099511627776 tokens"},
        {empty_token, "(id 40) is empty"},
        {same_tokens, "tokens 260 and 261 stand for the same bytes"},
        {bad_spelling, "(id 260) is not spelt in GPT-2's byte alphabet"},
        {cut_spelling, "is not spelt in GPT-2's byte alphabet"},
        {missing_byte, "no token for byte 0x7E"},
        {bad_type, "token 260 has type 0"},
        {huge_type, "token 260 has type 2147483647"},
        {byte_type, "token 260 has type 6"},
        {name_not_text, "(id 258) is not UTF-8 text"},
        {name_with_zero, "(id 258) is not UTF-8 text"},
        {bad_merge, "merge 3, \"a\", is not one of two tokens that make a third"},
        {empty_merge, "merge 3"},
        {unknown_merge, "merge 3, \"a c\""},
        {unknown_half, "merge 3"},
        {unused_merge, "merge 3"},
        {cyclic_merge, "merge 3"},
        {same_merge, "merge 3, \"a b\", is a duplicate"},
        {bad_bos, "the BOS token is 300; there are 264 tokens"},
        {no_eos, "asks for EOS around a text"},
        {no_scores, "no scores"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        check_refused(cases[i].change, cases[i].message);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_kinds),
        cmocka_unit_test(test_digits),
        cmocka_unit_test(test_ends),
        cmocka_unit_test(test_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
