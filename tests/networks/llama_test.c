/* llama_test.c - kind llama: names and shapes of its parameters, gradients, tokens one by one with
 * the bits of the whole text, the same bits for any number of workers, and what is refused; a block
 * as in Gemma 3 beside a loop of 64 bits. */
/* ctest: busy */
/* ctest: long-tsan: exec/exec, layers/attention and layers/moe start the same threads */
#include "networks/llama.h"

#include <math.h>

#include "infer/decoding.h"
#include "networks/gradients.h"
#include "train/tiny_run.h"

static ls_config config_of(int64_t kv_heads, ls_head_kind head) {
    ls_config c;
    ls_config_defaults(&c);
    c.model.kind = LS_MODEL_LLAMA;
    c.model.layers = 2;
    c.model.width = 24;
    c.model.heads = 4;
    c.model.kv_heads = kv_heads;
    c.model.ffn = 40;
    c.model.context = 20;
    c.model.vocab = 300;
    c.model.head = head;
    return c;
}

/* Layers 0, 2 and 4 have a window, shorter than half of the context. */
static ls_config gemma_of(int64_t kv_heads, ls_head_kind head) {
    ls_config c = config_of(kv_heads, head);
    c.model.block = LS_BLOCKS_GEMMA3;
    c.model.qk_norm = LS_ON;
    c.model.layers = 5;
    c.model.head_dim = 10;
    c.model.window = 7;
    c.model.full_attention_every = 2;
    c.model.rope_base = 1e6;
    c.model.rope_local_base = 1e4;
    c.model.query_scalar = 17;
    c.model.norm_eps = 1e-6;
    return c;
}

/* Phi-3: four numbers of a head's six are turned, by one of two lists. */
static ls_config phi_of(int64_t kv_heads, int64_t original) {
    ls_config c = config_of(kv_heads, LS_HEAD_TIED);
    c.model.rope = LS_ROPES_LONGROPE;
    c.model.rope_factor = 4;
    c.model.rope_original = original;
    c.model.rope_short = "1\n1.5";
    c.model.rope_long = "1.25\n6";
    c.model.rope_dims = 4;
    c.model.window = 9;
    return c;
}

static ls_model model_of(const ls_config *c) {
    ls_model m = {0};
    ls_error e = {0};
    assert_ls_ok(ls_llama_create(c, false, &m, &e), e);
    return m;
}

/* ---- parameters ---- */

/* The names are those of transformers' LlamaForCausalLM, with weights as they are stored. */
static void test_names(void **state) {
    (void)state;
    static const struct {
        const char *name;
        int64_t rows, columns;
    } want[] = {{"model.embed_tokens.weight", 300, 24},
                {"model.layers.0.input_layernorm.weight", 24, 0},
                {"model.layers.0.self_attn.q_proj.weight", 24, 24},
                {"model.layers.0.self_attn.k_proj.weight", 12, 24},
                {"model.layers.0.self_attn.v_proj.weight", 12, 24},
                {"model.layers.0.self_attn.o_proj.weight", 24, 24},
                {"model.layers.0.post_attention_layernorm.weight", 24, 0},
                {"model.layers.0.mlp.gate_proj.weight", 40, 24},
                {"model.layers.0.mlp.up_proj.weight", 40, 24},
                {"model.layers.0.mlp.down_proj.weight", 24, 40}};
    enum { N = sizeof want / sizeof *want };
    ls_config c = config_of(2, LS_HEAD_OWN);
    ls_model m = model_of(&c);
    assert_int_equal(m.nparams, 1 + 2 * (N - 1) + 2);
    for (int i = 0; i < N; i++) {
        assert_string_equal(m.params[i].name, want[i].name);
        assert_int_equal(m.params[i].dims[0], want[i].rows);
        assert_int_equal(m.params[i].dims[1], want[i].columns);
    }
    assert_string_equal(m.params[m.nparams - 2].name, "model.norm.weight");
    assert_string_equal(m.params[m.nparams - 1].name, "lm_head.weight");
    ls_model_free(&m);
    c = config_of(2, LS_HEAD_TIED);
    m = model_of(&c);
    assert_string_equal(m.params[m.nparams - 1].name, "model.norm.weight");
    ls_model_free(&m);
    c.model.ffn = 0;
    m = model_of(&c);
    assert_int_equal(m.params[8].dims[0], 64); /* 8/3 of 24, in multiples of 64 */
    ls_model_free(&m);
}

