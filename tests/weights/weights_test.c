/* weights_test.c - models of each family, from directories and from GGUF files that are laid out by
 * hand: every element is where its name says; a tensor too few, too many, or of other dims is
 * refused by its name. */
#include "weights/weights.h"

#include <unistd.h>

#include "folder.h"
#include "test.h"
#include "weights/gguf_model.h"
#include "weights/small_model.h"

static char gguf[96];

static int make_path(void **state) {
    int failed = make_folder(state);
    snprintf(gguf, sizeof gguf, "%s/m.gguf", folder);
    return failed;
}

static ls_weights open_good(const char *path) {
    ls_weights w = {0};
    ls_error e = {0};
    assert_ls_ok(ls_weights_open(path, &w, &e), e);
    return w;
}

static void check_refused(const char *path, const char *text) {
    ls_weights w = {0};
    ls_error e = {0};
    ls_status s = ls_weights_open(path, &w, &e);
    if ((s != LS_EINVAL && s != LS_EIO) || !strstr(e.msg, text))
        fail_msg("status %d, '%s' does not say '%s'", s, e.msg, text);
    assert_non_null(strstr(e.msg, path));
    assert_null(w.list);
}

/* ---- every element ---- */

static void check_rows(const ls_weights *w, const small_tensor *t, int64_t first, int64_t end) {
    int64_t columns = t->columns ? t->columns : 1;
    const ls_weight *x = ls_weights_find(w, t->hf);
    float *out = LS_NEW_ARRAY(float, (size_t)((end - first) * columns + 1));
    ls_error e = {0};
    out[(end - first) * columns] = -77;
    assert_ls_ok(ls_weights_rows(w, x, first, end, out, &e), e);
    for (int64_t r = first; r < end; r++)
        for (int64_t c = 0; c < columns; c++)
            if (out[(r - first) * columns + c] != small_value(t, r, c))
                fail_msg("%s [%d, %d]: %g", t->hf, (int)r, (int)c,
                         (double)out[(r - first) * columns + c]);
    assert_true(out[(end - first) * columns] == -77);
    free(out);
}

static void check_model(const ls_weights *w, const small_model *m) {
    small_tensor list[SMALL_TENSORS];
    int n = small_list(m, list);
    int64_t count = 0;
    assert_int_equal(w->n, n);
    for (int i = 0; i < n; i++) {
        const ls_weight *x = ls_weights_find(w, list[i].hf);
        if (!x) fail_msg("%s has no %s", m->family, list[i].hf);
        assert_true(x->id.dims[0] == list[i].rows && x->id.dims[1] == list[i].columns);
        check_rows(w, &list[i], 0, list[i].rows);
        check_rows(w, &list[i], 1, list[i].rows - 5);
        check_rows(w, &list[i], 7, 7);
        count += small_count(&list[i]);
    }
    assert_int_equal(ls_architecture_count(&w->arch), count);
    assert_int_equal(ls_weights_nbytes(w), count * 4);
    assert_null(ls_weights_find(w, "lm_head.bias"));
    ls_buf types = {0};
    ls_weights_put_types(w, &types);
    char *want = ls_format("%d F32", n);
    assert_string_equal(types.data, want);
    free(want);
    ls_buf_free(&types);
}

static void test_families(void **state) {
    (void)state;
    for (int i = 0; i < SMALL_MODELS; i++) {
        const small_model *m = &small_models[i];
        small_write_folder(m, folder);
        small_write_gguf(m, gguf);
        ls_weights a = open_good(folder), b = open_good(gguf);
        assert_true(!a.is_gguf && b.is_gguf);
        assert_string_equal(ls_family_name(a.arch.family), m->family);
        assert_string_equal(ls_gguf_family_name(b.arch.family), m->gguf);
        char *difference = ls_architecture_difference(&a.arch, &b.arch);
        assert_null(difference);
        assert_true(b.arch.bos == 1 && b.arch.neos == 1 && b.arch.eos[0] == 2);
        check_model(&a, m);
        check_model(&b, m);
        ls_weights_close(&a);
        ls_weights_close(&b);
    }
}

