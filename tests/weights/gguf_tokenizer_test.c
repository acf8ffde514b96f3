/* gguf_tokenizer_test.c - tokenizers in GGUF files that are laid out by hand. What parts of a
 * tokenizer mean is in data/tokenizer_parts_test.c. */
#include "weights/gguf_tokenizer.h"

#include "data/small_tokenizer.h"
#include "data/spelling.h"
#include "folder.h"
#include "test.h"
#include "weights/gguf_bytes.h"

#define KEY(name) "tokenizer.ggml." name

/* Values of a file; `pairs` counts them. */
typedef struct values {
    ls_buf bytes;
    uint64_t pairs;
} values;

static void add_text(values *v, const char *key, const char *text) {
    put_key_text(&v->bytes, key, text);
    v->pairs++;
}

static void add_bool(values *v, const char *key, bool value) {
    put_key(&v->bytes, key, BOOL);
    ls_buf_append(&v->bytes, value ? "\1" : "\0", 1);
    v->pairs++;
}

static void add_u32(values *v, const char *key, uint32_t value) {
    put_key_u32(&v->bytes, key, value);
    v->pairs++;
}

static void add_array(values *v, const char *key, uint32_t kind, uint64_t n) {
    put_key(&v->bytes, key, ARRAY);
    put32(&v->bytes, kind);
    put64(&v->bytes, n);
    v->pairs++;
}

/* SentencePiece's tokens: <unk>, <s>, </s>, a space, a, b, ab; or the bytes of ASCII and ab. */
static void add_tokens(values *v, bool llama) {
    static const char *const pieces[] = {"<unk>", "<s>", "</s>", LS_SPACE_MARK, "a", "b", "ab"};
    uint32_t n = llama ? 7 : 96;
    add_text(v, KEY("model"), llama ? "llama" : "gpt2");
    add_array(v, KEY("tokens"), TEXT, n);
    for (uint32_t i = 0; i < n; i++) {
        ls_buf spelt = {0};
        uint8_t byte = (uint8_t)(' ' + i);
        ls_spelling_write(&byte, 1, &spelt);
        put_name(&v->bytes, llama ? pieces[i] : i < 95 ? spelt.data : "ab");
        ls_buf_free(&spelt);
    }
    if (!llama) return;
    add_array(v, KEY("scores"), F32, n);
    for (uint32_t i = 0; i < n; i++) put_float(&v->bytes, -(float)i);
    add_array(v, KEY("token_type"), I32, n);
    for (uint32_t i = 0; i < n; i++) put32(&v->bytes, i == 0 ? 2 : i < 3 ? 3 : 1);
}

static void add_merge(values *v) {
    add_array(v, KEY("merges"), TEXT, 1);
    put_name(&v->bytes, "a b");
}

/* Frees the values. */
static ls_status read_values(values *v, ls_tokenizer **t_p, ls_error *e) {
    char path[96];
    ls_buf file = {0};
    ls_gguf g;
    put_header(&file, 3, 0, v->pairs);
    ls_buf_append(&file, v->bytes.data, v->bytes.len);
    snprintf(path, sizeof path, "%s/m.gguf", folder);
    write_bytes(path, file.data, file.len);
    ls_buf_free(&file);
    ls_buf_free(&v->bytes);
    ls_error opened = {0};
    assert_ls_ok(ls_gguf_open(path, &g, &opened), opened);
    ls_status s = ls_gguf_read_tokenizer(&g, t_p, e);
    ls_gguf_close(&g);
    return s;
}

/* The tokens of a text with what is put around it, as "id id ". */
static void check_text(values *v, const char *text, const char *want) {
    ls_error e = {0};
    ls_tokenizer *t = NULL;
    ls_token_list l;
    char got[64] = "";
    const ls_encoding how = {.what = "text", .begin = true, .end = true, .special = true};
    assert_ls_ok(read_values(v, &t, &e), e);
    assert_ls_ok(ls_tokenizer_encode(t, (const uint8_t *)text, strlen(text), &how, &l, &e), e);
    for (size_t i = 0; i < l.n; i++) snprintf(got + strlen(got), 16, "%u ", l.ids[i]);
    assert_string_equal(got, want);
    free(l.ids);
    ls_tokenizer_free(t);
}

