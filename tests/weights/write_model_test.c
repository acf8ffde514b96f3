/* write_model_test.c - models that are written and read again: the same tensors from safetensors in
 * one file and in shards, and from GGUF of every type that can be written. */
#include "weights/write_model.h"

#include <math.h>
#include <unistd.h>

#include "folder.h"
#include "test.h"
#include "weights/blocks.h"
#include "weights/small_model.h"

static char in[96], out[96], gguf[96]; /* directories, and a file */

static int make_places(void **state) {
    int failed = make_folder(state);
    ls_error e;
    snprintf(in, sizeof in, "%s/in", folder);
    snprintf(out, sizeof out, "%s/out", folder);
    snprintf(gguf, sizeof gguf, "%s/m.gguf", folder);
    return failed || ls_file_make_dirs(in, &e) != LS_OK || ls_file_make_dirs(out, &e) != LS_OK;
}

static void clear_out(void) {
    ls_error e = {0};
    unlink(gguf);
    assert_ls_ok(ls_file_remove_tree(out, &e), e);
    assert_ls_ok(ls_file_make_dirs(out, &e), e);
}

static ls_weights open_good(const char *path) {
    ls_weights w = {0};
    ls_error e = {0};
    assert_ls_ok(ls_weights_open(path, &w, &e), e);
    return w;
}

/* What a type makes of x [n]. */
static void pass(ls_block_type type, int64_t n, float *x) {
    const ls_block_info *b = ls_block_of(type);
    uint8_t *packed = ls_alloc(ls_block_nbytes(type, n));
    assert_true(b->pack(n / b->elements, x, packed));
    ls_block_read(ls_kernels_at(0), type, packed, 0, n, x);
    free(packed);
}

/* The values of a tensor after it was held in the type, whose blocks lie along rows of GGUF: along
 * columns of what is transposed. */
static float *held(const small_tensor *t, ls_block_type type) {
    int64_t columns = t->columns ? t->columns : 1;
    float *x = small_values(t);
    if (t->order != 't') {
        pass(type, small_count(t), x);
        return x;
    }
    float *column = LS_NEW_ARRAY(float, (size_t)t->rows);
    for (int64_t c = 0; c < columns; c++) {
        for (int64_t r = 0; r < t->rows; r++) column[r] = x[r * columns + c];
        pass(type, t->rows, column);
        for (int64_t r = 0; r < t->rows; r++) x[r * columns + c] = column[r];
    }
    free(column);
    return x;
}

static void check_values(const ls_weights *w, const small_model *m, ls_block_type type) {
    small_tensor list[SMALL_TENSORS];
    int n = small_list(m, list);
    ls_error e = {0};
    assert_int_equal(w->n, n);
    for (int i = 0; i < n; i++) {
        const ls_weight *x = ls_weights_find(w, list[i].hf);
        float *want = held(&list[i], x->type);
        float *got = LS_NEW_ARRAY(float, (size_t)small_count(&list[i]));
        assert_true(x->type == type || x->type == LS_BLOCK_F32);
        assert_true(x->type == type || x->id.ndims == 1 || list[i].hf[1] == 'p'); /* wpe */
        assert_ls_ok(ls_weights_rows(w, x, 0, list[i].rows, got, &e), e);
        assert_memory_equal(got, want, (size_t)small_count(&list[i]) * sizeof *got);
        free(got);
        free(want);
    }
}

static void write_safetensors(const ls_weights *w, ls_block_type type, int64_t most) {
    ls_model_source s = ls_source_of_weights(w);
    ls_error e = {0};
    clear_out();
    assert_ls_ok(ls_write_safetensors(&s, out, type, most, &e), e);
    assert_ls_ok(ls_write_config(&w->arch, out, type, &e), e);
}