/* ---- types ---- */

/* One block of Q8_0 a row of 32, whose numbers are small integers. */
static void test_blocks(void **state) {
    (void)state;
    const small_model *m = &small_models[0];
    small_tensor list[SMALL_TENSORS];
    ls_buf keys = {0}, b = {0};
    int n = small_list(m, list);
    uint64_t at = 0, nkeys = small_put_keys(m, &keys);
    put_header(&b, 3, (uint64_t)n, nkeys);
    ls_buf_append(&b, keys.data, keys.len);
    ls_buf_free(&keys);
    for (int i = 0; i < n; i++) { /* matrices Q8_0 (34 bytes for 32), norms bf16 */
        const small_tensor *t = &list[i];
        bool matrix = t->columns != 0;
        const uint64_t dims[2] = {(uint64_t)(matrix ? t->columns : t->rows), (uint64_t)t->rows};
        put_tensor(&b, t->gguf, matrix ? 2 : 1, dims, matrix ? 8 : 30, at);
        uint64_t nbytes = (uint64_t)small_count(t) * (matrix ? 34 : 64) / 32;
        at += (nbytes + 31) / 32 * 32;
    }
    pad_to(&b, 32);
    for (int i = 0; i < n; i++) {
        ls_buf values = {0};
        small_put_values(&list[i], &values);
        for (int64_t k = 0; k < small_count(&list[i]); k++) {
            float x;
            memcpy(&x, values.data + 4 * k, 4);
            if (list[i].columns && k % 32 == 0) ls_buf_append(&b, "\0\x24", 2); /* 1/64 */
            int8_t q = (int8_t)(x * 64);
            if (list[i].columns)
                ls_buf_append(&b, &q, 1);
            else
                ls_buf_append(&b, values.data + 4 * k + 2, 2);
        }
        pad_to(&b, 32);
        ls_buf_free(&values);
    }
    write_bytes(gguf, b.data, b.len);
    ls_buf_free(&b);
    ls_weights w = open_good(gguf);
    for (int i = 0; i < n; i++) {
        check_rows(&w, &list[i], 0, list[i].rows);
        check_rows(&w, &list[i], 3, 20);
    }
    ls_buf types = {0};
    ls_weights_put_types(&w, &types);
    assert_string_equal(types.data, "15 Q8_0, 5 BF16");
    ls_buf_free(&types);
    ls_weights_close(&w);
}

/* ---- what is refused ---- */

static void test_gguf_refused(void **state) {
    (void)state;
    const small_model *m = &small_models[0];
    small_tensor list[SMALL_TENSORS];
    int n = small_list(m, list);
    for (int i = 1; i < n; i++) { /* one is missing */
        small_tensor gone = list[i];
        list[i] = list[n - 1];
        small_write_gguf_of(m, list, n - 1, NULL, 0, gguf);
        char *want = ls_format("has no tensor '%s'", gone.gguf);
        check_refused(gguf, want);
        free(want);
        list[i] = gone;
    }
    small_tensor was = list[3];
    list[3].columns *= 2;
    char *want = ls_format("tensor '%s' is [64, 128]; the architecture needs [64, 64]", was.gguf);
    small_write_gguf_of(m, list, n, NULL, 0, gguf);
    check_refused(gguf, want);
    free(want);
    list[3] = was;
    list[n] = list[1];
    snprintf(list[n].gguf, sizeof list[n].gguf, "blk.2.attn_norm.weight");
    small_write_gguf_of(m, list, n + 1, NULL, 0, gguf);
    check_refused(gguf,
                  "has a tensor 'blk.2.attn_norm.weight', which no model of the family llama");
    snprintf(list[n].gguf, sizeof list[n].gguf, "blk.0.attn_q.bias");
    small_write_gguf_of(m, list, n + 1, NULL, 0, gguf);
    check_refused(gguf, "no model of the family llama has these biases");
}

