/* small_model.h - small models of each family, whose tensors, names and shapes are written down
 * here: as directories of Hugging Face's form, and as GGUF files laid out by hand. */
#ifndef LS_TEST_SMALL_MODEL_H
#define LS_TEST_SMALL_MODEL_H

#include "base/file.h"
#include "weights/gguf_bytes.h"
#include "weights/safetensors.h"

/* Width 64, feed-forward 96 (of one gpt2: 256), 4 heads of 16 elements (qwen3, gemma3: of 32), 2 KV
 * heads, 100 tokens, 48 positions, 2 layers (smollm3: 4). */
typedef struct small_row {
    const char *hf, *gguf; /* %d: the layer */
    int64_t dims[2];       /* as in Hugging Face's files; 0: a vector */
    char order;            /* of rows in GGUF: p permuted pairs of heads of 16, t transposed,
                             * 1 the same, plus 1 */
} small_row;

typedef struct small_model {
    const char *family;
    const char *config;         /* members of config.json but model_type */
    const char *gguf;           /* the architecture in GGUF */
    bool tied, biases, qk_norm; /* biases: of q, k and v */
    int64_t ffn;
} small_model;

#define SMALL_SIZES SMALL_SIZES_OF("2")
#define SMALL_SIZES_OF(layers)                                                                     \
    "\"hidden_size\": 64, \"intermediate_size\": 96, \"num_hidden_layers\": " layers ", "          \
    "\"num_attention_heads\": 4, \"num_key_value_heads\": 2, \"max_position_embeddings\": 48, "    \
    "\"vocab_size\": 100, \"rms_norm_eps\": 1e-05, \"hidden_act\": \"silu\", \"bos_token_id\": "   \
    "1, "                                                                                          \
    "\"eos_token_id\": 2, "
static const small_model small_models[] = {
    {"llama", SMALL_SIZES "\"rope_theta\": 50000.0, \"tie_word_embeddings\": true", "llama", true,
     false, false, 96},
    {"mistral", SMALL_SIZES "\"sliding_window\": null, \"tie_word_embeddings\": false", "llama",
     false, false, false, 96},
    {"qwen2", SMALL_SIZES "\"rope_theta\": 1000000.0, \"tie_word_embeddings\": true", "qwen2", true,
     true, false, 96},
    {"qwen3", SMALL_SIZES "\"head_dim\": 32, \"tie_word_embeddings\": false", "qwen3", false, false,
     true, 96},
    {"gpt2",
     "\"n_embd\": 64, \"n_layer\": 2, \"n_head\": 4, \"n_positions\": 48, \"n_inner\": 96, "
     "\"vocab_size\": 100, \"layer_norm_epsilon\": 1e-05, \"bos_token_id\": 1, \"eos_token_id\": 2",
     "gpt2", true, true, false, 96},
    {"gpt2",
     "\"n_embd\": 64, \"n_layer\": 2, \"n_head\": 4, \"n_positions\": 48, \"n_inner\": null, "
     "\"vocab_size\": 100, \"layer_norm_epsilon\": 1e-05, \"bos_token_id\": 1, \"eos_token_id\": 2",
     "gpt2", true, true, false, 256},
    {"gemma3_text",
     "\"hidden_size\": 64, \"intermediate_size\": 96, \"num_hidden_layers\": 2, "
     "\"num_attention_heads\": 4, \"num_key_value_heads\": 2, \"head_dim\": 32, "
     "\"max_position_embeddings\": 48, \"vocab_size\": 100, \"rms_norm_eps\": 1e-05, "
     "\"hidden_activation\": \"gelu_pytorch_tanh\", \"bos_token_id\": 1, \"eos_token_id\": 2, "
     "\"pad_token_id\": null, \"query_pre_attn_scalar\": 32, \"sliding_window\": 5, "
     "\"sliding_window_pattern\": 2, \"rope_local_base_freq\": 20000",
     "gemma3", true, false, true, 96},
    {"smollm3",
     SMALL_SIZES_OF("4") "\"rope_theta\": 5000000.0, \"no_rope_layers\": [1, 1, 1, 0], "
                         "\"no_rope_layer_interval\": 4, \"pad_token_id\": null",
     "smollm3", true, false, false, 96},
};
enum {
    SMALL_GPT2 = 5,
    SMALL_GEMMA3,
    SMALL_SMOLLM3
}; /* as published; that before it can't be trained */
enum { SMALL_MODELS = sizeof small_models / sizeof *small_models, SMALL_TENSORS = 40 };

