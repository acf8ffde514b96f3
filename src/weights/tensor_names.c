/* tensor_names.c - see tensor_names.h.
 *
 * GGUF's names: TENSOR_NAMES in llama.cpp's gguf-py/gguf/constants.py; order: conversion/llama.py
 * (permute) and conversion/gpt2.py (transpose) there. */
#include "weights/tensor_names.h"

#include <stdio.h>
#include <string.h>

#include "base/suffix.h"

/* Lengths of dims. */
typedef enum length {
    NOTHING,
    WIDTH,
    FFN,
    VOCAB,
    CONTEXT,
    HEAD,    /* head_dim */
    QUERIES, /* heads * head_dim */
    KEYS,    /* kv_heads * head_dim */
    THREE,   /* 3 * width */
    EXPERTS
} length;

/* Which models have a tensor: those with all of these, and with none that is negated. */
typedef enum condition { ALWAYS, QKV_BIAS, O_BIAS, MLP_BIAS, QK_NORM, UNTIED } condition;

typedef struct row {
    const char *name, *gguf; /* those of a block follow "PREFIX.N." */
    length dims[2];
    condition when;
    ls_row_order order;
    const char *param; /* NULL: the same name */
} row;

typedef struct family_rows {
    const char *block;              /* "model.layers" */
    const row *before, *in, *after; /* the blocks; each ends with a row without a name */
    const char *experts;            /* of a block: "mlp.experts" */
    const row *expert;              /* of each, as `in`; NULL: there are none */
} family_rows;

static const row llama_before[] = {
    {"model.embed_tokens.weight", "token_embd.weight", {VOCAB, WIDTH}, ALWAYS, LS_ROWS_SAME, NULL},
    {0},
};
/* The order of q and k is that of the architecture llama; qwen's is not permuted. */
#define LLAMA_ATTENTION                                                                              \
    {"input_layernorm.weight", "attn_norm.weight", {WIDTH}, ALWAYS, LS_ROWS_SAME, NULL},             \
        {"self_attn.q_proj.weight", "attn_q.weight", {QUERIES, WIDTH}, ALWAYS, LS_ROWS_PAIRS, NULL}, \
        {"self_attn.q_proj.bias", "attn_q.bias", {QUERIES}, QKV_BIAS, LS_ROWS_PAIRS, NULL},          \
        {"self_attn.k_proj.weight", "attn_k.weight", {KEYS, WIDTH}, ALWAYS, LS_ROWS_PAIRS, NULL},    \
        {"self_attn.k_proj.bias", "attn_k.bias", {KEYS}, QKV_BIAS, LS_ROWS_PAIRS, NULL},             \
        {"self_attn.v_proj.weight", "attn_v.weight", {KEYS, WIDTH}, ALWAYS, LS_ROWS_SAME, NULL},     \
        {"self_attn.v_proj.bias", "attn_v.bias", {KEYS}, QKV_BIAS, LS_ROWS_SAME, NULL},              \
        {"self_attn.q_norm.weight", "attn_q_norm.weight", {HEAD}, QK_NORM, LS_ROWS_SAME, NULL},      \
        {"self_attn.k_norm.weight", "attn_k_norm.weight", {HEAD}, QK_NORM, LS_ROWS_SAME, NULL},      \
        {"self_attn.o_proj.weight",                                                                  \
         "attn_output.weight",                                                                       \
         {WIDTH, QUERIES},                                                                           \
         ALWAYS,                                                                                     \
         LS_ROWS_SAME,                                                                               \
         NULL},                                                                                      \
        {"self_attn.o_proj.bias", "attn_output.bias", {WIDTH}, O_BIAS, LS_ROWS_SAME, NULL},          \
        {"post_attention_layernorm.weight", "ffn_norm.weight", {WIDTH}, ALWAYS, LS_ROWS_SAME, NULL},