/* Writes the tensors of a directory: those of the model, some changed. */
static void write_tensors(const ls_tensor *t, size_t n) {
    ls_error e = {0};
    char *path = ls_format("%s/model.safetensors", folder);
    unlink(path);
    assert_ls_ok(ls_safetensors_write(path, t, n, &e), e);
    free(path);
}

static void name(ls_tensor *t, const char *text) { snprintf(t->name, sizeof t->name, "%s", text); }

static void test_folder_refused(void **state) {
    (void)state;
    const small_model *m = &small_models[0];
    small_write_folder(m, folder);
    ls_weights w = open_good(folder);
    size_t n = w.shards.n;
    ls_tensor t[SMALL_TENSORS + 2], spare;
    float zeros[6400] = {0};
    for (size_t i = 0; i < n; i++) {
        t[i] = *w.shards.tensors[i];
        if (strcmp(t[i].name, "model.embed_tokens.weight") == 0) spare = t[i];
    }
    write_tensors(t + 1, n - 1);
    check_refused(folder, t[0].name);
    t[n] = (ls_tensor){.ndims = 1, .dims = {8}, .count = 8, .data = zeros};
    name(&t[n], "model.layers.0.self_attn.rotary_emb.inv_freq"); /* it is ignored */
    write_tensors(t, n + 1);
    ls_weights other = open_good(folder);
    check_model(&other, m);
    ls_weights_close(&other);
    name(&t[n], "model.layers.0.mlp.gate_proj.bias");
    write_tensors(t, n + 1);
    check_refused(folder, "has a tensor 'model.layers.0.mlp.gate_proj.bias', which");
    t[n] = spare; /* the head of a tied model: the same, or not */
    name(&t[n], "lm_head.weight");
    write_tensors(t, n + 1);
    other = open_good(folder);
    ls_weights_close(&other);
    t[n].data = zeros;
    write_tensors(t, n + 1);
    check_refused(folder, "tie_word_embeddings is true, but tensor 'lm_head.weight' differs");
    t[3].dims[0]++, t[3].count += (size_t)t[3].dims[1];
    t[3].data = zeros;
    write_tensors(t, n);
    check_refused(folder, "; the architecture needs");
    ls_weights_close(&w);
}

/* GPT-2's file may have a prefix and masks. */
static void test_gpt2_names(void **state) {
    (void)state;
    const small_model *m = &small_models[4];
    small_write_folder(m, folder);
    ls_weights w = open_good(folder);
    size_t n = w.shards.n;
    static const uint8_t mask[2304] = {1};
    ls_tensor t[SMALL_TENSORS + 3];
    for (size_t i = 0; i < n; i++) {
        t[i] = *w.shards.tensors[i];
        snprintf(t[i].name, sizeof t[i].name, "transformer.%.100s", w.shards.tensors[i]->name);
    }
    for (size_t i = 0; i < 2; i++)
        t[n + i] = (ls_tensor){
            .ndims = 4, .dims = {1, 1, 24, 24}, .count = 576, .data = mask, .type = LS_BLOCK_F32};
    name(&t[n], "transformer.h.0.attn.bias");
    name(&t[n + 1], "h.1.attn.masked_bias");
    write_tensors(t, n + 2);
    ls_weights other = open_good(folder);
    check_model(&other, m);
    ls_weights_close(&other);
    name(&t[n], "wte.weight");
    t[n].ndims = 2, t[n].dims[0] = 100, t[n].dims[1] = 64, t[n].count = 6400, t[n].data = t[0].data;
    static float zeros[6400];
    t[n].data = zeros;
    write_tensors(t, n + 1);
    check_refused(folder, "is there twice: with and without a prefix");
    ls_weights_close(&w);
}

