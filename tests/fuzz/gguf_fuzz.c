/* gguf_fuzz.c - a GGUF file: everything that it lists can be read, by key and by name, also as a
 * tokenizer. Inputs are whole files, and what follows the header of one, with the numbers of
 * tensors and keys in its first two bytes. */
#include "fuzz.h"
#include "weights/gguf_tokenizer.h"

static void read_value(const ls_gguf *g, const ls_gguf_value *v, uint32_t *sum) {
    FUZZ_CHECK(ls_gguf_find(g, v->key) == v);
    for (size_t i = 0; i <= v->n; i++) {
        ls_gguf_text t = {0};
        int64_t integer = 0;
        double number = 0;
        bool yes = false;
        int good = ls_gguf_text_at(v, i, &t) + ls_gguf_bool(v, i, &yes);
        FUZZ_CHECK(!ls_gguf_integer(v, i, &integer) || ls_gguf_number(v, i, &number));
        FUZZ_CHECK(good + ls_gguf_number(v, i, &number) <= (i < v->n));
        for (size_t k = 0; k < t.n; k++) *sum += (uint8_t)t.data[k];
    }
}

/* A tokenizer that is accepted encodes a text, and is written so that it can be read. */
static void read_tokenizer(const ls_gguf *g) {
    static const uint8_t text[] = "low  lower<s>\n\xC3\xA9";
    ls_tokenizer *t = NULL, *u = NULL;
    ls_token_list a = {0}, b = {0};
    ls_buf json = {0};
    ls_error e = {0};
    if (ls_gguf_read_tokenizer(g, &t, &e) != LS_OK) return;
    ls_tokenizer_write(t, &json);
    FUZZ_CHECK(ls_tokenizer_parse(json.data, json.len, "again", &u, &e) == LS_OK);
    FUZZ_CHECK(ls_tokenizer_encode(t, text, sizeof text - 1, &(ls_encoding){.what = "text"}, &a,
                                   &e) == LS_OK);
    FUZZ_CHECK(ls_tokenizer_encode(u, text, sizeof text - 1, &(ls_encoding){.what = "text"}, &b,
                                   &e) == LS_OK);
    FUZZ_CHECK(a.n == b.n && (a.n == 0 || memcmp(a.ids, b.ids, a.n * sizeof *a.ids) == 0));
    free(a.ids);
    free(b.ids);
    ls_buf_free(&json);
    ls_tokenizer_free(t);
    ls_tokenizer_free(u);
}

static void read_file(const uint8_t *data, size_t nbytes) {
    ls_gguf g;
    ls_error e = {0};
    if (ls_gguf_open(fuzz_file(data, nbytes), &g, &e) != LS_OK) {
        FUZZ_CHECK(e.msg[0]);
        return;
    }
    uint32_t sum = 0;
    for (size_t i = 0; i < g.nvalues; i++) read_value(&g, &g.values[i], &sum);
    for (size_t i = 0; i < g.ntensors; i++) {
        const ls_gguf_tensor *t = &g.tensors[i];
        FUZZ_CHECK(ls_gguf_find_tensor(&g, t->name) == t);
        FUZZ_CHECK(t->data >= g.data && t->data + t->nbytes <= g.data + g.nbytes);
        FUZZ_CHECK(i == 0 || t->data >= t[-1].data + t[-1].nbytes);
        for (size_t k = 0; k < t->nbytes; k++) sum += t->data[k];
    }
    FUZZ_CHECK(sum != 1 || g.nbytes);
    read_tokenizer(&g);
    ls_gguf_close(&g);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t nbytes) {
    static uint8_t file[24 + 4096] = "GGUF\3";
    read_file(data, nbytes);
    if (nbytes < 2 || nbytes > 4096) return 0;
    file[8] = data[0];
    file[16] = data[1];
    memcpy(file + 24, data + 2, nbytes - 2);
    read_file(file, 24 + nbytes - 2);
    return 0;
}