/* Those of a block of Gemma3ForCausalLM; norms begin with weights of 0. */
static void test_gemma_names(void **state) {
    (void)state;
    static const struct {
        const char *name;
        int64_t rows, columns;
    } want[] = {{"input_layernorm", 24, 0},
                {"self_attn.q_proj", 40, 24},
                {"self_attn.k_proj", 20, 24},
                {"self_attn.v_proj", 20, 24},
                {"self_attn.q_norm", 10, 0},
                {"self_attn.k_norm", 10, 0},
                {"self_attn.o_proj", 24, 40},
                {"post_attention_layernorm", 24, 0},
                {"pre_feedforward_layernorm", 24, 0},
                {"mlp.gate_proj", 40, 24},
                {"mlp.up_proj", 40, 24},
                {"mlp.down_proj", 24, 40},
                {"post_feedforward_layernorm", 24, 0}};
    enum { N = sizeof want / sizeof *want };
    ls_config c = gemma_of(2, LS_HEAD_TIED);
    ls_model m = model_of(&c);
    assert_int_equal(m.nparams, 1 + 5 * N + 1);
    for (int i = 0; i < N; i++) {
        const ls_param *p = &m.params[1 + 3 * N + i];
        char *name = ls_format("model.layers.3.%s.weight", want[i].name);
        assert_string_equal(p->name, name);
        assert_true(p->dims[0] == want[i].rows && p->dims[1] == want[i].columns);
        if (p->ndims == 1) assert_true(p->init.value == 0 && p->init.std == 0 && !p->decay);
        free(name);
    }
    ls_model_free(&m);
}

static void test_gradients(void **state) {
    (void)state;
    ls_config configs[] = {config_of(2, LS_HEAD_TIED), gemma_of(1, LS_HEAD_TIED),
                           config_of(1, LS_HEAD_TIED), phi_of(2, 12)};
    configs[1].model.layers = 2;
    configs[2].model.no_rope_every = 2;
    for (int i = 0; i < 4; i++) {
        ls_model m = model_of(&configs[i]);
        assert_gradients(&m);
        ls_model_free(&m);
    }
}

static void set_up(decoding *s, const ls_config *c, ls_dtype type, int threads) {
    *s = (decoding){.model = model_of(c)};
    decoding_open(s, type, NULL, threads, 3);
    s->text = fix_tokens((size_t)c->model.context + 1, c->model.vocab, 4);
}

/* ---- a block of Gemma 3, in 64 bits; each third layer without a rotation ---- */

enum { WIDTH = 24, FFN = 40, HEAD = 10, CONTEXT = 20, HEADS = 4, VOCAB = 300 };

typedef struct reference {
    const decoding *s;
    int64_t kv_heads;
    int no_rope; /* layers up to one without a rotation; 0: all have one */
    double x[CONTEXT][WIDTH];
} reference;

static const float *weight_of(const reference *r, const char *name) {
    for (int i = 0; i < r->s->model.nparams; i++)
        if (strcmp(r->s->model.params[i].name, name) == 0)
            return r->s->params + r->s->model.params[i].offset;
    fail_msg("there is no %s", name);
    return NULL;
}

static const float *weight_in(const reference *r, int layer, const char *name) {
    char *whole = ls_format("model.layers.%d.%s.weight", layer, name);
    const float *w = weight_of(r, whole);
    free(whole);
    return w;
}

static void normed(int n, const double *x, const float *w, double *y) {
    double square = 0;
    for (int i = 0; i < n; i++) square += x[i] * x[i];
    double root = sqrt(square / n + 1e-6);
    for (int i = 0; i < n; i++) y[i] = x[i] / root * (1 + (double)w[i]);
}