static void test_safetensors(void **state) {
    (void)state;
    static const ls_block_type types[] = {LS_BLOCK_F32, LS_BLOCK_F16, LS_BLOCK_BF16};
    for (int i = 0; i < SMALL_MODELS; i++) {
        const small_model *m = &small_models[i];
        small_write_folder(m, in);
        ls_weights w = open_good(in);
        for (int t = 0; t < 3; t++) {
            write_safetensors(&w, types[t], t == 1 ? 1 << 30 : 0);
            ls_weights again = open_good(out);
            assert_int_equal(again.shards.nfiles, 1);
            char *difference = ls_architecture_difference(&w.arch, &again.arch);
            assert_null(difference);
            assert_true(again.arch.bos == 1 && again.arch.neos == 1 && again.arch.eos[0] == 2);
            check_values(&again, m, types[t]);
            ls_weights_close(&again);
        }
        ls_weights_close(&w);
    }
}

static void test_shards(void **state) {
    (void)state;
    const small_model *m = &small_models[3];
    small_write_folder(m, in);
    ls_weights w = open_good(in);
    write_safetensors(&w, LS_BLOCK_F16, 20000);
    ls_weights again = open_good(out);
    /* embedding | q | k, v | o | gate | up | down | q ... down | head: 16384 bytes of q and o */
    assert_int_equal(again.shards.nfiles, 14);
    for (size_t i = 0; i < again.shards.nfiles; i++) {
        size_t nbytes = 0;
        for (size_t k = 0; k < again.shards.files[i].n; k++)
            nbytes += ls_tensor_nbytes(&again.shards.files[i].tensors[k]);
        assert_true(nbytes <= 20000 && nbytes > 0);
    }
    char *name = ls_format("%s/model-00003-of-00014.safetensors", out);
    assert_true(ls_file_exists(name));
    free(name);
    check_values(&again, m, LS_BLOCK_F16);
    ls_weights_close(&again);
    write_safetensors(&w, LS_BLOCK_F32, 1); /* each tensor has its own */
    again = open_good(out);
    assert_int_equal(again.shards.nfiles, again.n);
    ls_weights_close(&again);
    ls_weights_close(&w);
}

/* From either kind of file to GGUF. */
static void test_gguf(void **state) {
    (void)state;
    for (int i = 0; i < SMALL_MODELS; i++) {
        const small_model *m = &small_models[i];
        small_write_folder(m, in);
        ls_weights w = open_good(in);
        ls_model_source s = ls_source_of_weights(&w);
        for (int t = 0; t < LS_NBLOCK_TYPES; t++) {
            ls_block_type type = (ls_block_type)t;
            ls_gguf_writer writer = {0};
            ls_error e = {0};
            unlink(gguf);
            ls_gguf_put_text(&writer, "general.name", "small");
            ls_status status = ls_write_gguf(&s, gguf, type, &writer, &e);
            ls_gguf_writer_free(&writer);
            if (!ls_block_of(type)->pack) {
                assert_true(status == LS_EINVAL && strstr(e.msg, "use F32, F16, BF16, Q8_0"));
                assert_false(ls_file_exists(gguf));
                continue;
            }
            assert_ls_ok(status, e);
            ls_weights again = open_good(gguf);
            assert_true(ls_gguf_is_text(ls_gguf_find(&again.gguf, "general.name"), "small"));
            char *difference = ls_architecture_difference(&w.arch, &again.arch);
            assert_null(difference);
            check_values(&again, m, type);
            ls_weights_close(&again);
        }
        ls_weights_close(&w);
    }
}

/* A GGUF file that is laid out by hand, read and written: the same data. */
static void test_gguf_again(void **state) {
    (void)state;
    for (int i = 0; i < SMALL_MODELS; i++) {
        small_write_gguf(&small_models[i], gguf);
        char *copy = ls_format("%s/copy.gguf", folder);
        ls_weights w = open_good(gguf);
        ls_model_source s = ls_source_of_weights(&w);
        ls_gguf_writer writer = {0};
        ls_error e = {0};
        unlink(copy);
        assert_ls_ok(ls_write_gguf(&s, copy, LS_BLOCK_F32, &writer, &e), e);
        ls_gguf_writer_free(&writer);
        ls_weights again = open_good(copy);
        for (size_t k = 0; k < w.n; k++) {
            assert_int_equal(w.list[k].nbytes, again.list[k].nbytes);
            assert_memory_equal(w.list[k].data, again.list[k].data, w.list[k].nbytes);
        }
        ls_weights_close(&w);
        ls_weights_close(&again);
        free(copy);
    }
}

