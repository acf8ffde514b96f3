/* gguf_model_test.c - an architecture in GGUF's metadata: read from files that are laid out by
 * hand, written and read again; what is not supported is refused by the name of its key. */
#include "weights/gguf_model.h"

#include <math.h>

#include "folder.h"
#include "test.h"
#include "weights/gguf_bytes.h"

static char path[96];

static int make_path(void **state) {
    int failed = make_folder(state);
    snprintf(path, sizeof path, "%s/m.gguf", folder);
    return failed;
}

/* ---- metadata of SmolLM2-135M, with one key added, changed or removed ---- */

typedef struct entry {
    const char *key;
    uint32_t kind; /* U32, F32, BOOL, TEXT, or ARRAY: of two u32 */
    double number;
    const char *text;
} entry;

static const entry smollm[] = {
    {"general.architecture", TEXT, 0, "llama"},
    {"general.type", TEXT, 0, "model"},
    {"general.name", TEXT, 0, "Smollm2"},
    {"llama.block_count", U32, 30, NULL},
    {"llama.context_length", U32, 8192, NULL},
    {"llama.embedding_length", U32, 64, NULL},
    {"llama.feed_forward_length", U32, 96, NULL},
    {"llama.attention.head_count", U32, 4, NULL},
    {"llama.attention.head_count_kv", U32, 2, NULL},
    {"llama.rope.freq_base", F32, 100000, NULL},
    {"llama.attention.layer_norm_rms_epsilon", F32, 1e-5, NULL},
    {"llama.vocab_size", U32, 100, NULL},
    {"llama.rope.dimension_count", U32, 16, NULL},
    {"tokenizer.ggml.bos_token_id", U32, 1, NULL},
    {"tokenizer.ggml.eos_token_id", U32, 2, NULL},
    {"tokenizer.ggml.padding_token_id", U32, 2, NULL},
};
enum { NENTRIES = sizeof smollm / sizeof *smollm };

static void put_entry(ls_buf *b, const entry *x) {
    put_key(b, x->key, x->kind);
    if (x->kind == U32) put32(b, (uint32_t)x->number);
    if (x->kind == F32) put_float(b, (float)x->number);
    if (x->kind == BOOL) ls_buf_append(b, x->number != 0 ? "\1" : "", 1);
    if (x->kind == TEXT) put_name(b, x->text);
    if (x->kind == ARRAY) put32(b, U32), put64(b, 2), put32(b, 4), put32(b, 4);
}

/* The file with the entry in the place of the one with its key (of kind 99: without it), and with
 * more tensors [n] of F32. */
static void write_file(const entry *change, const char *const *names, const int64_t *sizes, int n,
                       const float *values) {
    ls_buf keys = {0}, b = {0};
    uint64_t nkeys = 0, at = 25600;
    for (int i = 0; i < NENTRIES; i++)
        if (!change || strcmp(smollm[i].key, change->key) != 0)
            put_entry(&keys, &smollm[i]), nkeys++;
    if (change && change->kind != 99) put_entry(&keys, change), nkeys++;
    put_header(&b, 3, 1 + (uint64_t)n, nkeys);
    ls_buf_append(&b, keys.data, keys.len);
    put_tensor(&b, "token_embd.weight", 2, (uint64_t[]){64, 100}, 0, 0);
    for (int i = 0; i < n; i++) {
        put_tensor(&b, names[i], 1, (uint64_t[]){(uint64_t)sizes[i]}, 0, at);
        at += (uint64_t)(sizes[i] * 4 + 31) / 32 * 32;
    }
    pad_to(&b, 32);
    for (int i = 0; i < 6400; i++) put_float(&b, 0);
    for (int i = 0; i < n; i++) {
        for (int64_t k = 0; k < sizes[i]; k++) put_float(&b, values ? values[k] : 0);
        pad_to(&b, 32);
    }
    write_bytes(path, b.data, b.len);
    ls_buf_free(&keys);
    ls_buf_free(&b);
}

static ls_status read_file(ls_architecture *a, ls_error *e) {
    ls_gguf g;
    LS_TRY(ls_gguf_open(path, &g, e));
    ls_status s = ls_gguf_read_architecture(&g, a, e);
    ls_gguf_close(&g);
    return s;
}

