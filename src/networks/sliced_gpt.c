/* sliced_gpt.c - see sliced_gpt.h. Parameters have the names of GPT-2's published weights, with
 * their slice. */
#include "networks/sliced_gpt.h"

#include <math.h>

#include "layers/layers.h"
#include "model/tensor_part.h"
#include "networks/sequence.h"

static const float STD = 0.02f;

typedef struct gpt {
    ls_sliced s;
    int64_t T, C, heads;
    float out_std;
} gpt;

static ls_sequence norm(const gpt *g, const ls_sequence *x, const char *name) {
    return ls_sequence_normalize(&g->s, x, (ls_sequence_norm){.name = name});
}

/* x times the slice's columns: its share of `units`, of `size` each, in each of the groups. */
static ls_value *widen(const gpt *g, ls_value *x, const char *name, ls_sliced_part p) {
    ls_sliced_name mine = ls_sliced_named(&g->s, name);
    int64_t out = p.groups * ls_sliced_count(&g->s, p.units) * p.size;
    ls_value *y = (ls_linear)(g->s.m, x,
                              (ls_linear_options){.name = mine.text, .out = out, .deviation = STD});
    p.dim = 1;
    ls_sliced_set(&g->s, y, p);
    p.dim = 0;
    p.param = 1;
    ls_sliced_set(&g->s, y, p);
    return y;
}

/* The slice's rows. The first slice has the bias. */
static ls_value *narrow(const gpt *g, ls_value *x, const char *name, ls_sliced_part p) {
    ls_sliced_name mine = ls_sliced_named(&g->s, name);
    ls_linear_options o = {
        .name = mine.text, .out = g->C, .no_bias = g->s.k > 0, .deviation = g->out_std};
    ls_value *y = (ls_linear)(g->s.m, x, o);
    ls_sliced_set(&g->s, y, p);
    return y;
}

static ls_sequence attend(gpt *g, const ls_sequence *x) {
    ls_value *of[LS_SLICES_MOST];
    ls_sliced *s = &g->s;
    ls_sliced_part heads = {.groups = 1, .units = g->heads, .size = g->C / g->heads};
    ls_sliced_part three = heads;
    three.groups = 3;
    ls_sequence y = norm(g, x, "ln_1");
    (ls_scope)(s->m, "attn");
    ls_sequence_fork(s, &y, of);
    for (s->k = 0; s->k < s->n; s->k++) {
        ls_sliced_begin(s);
        ls_sliced_name name = ls_sliced_named(s, "attention");
        ls_attention_options o = {
            .name = name.text, .heads = ls_sliced_count(s, g->heads), .causal = true};
        ls_value *qkv = widen(g, of[s->k], "c_attn", three);
        of[s->k] = narrow(g, (ls_attention)(s->m, qkv, o), "c_proj", heads);
    }
    s->k = 0;
    y = ls_sequence_join(s, of);
    ls_scope_end(s->m);
    return ls_sequence_add(s, x, &y);
}

static ls_sequence feed_forward(gpt *g, const ls_sequence *x) {
    ls_value *of[LS_SLICES_MOST];
    ls_sliced *s = &g->s;
    ls_sliced_part hidden = {.groups = 1, .units = 4 * g->C, .size = 1};
    ls_sequence y = norm(g, x, "ln_2");
    (ls_scope)(s->m, "mlp");
    ls_sequence_fork(s, &y, of);
    for (s->k = 0; s->k < s->n; s->k++) {
        ls_sliced_begin(s);
        ls_value *units = (ls_gelu)(s->m, widen(g, of[s->k], "c_fc", hidden));
        of[s->k] = narrow(g, units, "c_proj", hidden);
    }
    s->k = 0;
    y = ls_sequence_join(s, of);
    ls_scope_end(s->m);
    return ls_sequence_add(s, x, &y);
}

static void build(gpt *g, const ls_config *c) {
    ls_value *of[LS_SLICES_MOST];
    ls_model *m = g->s.m;
    ls_value *tokens = (ls_input)(m, "tokens", LS_I32, LS_DIMS(g->T + 1));
    ls_embedding_options words = {
        .name = "wte", .rows = c->model.vocab, .width = g->C, .deviation = STD};
    ls_sequence_ids ids = {ls_build_part(m, tokens, 0, g->T), "wpe", STD};
    ls_sequence x = ls_sequence_embed(&g->s, &ids, words, of);
    for (int i = 0; i < (int)c->model.layers; i++) {
        (ls_scope)(m, "h.%d", i);
        x = attend(g, &x);
        x = feed_forward(g, &x);
        ls_scope_end(m);
    }
    x = norm(g, &x, "ln_f");
    ls_sequence_end end = {.name = "head", .vocab = c->model.vocab, .tied = of};
    ls_sequence_loss(&g->s, &x, ls_build_part(m, tokens, 1, g->T), end);
    ls_tensor_part_number(m);
}

ls_status ls_sliced_gpt_create(const ls_config *c, ls_model *m_p, ls_error *e) {
    ls_model m = {0};
    int64_t C = c->model.width, heads = c->model.heads;
    ls_sliced_sizes sizes = {
        .heads = heads, .kv_heads = heads, .ffn = 4 * C, .vocab = c->model.vocab};
    LS_TRY(ls_sliced_check(c, &sizes, e));
    gpt g = {.s = {.m = &m, .n = (int)c->parallel.tensor_virtual, .sequence = c->parallel.sequence},
             .T = c->model.context,
             .C = C,
             .heads = heads,
             .out_std = STD / sqrtf(2.0f * (float)c->model.layers)};
    build(&g, c);
    ls_status s = ls_build_finish(&m, e);
    if (s == LS_OK)
        *m_p = m;
    else
        ls_model_free(&m);
    return s;
}