/* Norms of a Gemma 3 whose elements have more bits than 1 + them: they are in the file beside
 * these, unless another program has changed the tensor since. */
typedef struct norms {
    float x[512];
    bool fits; /* 1 + an element has all its bits */
} norms;

static ls_status norm_rows(const void *arg, const ls_name *n, int64_t first, int64_t end, float *x,
                           ls_error *e) {
    const norms *from = arg;
    int64_t width = n->ndims > 1 ? n->dims[1] : 1;
    (void)e;
    for (int64_t i = first * width; i < end * width; i++) {
        x[i - first * width] = n->ndims > 1 ? 0 : from->x[i];
        if (n->ndims == 1 && from->fits) x[i - first * width] = (float)(i % 7) / 8 - 0.5f;
    }
    return LS_OK;
}

static void test_gemma_norms(void **state) {
    (void)state;
    static const float hard[] = {0.1f, -0.1f, 1e-9f, -3e-20f, 0.3333333f, 1.7f, -1.0001f, 65537.7f};
    small_write_gguf(&small_models[SMALL_GEMMA3], gguf);
    ls_weights w = open_good(gguf);
    char *copy = ls_format("%s/copy.gguf", folder);
    norms from = {.fits = true};
    for (int i = 0; i < 512; i++) from.x[i] = hard[i % 8] * (float)(1 + i / 8);
    ls_model_source s = {.arch = &w.arch, .rows = norm_rows, .arg = &from};
    for (int fits = 1; fits >= 0; fits--) {
        ls_gguf_writer writer = {0};
        ls_error e = {0};
        from.fits = fits;
        unlink(copy);
        assert_ls_ok(ls_write_gguf(&s, copy, LS_BLOCK_F16, &writer, &e), e);
        ls_gguf_writer_free(&writer);
        ls_weights again = open_good(copy);
        assert_int_equal(again.norms != NULL, !fits);
        for (size_t k = 0; k < again.n; k++) {
            const ls_weight *t = &again.list[k];
            float want[64], got[64], stored[64];
            if (t->id.ndims > 1) continue;
            assert_ls_ok(norm_rows(&from, &t->id, 0, t->id.dims[0], want, &e), e);
            assert_ls_ok(ls_weights_rows(&again, t, 0, t->id.dims[0], got, &e), e);
            assert_memory_equal(got, want, (size_t)t->id.dims[0] * sizeof *got);
            assert_ls_ok(ls_weights_rows(&again, t, 3, 5, got, &e), e);
            assert_memory_equal(got, want + 3, 2 * sizeof *got);
            memcpy(stored, t->data, (size_t)t->id.dims[0] * sizeof *stored);
            for (int64_t i = 0; i < t->id.dims[0]; i++) assert_true(stored[i] == 1 + want[i]);
        }
        ls_weight changed = again.list[1];
        float other[64], got[64];
        for (int i = 0; i < 64; i++) other[i] = 1.5f;
        changed.data = (const uint8_t *)other;
        assert_ls_ok(ls_weights_rows(&again, &changed, 0, 64, got, &e), e);
        for (int i = 0; i < 64; i++) assert_true(got[i] == 0.5f);
        ls_weights_close(&again);
    }
    ls_weights_close(&w);
    free(copy);
}

/* llama3's divisors; and large tensors, in several pieces. */
static ls_status constant_rows(const void *arg, const ls_name *n, int64_t first, int64_t end,
                               float *x, ls_error *e) {
    (void)e;
    int64_t width = n->ndims > 1 ? n->dims[1] : 1;
    for (int64_t i = first * width; i < end * width; i++) {
        *x = (float)(i % 1021) / 16;
        if (arg && strcmp(n->name, "lm_head.weight") == 0) *x = *(const float *)arg;
        x++;
    }
    return LS_OK;
}

