/* chunked_gpt.c - see chunked_gpt.h. Layers are added chunk by chunk, between those of attention. */
#include "networks/chunked_gpt.h"

#include <math.h>

#include "layers/layers.h"
#include "layers/positions.h"
#include "networks/chunked.h"

static const float STD = 0.02f;

typedef struct gpt {
    ls_chunked s;
    int64_t C, heads;
    float out_std;
} gpt;

static ls_value *norm(const gpt *g, ls_value *x, const char *name) {
    return (ls_layer_norm)(g->s.m, x, (ls_layer_norm_options){.name = name});
}

static ls_value *widen(const gpt *g, ls_value *x, const char *name, int64_t out) {
    return (ls_linear)(g->s.m, x, (ls_linear_options){.name = name, .out = out, .deviation = STD});
}

static ls_value *narrow(const gpt *g, ls_value *x, const char *name) {
    return (ls_linear)(g->s.m, x,
                       (ls_linear_options){.name = name, .out = g->C, .deviation = g->out_std});
}

/* x [s.n]: the rows of each chunk, before attention and behind it. */
static void attend(const gpt *g, ls_value **x) {
    ls_chunked_rows rows[LS_CHUNKS_MOST];
    ls_value *of[LS_CHUNKS_MOST];
    ls_attention_options o = {
        .name = "attention", .heads = g->heads, .kv_heads = g->heads, .causal = true};
    ls_model *m = g->s.m;
    for (int k = 0; k < g->s.n; k++) {
        ls_chunked_begin(&g->s, k);
        ls_value *y = norm(g, x[k], "ln_1");
        (ls_scope)(m, "attn");
        rows[k] = (ls_chunked_rows){{widen(g, y, "c_attn", 3 * g->C)}, 1};
        ls_scope_end(m);
    }
    (ls_scope)(m, "attn");
    ls_chunked_attend(&g->s, rows, o, of);
    for (int k = 0; k < g->s.n; k++) {
        ls_chunked_begin(&g->s, k);
        x[k] = (ls_add)(m, x[k], narrow(g, of[k], "c_proj"));
    }
    ls_scope_end(m);
}

static ls_value *feed_forward(const gpt *g, ls_value *x) {
    ls_model *m = g->s.m;
    ls_value *y = norm(g, x, "ln_2");
    (ls_scope)(m, "mlp");
    y = narrow(g, (ls_gelu)(m, widen(g, y, "c_fc", 4 * g->C)), "c_proj");
    ls_scope_end(m);
    return (ls_add)(m, x, y);
}

static void add_block(const gpt *g, ls_value **x) {
    attend(g, x);
    for (int k = 0; k < g->s.n; k++) {
        ls_chunked_begin(&g->s, k);
        x[k] = feed_forward(g, x[k]);
    }
}

static void build(const gpt *g, const ls_config *c) {
    ls_model *m = g->s.m;
    ls_value *x[LS_CHUNKS_MOST], *tied[LS_CHUNKS_MOST];
    ls_value *tokens = (ls_input)(m, "tokens", LS_I32, LS_DIMS(g->s.T + 1));
    ls_value *words = ls_build_part(m, tokens, 0, g->s.T);
    ls_value *next = ls_build_part(m, tokens, 1, g->s.T);
    ls_embedding_options e = {
        .name = "wte", .rows = c->model.vocab, .width = g->C, .deviation = STD};
    for (int k = 0; k < g->s.n; k++) {
        ls_row_range rows = ls_chunked_begin(&g->s, k);
        tied[k] = (ls_embedding)(m, ls_chunked_part(&g->s, words, k), e);
        x[k] = ls_layers_positions(m, tied[k], rows, "wpe", STD);
    }
    for (int i = 0; i < (int)c->model.layers; i++) {
        (ls_scope)(m, "h.%d", i);
        add_block(g, x);
        ls_scope_end(m);
    }
    for (int k = 0; k < g->s.n; k++) {
        ls_chunked_begin(&g->s, k);
        x[k] = norm(g, x[k], "ln_f");
        ls_layers_chunk_cross_entropy(
            m, x[k], ls_chunked_part(&g->s, next, k), next,
            (ls_linear_cross_entropy_options){.name = "head", .tied = tied[k]});
    }
}

ls_status ls_chunked_gpt_create(const ls_config *c, ls_model *m_p, ls_error *e) {
    ls_model m = {0};
    gpt g = {.s = {.m = &m, .n = (int)c->parallel.context_virtual, .T = c->model.context},
             .C = c->model.width,
             .heads = c->model.heads,
             .out_std = STD / sqrtf(2.0f * (float)c->model.layers)};
    if (g.C % g.heads)
        return ls_fail(e, LS_EINVAL, "model.heads %lld must divide model.width %lld",
                       (long long)g.heads, (long long)g.C);
    build(&g, c);
    ls_status s = ls_build_finish(&m, e);
    if (s == LS_OK)
        *m_p = m;
    else
        ls_model_free(&m);
    return s;
}
