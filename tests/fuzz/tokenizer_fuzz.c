/* tokenizer_fuzz.c - a tokenizer.json of any kind. What is accepted encodes and decodes texts, and
 * is written so that it can be read again, with the same tokens. */
#include "data/tokenizer.h"
#include "fuzz.h"

static const uint8_t text[] = "low  lower lowest, 3 times 12345 <|e|> tool st\n\x04"
                              "e\xCC\x81 \xE6\x97\xA5\xE2\x96\x81<s>don't";

/* False: an expression backtracks too often. */
static bool encode(const ls_tokenizer *t, bool special, ls_token_list *list_p) {
    ls_error e = {0};
    const ls_text_range plain = {4, 9};
    const ls_encoding how = {.what = "text",
                             .special = special,
                             .plain = &plain,
                             .nplain = 1,
                             .begin = special,
                             .end = special};
    if (ls_tokenizer_encode(t, text, sizeof text - 1, &how, list_p, &e) != LS_OK) {
        FUZZ_CHECK(strstr(e.msg, "can't be cut"));
        return false;
    }
    ls_buf out = {0};
    ls_decoding d = {.tokenizer = t, .skip_special = special};
    for (size_t i = 0; i < list_p->n; i++) {
        FUZZ_CHECK(list_p->ids[i] < ls_tokenizer_vocab(t));
        ls_decoding_add(&d, list_p->ids[i], &out);
    }
    ls_decoding_end(&d, &out);
    ls_buf_free(&out);
    return true;
}

static void check_same(const ls_tokenizer *t, const ls_tokenizer *u, bool special) {
    ls_token_list a = {0}, b = {0};
    if (encode(t, special, &a)) {
        FUZZ_CHECK(encode(u, special, &b));
        FUZZ_CHECK(a.n == b.n && (a.n == 0 || memcmp(a.ids, b.ids, a.n * sizeof *a.ids) == 0));
    }
    free(a.ids);
    free(b.ids);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t nbytes) {
    ls_tokenizer *t = NULL, *u = NULL;
    ls_error e = {0};
    if (ls_tokenizer_parse((const char *)data, nbytes, "it", &t, &e) != LS_OK) {
        FUZZ_CHECK(e.msg[0]);
        return 0;
    }
    ls_buf json = {0};
    ls_tokenizer_write(t, &json);
    FUZZ_CHECK(ls_tokenizer_parse(json.data, json.len, "again", &u, &e) == LS_OK);
    check_same(t, u, false);
    check_same(t, u, true);
    ls_buf_free(&json);
    ls_tokenizer_free(t);
    ls_tokenizer_free(u);
    return 0;
}