static const row llama_block[] = {
    LLAMA_ATTENTION{
        "mlp.gate_proj.weight", "ffn_gate.weight", {FFN, WIDTH}, ALWAYS, LS_ROWS_SAME, NULL},
    {"mlp.gate_proj.bias", "ffn_gate.bias", {FFN}, MLP_BIAS, LS_ROWS_SAME, NULL},
    {"mlp.up_proj.weight", "ffn_up.weight", {FFN, WIDTH}, ALWAYS, LS_ROWS_SAME, NULL},
    {"mlp.up_proj.bias", "ffn_up.bias", {FFN}, MLP_BIAS, LS_ROWS_SAME, NULL},
    {"mlp.down_proj.weight", "ffn_down.weight", {WIDTH, FFN}, ALWAYS, LS_ROWS_SAME, NULL},
    {"mlp.down_proj.bias", "ffn_down.bias", {WIDTH}, MLP_BIAS, LS_ROWS_SAME, NULL},
    {0},
};
static const row mixtral_block[] = {
    LLAMA_ATTENTION{"block_sparse_moe.gate.weight",
                    "ffn_gate_inp.weight",
                    {EXPERTS, WIDTH},
                    ALWAYS,
                    LS_ROWS_SAME,
                    "mlp.gate.weight"},
    {0},
};
static const row mixtral_expert[] = {
    {"w1.weight",
     "ffn_gate_exps.weight",
     {FFN, WIDTH},
     ALWAYS,
     LS_ROWS_SAME,
     "mlp.experts.gate_proj"},
    {"w3.weight", "ffn_up_exps.weight", {FFN, WIDTH}, ALWAYS, LS_ROWS_SAME, "mlp.experts.up_proj"},
    {"w2.weight",
     "ffn_down_exps.weight",
     {WIDTH, FFN},
     ALWAYS,
     LS_ROWS_SAME,
     "mlp.experts.down_proj"},
    {0},
};
static const row qwen3_moe_block[] = {
    LLAMA_ATTENTION{
        "mlp.gate.weight", "ffn_gate_inp.weight", {EXPERTS, WIDTH}, ALWAYS, LS_ROWS_SAME, NULL},
    {0},
};
static const row qwen3_moe_expert[] = {
    {"gate_proj.weight",
     "ffn_gate_exps.weight",
     {FFN, WIDTH},
     ALWAYS,
     LS_ROWS_SAME,
     "mlp.experts.gate_proj"},
    {"up_proj.weight",
     "ffn_up_exps.weight",
     {FFN, WIDTH},
     ALWAYS,
     LS_ROWS_SAME,
     "mlp.experts.up_proj"},
    {"down_proj.weight",
     "ffn_down_exps.weight",
     {WIDTH, FFN},
     ALWAYS,
     LS_ROWS_SAME,
     "mlp.experts.down_proj"},
    {0},
};
#define NORM(name, gguf, length)                                                                   \
    { name, gguf, {length}, ALWAYS, LS_ROWS_PLUS_ONE, NULL }
static const row gemma3_block[] = {
    NORM("input_layernorm.weight", "attn_norm.weight", WIDTH),
    {"self_attn.q_proj.weight", "attn_q.weight", {QUERIES, WIDTH}, ALWAYS, LS_ROWS_SAME, NULL},
    {"self_attn.q_proj.bias", "attn_q.bias", {QUERIES}, QKV_BIAS, LS_ROWS_SAME, NULL},
    {"self_attn.k_proj.weight", "attn_k.weight", {KEYS, WIDTH}, ALWAYS, LS_ROWS_SAME, NULL},
    {"self_attn.k_proj.bias", "attn_k.bias", {KEYS}, QKV_BIAS, LS_ROWS_SAME, NULL},
    {"self_attn.v_proj.weight", "attn_v.weight", {KEYS, WIDTH}, ALWAYS, LS_ROWS_SAME, NULL},
    {"self_attn.v_proj.bias", "attn_v.bias", {KEYS}, QKV_BIAS, LS_ROWS_SAME, NULL},
    NORM("self_attn.q_norm.weight", "attn_q_norm.weight", HEAD),
    NORM("self_attn.k_norm.weight", "attn_k_norm.weight", HEAD),
    {"self_attn.o_proj.weight", "attn_output.weight", {WIDTH, QUERIES}, ALWAYS, LS_ROWS_SAME, NULL},
    {"self_attn.o_proj.bias", "attn_output.bias", {WIDTH}, O_BIAS, LS_ROWS_SAME, NULL},
    NORM("post_attention_layernorm.weight", "post_attention_norm.weight", WIDTH),
    NORM("pre_feedforward_layernorm.weight", "ffn_norm.weight", WIDTH),
    {"mlp.gate_proj.weight", "ffn_gate.weight", {FFN, WIDTH}, ALWAYS, LS_ROWS_SAME, NULL},
    {"mlp.up_proj.weight", "ffn_up.weight", {FFN, WIDTH}, ALWAYS, LS_ROWS_SAME, NULL},
    {"mlp.down_proj.weight", "ffn_down.weight", {WIDTH, FFN}, ALWAYS, LS_ROWS_SAME, NULL},
    NORM("post_feedforward_layernorm.weight", "post_ffw_norm.weight", WIDTH),
    {0},
};
static const row gemma3_after[] = {
    NORM("model.norm.weight", "output_norm.weight", WIDTH),
    {"lm_head.weight", "output.weight", {VOCAB, WIDTH}, UNTIED, LS_ROWS_SAME, NULL},
    {0},
};
static const row llama_after[] = {
    {"model.norm.weight", "output_norm.weight", {WIDTH}, ALWAYS, LS_ROWS_SAME, NULL},
    {"lm_head.weight", "output.weight", {VOCAB, WIDTH}, UNTIED, LS_ROWS_SAME, NULL},
    {0},
};