static const small_row small_llama[] = {
    {"model.embed_tokens.weight", "token_embd.weight", {100, 64}, 0},
    {"model.layers.%d.input_layernorm.weight", "blk.%d.attn_norm.weight", {64}, 0},
    {"model.layers.%d.self_attn.q_proj.weight", "blk.%d.attn_q.weight", {64, 64}, 'p'},
    {"model.layers.%d.self_attn.k_proj.weight", "blk.%d.attn_k.weight", {32, 64}, 'p'},
    {"model.layers.%d.self_attn.v_proj.weight", "blk.%d.attn_v.weight", {32, 64}, 0},
    {"model.layers.%d.self_attn.o_proj.weight", "blk.%d.attn_output.weight", {64, 64}, 0},
    {"model.layers.%d.post_attention_layernorm.weight", "blk.%d.ffn_norm.weight", {64}, 0},
    {"model.layers.%d.mlp.gate_proj.weight", "blk.%d.ffn_gate.weight", {96, 64}, 0},
    {"model.layers.%d.mlp.up_proj.weight", "blk.%d.ffn_up.weight", {96, 64}, 0},
    {"model.layers.%d.mlp.down_proj.weight", "blk.%d.ffn_down.weight", {64, 96}, 0},
    {"model.norm.weight", "output_norm.weight", {64}, 0},
    {0},
};
static const small_row small_head[] = {{"lm_head.weight", "output.weight", {100, 64}, 0}, {0}};
static const small_row small_biases[] = {
    {"model.layers.%d.self_attn.q_proj.bias", "blk.%d.attn_q.bias", {64}, 'p'},
    {"model.layers.%d.self_attn.k_proj.bias", "blk.%d.attn_k.bias", {32}, 'p'},
    {"model.layers.%d.self_attn.v_proj.bias", "blk.%d.attn_v.bias", {32}, 0},
    {0},
};
static const small_row small_norms[] = {
    {"model.layers.%d.self_attn.q_norm.weight", "blk.%d.attn_q_norm.weight", {32}, 0},
    {"model.layers.%d.self_attn.k_norm.weight", "blk.%d.attn_k_norm.weight", {32}, 0},
    {0},
};
static const small_row small_gemma3[] = {
    {"model.embed_tokens.weight", "token_embd.weight", {100, 64}, 0},
    {"model.layers.%d.input_layernorm.weight", "blk.%d.attn_norm.weight", {64}, '1'},
    {"model.layers.%d.self_attn.q_proj.weight", "blk.%d.attn_q.weight", {64, 64}, 0},
    {"model.layers.%d.self_attn.k_proj.weight", "blk.%d.attn_k.weight", {32, 64}, 0},
    {"model.layers.%d.self_attn.v_proj.weight", "blk.%d.attn_v.weight", {32, 64}, 0},
    {"model.layers.%d.self_attn.q_norm.weight", "blk.%d.attn_q_norm.weight", {32}, '1'},
    {"model.layers.%d.self_attn.k_norm.weight", "blk.%d.attn_k_norm.weight", {32}, '1'},
    {"model.layers.%d.self_attn.o_proj.weight", "blk.%d.attn_output.weight", {64, 64}, 0},
    {"model.layers.%d.post_attention_layernorm.weight",
     "blk.%d.post_attention_norm.weight",
     {64},
     '1'},
    {"model.layers.%d.pre_feedforward_layernorm.weight", "blk.%d.ffn_norm.weight", {64}, '1'},
    {"model.layers.%d.mlp.gate_proj.weight", "blk.%d.ffn_gate.weight", {96, 64}, 0},
    {"model.layers.%d.mlp.up_proj.weight", "blk.%d.ffn_up.weight", {96, 64}, 0},
    {"model.layers.%d.mlp.down_proj.weight", "blk.%d.ffn_down.weight", {64, 96}, 0},
    {"model.layers.%d.post_feedforward_layernorm.weight", "blk.%d.post_ffw_norm.weight", {64}, '1'},
    {"model.norm.weight", "output_norm.weight", {64}, '1'},
    {0},
};
static const small_row small_gpt2[] = {
    {"wte.weight", "token_embd.weight", {100, 64}, 0},
    {"wpe.weight", "position_embd.weight", {48, 64}, 0},
    {"h.%d.ln_1.weight", "blk.%d.attn_norm.weight", {64}, 0},
    {"h.%d.ln_1.bias", "blk.%d.attn_norm.bias", {64}, 0},
    {"h.%d.attn.c_attn.weight", "blk.%d.attn_qkv.weight", {64, 192}, 't'},
    {"h.%d.attn.c_attn.bias", "blk.%d.attn_qkv.bias", {192}, 0},
    {"h.%d.attn.c_proj.weight", "blk.%d.attn_output.weight", {64, 64}, 't'},
    {"h.%d.attn.c_proj.bias", "blk.%d.attn_output.bias", {64}, 0},
    {"h.%d.ln_2.weight", "blk.%d.ffn_norm.weight", {64}, 0},
    {"h.%d.ln_2.bias", "blk.%d.ffn_norm.bias", {64}, 0},
    {"h.%d.mlp.c_fc.weight", "blk.%d.ffn_up.weight", {64, 96}, 't'},
    {"h.%d.mlp.c_fc.bias", "blk.%d.ffn_up.bias", {96}, 0},
    {"h.%d.mlp.c_proj.weight", "blk.%d.ffn_down.weight", {96, 64}, 't'},
    {"h.%d.mlp.c_proj.bias", "blk.%d.ffn_down.bias", {64}, 0},
    {"ln_f.weight", "output_norm.weight", {64}, 0},
    {"ln_f.bias", "output_norm.bias", {64}, 0},
    {0},
};