static void product(int64_t out, int in, const float *w, const double *x, double *y) {
    for (int64_t o = 0; o < out; o++) {
        y[o] = 0;
        for (int i = 0; i < in; i++) y[o] += (double)w[o * in + i] * x[i];
    }
}

static void turned(double base, int t, double *x) {
    for (int i = 0; i < HEAD / 2; i++) {
        double angle = t * pow(base, -2.0 * i / HEAD), a = x[i], b = x[i + HEAD / 2];
        x[i] = a * cos(angle) - b * sin(angle);
        x[i + HEAD / 2] = b * cos(angle) + a * sin(angle);
    }
}

/* y [HEAD] = what a query sees of keys and values [.., HEAD] of positions first to t. */
static void attended(const double *q, const double (*k)[HEAD], const double (*v)[HEAD], int first,
                     int t, double *y) {
    double p[CONTEXT], sum = 0;
    memset(y, 0, HEAD * sizeof *y);
    for (int s = first; s <= t; s++) {
        double score = 0;
        for (int i = 0; i < HEAD; i++) score += q[i] * k[s][i];
        p[s] = exp(score / sqrt(17));
        sum += p[s];
    }
    for (int s = first; s <= t; s++)
        for (int i = 0; i < HEAD; i++) y[i] += p[s] / sum * v[s][i];
}

static void attention(reference *r, int layer) {
    static double q[CONTEXT][HEADS][HEAD], k[HEADS][CONTEXT][HEAD], v[HEADS][CONTEXT][HEAD];
    bool local = layer % 2 == 0, turns = !r->no_rope || (layer + 1) % r->no_rope;
    for (int t = 0; t < CONTEXT; t++) {
        double y[WIDTH], keys[HEADS][HEAD], values[HEADS][HEAD];
        normed(WIDTH, r->x[t], weight_in(r, layer, "input_layernorm"), y);
        product(HEADS * HEAD, WIDTH, weight_in(r, layer, "self_attn.q_proj"), y, q[t][0]);
        product(r->kv_heads * HEAD, WIDTH, weight_in(r, layer, "self_attn.k_proj"), y, keys[0]);
        product(r->kv_heads * HEAD, WIDTH, weight_in(r, layer, "self_attn.v_proj"), y, values[0]);
        for (int h = 0; h < HEADS; h++) {
            normed(HEAD, q[t][h], weight_in(r, layer, "self_attn.q_norm"), q[t][h]);
            if (turns) turned(local ? 1e4 : 1e6, t, q[t][h]);
        }
        for (int64_t h = 0; h < r->kv_heads; h++) {
            normed(HEAD, keys[h], weight_in(r, layer, "self_attn.k_norm"), k[h][t]);
            if (turns) turned(local ? 1e4 : 1e6, t, k[h][t]);
            memcpy(v[h][t], values[h], sizeof v[h][t]);
        }
    }
    for (int t = 0; t < CONTEXT; t++) {
        double heads[HEADS][HEAD], y[WIDTH];
        int first = local && t >= 7 ? t - 6 : 0;
        for (int h = 0; h < HEADS; h++) {
            int64_t kv = h / (HEADS / r->kv_heads);
            attended(q[t][h], (const double(*)[HEAD])k[kv], (const double(*)[HEAD])v[kv], first, t,
                     heads[h]);
        }
        product(WIDTH, HEADS * HEAD, weight_in(r, layer, "self_attn.o_proj"), heads[0], y);
        normed(WIDTH, y, weight_in(r, layer, "post_attention_layernorm"), y);
        for (int i = 0; i < WIDTH; i++) r->x[t][i] += y[i];
    }
}