static const row gpt2_before[] = {
    {"wte.weight", "token_embd.weight", {VOCAB, WIDTH}, ALWAYS, LS_ROWS_SAME, NULL},
    {"wpe.weight", "position_embd.weight", {CONTEXT, WIDTH}, ALWAYS, LS_ROWS_SAME, NULL},
    {0},
};
static const row gpt2_block[] = {
    {"ln_1.weight", "attn_norm.weight", {WIDTH}, ALWAYS, LS_ROWS_SAME, NULL},
    {"ln_1.bias", "attn_norm.bias", {WIDTH}, ALWAYS, LS_ROWS_SAME, NULL},
    {"attn.c_attn.weight", "attn_qkv.weight", {WIDTH, THREE}, ALWAYS, LS_ROWS_TRANSPOSED, NULL},
    {"attn.c_attn.bias", "attn_qkv.bias", {THREE}, ALWAYS, LS_ROWS_SAME, NULL},
    {"attn.c_proj.weight", "attn_output.weight", {WIDTH, WIDTH}, ALWAYS, LS_ROWS_TRANSPOSED, NULL},
    {"attn.c_proj.bias", "attn_output.bias", {WIDTH}, ALWAYS, LS_ROWS_SAME, NULL},
    {"ln_2.weight", "ffn_norm.weight", {WIDTH}, ALWAYS, LS_ROWS_SAME, NULL},
    {"ln_2.bias", "ffn_norm.bias", {WIDTH}, ALWAYS, LS_ROWS_SAME, NULL},
    {"mlp.c_fc.weight", "ffn_up.weight", {WIDTH, FFN}, ALWAYS, LS_ROWS_TRANSPOSED, NULL},
    {"mlp.c_fc.bias", "ffn_up.bias", {FFN}, ALWAYS, LS_ROWS_SAME, NULL},
    {"mlp.c_proj.weight", "ffn_down.weight", {FFN, WIDTH}, ALWAYS, LS_ROWS_TRANSPOSED, NULL},
    {"mlp.c_proj.bias", "ffn_down.bias", {WIDTH}, ALWAYS, LS_ROWS_SAME, NULL},
    {0},
};
static const row gpt2_after[] = {
    {"ln_f.weight", "output_norm.weight", {WIDTH}, ALWAYS, LS_ROWS_SAME, NULL},
    {"ln_f.bias", "output_norm.bias", {WIDTH}, ALWAYS, LS_ROWS_SAME, NULL},
    {"lm_head.weight", "output.weight", {VOCAB, WIDTH}, UNTIED, LS_ROWS_SAME, NULL},
    {0},
};

/* Phi-3: tensors of the files whose rows are those of several tensors here. */
typedef struct joined {
    const char *name, *gguf;
    const struct {
        const char *name;
        length rows;
    } parts[3];
} joined;
static const joined phi3_joined[] = {
    {"self_attn.qkv_proj.weight",
     "attn_qkv.weight",
     {{"self_attn.q_proj.weight", QUERIES},
      {"self_attn.k_proj.weight", KEYS},
      {"self_attn.v_proj.weight", KEYS}}},
    {"mlp.gate_up_proj.weight",
     "ffn_up.weight",
     {{"mlp.gate_proj.weight", FFN}, {"mlp.up_proj.weight", FFN}, {NULL, NOTHING}}},
};
enum { JOINED = sizeof phi3_joined / sizeof *phi3_joined };