typedef struct small_tensor {
    char hf[96], gguf[96];
    int64_t rows, columns; /* columns 0: a vector */
    char order;
} small_tensor;

static inline int small_layers(const small_model *m) {
    return strcmp(m->family, "smollm3") == 0 ? 4 : 2;
}

static inline int small_add(const small_model *m, const small_row *r, small_tensor *out, int n) {
    int64_t head = m->qk_norm ? 32 : 16;
    for (; r->hf; r++)
        for (int layer = 0; layer < (strchr(r->hf, '%') ? small_layers(m) : 1); layer++) {
            small_tensor t = {.rows = r->dims[0], .columns = r->dims[1], .order = r->order};
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
            snprintf(t.hf, sizeof t.hf, r->hf, layer);
            snprintf(t.gguf, sizeof t.gguf, r->gguf, layer);
#pragma GCC diagnostic pop
            if (head == 32 &&
                (strstr(t.hf, "q_proj.w") || strstr(t.hf, "k_proj.w") || strstr(t.hf, "v_proj.w")))
                t.rows *= 2;
            if (head == 32 && strstr(t.hf, "o_proj.w")) t.columns *= 2;
            out[n++] = t;
        }
    return n;
}

/* The tensors of a model; returns their number. */
static inline int small_list(const small_model *m, small_tensor out[SMALL_TENSORS]) {
    bool gpt2 = strcmp(m->family, "gpt2") == 0;
    bool permuted = strcmp(m->gguf, "llama") == 0 || strcmp(m->gguf, "smollm3") == 0;
    bool gemma = strcmp(m->gguf, "gemma3") == 0;
    int n = small_add(m, gpt2 ? small_gpt2 : gemma ? small_gemma3 : small_llama, out, 0);
    if (!m->tied) n = small_add(m, small_head, out, n);
    if (m->biases && !gpt2) n = small_add(m, small_biases, out, n);
    if (m->qk_norm && !gemma) n = small_add(m, small_norms, out, n);
    for (int i = 0; i < n; i++) {
        if (out[i].order == 'p' && !permuted) out[i].order = 0;
        if (out[i].rows == 96) out[i].rows = m->ffn;
        if (out[i].columns == 96) out[i].columns = m->ffn;
    }
    return n;
}