static void check(values *v, const char *want) { check_text(v, "ab a", want); }

static void test_gpt2(void **state) {
    (void)state;
    values v = {.pairs = 0};
    add_tokens(&v, false);
    add_merge(&v);
    add_text(&v, KEY("pre"), "gpt-2");
    check(&v, "95 0 65 "); /* ab, the space, a */
}

static void test_llama(void **state) {
    (void)state;
    values v = {.pairs = 0};
    add_tokens(&v, true);
    check(&v, "1 3 6 3 4 "); /* <s> and the space before the text are defaults */
    v = (values){.pairs = 0};
    add_tokens(&v, true);
    add_bool(&v, KEY("add_bos_token"), false);
    add_bool(&v, KEY("add_eos_token"), true);
    add_bool(&v, KEY("add_space_prefix"), false);
    add_u32(&v, KEY("eos_token_id"), 1);
    check(&v, "6 3 4 1 ");
}

/* Special tokens of Phi-3 take the white space behind them, but <s> does not. */
static void test_phi3(void **state) {
    (void)state;
    static const char *const names[] = {"Llama 3", "Phi-3 Mini", "Phi3"};
    for (int i = 0; i < 3; i++) {
        values v = {.pairs = 0};
        add_text(&v, "general.name", names[i]);
        add_tokens(&v, true);
        add_bool(&v, KEY("add_space_prefix"), false);
        check_text(&v, "ab</s> a<s> b", i ? "1 6 2 4 1 3 5 " : "1 6 2 3 4 1 3 5 ");
    }
}

/* Llama 3's models begin a text with BOS, whose id the file must have. */
static void test_llama_bpe(void **state) {
    (void)state;
    ls_error e;
    ls_tokenizer *t = NULL;
    for (int i = 0; i < 2; i++) {
        values v = {.pairs = 0};
        add_tokens(&v, false);
        add_merge(&v);
        add_text(&v, KEY("pre"), "llama-bpe");
        if (i) add_u32(&v, KEY("bos_token_id"), 7);
        if (i)
            check(&v, "7 95 0 65 ");
        else
            assert_ls_fails(read_values(&v, &t, &e), LS_EINVAL, "asks for BOS", e);
    }
}

/* Written and read again it is the same tokenizer, and has as many tokens as the model has rows. */
static void check_written(values *v, int64_t bos) {
    ls_error e = {0};
    ls_tokenizer *t = NULL, *again = NULL;
    ls_gguf_writer w = {0};
    ls_gguf g;
    char path[96];
    ls_buf texts[2] = {{0}, {0}};
    assert_ls_ok(read_values(v, &t, &e), e);
    const ls_architecture a = {.family = LS_FAMILY_PHI3,
                               .vocab = ls_tokenizer_vocab(t),
                               .bos = bos,
                               .eos = {2},
                               .neos = 1};
    assert_ls_ok(ls_gguf_put_tokenizer(&w, t, &a, &e), e);
    ls_gguf_put_u32(&w, KEY("bos_token_id"), (uint32_t)bos);
    ls_gguf_put_u32(&w, KEY("eos_token_id"), 2);
    snprintf(path, sizeof path, "%s/written.gguf", folder);
    unlink(path);
    assert_ls_ok(ls_gguf_begin(&w, path, &e), e);
    assert_ls_ok(ls_gguf_end(&w, &e), e);
    ls_gguf_writer_free(&w);
    assert_ls_ok(ls_gguf_open(path, &g, &e), e);
    assert_ls_ok(ls_gguf_read_tokenizer(&g, &again, &e), e);
    ls_tokenizer_write(t, &texts[0]);
    ls_tokenizer_write(again, &texts[1]);
    assert_int_equal(texts[0].len, texts[1].len);
    assert_memory_equal(texts[0].data, texts[1].data, texts[0].len);
    ls_gguf_close(&g);
    for (int i = 0; i < 2; i++) ls_buf_free(&texts[i]);
    ls_tokenizer_free(t);
    ls_tokenizer_free(again);
}