static const family_rows llama = {"model.layers", llama_before, llama_block, llama_after, "", NULL};
static const family_rows gpt2 = {"h", gpt2_before, gpt2_block, gpt2_after, "", NULL};
static const family_rows gemma3 = {"model.layers", llama_before, gemma3_block,
                                   gemma3_after,   "",           NULL};
static const family_rows mixtral = {
    "model.layers", llama_before, mixtral_block, llama_after, "block_sparse_moe.experts",
    mixtral_expert};
static const family_rows qwen3_moe = {"model.layers", llama_before,  qwen3_moe_block,
                                      llama_after,    "mlp.experts", qwen3_moe_expert};

static const family_rows *rows_of(const ls_architecture *a) {
    switch (a->family) {
    case LS_FAMILY_GPT2: return &gpt2;
    case LS_FAMILY_MIXTRAL: return &mixtral;
    case LS_FAMILY_QWEN3_MOE: return &qwen3_moe;
    case LS_FAMILY_GEMMA3: return &gemma3;
    default: return &llama;
    }
}

static int64_t length_of(const ls_architecture *a, length l) {
    switch (l) {
    case NOTHING: return 0;
    case WIDTH: return a->width;
    case FFN: return a->ffn;
    case VOCAB: return a->vocab;
    case CONTEXT: return a->context;
    case HEAD: return a->head_dim;
    case QUERIES: return a->heads * a->head_dim;
    case KEYS: return a->kv_heads * a->head_dim;
    case THREE: return 3 * a->width;
    case EXPERTS: return a->experts;
    }
    return 0;
}

static bool holds(const ls_architecture *a, condition c) {
    switch (c) {
    case ALWAYS: return true;
    case QKV_BIAS: return a->qkv_bias;
    case O_BIAS: return a->o_bias;
    case MLP_BIAS: return a->mlp_bias;
    case QK_NORM: return a->qk_norm;
    case UNTIED: return !a->tied;
    }
    return false;
}

static int count_rows(const ls_architecture *a, const row *r) {
    int n = 0;
    for (; r->name; r++) n += holds(a, r->when);
    return n;
}

/* Row i of those that the model has. */
static const row *nth_row(const ls_architecture *a, const row *r, int i) {
    for (;; r++)
        if (holds(a, r->when) && i-- == 0) return r;
}

/* Where a row's tensor is: its block, or -1; of an expert, or -1. */
typedef struct place {
    int layer, expert;
} place;

static void write_names(const ls_architecture *a, const row *r, place at, ls_name *n) {
    const family_rows *f = rows_of(a);
    const char *param = r->param ? r->param : r->name;
    if (at.layer < 0) {
        snprintf(n->name, sizeof n->name, "%s", r->name);
        snprintf(n->gguf, sizeof n->gguf, "%s", r->gguf);
        snprintf(n->param, sizeof n->param, "%s", param);
        return;
    }
    if (at.expert < 0)
        snprintf(n->name, sizeof n->name, "%s.%d.%s", f->block, at.layer, r->name);
    else
        snprintf(n->name, sizeof n->name, "%s.%d.%s.%d.%s", f->block, at.layer, f->experts,
                 at.expert, r->name);
    snprintf(n->gguf, sizeof n->gguf, "blk.%d.%s", at.layer, r->gguf);
    snprintf(n->param, sizeof n->param, "%s.%d.%s", f->block, at.layer, param);
}

/* Where the files of Phi-3 have the tensor. */
static void join(const ls_architecture *a, const row *r, int layer, ls_name *n) {
    for (int i = 0; i < JOINED; i++) {
        const joined *j = &phi3_joined[i];
        int64_t rows = 0;
        bool has = false;
        for (int k = 0; k < 3 && j->parts[k].name; k++) {
            bool is = strcmp(j->parts[k].name, r->name) == 0;
            if (is) n->first = rows;
            has = has || is;
            rows += length_of(a, j->parts[k].rows);
        }
        if (!has) continue;
        n->rows = rows;
        snprintf(n->file, sizeof n->file, "%s.%d.%s", rows_of(a)->block, layer, j->name);
        snprintf(n->gguf, sizeof n->gguf, "blk.%d.%s", layer, j->gguf);
    }
}

