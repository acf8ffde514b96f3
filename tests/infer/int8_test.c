/* int8_test.c - a published model with infer.activations: int8: tokens one by one have the logits
 * of the whole text, for any number of threads, and a sample alone the loss that it has among
 * others. */
#include <math.h>

#include "folder.h"
#include "infer/decode.h"
#include "infer/generate.h"
#include "test.h"
#include "weights/import.h"
#include "weights/small_text.h"

enum { TIED, OWN_HEAD, TOKENS = 12, PROMPT = 5, SAMPLES = 4, CONTEXT = 8 };

static const char *const int8_set[] = {"infer.activations=int8", "model.context=8"};
static const char *const float_set[] = {"infer.activations=float", "model.context=8"};

/* Small model `number` with matrices of this type. */
static char *publish(int number, ls_block_type type) {
    static int count;
    ls_error e = {0};
    ls_imported i = {0};
    char *whole = ls_format("%s/m.gguf", folder);
    char *path = ls_format("%s/model-%d", folder, count++);
    small_write_whole(&small_models[number], whole);
    assert_ls_ok(ls_model_import(whole, path, type, &i, &e), e);
    ls_imported_free(&i);
    free(whole);
    return path;
}

/* nsets 2: with samples of CONTEXT tokens. */
static ls_status open_model(const char *path, const char *const *sets, int nsets, bool writes,
                            ls_trained *t_p, ls_error *e) {
    const ls_trained_options o = {.writes = writes, .sets = sets, .nsets = nsets};
    return ls_trained_open(path, &o, t_p, e);
}

static void open_ok(const char *path, const char *const *sets, int nsets, bool writes,
                    ls_trained *t_p) {
    ls_error e = {0};
    assert_ls_ok(open_model(path, sets, nsets, writes, t_p, &e), e);
}

static void fill_text(uint32_t *text, int n, int from) {
    for (int i = 0; i < n; i++) text[i] = (uint32_t)(7 * (i + from) % 90);
}

/* Tokens one by one have the logits of the whole text. */
static void same_logits(const ls_trained *writing, const ls_compute *c, const ls_infer *whole) {
    ls_error e = {0};
    size_t nbytes = ls_decode_nbytes(&writing->model, LS_F32);
    size_t V = (size_t)writing->config.model.vocab;
    ls_decode d = {.model = &writing->model,
                   .compute = c,
                   .dtype = LS_F32,
                   .params = writing->params,
                   .frozen = writing->infer.frozen};
    uint32_t text[TOKENS];
    fill_text(text, TOKENS, 0);
    assert_ls_ok(ls_map(nbytes, "keys and values", &d.memory, &e), e);
    for (int n = PROMPT; n <= TOKENS; n++) {
        const float *want = ls_infer_next(whole, text, n);
        assert_memory_equal(ls_decode_text(&d, text, n), want, V * sizeof *want);
    }
    ls_unmap(d.memory, nbytes);
}

static void each_number_of_threads(const char *path) {
    ls_trained writing, reading;
    open_ok(path, int8_set, 1, true, &writing);
    open_ok(path, int8_set, 1, false, &reading);
    assert_non_null(writing.strips.memory);
    assert_null(reading.strips.memory);
    for (int threads = 1; threads <= 3; threads++) {
        ls_compute c;
        ls_error e = {0};
        assert_ls_ok(ls_compute_init(&c, threads, ls_model_scratch_floats(&writing.model), &e), e);
        ls_pool_share_cores(c.pool);
        same_logits(&writing, &c, &reading.infer);
        ls_compute_close(&c);
    }
    ls_trained_close(&writing);
    ls_trained_close(&reading);
}

static void test_tokens(void **state) {
    (void)state;
    static const ls_block_type types[] = {LS_BLOCK_Q8_0, LS_BLOCK_Q4_0, LS_BLOCK_Q4_1};
    for (int number = TIED; number <= OWN_HEAD; number++)
        for (size_t i = 0; i < sizeof types / sizeof *types; i++) {
            char *path = publish(number, types[i]);
            each_number_of_threads(path);
            free(path);
        }
}

/* A sample's loss is the same alone and among others, and near that with activations in f32: random
 * weights make large logits, which differ by some percent. */
static void test_batch(void **state) {
    (void)state;
    char *path = publish(TIED, LS_BLOCK_Q8_0);
    ls_trained in_int8, in_float;
    open_ok(path, int8_set, 2, false, &in_int8);
    open_ok(path, float_set, 2, false, &in_float);
    uint32_t samples[SAMPLES][CONTEXT + 1];
    double together[SAMPLES], alone[SAMPLES], floats[SAMPLES];
    for (int i = 0; i < SAMPLES; i++) fill_text(samples[i], CONTEXT + 1, 5 * i);
    ls_infer_losses(&in_int8.infer, SAMPLES, samples, together);
    ls_infer_losses(&in_float.infer, SAMPLES, samples, floats);
    for (int i = 0; i < SAMPLES; i++) {
        ls_infer_losses(&in_int8.infer, 1, samples[i], alone + i);
        assert_true(alone[i] != floats[i]);
        if (!(fabs(alone[i] - floats[i]) < 0.2 * floats[i]))
            fail_msg("sample %d: the loss is %.9g, in f32 %.9g", i, alone[i], floats[i]);
    }
    assert_memory_equal(alone, together, sizeof alone);
    ls_trained_close(&in_int8);
    ls_trained_close(&in_float);
    free(path);
}

/* Where nothing would be quantized, the key is refused. */
static void test_refused(void **state) {
    (void)state;
    static const char *const rounded[] = {"infer.activations=int8", "train.compute=bf16"};
    char *half = publish(TIED, LS_BLOCK_BF16), *blocks = publish(TIED, LS_BLOCK_Q4_0);
    ls_trained t;
    ls_error e = {0};
    assert_int_equal(open_model(half, int8_set, 1, true, &t, &e), LS_EINVAL);
    assert_non_null(strstr(e.msg, "the model has none; leave the key out"));
    assert_int_equal(open_model(blocks, rounded, 2, true, &t, &e), LS_EINVAL);
    assert_non_null(strstr(e.msg, "train.compute"));
    free(half);
    free(blocks);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_tokens), cmocka_unit_test(test_batch),
                                       cmocka_unit_test(test_refused)};
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