static void test_written(void **state) {
    (void)state;
    static const char *const pres[] = {"gpt-2", "smollm", "llama-bpe", "qwen2", "deepseek-r1-qwen",
                                       "dbrx",  "tekken"};
    for (int i = 0; i < 7; i++) {
        values v = {.pairs = 0};
        add_tokens(&v, false);
        add_merge(&v);
        add_text(&v, KEY("pre"), pres[i]);
        add_u32(&v, KEY("bos_token_id"), 7);
        check_written(&v, 7);
    }
    for (int i = 0; i < 3; i++) {
        values v = {.pairs = 0};
        if (i == 2) add_text(&v, "general.name", "phi3"); /* tokens with rstrip */
        add_tokens(&v, true);
        add_bool(&v, KEY("add_space_prefix"), i == 1);
        add_bool(&v, KEY("add_bos_token"), i == 1);
        add_bool(&v, KEY("add_eos_token"), i == 0);
        check_written(&v, 1);
    }
}

/* Merges that make one token are written in any order, as Hugging Face's files have another one
 * than SentencePiece; not those of different tokens, where a score can't say it. */
static void test_orders(void **state) {
    (void)state;
    static const char *const tokens[] = {"a", "n", "an", "na", "ana", "anana", NULL};
    static const char *const orders[][7] = {
        {"a n", "n a", "an a", "a na", "an ana", "ana na", NULL},
        {"a n", "n a", "a na", "an a", "an ana", "ana na", NULL},
        {"a n", "n a", "an a", "a na", "ana na", "an ana", NULL}, /* SentencePiece's is an ana */
        {"a n", "n a", "an a", "an ana", "a na", "ana na", NULL},
        {"a n", "n a", "an a", "an ana", "ana na", NULL}};
    for (int i = 0; i < 5; i++) {
        small_tokenizer s = {.normalizer = SMALL_REPLACE,
                             .decoder = SMALL_DECODER,
                             .model = "\"unk_token\": \"<unk>\", \"fuse_unk\": true, "
                                      "\"byte_fallback\": true, ",
                             .sentencepiece = true,
                             .tokens = tokens,
                             .merges = orders[i]};
        char *json = small_json(&s);
        ls_tokenizer *t = NULL;
        ls_gguf_writer w = {0};
        ls_error e = {0};
        assert_ls_ok(ls_tokenizer_parse(json, strlen(json), "small", &t, &e), e);
        const ls_architecture a = {.vocab = ls_tokenizer_vocab(t), .bos = LS_TOKEN_NONE};
        if (i < 3)
            assert_ls_ok(ls_gguf_put_tokenizer(&w, t, &a, &e), e);
        else
            assert_ls_fails(ls_gguf_put_tokenizer(&w, t, &a, &e), LS_EINVAL, "can't say the order",
                            e);
        ls_gguf_writer_free(&w);
        ls_tokenizer_free(t);
        free(json);
    }
}

/* What GGUF has no words for. */
static void test_not_written(void **state) {
    (void)state;
    ls_error e = {0};
    ls_tokenizer *t = NULL;
    ls_gguf_writer w = {0};
    values v = {.pairs = 0};
    add_tokens(&v, true);
    assert_ls_ok(read_values(&v, &t, &e), e);
    ls_architecture a = {.vocab = 6, .bos = 1};
    assert_ls_fails(ls_gguf_put_tokenizer(&w, t, &a, &e), LS_EINVAL,
                    "the tokenizer has 7 tokens, the model 6", e);
    a = (ls_architecture){.vocab = 7, .bos = 2}; /* the text begins with 1 */
    assert_ls_fails(ls_gguf_put_tokenizer(&w, t, &a, &e), LS_EINVAL,
                    "other tokens around a text than the model's BOS and EOS", e);
    ls_gguf_writer_free(&w);
    ls_tokenizer_free(t);
}