static void feed_forward(reference *r, int layer) {
    for (int t = 0; t < CONTEXT; t++) {
        double y[WIDTH], gate[FFN], up[FFN];
        normed(WIDTH, r->x[t], weight_in(r, layer, "pre_feedforward_layernorm"), y);
        product(FFN, WIDTH, weight_in(r, layer, "mlp.gate_proj"), y, gate);
        product(FFN, WIDTH, weight_in(r, layer, "mlp.up_proj"), y, up);
        for (int i = 0; i < FFN; i++) {
            double g = gate[i];
            up[i] *= g / 2 * (1 + tanh(sqrt(2 / acos(-1)) * (g + 0.044715 * g * g * g)));
        }
        product(WIDTH, FFN, weight_in(r, layer, "mlp.down_proj"), up, y);
        normed(WIDTH, y, weight_in(r, layer, "post_feedforward_layernorm"), y);
        for (int i = 0; i < WIDTH; i++) r->x[t][i] += y[i];
    }
}

static void test_gemma(void **state) {
    (void)state;
    for (int64_t kv_heads = 1; kv_heads <= HEADS; kv_heads *= 2) {
        ls_config c = gemma_of(kv_heads, LS_HEAD_TIED);
        decoding s;
        if (kv_heads == 2) c.model.no_rope_every = 3;
        set_up(&s, &c, LS_F32, 2);
        reference r = {.s = &s, .kv_heads = kv_heads, .no_rope = (int)c.model.no_rope_every};
        const float *table = weight_of(&r, "model.embed_tokens.weight");
        for (int t = 0; t < CONTEXT; t++)
            for (int i = 0; i < WIDTH; i++)
                r.x[t][i] = sqrt(WIDTH) * (double)table[s.text[t] * WIDTH + (uint32_t)i];
        for (int layer = 0; layer < 5; layer++) {
            attention(&r, layer);
            feed_forward(&r, layer);
        }
        for (int t = 0; t < CONTEXT; t++) {
            double y[WIDTH], want[VOCAB];
            normed(WIDTH, r.x[t], weight_of(&r, "model.norm.weight"), y);
            product(VOCAB, WIDTH, table, y, want);
            const float *got = ls_infer_next(&s.infer, s.text, t + 1);
            for (int i = 0; i < VOCAB; i++)
                if (!(fabs((double)got[i] - want[i]) <= 2e-5))
                    fail_msg("%lld heads of keys, position %d, token %d: %g is not %g",
                             (long long)kv_heads, t, i, (double)got[i], want[i]);
        }
        decoding_close(&s);
    }
}

/* ---- tokens one by one ---- */

/* After a prompt of n tokens, and each token that follows it. */
static void check_prompt(decoding *s, int64_t n, int64_t T, const float *want, int64_t V) {
    const float *logits = ls_decode_prompt(&s->decode, s->text, n);
    for (;; n++) {
        assert_true(logits[0] == logits[0]); /* no NaN */
        assert_memory_equal(logits, want + (n - 1) * V, (size_t)V * sizeof *want);
        if (n == T) break;
        logits = ls_decode_next(&s->decode, s->text[n]);
    }
}

static void test_decode(void **state) {
    (void)state;
    static const ls_dtype types[] = {LS_F32, LS_BF16, LS_F16};
    for (int i = 0; i < 12; i++) {
        ls_config c = config_of(i % 2 ? 1 : 4, i % 3 ? LS_HEAD_TIED : LS_HEAD_OWN);
        if (i >= 6) c = gemma_of(i % 2 ? 1 : 4, LS_HEAD_TIED);
        if (i >= 9) c = phi_of(i % 2 ? 1 : 4, i % 2 ? 12 : 64);
        if (i % 2) c.model.no_rope_every = 2;
        decoding s;
        set_up(&s, &c, types[i % 3], 1 + i % 3);
        int64_t T = c.model.context, V = c.model.vocab;
        float *want = fix_nans((size_t)(T * V)); /* after the first 1, 2, ... T tokens */
        for (int64_t n = 1; n <= T; n++)
            memcpy(want + (n - 1) * V, ls_infer_next(&s.infer, s.text, n),
                   (size_t)V * sizeof *want);
        check_prompt(&s, T, T, want, V);
        check_prompt(&s, 1, T, want, V);
        check_prompt(&s, T / 2, T, want, V);
        free(want);
        decoding_close(&s);
    }
}