/* Element [row, column] of a tensor: one of 512 numbers that f16 and bf16 hold as well. */
static inline float small_value(const small_tensor *t, int64_t row, int64_t column) {
    uint64_t h = 1469598103934665603u;
    for (const char *c = t->hf; *c; c++) h = (h ^ (uint64_t)*c) * 1099511628211u;
    h = (h + (uint64_t)row * 7919 + (uint64_t)column * 104729) * 0x9e3779b97f4a7c15u;
    return (float)((int)(h >> 56) - 128) / 64;
}

static inline int64_t small_count(const small_tensor *t) {
    return t->rows * (t->columns ? t->columns : 1);
}

/* All elements in canonical order; the caller frees them. */
static inline float *small_values(const small_tensor *t) {
    int64_t columns = t->columns ? t->columns : 1;
    float *x = LS_NEW_ARRAY(float, (size_t)small_count(t));
    for (int64_t r = 0; r < t->rows; r++)
        for (int64_t c = 0; c < columns; c++) x[r * columns + c] = small_value(t, r, c);
    return x;
}

/* ---- as a directory ---- */

static inline void small_write_text(const char *into, const char *name, const char *text) {
    char *path = ls_format("%s/%s", into, name);
    write_bytes(path, text, strlen(text));
    free(path);
}

static inline void small_write_config(const small_model *m, const char *into) {
    char *text = ls_format("{\"model_type\": \"%s\", %s}", m->family, m->config);
    small_write_text(into, "config.json", text);
    free(text);
}

/* Writes config.json and model.safetensors. */
static inline void small_write_folder(const small_model *m, const char *into) {
    small_tensor list[SMALL_TENSORS];
    ls_tensor out[SMALL_TENSORS] = {0};
    int n = small_list(m, list);
    ls_error e = {0};
    for (int i = 0; i < n; i++) {
        memcpy(out[i].name, list[i].hf, sizeof list[i].hf);
        out[i].ndims = list[i].columns ? 2 : 1;
        out[i].dims[0] = list[i].rows;
        out[i].dims[1] = list[i].columns;
        out[i].count = (size_t)small_count(&list[i]);
        out[i].data = small_values(&list[i]);
    }
    char *path = ls_format("%s/model.safetensors", into);
    unlink(path);
    assert_ls_ok(ls_safetensors_write(path, out, (size_t)n, &e), e);
    for (int i = 0; i < n; i++) free((void *)(uintptr_t)out[i].data);
    free(path);
    small_write_config(m, into);
}

/* ---- as a GGUF file ---- */

/* The elements in the order of GGUF. Heads of 16: rows h, s, i become h, i, s. */
static inline void small_put_values(const small_tensor *t, ls_buf *b) {
    int64_t columns = t->columns ? t->columns : 1;
    if (t->order == 't')
        for (int64_t c = 0; c < columns; c++)
            for (int64_t r = 0; r < t->rows; r++) put_float(b, small_value(t, r, c));
    else if (t->order == 'p')
        for (int64_t h = 0; h < t->rows / 16; h++)
            for (int64_t i = 0; i < 8; i++)
                for (int64_t s = 0; s < 2; s++)
                    for (int64_t c = 0; c < columns; c++)
                        put_float(b, small_value(t, h * 16 + s * 8 + i, c));
    else
        for (int64_t r = 0; r < t->rows; r++)
            for (int64_t c = 0; c < columns; c++)
                put_float(b, small_value(t, r, c) + (t->order == '1'));
}