static void test_types_refused(void **state) {
    (void)state;
    small_write_folder(&small_models[0], folder);
    char *path = ls_format("%s/model.safetensors", folder);
    ls_buf b = {0};
    ls_error e = {0};
    assert_ls_ok(ls_file_read(path, 1 << 24, &b, &e), e);
    char *type = strstr(b.data + 8, "F32");
    memcpy(type, "I32", 3); /* of the same size */
    write_bytes(path, b.data, b.len);
    check_refused(folder, "is of type I32, which can't be read; take a file");
    ls_buf_free(&b);
    free(path);
}

/* ---- directories ---- */

static void test_folders(void **state) {
    (void)state;
    const small_model *m = &small_models[1]; /* mistral, which is llama in GGUF */
    char *in = ls_format("%s/model.gguf", folder);
    char *config = ls_format("%s/config.json", folder);
    check_refused(folder, "has no model.safetensors");
    char *pickle = ls_format("%s/pytorch_model.bin", folder);
    char *run = ls_format("%s/config.yaml", folder);
    write_bytes(run, "", 0);
    check_refused(folder,
                  "is a run, not a published model: a new run begins with it by train.from");
    unlink(run);
    free(run);
    write_bytes(pickle, "x", 1);
    check_refused(folder, "pytorch_model.bin can't be read");
    small_write_gguf(m, in);
    check_refused(folder, "config.json: does not exist");
    small_write_config(m, folder);
    ls_weights w = open_good(folder);
    assert_true(w.is_gguf && w.arch.family == LS_FAMILY_MISTRAL);
    check_model(&w, m);
    ls_weights_close(&w);
    small_write_text(folder, "generation_config.json", "{\"eos_token_id\": [2, 9]}");
    w = open_good(folder);
    assert_true(w.arch.neos == 2 && w.arch.eos[1] == 9);
    ls_weights_close(&w);
    small_write_config(&small_models[0], folder);
    check_refused(folder, "config.json differs from model.gguf: tied embedding");
    small_write_folder(m, folder);
    check_refused(folder, "has both model.gguf and safetensors files");
    unlink(in);
    w = open_good(folder);
    ls_weights_close(&w);
    write_bytes(config, "{", 1);
    check_refused(folder, "config.json");
    check_refused("/nonexistent/m", "/nonexistent/m");
    free(in);
    free(config);
    free(pickle);
}

/* A file that is truncated while it is open. */
static void test_lost(void **state) {
    (void)state;
    const small_model *m = &small_models[0];
    for (int i = 0; i < 2; i++) {
        char *path = i ? ls_format("%s/model.safetensors", folder) : ls_strdup(gguf);
        if (i)
            small_write_folder(m, folder);
        else
            small_write_gguf(m, gguf);
        ls_weights w = open_good(i ? folder : gguf);
        const ls_weight *t = ls_weights_find(&w, "model.layers.1.mlp.down_proj.weight");
        float *out = LS_NEW_ARRAY(float, (size_t)(64 * 96));
        ls_error e = {0};
        assert_int_equal(truncate(path, 4096), 0);
        assert_ls_fails(ls_weights_rows(&w, t, 0, 64, out, &e), LS_EIO, path, e);
        free(out);
        ls_weights_close(&w);
        free(path);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_families, make_path, remove_folder),
        cmocka_unit_test_setup_teardown(test_blocks, make_path, remove_folder),
        cmocka_unit_test_setup_teardown(test_gguf_refused, make_path, remove_folder),
        cmocka_unit_test_setup_teardown(test_folder_refused, make_path, remove_folder),
        cmocka_unit_test_setup_teardown(test_gpt2_names, make_path, remove_folder),
        cmocka_unit_test_setup_teardown(test_types_refused, make_path, remove_folder),
        cmocka_unit_test_setup_teardown(test_folders, make_path, remove_folder),
        cmocka_unit_test_setup_teardown(test_lost, make_path, remove_folder),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