/* Several chunks of kept keys and values; queries of 1 to 6 heads share those of one. */
static void test_decode_far(void **state) {
    (void)state;
    static const int64_t heads[][2] = {{6, 6}, {6, 3}, {6, 2}, {4, 1}, {5, 1}, {6, 1}};
    for (size_t i = 0; i < sizeof heads / sizeof *heads; i++) {
        ls_config c = config_of(heads[i][1], LS_HEAD_TIED);
        c.model.layers = 1;
        c.model.heads = heads[i][0];
        c.model.width = heads[i][0] * (i % 2 ? 40 : 6);
        c.model.context = 150;
        decoding s;
        set_up(&s, &c, LS_F32, 1 + (int)i % 3);
        int64_t T = c.model.context, V = c.model.vocab;
        float *want = fix_nans((size_t)(T * V));
        for (int64_t n = 1; n <= T; n++)
            memcpy(want + (n - 1) * V, ls_infer_next(&s.infer, s.text, n),
                   (size_t)V * sizeof *want);
        check_prompt(&s, 1, T, want, V);
        check_prompt(&s, 130, T, want, V);
        free(want);
        decoding_close(&s);
    }
}

/* What is read for a token: all weights once, and the keys and values of 2 layers and 1 head of
 * 6. */
static void test_read(void **state) {
    (void)state;
    ls_config c = config_of(1, LS_HEAD_TIED);
    decoding s;
    set_up(&s, &c, LS_F32, 1);
    assert_int_equal(ls_decode_weights_read(&s.decode), (s.model.count + 24) * sizeof(float));
    ls_decode_prompt(&s.decode, s.text, 3);
    assert_true(ls_decode_cache_read(&s.decode) >= 4u * 2 * 2 * 6 * sizeof(float));
    decoding_close(&s);
    c = config_of(1, LS_HEAD_OWN);
    set_up(&s, &c, LS_F32, 1);
    assert_int_equal(ls_decode_weights_read(&s.decode),
                     (s.model.count - 300 * 24 + 24) * sizeof(float));
    decoding_close(&s);
}

/* ---- training ---- */

/* Trains with four settings beside the usual ones. */
static void train(int n, const char *const *own, char hash[LS_HASH_TEXT]) {
    static const char *const usual[] = {"model.kind=llama",
                                        "model.kv_heads=1",
                                        "model.heads=6",
                                        "model.head=own",
                                        "log.every=1000",
                                        "train.steps=4",
                                        "optim.warmup=2",
                                        "train.eval_every=0",
                                        "parallel.transport=thread",
                                        NULL};
    ls_error e = {0};
    char *run = run_path(nruns++);
    assert_ls_ok(try_run(run, n, usual, own, &e), e);
    result last = last_of(run);
    memcpy(hash, last.weights, LS_HASH_TEXT);
    free(run);
}
#define TRAIN(n, hash, ...) train(n, (const char *const[]){__VA_ARGS__, NULL}, hash)

static void same_bits(const char *type, char one[LS_HASH_TEXT]) {
    char other[LS_HASH_TEXT];
    const char *usual = "parallel.recompute=0";
    TRAIN(1, one, type, "parallel.zero=0", "train.micro_batch=1", usual);
    TRAIN(2, other, type, "parallel.zero=1", "train.micro_batch=2", usual);
    assert_string_equal(other, one);
    TRAIN(3, other, type, "parallel.zero=3", "train.micro_batch=1", "parallel.recompute=2");
    assert_string_equal(other, one);
}

/* One worker and three, a pipeline, a device, and the kernels of several processors. */
static void test_gemma_bits(void **state) {
    (void)state;
    static const char *const types[] = {"train.compute=f32", "train.compute=bf16"};
#define GEMMA                                                                                      \
    "model.block=gemma3", "model.qk_norm=on", "model.window=5", "model.full_attention_every=2",    \
        "model.head_dim=8", "model.head=tied", "model.no_rope_every=2"
    for (int i = 0; i < (all_cases() ? 2 : 1); i++) {
        char one[LS_HASH_TEXT], other[LS_HASH_TEXT];
        TRAIN(1, one, types[i], GEMMA, "train.micro_batch=1");
        TRAIN(3, other, types[i], GEMMA, "parallel.zero=3", "parallel.recompute=2");
        assert_string_equal(other, one);
        TRAIN(2, other, types[i], GEMMA, "parallel.mesh.pipe=2", "train.virtual_workers=4");
        TRAIN(1, one, types[i], GEMMA, "parallel.device=c:1", "train.virtual_workers=4");
        assert_string_equal(other, one);
    }
}