static ls_architecture good(void) {
    ls_architecture a;
    ls_error e = {0};
    assert_ls_ok(read_file(&a, &e), e);
    return a;
}

static ls_architecture good_with(const entry *change) {
    write_file(change, NULL, NULL, 0, NULL);
    return good();
}

static void check_refused(const entry *change, const char *text) {
    ls_architecture a;
    ls_error e = {0};
    write_file(change, NULL, NULL, 0, NULL);
    if (read_file(&a, &e) != LS_EINVAL || !strstr(e.msg, text) || !strstr(e.msg, path))
        fail_msg("%s: '%s' does not say '%s'", change->key, e.msg, text);
}

static void test_read(void **state) {
    (void)state;
    ls_architecture a = good_with(NULL);
    assert_true(a.family == LS_FAMILY_LLAMA && a.layers == 30 && a.width == 64 && a.ffn == 96);
    assert_true(a.heads == 4 && a.kv_heads == 2 && a.head_dim == 16 && a.vocab == 100);
    assert_true(a.context == 8192 && a.norm_eps == 1e-5 && a.rope.base == 100000 && a.tied);
    assert_true(a.rope.type == LS_ROPE_DEFAULT && a.window == 0 && !a.qkv_bias && !a.qk_norm);
    assert_true(a.bos == 1 && a.pad == 2 && a.neos == 1 && a.eos[0] == 2);

    a = good_with(&(entry){"llama.attention.head_count_kv", 99, 0, NULL});
    assert_int_equal(a.kv_heads, 4);
    a = good_with(&(entry){"llama.rope.freq_base", 99, 0, NULL});
    assert_true(a.rope.base == 10000);
    a = good_with(&(entry){"llama.rope.scaling.factor", F32, 2.5, NULL});
    assert_true(a.rope.type == LS_ROPE_LINEAR && a.rope.factor == 2.5);
    a = good_with(&(entry){"llama.rope.scale_linear", F32, 4, NULL});
    assert_true(a.rope.type == LS_ROPE_LINEAR && a.rope.factor == 4);
    a = good_with(&(entry){"llama.rope.scaling.type", TEXT, 0, "none"});
    assert_true(a.rope.type == LS_ROPE_DEFAULT);
    a = good_with(&(entry){"tokenizer.ggml.eot_token_id", U32, 7, NULL});
    assert_true(a.neos == 2 && a.eos[1] == 7);
    a = good_with(&(entry){"tokenizer.ggml.eot_token_id", U32, 2, NULL});
    assert_true(a.neos == 1 && a.generation.temperature == 0 && !a.generation.greedy);
    a = good_with(&(entry){"general.sampling.temp", F32, 0.6, NULL});
    assert_true(a.generation.temperature == 0.6 && !a.generation.greedy);
    assert_true(good_with(&(entry){"general.sampling.temp", F32, 0, NULL}).generation.greedy);
    a = good_with(&(entry){"general.sampling.top_k", U32, 20, NULL});
    assert_true(a.generation.top_k == 20);
    a = good_with(&(entry){"tokenizer.ggml.padding_token_id", 99, 0, NULL});
    assert_true(a.pad == LS_TOKEN_NONE);
    good_with(&(entry){"llama.expert_count", U32, 0, NULL});
    good_with(&(entry){"llama.attention.key_length", U32, 16, NULL});
    good_with(&(entry){"mradermacher.quantized_on", TEXT, 0, "x"}); /* another program's */
    good_with(&(entry){"general.languages", ARRAY, 0, NULL});
}

static void test_tensors(void **state) {
    (void)state;
    static const char *const names[] = {"blk.0.attn_q.bias", "blk.0.attn_output.bias",
                                        "blk.0.ffn_up.bias", "output.weight"};
    write_file(NULL, names, (int64_t[]){64, 64, 96, 64}, 4, NULL);
    ls_architecture a = good();
    assert_true(a.qkv_bias && a.o_bias && a.mlp_bias && !a.tied);
    ls_error e;
    write_file(NULL, names, (int64_t[]){64}, 1, NULL); /* no config.json can say that */
    assert_ls_fails(read_file(&a, &e), LS_EINVAL, "has these biases", e);
}