static ls_architecture large(void) {
    return (ls_architecture){.family = LS_FAMILY_LLAMA,
                             .layers = 1,
                             .width = 512,
                             .ffn = 64,
                             .heads = 2,
                             .kv_heads = 1,
                             .head_dim = 256,
                             .vocab = 5003,
                             .context = 8,
                             .norm_eps = 1e-6,
                             .rope = {LS_ROPE_LLAMA3, 500000, 8, 1, 4, 8192, 0, false},
                             .bos = LS_TOKEN_NONE,
                             .pad = LS_TOKEN_NONE};
}

static void test_large(void **state) {
    (void)state;
    ls_architecture a = large();
    const ls_model_source s = {&a, constant_rows, NULL};
    ls_gguf_writer writer = {0};
    ls_error e = {0};
    clear_out();
    assert_ls_ok(ls_write_gguf(&s, gguf, LS_BLOCK_BF16, &writer, &e), e);
    ls_gguf_writer_free(&writer);
    assert_ls_ok(ls_write_safetensors(&s, out, LS_BLOCK_BF16, 0, &e), e);
    assert_ls_ok(ls_write_config(&a, out, LS_BLOCK_BF16, &e), e);
    ls_weights x = open_good(gguf), y = open_good(out);
    assert_true(x.arch.rope.type == LS_ROPE_LLAMA3 && x.arch.rope.factor == 8);
    float *p = LS_NEW_ARRAY(float, (size_t)(5003 * 512));
    float *q = LS_NEW_ARRAY(float, (size_t)(5003 * 512));
    for (size_t i = 0; i < x.n; i++) {
        const ls_name *id = &x.list[i].id;
        size_t nbytes = (size_t)(id->dims[0] * (id->ndims > 1 ? id->dims[1] : 1)) * sizeof *p;
        assert_ls_ok(ls_weights_rows(&x, &x.list[i], 0, id->dims[0], p, &e), e);
        assert_ls_ok(ls_weights_rows(&y, &y.list[i], 0, id->dims[0], q, &e), e);
        if (x.list[i].type == y.list[i].type) assert_memory_equal(p, q, nbytes);
    }
    free(p);
    free(q);
    ls_weights_close(&x);
    ls_weights_close(&y);
}

static void test_refused(void **state) {
    (void)state;
    ls_architecture a = large();
    float bad = NAN;
    ls_model_source s = {&a, constant_rows, &bad};
    ls_gguf_writer w = {0};
    ls_error e;
    clear_out();
    assert_ls_fails(ls_write_gguf(&s, gguf, LS_BLOCK_F32, &w, &e), LS_EINVAL,
                    "tensor 'lm_head.weight' has numbers that are not finite", e);
    ls_gguf_writer_free(&w);
    assert_false(ls_file_exists(gguf));
    bad = 1e6f;
    assert_ls_fails(ls_write_safetensors(&s, out, LS_BLOCK_F16, 0, &e), LS_EINVAL,
                    "too large for the type F16", e);
    assert_false(ls_shards_exist(out));
    assert_ls_fails(ls_write_safetensors(&s, out, LS_BLOCK_Q8_0, 0, &e), LS_EINVAL,
                    "safetensors can't hold weights of the type Q8_0", e);
    a.ffn = 65;
    assert_ls_fails(ls_write_gguf(&s, gguf, LS_BLOCK_Q4_0, &w, &e), LS_EINVAL,
                    "has rows of 65 elements; Q4_0 takes a multiple of 32", e);
    ls_gguf_writer_free(&w);
}

