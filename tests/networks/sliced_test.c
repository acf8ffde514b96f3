/* sliced_test.c - models whose products are cut into slices, or whose rows are divided: they begin
 * with the weights of a model of one slice and compute what it does; gradients; tokens one by one
 * with the bits of the whole text; and what is refused. */
/* ctest: busy seconds=25 */
/* ctest: long-asan: networks/llama and exec/exec run the same code */
/* ctest: no-tsan: an hour; the workers of exec_test are threads, which divide slices */
#include "networks/sliced.h"

#include <math.h>

#include "config/conflicts.h"
#include "infer/decode.h"
#include "layers/vocabulary_slices.h"
#include "model/fixture.h"
#include "model/tensor_part.h"
#include "networks/gradients.h"
#include "networks/network.h"

enum { SAMPLES = 3, SLICES = 4 };

static ls_config config_of(ls_model_kind kind, int64_t n) {
    ls_config c;
    ls_config_defaults(&c);
    c.model.kind = kind;
    c.model.layers = 2;
    c.model.width = 40;
    c.model.heads = kind == LS_MODEL_LLAMA ? 10 : 5;
    c.model.kv_heads = kind == LS_MODEL_LLAMA ? 5 : 0;
    c.model.ffn = 37;
    c.model.bias = LS_BIAS_ALL;
    c.model.context = 20;
    c.model.vocab = 301;
    c.model.head = LS_HEAD_OWN;
    c.parallel.tensor_virtual = n;
    return c;
}

/* Slices of 5 experts, of which two compute a row, and a shared one. */
static ls_config experts_of(int64_t n) {
    ls_config c = config_of(LS_MODEL_LLAMA, n);
    c.model.bias = LS_BIAS_ATTENTION;
    c.model.experts = 5;
    c.model.experts_per_token = 2;
    c.model.shared_experts = 1;
    c.model.norm_topk = LS_OFF;
    c.model.router_bias_rate = 0.01;
    return c;
}

/* Heads of keys and values that slices share, where there are more of these. */
static ls_config shared_of(int64_t kv_heads, int64_t n) {
    ls_config c = config_of(LS_MODEL_LLAMA, n);
    c.model.kv_heads = kv_heads;
    return c;
}

/* A config with norms of queries and keys, as Qwen 3 has them. */
static ls_config normed_of(int64_t kv_heads, int64_t n) {
    ls_config c = shared_of(kv_heads, n);
    c.model.qk_norm = 1;
    return c;
}

/* A config with a block as in Gemma 3. */
static ls_config gemma_of(int64_t kv_heads, int64_t n) {
    ls_config c = normed_of(kv_heads, n);
    c.model.block = LS_BLOCKS_GEMMA3;
    c.model.window = 5;
    c.model.full_attention_every = 2;
    c.model.no_rope_every = 2;
    c.model.rope_dims = 2;
    return c;
}

static ls_model model_of(const ls_config *c) {
    ls_model m = {0};
    ls_error e = {0};
    assert_ls_ok(ls_network_create_cut(c, &m, &e), e);
    return m;
}

/* ---- the same function of the same weights ---- */

typedef struct setup {
    ls_model model;
    ls_compute compute;
    float *params, *memory;
    void *half;
    ls_infer infer;
    double losses[SAMPLES]; /* of a token */
    float *logits;          /* [vocab] after the first sample */
} setup;

static void compute(setup *s, const ls_config *c, const uint32_t *samples, ls_dtype type) {
    *s = (setup){.model = model_of(c)};
    const ls_model *m = &s->model;
    fix_compute(&s->compute, m, 2, NULL);
    s->params = fix_nans(m->nfloats);
    ls_model_init(m, 7, 0, m->nfloats, s->params);
    s->half = malloc(m->nfloats * 2);
    if (type != LS_F32) s->compute.k->narrow(type, m->nfloats, s->params, s->half);
    s->memory = fix_nans(ls_infer_nbytes(m, type, SAMPLES) / sizeof(float) + 1);
    s->infer = (ls_infer){.model = m,
                          .compute = &s->compute,
                          .dtype = type,
                          .params = type == LS_F32 ? (void *)s->params : s->half,
                          .memory = s->memory,
                          .n = SAMPLES};
    ls_infer_losses(&s->infer, SAMPLES, samples, s->losses);
    for (int i = 0; i < SAMPLES; i++) s->losses[i] /= (double)m->targets;
    s->logits = fix_nans((size_t)c->model.vocab);
    if (c->parallel.sequence || c->parallel.context_virtual > 1) return; /* whole samples alone */
    memcpy(s->logits, ls_infer_next(&s->infer, samples, c->model.context),
           (size_t)c->model.vocab * sizeof *s->logits);
}

