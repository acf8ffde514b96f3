/* llama.c - see llama.h. */
#include "networks/llama.h"

#include "model/builder.h"

static const float STD = 0.02f;

typedef struct llama {
    const ls_config *c;
    ls_model *m;
    int64_t T, width, heads, kv_heads, head, ffn;
} llama;

/* Two thirds of four times the width, in whole vectors of 64, unless the config says it. */
static int64_t ffn_of(const ls_config *c) {
    return c->model.ffn ? c->model.ffn : (8 * c->model.width / 3 + 63) / 64 * 64;
}

static ls_value *norm(const llama *f, ls_value *x, const char *name) {
    return (ls_rms_norm)(f->m, x,
                         (ls_rms_norm_options){.name = name, .eps = (float)f->c->model.norm_eps});
}

static ls_value *linear(const llama *f, ls_value *x, const char *name, int64_t out) {
    return (ls_linear)(f->m, x,
                       (ls_linear_options){.name = name,
                                           .out = out,
                                           .no_bias = true,
                                           .out_in = true,
                                           .deviation = STD});
}

static ls_value *rope(const llama *f, ls_value *x, const char *name, int64_t heads) {
    return (ls_rope)(f->m, x,
                     (ls_rope_options){
                         .name = name, .heads = heads, .base = (float)f->c->model.rope_base});
}

static ls_value *attend(const llama *f, ls_value *x) {
    ls_value *q = linear(f, x, "q_proj", f->heads * f->head);
    ls_value *k = linear(f, x, "k_proj", f->kv_heads * f->head);
    ls_value *v = linear(f, x, "v_proj", f->kv_heads * f->head);
    ls_attention_options o = {.heads = f->heads, .kv_heads = f->kv_heads, .causal = true};
    q = rope(f, q, "rope_q", f->heads);
    o.keys = rope(f, k, "rope_k", f->kv_heads);
    o.values = v;
    return linear(f, (ls_attention)(f->m, q, o), "o_proj", f->width);
}

static ls_value *feed_forward(const llama *f, ls_value *x) {
    ls_value *gate = linear(f, x, "gate_proj", f->ffn), *up = linear(f, x, "up_proj", f->ffn);
    return linear(f, (ls_silu_gate)(f->m, gate, up), "down_proj", f->width);
}

static ls_value *add_block(const llama *f, ls_value *x) {
    ls_value *y = norm(f, x, "input_layernorm");
    (ls_scope)(f->m, "self_attn");
    y = attend(f, y);
    ls_scope_end(f->m);
    x = (ls_add)(f->m, x, y);
    y = norm(f, x, "post_attention_layernorm");
    (ls_scope)(f->m, "mlp");
    y = feed_forward(f, y);
    ls_scope_end(f->m);
    return (ls_add)(f->m, x, y);
}

static void build(const llama *f) {
    ls_model *m = f->m;
    int64_t T = f->T;
    ls_value *tokens = (ls_input)(m, "tokens", LS_I32, LS_DIMS(T + 1));
    (ls_scope)(m, "model");
    ls_embedding_options e = {
        .name = "embed_tokens", .rows = f->c->model.vocab, .width = f->width, .deviation = STD};
    ls_value *embedding = (ls_embedding)(m, ls_build_part(m, tokens, 0, T), e), *x = embedding;
    for (int i = 0; i < (int)f->c->model.layers; i++) {
        (ls_scope)(m, "layers.%d", i);
        x = add_block(f, x);
        ls_scope_end(m);
    }
    x = norm(f, x, "norm");
    ls_scope_end(m);
    ls_linear_cross_entropy_options head = {.name = "lm_head", .classes = f->c->model.vocab};
    if (f->c->model.head == LS_HEAD_TIED) head.tied = embedding;
    (ls_linear_cross_entropy)(m, x, ls_build_part(m, tokens, 1, T), head);
}

static ls_status check(const llama *f, ls_error *e) {
    if (f->heads % f->kv_heads)
        return ls_fail(e, LS_EINVAL, "model.kv_heads %lld does not divide model.heads %lld",
                       (long long)f->kv_heads, (long long)f->heads);
    if (f->head % 2)
        return ls_fail(e, LS_EINVAL,
                       "model.width %lld / model.heads %lld is %lld; rotary positions need an even "
                       "number",
                       (long long)f->width, (long long)f->heads, (long long)f->head);
    return LS_OK;
}

ls_status ls_llama_create(const ls_config *c, ls_model *m_p, ls_error *e) {
    ls_model m = {0};
    llama f = {.c = c,
               .m = &m,
               .T = c->model.context,
               .width = c->model.width,
               .heads = c->model.heads,
               .kv_heads = c->model.kv_heads ? c->model.kv_heads : c->model.heads,
               .head = c->model.width / c->model.heads,
               .ffn = ffn_of(c)};
    LS_TRY(check(&f, e));
    build(&f);
    ls_status s = ls_build_finish(&m, e);
    if (s == LS_OK)
        *m_p = m;
    else
        ls_model_free(&m);
    return s;
}