/* Of what llama3 has beside the factor GGUF has nothing, and the factor is the largest divisor. */
static void test_rotations(void **state) {
    (void)state;
    ls_architecture a = large();
    const ls_model_source s = {&a, constant_rows, NULL};
    ls_gguf_writer w = {0};
    ls_error e;
    clear_out();
    a.rope.original_context = 4096;
    assert_ls_fails(ls_write_gguf(&s, gguf, LS_BLOCK_F32, &w, &e), LS_EINVAL,
                    "high_freq_factor 4 and 4096 positions, but for that with 1, 4 and 8192; write "
                    "safetensors",
                    e);
    a.rope.original_context = 8192;
    a.rope.base = 100; /* the longest wave has less than 2 pi 100 positions, of 2048 */
    assert_ls_fails(ls_write_gguf(&s, gguf, LS_BLOCK_F32, &w, &e), LS_EINVAL,
                    "base 100 none is divided by the whole factor of llama3, 8; write safetensors",
                    e);
    a.rope = (ls_rotation){LS_ROPE_YARN, 1e6, 4, 1, 16, 4096, 1.1, false};
    assert_ls_fails(ls_write_gguf(&s, gguf, LS_BLOCK_F32, &w, &e), LS_EINVAL,
                    "yarn with beta_slow 1, beta_fast 16, but for that with 1 and 32", e);
    a.rope.high = 32, a.rope.exact = true;
    assert_ls_fails(ls_write_gguf(&s, gguf, LS_BLOCK_F32, &w, &e), LS_EINVAL, "truncate false", e);
    assert_false(ls_file_exists(gguf));
    ls_gguf_writer_free(&w);
}

/* ---- experts: one tensor of all in GGUF ---- */

static ls_architecture mixture(ls_family family) {
    return (ls_architecture){.family = family,
                             .layers = 2,
                             .width = 64,
                             .ffn = 32,
                             .heads = 2,
                             .kv_heads = 1,
                             .head_dim = 32,
                             .vocab = 50,
                             .context = 8,
                             .norm_eps = 1e-6,
                             .rope = {.type = LS_ROPE_DEFAULT, .base = 1e6},
                             .qk_norm = family == LS_FAMILY_QWEN3_MOE,
                             .experts = 5,
                             .experts_per_token = 2,
                             .norm_topk = true,
                             .router_aux_loss = 0.001,
                             .bos = LS_TOKEN_NONE,
                             .pad = LS_TOKEN_NONE};
}

/* Element i of the tensor of an expert and a block. */
static float element_of(const char *name, int64_t i) {
    unsigned sum = 7;
    for (; *name; name++) sum = sum * 31 + (unsigned char)*name;
    return (float)((sum + (unsigned)i * 97) % 2039) / 16;
}

static ls_status named_rows(const void *arg, const ls_name *n, int64_t first, int64_t end, float *x,
                            ls_error *e) {
    (void)arg, (void)e;
    int64_t width = n->ndims > 1 ? n->dims[1] : 1;
    for (int64_t i = first * width; i < end * width; i++) *x++ = element_of(n->name, i);
    return LS_OK;
}

static void write_mixture(const ls_architecture *a, ls_block_type type) {
    const ls_model_source s = {a, named_rows, NULL};
    ls_gguf_writer writer = {0};
    ls_error e = {0};
    clear_out();
    assert_ls_ok(ls_write_gguf(&s, gguf, type, &writer, &e), e);
    ls_gguf_writer_free(&writer);
}

/* Where the file has them, and as they are read. */
static void check_mixture(ls_family family, const char *first, const char *name) {
    ls_architecture a = mixture(family);
    write_mixture(&a, LS_BLOCK_F32);
    ls_weights w = open_good(gguf);
    assert_null(ls_architecture_difference(&a, &w.arch));
    const ls_gguf_tensor *t = ls_gguf_find_tensor(&w.gguf, "blk.1.ffn_down_exps.weight");
    assert_true(t && t->ndims == 3 && t->dims[0] == 32 && t->dims[1] == 64 && t->dims[2] == 5);
    for (int expert = 0; expert < 5; expert++) {
        char *of = ls_format("%s.%d.%s", first, expert, name);
        const ls_weight *x = ls_weights_find(&w, of);
        float row[32], want[32];
        ls_error e;
        assert_ptr_equal(x->data, t->data + expert * 64 * 32 * 4);
        assert_ls_ok(ls_weights_rows(&w, x, 63, 64, row, &e), e);
        for (int i = 0; i < 32; i++) want[i] = element_of(of, 63 * 32 + i);
        assert_memory_equal(row, want, sizeof want);
        assert_memory_equal(t->data + (expert * 64 + 63) * 32 * 4, want, sizeof want);
        free(of);
    }
    ls_weights_close(&w);
    write_mixture(&a, LS_BLOCK_Q8_0);
    w = open_good(gguf);
    assert_int_equal(ls_gguf_find_tensor(&w.gguf, "blk.0.ffn_gate_inp.weight")->type, 0);
    assert_int_equal(ls_gguf_find_tensor(&w.gguf, "blk.0.ffn_up_exps.weight")->type, 8);
    ls_weights_close(&w);
}