/* Key-values of the architecture; returns their number. */
static inline uint64_t small_put_keys(const small_model *m, ls_buf *b) {
    const struct {
        const char *name;
        uint32_t value;
    } sizes[] = {{"block_count", (uint32_t)small_layers(m)},
                 {"context_length", 48},
                 {"embedding_length", 64},
                 {"feed_forward_length", 96},
                 {"attention.head_count", 4}};
    bool gpt2 = strcmp(m->family, "gpt2") == 0;
    char key[96];
    uint64_t n = 0;
    put_key_text(b, "general.architecture", m->gguf), n++;
    for (int i = 0; i < 5; i++, n++) {
        snprintf(key, sizeof key, "%s.%s", m->gguf, sizes[i].name);
        put_key_u32(b, key, sizes[i].value == 96 ? (uint32_t)m->ffn : sizes[i].value);
    }
    snprintf(key, sizeof key, "%s.attention.layer_norm_%sepsilon", m->gguf, gpt2 ? "" : "rms_");
    put_key_f32(b, key, 1e-5f), n++;
    put_key_u32(b, "tokenizer.ggml.bos_token_id", 1), n++;
    put_key_u32(b, "tokenizer.ggml.eos_token_id", 2), n++;
    if (gpt2) return n;
    snprintf(key, sizeof key, "%s.attention.head_count_kv", m->gguf);
    put_key_u32(b, key, 2), n++;
    if (m->qk_norm) {
        snprintf(key, sizeof key, "%s.attention.key_length", m->gguf);
        put_key_u32(b, key, 32), n++;
        snprintf(key, sizeof key, "%s.attention.value_length", m->gguf);
        put_key_u32(b, key, 32), n++;
    }
    if (strcmp(m->gguf, "gemma3") == 0) {
        put_key_u32(b, "gemma3.attention.sliding_window", 5), n++;
        put_key_u32(b, "gemma3.attention.sliding_window_pattern", 2), n++;
        put_key_f32(b, "gemma3.rope.freq_base", 1000000), n++;
        put_key_f32(b, "gemma3.rope.freq_base_swa", 20000), n++;
    }
    snprintf(key, sizeof key, "%s.rope.freq_base", m->gguf);
    if (strcmp(m->family, "llama") == 0) put_key_f32(b, key, 50000), n++;
    if (strcmp(m->family, "qwen2") == 0) put_key_f32(b, key, 1000000), n++;
    if (strcmp(m->family, "smollm3") == 0) put_key_f32(b, key, 5000000), n++;
    return n;
}

/* Writes an F32 file of these tensors, with more key-values. */
static inline void small_write_gguf_of(const small_model *m, const small_tensor *list, int n,
                                       const ls_buf *more, uint64_t nmore, const char *path) {
    ls_buf keys = {0}, b = {0};
    uint64_t at = 0, nkeys = small_put_keys(m, &keys);
    put_header(&b, 3, (uint64_t)n, nkeys + nmore);
    ls_buf_append(&b, keys.data, keys.len);
    if (more) ls_buf_append(&b, more->data, more->len);
    for (int i = 0; i < n; i++) {
        const small_tensor *t = &list[i];
        bool turned = t->order == 't' || !t->columns;
        const uint64_t dims[2] = {(uint64_t)(turned ? t->rows : t->columns),
                                  (uint64_t)(turned ? t->columns : t->rows)};
        put_tensor(&b, t->gguf, t->columns ? 2 : 1, dims, 0, at);
        at += ((uint64_t)small_count(t) * 4 + 31) / 32 * 32;
    }
    pad_to(&b, 32);
    for (int i = 0; i < n; i++) {
        small_put_values(&list[i], &b);
        pad_to(&b, 32);
    }
    write_bytes(path, b.data, b.len);
    ls_buf_free(&keys);
    ls_buf_free(&b);
}

static inline void small_write_gguf(const small_model *m, const char *path) {
    small_tensor list[SMALL_TENSORS];
    int n = small_list(m, list);
    small_write_gguf_of(m, list, n, NULL, 0, path);
}

#endif