static void end(setup *s) {
    ls_compute_close(&s->compute);
    ls_model_free(&s->model);
    free(s->params), free(s->memory), free(s->half), free(s->logits);
}

/* Both models must have the same parameters at the same places, and the same losses. */
static void compare_divided(const ls_config *whole, const ls_config *c, ls_dtype type,
                            double most) {
    setup one, cut;
    uint32_t *samples = fix_tokens((size_t)(SAMPLES * (c->model.context + 1)), c->model.vocab, 5);
    compute(&one, whole, samples, type);
    compute(&cut, c, samples, type);
    assert_int_equal(cut.model.nparams, one.model.nparams);
    for (int i = 0; i < one.model.nparams; i++) {
        const ls_param *p = &one.model.params[i], *q = &cut.model.params[i];
        assert_string_equal(p->name, q->name);
        assert_int_equal(p->offset, q->offset);
        assert_int_equal(p->count, q->count);
    }
    assert_memory_equal(one.params, cut.params, one.model.nfloats * sizeof *one.params);
    for (int i = 0; i < SAMPLES; i++) assert_true(fabs(cut.losses[i] - one.losses[i]) <= most);
    end(&one), end(&cut);
    free(samples);
}

static void compare_rows(ls_config c, ls_dtype type, double most) {
    ls_config divided = c;
    divided.parallel.sequence = true;
    compare_divided(&c, &divided, type, most);
}

static void test_rows(void **state) {
    (void)state;
    compare_rows(config_of(LS_MODEL_GPT2, 2), LS_F32, 1e-5);
    compare_rows(config_of(LS_MODEL_GPT2, 4), LS_BF16, 1e-2);
    compare_rows(config_of(LS_MODEL_LLAMA, 5), LS_F32, 1e-5);
    compare_rows(normed_of(2, 4), LS_F16, 2e-3);
    compare_rows(experts_of(2), LS_F32, 1e-5);
}

/* Samples that are cut into chunks. */
static void test_chunks(void **state) {
    (void)state;
    ls_config c = config_of(LS_MODEL_GPT2, 1), cut = c;
    c.model.head = cut.model.head = LS_HEAD_TIED;
    cut.parallel.context_virtual = 4;
    compare_divided(&c, &cut, LS_F32, 1e-5);
    compare_divided(&c, &cut, LS_BF16, 1e-2);
}

/* Each element of each tensor is in one slice, and has its initial value. */
static void check_weights(const setup *one, const setup *cut) {
    size_t n = 0;
    for (int i = 0; i < cut->model.nparams; i++) {
        const ls_param *p = &cut->model.params[i];
        const ls_param *whole = &one->model.params[p->cut.part.tensor - 1];
        char name[LS_NAME];
        ls_tensor_part_name(p, name);
        assert_string_equal(name, whole->name);
        for (int d = 0; d < p->ndims; d++)
            assert_int_equal(ls_tensor_part_dim(p, d), whole->dims[d]);
        for (size_t k = 0, at = 0; k < p->count; k++, n++) {
            ls_tensor_part_run(p, k, &at);
            assert_true(at < whole->count);
            assert_true(cut->params[p->offset + k] == one->params[whole->offset + at]);
        }
    }
    assert_int_equal(n, one->model.count);
}

static void compare_models(ls_config c, ls_dtype type, double most) {
    setup one, cut;
    uint32_t *samples = fix_tokens((size_t)(SAMPLES * (c.model.context + 1)), c.model.vocab, 5);
    compute(&one, &c, samples, type);
    for (int n = 2; n <= SLICES; n++) {
        if (c.model.kv_heads && n > c.model.kv_heads && n % c.model.kv_heads) continue;
        c.parallel.tensor_virtual = n;
        compute(&cut, &c, samples, type);
        check_weights(&one, &cut);
        assert_int_equal(cut.model.nslices, n);
        for (int i = 0; i < SAMPLES; i++) assert_true(fabs(cut.losses[i] - one.losses[i]) <= most);
        for (int64_t v = 0; v < c.model.vocab; v++)
            assert_true(fabs((double)cut.logits[v] - (double)one.logits[v]) <= most);
        end(&cut);
    }
    end(&one);
    free(samples);
}

static void compare(ls_model_kind kind, ls_head_kind head, ls_dtype type, double most) {
    ls_config c = config_of(kind, 1);
    c.model.head = head;
    compare_models(c, type, most);
}