/* The file with another number at a key. */
static void check_number(const char *key, uint32_t number, const char *text) {
    ls_architecture a = mixture(LS_FAMILY_MIXTRAL);
    ls_weights w = {0};
    ls_error e = {0};
    ls_buf b = {0};
    write_mixture(&a, LS_BLOCK_F32);
    assert_ls_ok(ls_file_read(gguf, 1 << 24, &b, &e), e);
    char *at = memmem(b.data, b.len, key, strlen(key));
    memcpy(at + strlen(key) + 4, &number, sizeof number);
    write_bytes(gguf, b.data, b.len);
    ls_buf_free(&b);
    if (ls_weights_open(gguf, &w, &e) != LS_EINVAL || !strstr(e.msg, text))
        fail_msg("%s %u: '%s' does not say '%s'", key, number, e.msg, text);
}

static void test_experts(void **state) {
    (void)state;
    check_mixture(LS_FAMILY_MIXTRAL, "model.layers.1.block_sparse_moe.experts", "w2.weight");
    check_mixture(LS_FAMILY_QWEN3_MOE, "model.layers.1.mlp.experts", "down_proj.weight");
    check_number("llama.expert_count", 0, "expert_used_count is 2; only 0 is supported");
    check_number("llama.expert_count", 1000, "1000 experts; at most 128 are supported");
    check_number("llama.expert_count", 4, "is [5, 64]; the architecture needs [4, 64]");
    check_number("llama.expert_used_count", 6, "num_experts_per_tok is 6; there are 5 experts");
    check_number("llama.expert_used_count", 0, "num_experts_per_tok is 0; there are 5 experts");
    check_number("llama.feed_forward_length", 16,
                 "is [5, 32, 64]; the architecture needs [5, 16, 64]");
    ls_architecture a = mixture(LS_FAMILY_QWEN3_MOE);
    a.norm_topk = false;
    const ls_model_source s = {&a, named_rows, NULL};
    ls_gguf_writer writer = {0};
    ls_error e;
    assert_ls_fails(ls_write_gguf(&s, gguf, LS_BLOCK_F32, &writer, &e), LS_EINVAL,
                    "norm_topk_prob is false); write safetensors", e);
    ls_gguf_writer_free(&writer);
}

/* ---- Phi-3: one tensor of q, k and v, and one of gate and up ---- */

static const struct part {
    const char *name, *file, *gguf;
    int64_t first, rows, all;
} parts[] = {
    {"self_attn.q_proj", "self_attn.qkv_proj", "attn_qkv", 0, 64, 128},
    {"self_attn.k_proj", "self_attn.qkv_proj", "attn_qkv", 64, 32, 128},
    {"self_attn.v_proj", "self_attn.qkv_proj", "attn_qkv", 96, 32, 128},
    {"mlp.gate_proj", "mlp.gate_up_proj", "ffn_up", 0, 32, 64},
    {"mlp.up_proj", "mlp.gate_up_proj", "ffn_up", 32, 32, 64},
};

/* All rows, as they are read, and where the file has them. */
static void check_part(const ls_weights *w, const struct part *p, const uint8_t *data) {
    char *name = ls_format("model.layers.1.%s.weight", p->name);
    const ls_weight *t = ls_weights_find(w, name);
    float got[64 * 64];
    ls_error e = {0};
    assert_non_null(t);
    assert_int_equal(t->id.dims[0], p->rows);
    assert_ptr_equal(t->data, data + p->first * 64 * 4);
    assert_ls_ok(ls_weights_rows(w, t, 0, p->rows, got, &e), e);
    for (int64_t i = 0; i < p->rows * 64; i++) assert_true(got[i] == element_of(name, i));
    free(name);
}