static void test_refused(void **state) {
    (void)state;
    static const struct {
        entry change;
        const char *text;
    } cases[] = {
        {{"general.architecture", TEXT, 0, "gemma"}, "general.architecture is 'gemma'"},
        {{"general.architecture", TEXT, 0, "mistral"}, "general.architecture is 'mistral'"},
        {{"general.architecture", 99, 0, NULL}, "general.architecture is missing"},
        {{"general.architecture", U32, 1, NULL}, "general.architecture is '?'"},
        {{"general.type", TEXT, 0, "adapter"},
         "is an adapter, without the model: `lockstep serve MODEL"},
        {{"general.type", TEXT, 0, "mmproj"}, "general.type is not 'model'"},
        {{"split.count", U32, 3, NULL}, "split.count is 3"},
        {{"llama.block_count", 99, 0, NULL}, "llama.block_count is missing"},
        {{"llama.block_count", F32, 30, NULL}, "llama.block_count is f32; it must be one integer"},
        {{"llama.block_count", TEXT, 0, "30"}, "llama.block_count is text"},
        {{"llama.block_count", U32, 0, NULL}, "layers: 0 is not from 1"},
        {{"llama.block_count", U32, 4e9, NULL}, "layers: 4000000000"},
        {{"llama.attention.head_count", ARRAY, 0, NULL}, "head_count is an array of u32"},
        {{"llama.attention.head_count", U32, 0, NULL}, "head_count 0 does not divide"},
        {{"llama.attention.head_count", U32, 7, NULL}, "head_count 7 does not divide"},
        {{"llama.attention.head_count_kv", U32, 3, NULL}, "3 KV heads don't divide"},
        {{"llama.attention.key_length", U32, 32, NULL}, "dimension_count is 16; only 32"},
        {{"llama.attention.value_length", U32, 8, NULL}, "value_length is 8; only 16"},
        {{"llama.rope.dimension_count", U32, 8, NULL}, "whole heads are rotated"},
        {{"llama.rope.freq_base", TEXT, 0, "1e4"}, "rope.freq_base is text; it must be one number"},
        {{"llama.rope.freq_base", F32, -5, NULL}, "base -5 is not positive"},
        {{"llama.rope.freq_base", F32, NAN, NULL}, "base nan is not positive"},
        {{"llama.rope.scaling.type", TEXT, 0, "yarn"}, "the rotation's factor 0 is not positive"},
        {{"llama.rope.scaling.attn_factor", F32, 2, NULL}, "attn_factor is not supported"},
        {{"llama.rope.scaling.type", TEXT, 0, "longrope"}, "is 'longrope'"},
        {{"llama.rope.scaling.factor", F32, -2, NULL}, "factor -2 is not positive"},
        {{"llama.attention.layer_norm_rms_epsilon", 99, 0, NULL}, "epsilon is missing"},
        {{"llama.attention.layer_norm_rms_epsilon", F32, 2, NULL}, "(rms_norm_eps) is 2"},
        {{"llama.attention.layer_norm_epsilon", F32, 1e-5, NULL}, "may change the model"},
        {{"llama.vocab_size", U32, 101, NULL}, "llama.vocab_size is 101; only 100"},
        {{"llama.expert_count", U32, 8, NULL}, "llama.expert_used_count is missing"},
        {{"llama.attention.sliding_window", U32, 4096, NULL}, "sliding_window is 4096"},
        {{"llama.attention.causal", BOOL, 0, NULL}, "llama.attention.causal is not true"},
        {{"llama.attn_logit_softcapping", F32, 30, NULL},
         "llama.attn_logit_softcapping is not supported: it may change the model"},
        {{"llama.tensor_data_layout", TEXT, 0, "other"}, "tensor_data_layout is not supported"},
        {{"tokenizer.ggml.eos_token_id", U32, 100, NULL}, "eos_token_id 100 is no token"},
        {{"tokenizer.ggml.bos_token_id", F32, 1, NULL}, "bos_token_id is f32"},
        {{"general.sampling.top_p", F32, 1.5, NULL},
         "sampling.top_p is 1.5; it must be from 0 to 1"},
        {{"general.sampling.min_p", TEXT, 0, "x"}, "general.sampling.min_p is text"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        check_refused(&cases[i].change, cases[i].text);
}

/* ---- divisors of the rotation ---- */

static void write_divisors(const float *x, int64_t n) {
    static const char *const names[] = {LS_GGUF_DIVISORS};
    static const entry base = {"llama.rope.freq_base", F32, 50000, NULL};
    write_file(&base, names, &n, 1, x);
}

static void test_divisors(void **state) {
    (void)state;
    const double pi = acos(-1);
    float x[9] = {1, 1, 1, 1, 1, 1, 1, 1};
    ls_architecture a;
    ls_error e;
    write_divisors(x, 8);
    assert_true(good().rope.type == LS_ROPE_DEFAULT);
    for (int i = 0; i < 8; i++) { /* Llama 3.2's, for heads of 16 elements and a base of 50000 */
        double length = 2 * pi * pow(50000, i / 8.0), s = (8192 / length - 1) / 3;
        x[i] = (float)(length < 2048 ? 1 : length > 8192 ? 32 : 1 / ((1 - s) / 32 + s));
    }
    write_divisors(x, 8);
    a = good();
    assert_true(a.rope.type == LS_ROPE_LLAMA3 && a.rope.factor == 32 && a.rope.low == 1);
    assert_true(a.rope.high == 4 && a.rope.original_context == 8192 && a.rope.base == 50000);
    assert_true(x[5] > 1 && x[5] < 32); /* one is between */
    x[5] *= 1.001f;
    write_divisors(x, 8);
    assert_ls_fails(read_file(&a, &e), LS_EINVAL, "rope_freqs.weight", e);
    write_divisors(x, 9);
    assert_ls_fails(read_file(&a, &e), LS_EINVAL, "must be F32 [8]", e);
    x[5] = INFINITY;
    write_divisors(x, 8);
    assert_ls_fails(read_file(&a, &e), LS_EINVAL, "rope_freqs.weight", e);
    for (int i = 0; i < 8; i++) x[i] = NAN;
    write_divisors(x, 8);
    assert_ls_fails(read_file(&a, &e), LS_EINVAL, "rope_freqs.weight", e);
}

/* ---- writing ---- */

static ls_architecture architecture_of(ls_family f) {
    ls_architecture a = {.family = f,
                         .layers = 3,
                         .width = 64,
                         .ffn = 160,
                         .heads = 4,
                         .kv_heads = 2,
                         .head_dim = f == LS_FAMILY_QWEN3 ? 32 : 16,
                         .vocab = 100,
                         .context = 77,
                         .norm_eps = 1e-6,
                         .rope = {.type = LS_ROPE_DEFAULT, .base = 500000},
                         .tied = true,
                         .qkv_bias = f == LS_FAMILY_QWEN2,
                         .qk_norm = f == LS_FAMILY_QWEN3 || f == LS_FAMILY_QWEN3_MOE,
                         .bos = 5,
                         .pad = 6,
                         .eos = {7, 8},
                         .neos = 2,
                         .generation = {.temperature = 0.7, .top_p = 0.8, .top_k = 20}};
    if (ls_family_has_experts(f)) {
        a.experts = 9;
        a.experts_per_token = 3;
        a.norm_topk = true;
        a.router_aux_loss = 0.001;
    }
    if (f == LS_FAMILY_GEMMA3) {
        a.gemma = a.qk_norm = true;
        a.window = 9;
        a.full_every = 2;
        a.local_base = 20000;
    }
    if (f == LS_FAMILY_PHI3) {
        a.window = 33;
        a.turned = 6;
    }
    if (f == LS_FAMILY_SMOLLM3) {
        a.layers = 9;
        a.no_rope_every = 4;
    }
    if (f != LS_FAMILY_GPT2) return a;
    a.kv_heads = 4;
    a.rope = (ls_rotation){0};
    a.qkv_bias = a.o_bias = a.mlp_bias = true;
    return a;
}

static ls_architecture write_and_read(const ls_architecture *a) {
    ls_gguf_writer w = {0};
    ls_error e = {0};
    float zeros[6400] = {0}, divisor;
    ls_gguf_put_architecture(&w, a, LS_BLOCK_F32);
    int64_t n = ls_gguf_put_divisors(&w, a);
    ls_gguf_put_tensor(&w, "token_embd.weight", LS_BLOCK_F32, 2, (int64_t[]){64, 100});
    if (a->qkv_bias) ls_gguf_put_tensor(&w, "blk.0.attn_q.bias", LS_BLOCK_F32, 1, (int64_t[]){64});
    unlink(path);
    assert_ls_ok(ls_gguf_begin(&w, path, &e), e);
    for (int k = 0; a->rope.type == LS_ROPE_LONGROPE && k < 2; k++)
        assert_ls_ok(ls_gguf_add(&w, a->divisors[k], (size_t)n * sizeof(float), &e), e);
    for (int64_t i = 0; a->rope.type != LS_ROPE_LONGROPE && i < n; i++) {
        divisor = (float)ls_rope_divisor(&a->rope, a->head_dim, i);
        assert_ls_ok(ls_gguf_add(&w, &divisor, sizeof divisor, &e), e);
    }
    assert_ls_ok(ls_gguf_add(&w, zeros, sizeof zeros, &e), e);
    if (a->qkv_bias) assert_ls_ok(ls_gguf_add(&w, zeros, 256, &e), e);
    assert_ls_ok(ls_gguf_end(&w, &e), e);
    ls_gguf_writer_free(&w);
    return good();
}

/* Field by field: the bytes between fields are not set. */
#define SAME(field) (memcmp(&x->field, &y->field, sizeof x->field) == 0)
static bool is_same(const ls_architecture *x, const ls_architecture *y) {
    bool same = SAME(family) && SAME(layers) && SAME(width) && SAME(ffn) && SAME(heads) &&
                SAME(kv_heads) && SAME(head_dim) && SAME(vocab) && SAME(context) &&
                SAME(norm_eps) && SAME(window) && SAME(full_every) && SAME(local_base) &&
                SAME(turned) && SAME(divisors) && SAME(no_rope_every) && SAME(query_scalar) &&
                SAME(gemma) && SAME(qkv_bias) && SAME(o_bias) && SAME(mlp_bias) && SAME(qk_norm) &&
                SAME(experts) && SAME(experts_per_token) && SAME(norm_topk) &&
                SAME(router_aux_loss) && SAME(tied) && SAME(bos) && SAME(pad) && SAME(eos) &&
                SAME(neos);
    bool rotation = SAME(rope.type) && SAME(rope.base) && SAME(rope.factor) && SAME(rope.low) &&
                    SAME(rope.high) && SAME(rope.original_context) && SAME(rope.exact) &&
                    fabs(x->rope.scale - y->rope.scale) < 2e-7; /* f32 there */
    bool drawn = SAME(generation.greedy) && SAME(generation.temperature) &&
                 SAME(generation.top_p) && SAME(generation.min_p) && SAME(generation.penalty) &&
                 SAME(generation.top_k);
    return same && rotation && drawn;
}

static void test_written(void **state) {
    (void)state;
    for (int f = 0; f < LS_NFAMILIES; f++)
        for (int type = LS_ROPE_DEFAULT; type < LS_NROPE_TYPES; type++) {
            if (f == LS_FAMILY_GEMMA3 && type >= LS_ROPE_LLAMA3) continue;
            if (f == LS_FAMILY_SMOLLM3 && type == LS_ROPE_LLAMA3) continue;
            bool listed = type == LS_ROPE_LONGROPE;
            if (f == LS_FAMILY_PHI3 ? !listed && type != LS_ROPE_DEFAULT : listed) continue;
            ls_architecture a = architecture_of((ls_family)f);
            if (f != LS_FAMILY_GPT2) a.rope.type = (ls_rope_type)type;
            if (a.rope.type > LS_ROPE_DEFAULT) a.rope.factor = 8;
            if (listed) {
                a.rope.original_context = 7;
                a.rope.factor = 11; /* the context by it */
                a.rope.scale = f % 2 ? ls_longrope_scale(&a.rope) : 1.25;
                memcpy(a.divisors[LS_ROPE_SHORT], (float[]){1, 1.5f, 2.25f}, 12);
                memcpy(a.divisors[LS_ROPE_LONG], (float[]){1.125f, 8, 60}, 12);
            }
            if (a.rope.type == LS_ROPE_LLAMA3)
                a.rope.low = 1, a.rope.high = 4, a.rope.original_context = 8192;
            if (a.rope.type == LS_ROPE_YARN)
                a.rope = (ls_rotation){
                    LS_ROPE_YARN, 500000, 8, 1, 32, 4096, f % 2 ? 1.5 : ls_rope_scale(8), false};
            ls_architecture b = write_and_read(&a);
            if (a.rope.type == LS_ROPE_YARN) a.context = 8 * 4096; /* as long as it may be */
            if (f == LS_FAMILY_MISTRAL) a.family = LS_FAMILY_LLAMA;
            assert_true(is_same(&a, &b));
        }
    /* in a context of its length a window changes nothing */
    static const int64_t windows[][2] = {{0, 77}, {76, 76}, {77, 77}, {4096, 77}};
    for (int i = 0; i < 4; i++) {
        ls_architecture a = architecture_of(LS_FAMILY_MISTRAL);
        a.window = windows[i][0];
        ls_architecture b = write_and_read(&a);
        assert_true(b.window == 0 && b.context == windows[i][1] && b.layers == a.layers);
    }
}

/* In no layer a window, in all, and what its keys can't say. */
static void test_gemma3(void **state) {
    (void)state;
    ls_architecture a = architecture_of(LS_FAMILY_GEMMA3), b;
    ls_error e = {0};
    ls_architecture_set_windows(&a, 4, 20000);
    b = write_and_read(&a);
    assert_true(is_same(&a, &b) && b.window == 9 && b.full_every == 0 && b.rope.base == 20000);
    ls_architecture_set_windows(&a, 1, 20000);
    b = write_and_read(&a);
    assert_true(is_same(&a, &b) && b.window == 0);
    assert_ls_ok(ls_gguf_check(&a, &e), e);
    a.query_scalar = 20;
    assert_ls_fails(ls_gguf_check(&a, &e), LS_EINVAL, "divides scores by the root of 20", e);
    a.layers = 62; /* that of 27 billion parameters: width / heads */
    a.query_scalar = 0;
    assert_ls_ok(ls_gguf_check(&a, &e), e);
    a.width = 80;
    assert_ls_fails(ls_gguf_check(&a, &e), LS_EINVAL, "the root of 16", e);
    a.query_scalar = 20;
    assert_ls_ok(ls_gguf_check(&a, &e), e);
    a.rope.type = LS_ROPE_LLAMA3;
    assert_ls_fails(ls_gguf_check(&a, &e), LS_EINVAL, "no keys for the rotation llama3", e);
}

/* llama.cpp has no key for the layers without a rotation: it is each fourth layer. */
static void test_smollm3(void **state) {
    (void)state;
    static const struct {
        int64_t layers, every;
        bool writes;
    } cases[] = {{36, 4, true},  {4, 4, true},   {3, 0, true},
                 {36, 3, false}, {36, 0, false}, {3, 2, false}};
    ls_error e = {0};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        ls_architecture a = architecture_of(LS_FAMILY_SMOLLM3), b;
        a.layers = cases[i].layers;
        a.no_rope_every = cases[i].every;
        if (!cases[i].writes) {
            assert_ls_fails(ls_gguf_check(&a, &e), LS_EINVAL, "no key for the layers without", e);
            continue;
        }
        assert_ls_ok(ls_gguf_check(&a, &e), e);
        b = write_and_read(&a);
        assert_true(is_same(&a, &b));
    }
    ls_architecture a = architecture_of(LS_FAMILY_SMOLLM3);
    a.mlp_bias = true;
    assert_ls_fails(ls_gguf_check(&a, &e), LS_EINVAL, "no biases in a model of the family", e);
    a.mlp_bias = false;
    a.rope.type = LS_ROPE_LLAMA3;
    assert_ls_fails(ls_gguf_check(&a, &e), LS_EINVAL, "no keys for the rotation llama3", e);
    /* divisors of frequencies, which llama.cpp would not read here */
    a.rope = (ls_rotation){LS_ROPE_LLAMA3, 500000, 8, 1, 4, 8192, 0, false};
    ls_gguf_writer w = {0};
    float zeros[6400] = {0}, ones[8] = {1, 1, 1, 1, 1, 1, 1, 1};
    ls_gguf_put_architecture(&w, &a, LS_BLOCK_F32);
    assert_int_equal(ls_gguf_put_divisors(&w, &a), 8);
    ls_gguf_put_tensor(&w, "token_embd.weight", LS_BLOCK_F32, 2, (int64_t[]){64, 100});
    unlink(path);
    assert_ls_ok(ls_gguf_begin(&w, path, &e), e);
    assert_ls_ok(ls_gguf_add(&w, ones, sizeof ones, &e), e);
    assert_ls_ok(ls_gguf_add(&w, zeros, sizeof zeros, &e), e);
    assert_ls_ok(ls_gguf_end(&w, &e), e);
    ls_gguf_writer_free(&w);
    assert_ls_fails(read_file(&a, &e), LS_EINVAL, "not supported in a model of the family", e);
}

/* A file of Phi-3 with tensors of these names, of n numbers each. */
static void check_phi_refused(const ls_architecture *a, const char *const names[2], int64_t n,
                              const char *text) {
    ls_gguf_writer w = {0};
    ls_error e = {0};
    float zeros[6400] = {0}, ones[64];
    for (int i = 0; i < 64; i++) ones[i] = 1;
    ls_gguf_put_architecture(&w, a, LS_BLOCK_F32);
    for (int i = 0; i < 2 && names[i]; i++) ls_gguf_put_tensor(&w, names[i], LS_BLOCK_F32, 1, &n);
    ls_gguf_put_tensor(&w, "token_embd.weight", LS_BLOCK_F32, 2, (int64_t[]){64, 100});
    unlink(path);
    assert_ls_ok(ls_gguf_begin(&w, path, &e), e);
    for (int i = 0; i < 2 && names[i]; i++)
        assert_ls_ok(ls_gguf_add(&w, ones, (size_t)n * sizeof *ones, &e), e);
    assert_ls_ok(ls_gguf_add(&w, zeros, sizeof zeros, &e), e);
    assert_ls_ok(ls_gguf_end(&w, &e), e);
    ls_gguf_writer_free(&w);
    ls_architecture b;
    assert_ls_fails(read_file(&b, &e), LS_EINVAL, text, e);
}

static void test_phi3(void **state) {
    (void)state;
    static const char *const none[2], *const both[] = {LS_GGUF_SHORT, LS_GGUF_LONG},
                                             *const one[] = {LS_GGUF_SHORT, NULL},
                                             *const other[] = {LS_GGUF_DIVISORS, NULL};
    ls_architecture a = architecture_of(LS_FAMILY_PHI3);
    ls_error e = {0};
    assert_ls_ok(ls_gguf_check(&a, &e), e);
    check_phi_refused(&a, both, 4, "tensor 'rope_factors_short.weight' must be F32 [3]");
    check_phi_refused(&a, one, 3, "tensor 'rope_factors_long.weight' must be F32 [3]");
    check_phi_refused(&a, other, 3, "'rope_freqs.weight' is not supported in a model of the fam");
    a.turned = 18;
    check_phi_refused(&a, both, 9, "rope.dimension_count is 18, of heads of 16");
    a.turned = 7;
    check_phi_refused(&a, none, 0, "turns 7 of a head's 16 elements; it must be an even number");
    a.turned = 0;
    a.rope.type = LS_ROPE_LONGROPE;
    a.rope.scale = 1.25;
    a.rope.original_context = 9;
    check_phi_refused(&a, none, 0, "attn_factor is 1.25, but there is no tensor 'rope_factors_s");
    a.rope.original_context = 1;
    check_phi_refused(&a, both, 8, "original_max_position_embeddings from 2 to 1048576");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_read),    cmocka_unit_test(test_tensors),
        cmocka_unit_test(test_refused), cmocka_unit_test(test_divisors),
        cmocka_unit_test(test_written), cmocka_unit_test(test_gemma3),
        cmocka_unit_test(test_smollm3), cmocka_unit_test(test_phi3),
    };
    return cmocka_run_group_tests(tests, make_path, remove_folder);
}
