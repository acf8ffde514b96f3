/* strips_test.c - a published model that is opened for writing text has its matrices in strips, and
 * its tokens have the bits of the whole text at once. */
#include "infer/strips.h"

#include "folder.h"
#include "infer/decode.h"
#include "infer/generate.h"
#include "test.h"
#include "weights/import.h"
#include "weights/small_text.h"

enum { TIED, OWN_HEAD, TOKENS = 12, PROMPT = 5 };

/* Small model `number` with matrices of this type. */
static char *publish(int number, ls_block_type type) {
    ls_error e = {0};
    ls_imported i = {0};
    char *whole = ls_format("%s/m.gguf", folder);
    char *path = ls_format("%s/%d-%d", folder, number, (int)type);
    small_write_whole(&small_models[number], whole);
    assert_ls_ok(ls_model_import(whole, path, type, &i, &e), e);
    ls_imported_free(&i);
    free(whole);
    return path;
}

static void open_model(const char *path, bool writes, ls_trained *t_p) {
    ls_error e = {0};
    assert_ls_ok(ls_trained_open(path, &(ls_trained_options){.writes = writes}, t_p, &e), e);
}

static bool has_strips(const ls_trained *t, const char *name) {
    for (int i = 0; i < t->model.nparams; i++)
        if (strcmp(t->model.params[i].name, name) == 0) return t->infer.frozen[i].strips != NULL;
    fail_msg("no parameter %s", name);
    return false;
}

static void same_logits(const ls_trained *writing, const ls_trained *reading) {
    ls_error e = {0};
    size_t nbytes = ls_decode_nbytes(&writing->model, LS_F32);
    size_t V = (size_t)writing->config.model.vocab;
    ls_decode d = {.model = &writing->model,
                   .compute = &writing->compute,
                   .dtype = LS_F32,
                   .params = writing->params,
                   .frozen = writing->infer.frozen};
    uint32_t text[TOKENS];
    for (int i = 0; i < TOKENS; i++) text[i] = (uint32_t)(7 * i % 90);
    assert_ls_ok(ls_map(nbytes, "keys and values", &d.memory, &e), e);
    for (int n = PROMPT; n <= TOKENS; n++) {
        const float *want = ls_infer_next(&reading->infer, text, n);
        assert_memory_equal(ls_decode_text(&d, text, n), want, V * sizeof *want);
    }
    ls_unmap(d.memory, nbytes);
}

static void test_tokens(void **state) {
    (void)state;
    static const ls_block_type types[] = {LS_BLOCK_Q8_0, LS_BLOCK_Q4_0, LS_BLOCK_Q4_1,
                                          LS_BLOCK_Q5_0, LS_BLOCK_BF16, LS_BLOCK_F16};
    for (int number = TIED; number <= OWN_HEAD; number++)
        for (size_t i = 0; i < sizeof types / sizeof *types; i++) {
            char *path = publish(number, types[i]);
            ls_trained writing, reading;
            open_model(path, true, &writing);
            open_model(path, false, &reading);
            assert_null(reading.strips.memory);
            assert_true(has_strips(&writing, "model.layers.1.self_attn.k_proj.weight"));
            assert_true(has_strips(&writing, "model.layers.0.mlp.down_proj.weight"));
            assert_false(has_strips(&writing, "model.norm.weight"));
            assert_int_equal(has_strips(&writing, "model.embed_tokens.weight"), number == TIED);
            if (number == OWN_HEAD) assert_true(has_strips(&writing, "lm_head.weight"));
            same_logits(&writing, &reading);
            ls_trained_close(&writing);
            ls_trained_close(&reading);
            free(path);
        }
}

/* A type without strips stays as it is. */
static void test_f32(void **state) {
    (void)state;
    char *path = publish(TIED, LS_BLOCK_F32);
    ls_trained writing;
    open_model(path, true, &writing);
    assert_null(writing.strips.memory);
    ls_trained_close(&writing);
    free(path);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_tokens), cmocka_unit_test(test_f32)};
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