static void fill(const ls_architecture *a, const row *r, place at, ls_name *n) {
    *n = (ls_name){.expert = at.expert, .order = r->order};
    write_names(a, r, at, n);
    bool phi = a->family == LS_FAMILY_PHI3;
    bool as_is = a->family == LS_FAMILY_QWEN2 || a->qk_norm || phi;
    if (as_is && r->order == LS_ROWS_PAIRS) n->order = LS_ROWS_SAME;
    for (int i = 0; i < 2; i++) {
        n->dims[i] = length_of(a, r->dims[i]);
        if (n->dims[i]) n->ndims = i + 1;
    }
    memcpy(n->file, n->name, sizeof n->file);
    n->rows = n->dims[0];
    if (phi && at.layer >= 0) join(a, r, at.layer, n);
}

bool ls_name_part(const ls_architecture *a, const char *file, int k, char name[LS_NAME_MOST]) {
    size_t n = strlen(file);
    if (n >= LS_NAME_MOST) return false;
    for (int i = 0; i < JOINED && a->family == LS_FAMILY_PHI3; i++) {
        const joined *j = &phi3_joined[i];
        if (!ls_has_suffix(file, j->name)) continue;
        if (k >= 3 || !j->parts[k].name) return false;
        n -= strlen(j->name);
        return snprintf(name, LS_NAME_MOST, "%.*s%s", (int)n, file, j->parts[k].name) <
               LS_NAME_MOST;
    }
    memcpy(name, file, n + 1);
    return k == 0;
}

/* Tensors of a block: its own, then those of its experts. */
static int count_experts(const ls_architecture *a, const family_rows *f) {
    return f->expert ? (int)a->experts * count_rows(a, f->expert) : 0;
}
static int count_block(const ls_architecture *a, const family_rows *f) {
    return count_rows(a, f->in) + count_experts(a, f);
}

static void fill_block(const ls_architecture *a, int layer, int i, ls_name *n) {
    const family_rows *f = rows_of(a);
    int own = count_rows(a, f->in);
    if (i < own) {
        fill(a, nth_row(a, f->in, i), (place){layer, -1}, n);
        return;
    }
    int each = count_rows(a, f->expert);
    fill(a, nth_row(a, f->expert, (i - own) % each), (place){layer, (i - own) / each}, n);
}

bool ls_name_at(const ls_architecture *a, int i, ls_name *n_p) {
    const family_rows *f = rows_of(a);
    int before = count_rows(a, f->before), block = count_block(a, f);
    if (i < before) {
        fill(a, nth_row(a, f->before, i), (place){-1, -1}, n_p);
        return true;
    }
    i -= before;
    if (i / block < a->layers) {
        fill_block(a, i / block, i % block, n_p);
        return true;
    }
    i -= (int)a->layers * block;
    if (i >= count_rows(a, f->after)) return false;
    fill(a, nth_row(a, f->after, i), (place){-1, -1}, n_p);
    return true;
}

int ls_name_expert_step(const ls_architecture *a) { return count_rows(a, rows_of(a)->expert); }

int ls_name_count(const ls_architecture *a) {
    const family_rows *f = rows_of(a);
    return count_rows(a, f->before) + (int)a->layers * count_block(a, f) + count_rows(a, f->after);
}

static int64_t count_elements(const ls_architecture *a, const row *r) {
    int64_t count = 0;
    for (; r->name; r++)
        if (holds(a, r->when))
            count += length_of(a, r->dims[0]) * (r->dims[1] ? length_of(a, r->dims[1]) : 1);
    return count;
}

int64_t ls_architecture_count(const ls_architecture *a) {
    const family_rows *f = rows_of(a);
    int64_t block = count_elements(a, f->in);
    if (f->expert) block += a->experts * count_elements(a, f->expert);
    return count_elements(a, f->before) + a->layers * block + count_elements(a, f->after);
}

bool ls_name_is_derived(const ls_architecture *a, const char *name) {
    if (a->family == LS_FAMILY_GPT2)
        return ls_has_suffix(name, ".attn.bias") || ls_has_suffix(name, ".attn.masked_bias");
    return ls_has_suffix(name, ".rotary_emb.inv_freq");
}

const char *ls_name_canonical(const ls_architecture *a, const char *name) {
    static const char prefix[] = "transformer.";
    bool has = a->family == LS_FAMILY_GPT2 && strncmp(name, prefix, sizeof prefix - 1) == 0;
    return has ? name + sizeof prefix - 1 : name;
}

int64_t ls_name_pair_row(int64_t head_dim, int64_t i) {
    int64_t head = i / head_dim, at = i % head_dim, half = head_dim / 2;
    return head * head_dim + 2 * (at % half) + at / half;
}