/* Good parts of a SentencePiece model with one more value. */
static void check_refused(void (*more)(values *), bool with_tokens, const char *message) {
    ls_error e;
    ls_tokenizer *t = NULL;
    values v = {.pairs = 0};
    if (with_tokens) add_tokens(&v, true);
    more(&v);
    assert_ls_fails(read_values(&v, &t, &e), LS_EINVAL, message, e);
    assert_non_null(strstr(e.msg, "m.gguf: "));
}

static void nothing(values *v) { add_u32(v, "x", 1); }
static void other_model(values *v) { add_text(v, KEY("model"), "t5"); }
static void number_as_model(values *v) { add_u32(v, KEY("model"), 1); }
static void text_as_tokens(values *v) {
    add_text(v, KEY("model"), "gpt2");
    add_text(v, KEY("tokens"), "a");
}
static void number_as_flag(values *v) { add_u32(v, KEY("add_bos_token"), 1); }
static void text_as_id(values *v) { add_text(v, KEY("bos_token_id"), "1"); }
static void id_out_of_range(values *v) { add_u32(v, KEY("unknown_token_id"), 7); }
static void trims_spaces(values *v) { add_bool(v, KEY("remove_extra_whitespaces"), true); }
static void has_charsmap(values *v) { add_array(v, KEY("precompiled_charsmap"), U8, 0); }
static void no_scores(values *v) {
    add_text(v, KEY("model"), "llama");
    add_array(v, KEY("tokens"), TEXT, 1);
    put_name(&v->bytes, "a");
}
static void too_few_types(values *v) {
    no_scores(v);
    add_array(v, KEY("token_type"), I32, 0);
}
static void texts_as_scores(values *v) {
    no_scores(v);
    add_array(v, KEY("scores"), TEXT, 1);
    put_name(&v->bytes, "a");
}
static void floats_as_types(values *v) {
    no_scores(v);
    add_array(v, KEY("token_type"), F32, 1);
    put_float(&v->bytes, 1);
}

static void test_refused(void **state) {
    (void)state;
    check_refused(nothing, false, "has no tokenizer: tokenizer.ggml.model is missing");
    check_refused(other_model, false, "the tokenizer's model is 't5'");
    check_refused(number_as_model, false, "tokenizer.ggml.model must be a text");
    check_refused(text_as_tokens, false, "tokenizer.ggml.tokens must be an array of texts");
    check_refused(number_as_flag, true, "tokenizer.ggml.add_bos_token must be true or false");
    check_refused(text_as_id, true, "tokenizer.ggml.bos_token_id must be an integer");
    check_refused(id_out_of_range, true, "the unknown token is 7; there are 7 tokens");
    check_refused(trims_spaces, true, "remove_extra_whitespaces is not supported");
    check_refused(has_charsmap, true, "precompiled_charsmap is not supported");
    check_refused(no_scores, false, "no scores");
    check_refused(too_few_types, false, "tokenizer.ggml.token_type has 0 elements");
    check_refused(texts_as_scores, false, "tokenizer.ggml.scores must be an array of numbers");
    check_refused(floats_as_types, false, "tokenizer.ggml.token_type must be an array of integers");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_gpt2),      cmocka_unit_test(test_llama),
        cmocka_unit_test(test_written),   cmocka_unit_test(test_not_written),
        cmocka_unit_test(test_orders),    cmocka_unit_test(test_phi3),
        cmocka_unit_test(test_llama_bpe), cmocka_unit_test(test_refused),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