static void test_bits(void **state) {
    (void)state;
    char one[LS_HASH_TEXT];
    same_bits("train.compute=f32", one);
}

/* Layers take operands in bf16 as they are stored. */
static void test_bits_in_bf16(void **state) {
    (void)state;
    static const char TYPE[] = "train.compute=bf16", MICRO[] = "train.micro_batch=2";
    char one[LS_HASH_TEXT], other[LS_HASH_TEXT];
    same_bits(TYPE, one);
    TRAIN(1, other, TYPE, MICRO, "parallel.threads=3", "parallel.zero=0");
    assert_string_equal(other, one);
    const ls_kernels *k = NULL;
    for (int i = 1; (k = ls_kernels_at(i)); i++) { /* 0: the runs above use these */
        assert_int_equal(setenv("LOCKSTEP_CPU", k->name, 1), 0);
        TRAIN(2, other, TYPE, MICRO, "parallel.threads=1", "parallel.zero=1");
        assert_int_equal(unsetenv("LOCKSTEP_CPU"), 0);
        assert_string_equal(other, one);
    }
    TRAIN(1, other, "train.compute=f32", MICRO, "parallel.threads=1", "parallel.zero=0");
    assert_string_not_equal(other, one);
}

static void refuse(const ls_config *c, const char *why) {
    ls_model m = {0};
    ls_error e = {0};
    assert_int_equal(ls_llama_create(c, false, &m, &e), LS_EINVAL);
    assert_non_null(strstr(e.msg, why));
}

static void test_refusals(void **state) {
    (void)state;
    ls_config c = config_of(3, LS_HEAD_TIED);
    refuse(&c, "model.kv_heads 3 does not divide model.heads 4");
    c = config_of(2, LS_HEAD_TIED);
    c.model.heads = 8;
    refuse(&c, "a head has 3 numbers (model.head_dim, or model.width / model.heads)");
    c = gemma_of(2, LS_HEAD_TIED);
    c.model.full_attention_every = 1;
    refuse(&c, "model.full_attention_every is 1: no layer would have model.window");
    c = config_of(2, LS_HEAD_TIED);
    c.model.no_rope_every = 1;
    refuse(&c, "model.no_rope_every is 1: no layer would have rotary positions");
    c = gemma_of(2, LS_HEAD_TIED);
    c.model.experts = 3;
    refuse(&c, "model.block: gemma3 has no experts");
    c = phi_of(2, 12);
    c.model.rope_dims = 3;
    refuse(&c, "model.rope_dims is 3; it must be an even number of a head's 6");
    c.model.rope_dims = 8;
    refuse(&c, "model.rope_dims is 8; it must be an even number of a head's 6");
    c.model.rope_dims = 0;
    refuse(&c, "model.rope_short: a list of 3 numbers from 1e-6 to 1e6 is expected");
    c = phi_of(2, 12);
    c.model.rope_long = "1\nx";
    refuse(&c, "model.rope_long: a list of 2 numbers from 1e-6 to 1e6 is expected");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_names),
        cmocka_unit_test(test_gemma_names),
        cmocka_unit_test(test_gradients),
        cmocka_unit_test(test_gemma),
        cmocka_unit_test(test_decode),
        cmocka_unit_test(test_decode_far),
        cmocka_unit_test(test_read),
        cmocka_unit_test_setup_teardown(test_bits, make_folder, remove_folder),
        cmocka_unit_test_setup_teardown(test_gemma_bits, make_folder, remove_folder),
        plain_unit_test_setup_teardown(test_bits_in_bf16, make_folder, remove_folder),
        cmocka_unit_test(test_refusals)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