static void test_function(void **state) {
    (void)state;
    compare_models(experts_of(1), LS_F32, 1e-5);
    compare_models(shared_of(1, 1), LS_F32, 1e-5);
    compare_models(normed_of(5, 1), LS_F32, 1e-5);
    compare_models(normed_of(2, 1), LS_F32, 1e-5);
    compare_models(gemma_of(2, 1), LS_F32, 1e-5);
    compare_models(normed_of(2, 1), LS_F16, 2e-3);
    compare_models(normed_of(2, 1), LS_BF16, 1e-2);
    compare_models(shared_of(2, 1), LS_F32, 1e-5);
    compare_models(shared_of(2, 1), LS_BF16, 1e-2);
    compare(LS_MODEL_GPT2, LS_HEAD_TIED, LS_F32, 1e-5);
    compare(LS_MODEL_LLAMA, LS_HEAD_OWN, LS_F32, 1e-5);
    compare(LS_MODEL_LLAMA, LS_HEAD_TIED, LS_F32, 1e-5);
    compare(LS_MODEL_GPT2, LS_HEAD_TIED, LS_BF16, 1e-2);
    compare(LS_MODEL_LLAMA, LS_HEAD_OWN, LS_BF16, 1e-2);
    compare(LS_MODEL_LLAMA, LS_HEAD_OWN, LS_F16, 2e-3);
}

/* What slices pass on of a row is the number itself, in parts that bf16 has. */
static void test_exact(void **state) {
    (void)state;
    static const float numbers[] = {0, 1, -1, 0.1f, -12.3456789f, 1e-20f, 3.1e7f, 65535.996f};
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
        float parts[LS_EXACT];
        ls_exact_put(numbers[i], parts);
        assert_true(ls_exact_get(parts) == numbers[i]);
        for (int k = 0; k < LS_EXACT; k++) assert_true(ls_exact_upper(parts[k]) == parts[k]);
    }
}

/* ---- rows without a label ---- */

/* Samples of conversations: tokens, targets of which some are none, and places in two texts. The
 * last sample has no targets. */
static int32_t *conversations(const ls_model *m, const ls_config *c) {
    size_t row = m->sample_nbytes / sizeof(int32_t);
    int64_t T = c->model.context;
    int32_t *samples = LS_NEW_ARRAY(int32_t, SAMPLES * row);
    uint32_t *tokens = fix_tokens((size_t)(SAMPLES * T * 2), c->model.vocab, 8);
    for (int64_t i = 0; i < SAMPLES * T; i++) {
        int32_t *sample = samples + (size_t)(i / T) * row;
        int64_t t = i % T;
        bool none = i / T == SAMPLES - 1 || t % 3 == 1;
        sample[m->inputs[0].offset / 4 + (size_t)t] = (int32_t)tokens[2 * i];
        sample[m->inputs[1].offset / 4 + (size_t)t] = none ? -1 : (int32_t)tokens[2 * i + 1];
        sample[m->inputs[2].offset / 4 + (size_t)t] = (int32_t)(t < 7 ? t : t - 7);
    }
    free(tokens);
    return samples;
}

static void test_labels(void **state) {
    (void)state;
    ls_config c = config_of(LS_MODEL_LLAMA, 1);
    c.data.format = LS_DATA_CHAT;
    c.data.packing = 1;
    ls_model m = model_of(&c);
    assert_int_equal(m.ninputs, 3);
    int32_t *samples = conversations(&m, &c);
    setup one, cut;
    compute(&one, &c, (const uint32_t *)samples, LS_F32);
    c.parallel.tensor_virtual = 3;
    compute(&cut, &c, (const uint32_t *)samples, LS_F32);
    assert_true(one.losses[0] > 1);
    for (int i = 0; i < SAMPLES; i++) assert_true(fabs(cut.losses[i] - one.losses[i]) <= 1e-5);
    assert_true(cut.losses[SAMPLES - 1] == 0);
    assert_int_equal(cut.model.weighing.ntargets, one.model.weighing.ntargets);
    assert_int_equal(cut.model.weighing.labels_at, one.model.weighing.labels_at);
    end(&one), end(&cut);
    ls_model_free(&m);
    free(samples);
}

/* ---- gradients ---- */

static void check_gradients(ls_config c) {
    c.model.layers = 1;
    c.model.vocab = 50;
    ls_model m = model_of(&c);
    assert_gradients(&m);
    ls_model_free(&m);
}

static ls_config sequence_of(ls_config c) {
    c.parallel.sequence = true;
    return c;
}

static ls_config chunks_of(ls_config c) {
    c.parallel.context_virtual = 2;
    return c;
}

static void test_gradients(void **state) {
    (void)state;
    ls_config crowded = experts_of(3);
    crowded.model.expert_capacity = 0.5;
    const ls_config all[] = {
        config_of(LS_MODEL_GPT2, 3),
        config_of(LS_MODEL_LLAMA, 3),
        shared_of(1, 3),
        normed_of(5, 3),
        experts_of(3),
        normed_of(2, 4),
        gemma_of(2, 4),
        shared_of(2, 4),
        crowded,
        sequence_of(normed_of(2, 4)),
        chunks_of(config_of(LS_MODEL_GPT2, 1)),
        sequence_of(config_of(LS_MODEL_GPT2, 2)),
        chunks_of(config_of(LS_MODEL_GPT2, 2)),
        chunks_of(sequence_of(experts_of(2))),
    };
    for (int i = 0; i < (int)(sizeof all / sizeof *all); i++)
        if (runs_case(i, 6)) check_gradients(all[i]);
}