static void test_joined(void **state) {
    (void)state;
    ls_architecture a = mixture(LS_FAMILY_PHI3);
    a.experts = a.experts_per_token = 0;
    a.norm_topk = false;
    a.router_aux_loss = 0;
    a.turned = 24;
    const ls_model_source s = {&a, named_rows, NULL};
    ls_gguf_writer writer = {0};
    ls_error e = {0};
    clear_out();
    assert_ls_ok(ls_write_gguf(&s, gguf, LS_BLOCK_F32, &writer, &e), e);
    ls_gguf_writer_free(&writer);
    /* shards that a tensor of a block's fills: no part of one begins another shard */
    assert_ls_ok(ls_write_safetensors(&s, out, LS_BLOCK_F32, 40000, &e), e);
    assert_ls_ok(ls_write_config(&a, out, LS_BLOCK_F32, &e), e);
    ls_weights x = open_good(gguf), y = open_good(out);
    assert_null(ls_architecture_difference(&a, &x.arch));
    assert_null(ls_architecture_difference(&a, &y.arch));
    assert_int_equal(x.gguf.ntensors, 2 * 6 + 3);
    assert_int_equal(y.shards.n, 2 * 6 + 3);
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
        char *name = ls_format("blk.1.%s.weight", parts[i].gguf);
        const ls_gguf_tensor *t = ls_gguf_find_tensor(&x.gguf, name);
        char *file = ls_format("model.layers.1.%s.weight", parts[i].file);
        const ls_tensor *u = ls_shards_find(&y.shards, file);
        assert_true(t && t->ndims == 2 && t->dims[0] == 64 && t->dims[1] == parts[i].all);
        assert_true(u && u->ndims == 2 && u->dims[0] == parts[i].all && u->dims[1] == 64);
        check_part(&x, &parts[i], t->data);
        check_part(&y, &parts[i], u->data);
        free(name);
        free(file);
    }
    ls_weights_close(&x);
    ls_weights_close(&y);
    /* files of another number of rows, or of Llama's names */
    clear_out();
    assert_ls_ok(ls_write_safetensors(&s, out, LS_BLOCK_F32, 0, &e), e);
    a.kv_heads = 2;
    assert_ls_ok(ls_write_config(&a, out, LS_BLOCK_F32, &e), e);
    assert_ls_fails(ls_weights_open(out, &x, &e), LS_EINVAL,
                    "'model.layers.0.self_attn.qkv_proj.weight' is [128, 64]; the architecture "
                    "needs [192, 64]",
                    e);
    a.kv_heads = 1;
    clear_out();
    ls_architecture llama = a;
    llama.family = LS_FAMILY_LLAMA;
    llama.turned = 0;
    assert_ls_ok(ls_write_safetensors(&(ls_model_source){&llama, named_rows, NULL}, out,
                                      LS_BLOCK_F32, 0, &e),
                 e);
    assert_ls_ok(ls_write_config(&a, out, LS_BLOCK_F32, &e), e);
    assert_ls_fails(ls_weights_open(out, &x, &e), LS_EINVAL,
                    "has no tensor 'model.layers.0.self_attn.qkv_proj.weight'", e);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_safetensors, make_places, remove_folder),
        cmocka_unit_test_setup_teardown(test_shards, make_places, remove_folder),
        cmocka_unit_test_setup_teardown(test_gguf, make_places, remove_folder),
        cmocka_unit_test_setup_teardown(test_gguf_again, make_places, remove_folder),
        cmocka_unit_test_setup_teardown(test_gemma_norms, make_places, remove_folder),
        cmocka_unit_test_setup_teardown(test_large, make_places, remove_folder),
        cmocka_unit_test_setup_teardown(test_refused, make_places, remove_folder),
        cmocka_unit_test_setup_teardown(test_rotations, make_places, remove_folder),
        cmocka_unit_test_setup_teardown(test_experts, make_places, remove_folder),
        cmocka_unit_test_setup_teardown(test_joined, make_places, remove_folder),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