/* ---- tokens one by one ---- */

static void decode_model(ls_config c, ls_dtype type) {
    setup s;
    int64_t T = c.model.context, V = c.model.vocab, prompt = T / 2;
    uint32_t *text = fix_tokens((size_t)(SAMPLES * (T + 1)), V, 6);
    compute(&s, &c, text, type);
    float *memory = fix_nans(ls_decode_nbytes(&s.model, type) / sizeof(float) + 1);
    float *got = fix_nans((size_t)V);
    ls_decode d = {.model = &s.model,
                   .compute = &s.compute,
                   .dtype = type,
                   .params = s.infer.params,
                   .memory = memory};
    memcpy(got, ls_decode_prompt(&d, text, prompt), (size_t)V * sizeof *got);
    for (int64_t i = prompt; i < T; i++) {
        assert_memory_equal(got, ls_infer_next(&s.infer, text, i), (size_t)V * sizeof *got);
        memcpy(got, ls_decode_next(&d, text[i]), (size_t)V * sizeof *got);
    }
    assert_memory_equal(got, ls_infer_next(&s.infer, text, T), (size_t)V * sizeof *got);
    assert_true(ls_decode_weights_read(&d) <= s.model.nfloats * sizeof(float));
    end(&s);
    free(memory), free(got), free(text);
}

static void decode(ls_model_kind kind, ls_dtype type, int n) {
    decode_model(config_of(kind, n), type);
}

static void test_decode(void **state) {
    (void)state;
    decode_model(experts_of(2), LS_F32);
    decode_model(experts_of(3), LS_BF16);
    decode_model(shared_of(1, 3), LS_F32);
    decode_model(normed_of(5, 3), LS_F32);
    decode_model(normed_of(2, 4), LS_BF16);
    decode_model(gemma_of(2, 4), LS_F32);
    decode_model(shared_of(2, 4), LS_BF16);
    decode(LS_MODEL_GPT2, LS_F32, 2);
    decode(LS_MODEL_GPT2, LS_BF16, 3);
    decode(LS_MODEL_LLAMA, LS_F32, 3);
    decode(LS_MODEL_LLAMA, LS_BF16, 2);
}

/* ---- what is refused ---- */

static void refused(const ls_config *c, const char *text) {
    ls_model m = {0};
    ls_error e = {0};
    assert_ls_fails(ls_network_create(c, &m, &e), LS_EINVAL, text, e);
}

static void test_refused(void **state) {
    (void)state;
    ls_config c = config_of(LS_MODEL_LLAMA, 6);
    refused(&c,
            "the model has 5 heads of keys and values and 10 of queries, which slices divide, or "
            "share; set 5 or less, or a multiple of it up to 10");
    c = config_of(LS_MODEL_GPT2, 6);
    refused(&c,
            "the model has 5 heads of keys and values, and each slice needs one; set 5 or less");
    c = config_of(LS_MODEL_LLAMA, 11);
    refused(&c, "or a multiple of it up to 10");
    c.parallel.tensor_virtual = 5;
    c.model.ffn = 3;
    refused(&c, "the model has 3 hidden units (model.ffn)");
    c.model.ffn = 37;
    c.model.vocab = 2;
    refused(&c, "the model has 2 tokens (model.vocab)");
    c = experts_of(4);
    c.model.experts = 3;
    refused(&c, "the model has 3 experts (model.experts), and each slice needs one; set 3 or less");
    c = config_of(LS_MODEL_LLAMA, 2);
    ls_error e = {0};
    c.lora.rank = 2;
    assert_ls_fails(ls_config_check_conflicts(&c, "x", &e), LS_EINVAL,
                    "parallel.tensor_virtual: 2 does not go with lora.rank: 2", e);
    c = config_of(LS_MODEL_LLAMA, 3);
    c.parallel.sequence = true;
    refused(&c, "parallel.tensor_virtual 3 does not divide the 20 positions of a sample "
                "(model.context); use 2, or a context of 21");
    c.parallel.tensor_virtual = 1;
    refused(&c, "set parallel.tensor_virtual to 2 or more");
    c = config_of(LS_MODEL_MLP, 2);
    refused(&c, "only models of kind gpt2 and llama are cut into slices; set 1");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_function), cmocka_unit_test(test_rows),
        cmocka_unit_test(test_chunks),   cmocka_unit_test(test_exact),
        cmocka_unit_test(test_labels),   cmocka_unit_test(test_gradients),
        cmocka_unit_test(test_decode),   cmocka_unit_test(test_refused)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
