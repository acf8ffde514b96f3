/* cut_gpt.c - see cut_gpt.h. Parameters have the names of GPT-2's published weights, with their
 * slice. */
#include "networks/cut_gpt.h"

#include <math.h>

#include "model/tensor_part.h"
#include "networks/cut.h"

static const float STD = 0.02f;

typedef struct gpt {
    ls_cut cut;
    int64_t C, heads;
    float out_std;
} gpt;

/* x times the slice's columns: its share of `units`, of `size` each, in each of the groups. */
static ls_value *widen(const gpt *g, ls_value *x, const char *name, ls_sliced_part p) {
    const ls_sliced *s = &g->cut.s;
    ls_sliced_name mine = ls_sliced_named(s, name);
    int64_t out = p.groups * ls_sliced_count(s, p.units) * p.size;
    ls_value *y =
        (ls_linear)(s->m, x, (ls_linear_options){.name = mine.text, .out = out, .deviation = STD});
    p.dim = 1;
    ls_sliced_set(s, y, p);
    p.dim = 0;
    p.param = 1;
    ls_sliced_set(s, y, p);
    return y;
}

/* The slice's rows. The first slice has the bias. */
static ls_value *narrow(const gpt *g, ls_value *x, ls_sliced_part p) {
    const ls_sliced *s = &g->cut.s;
    ls_sliced_name mine = ls_sliced_named(s, "c_proj");
    ls_linear_options o = {
        .name = mine.text, .out = g->C, .no_bias = s->k > 0, .deviation = g->out_std};
    ls_value *y = (ls_linear)(s->m, x, o);
    ls_sliced_set(s, y, p);
    return y;
}

/* ---- a block ---- */

static ls_sliced_part heads_part(const gpt *g, int groups) {
    return (ls_sliced_part){.groups = groups, .units = g->heads, .size = g->C / g->heads};
}

static ls_chunked_rows project(void *of, ls_value *x) {
    const gpt *g = of;
    return (ls_chunked_rows){{widen(g, x, "c_attn", heads_part(g, 3))}, 1};
}

static ls_attention_options heads_of(void *of, const char *name) {
    const gpt *g = of;
    int64_t heads = ls_sliced_count(&g->cut.s, g->heads);
    return (ls_attention_options){.name = name, .heads = heads, .kv_heads = heads, .causal = true};
}

static int64_t first_head(void *of) {
    const gpt *g = of;
    return ls_sliced_first(&g->cut.s, g->heads);
}

static ls_value *project_out(void *of, ls_value *x) {
    const gpt *g = of;
    return narrow(g, x, heads_part(g, 1));
}

static ls_value *feed(void *of, ls_value *x) {
    const gpt *g = of;
    ls_sliced_part hidden = {.groups = 1, .units = 4 * g->C, .size = 1};
    return narrow(g, (ls_gelu)(g->cut.s.m, widen(g, x, "c_fc", hidden)), hidden);
}

static ls_sequence feed_forward(gpt *g, const ls_sequence *x) {
    ls_sequence y = ls_sequence_normalize(&g->cut.s, x, (ls_sequence_norm){.name = "ln_2"});
    (ls_scope)(g->cut.s.m, "mlp");
    y = ls_cut_in_slices(&g->cut, &y, feed, g);
    ls_scope_end(g->cut.s.m);
    return ls_cut_add(&g->cut, x, &y, LS_DROPOUT_IN_FEED_FORWARD);
}

/* x [chunks] */
static void add_block(gpt *g, ls_sequence *x) {
    const ls_cut_attention attention = {.of = g,
                                        .scope = "attn",
                                        .norm = {.name = "ln_1"},
                                        .project = project,
                                        .heads = heads_of,
                                        .first_head = first_head,
                                        .project_out = project_out};
    ls_sequence added[LS_CHUNKS_MOST];
    ls_cut_attend(&g->cut, &attention, x, added);
    for (int k = 0; k < g->cut.chunks.n; k++) {
        ls_cut_begin(&g->cut, k);
        x[k] = ls_cut_add(&g->cut, &x[k], &added[k], LS_DROPOUT_IN_ATTENTION);
        x[k] = feed_forward(g, &x[k]);
    }
}

/* ---- the model ---- */

static void build(gpt *g, const ls_config *c) {
    ls_cut *cut = &g->cut;
    ls_model *m = cut->s.m;
    ls_sequence x[LS_CHUNKS_MOST];
    ls_value *tied[LS_CHUNKS_MOST][LS_SLICES_MOST];
    ls_value *tokens = (ls_input)(m, "tokens", LS_I32, LS_DIMS(cut->chunks.T + 1));
    ls_value *now = ls_build_part(m, tokens, 0, cut->chunks.T);
    ls_value *next = ls_build_part(m, tokens, 1, cut->chunks.T);
    ls_embedding_options words = {
        .name = "wte", .rows = c->model.vocab, .width = g->C, .deviation = STD};
    for (int k = 0; k < cut->chunks.n; k++) {
        ls_cut_begin(cut, k);
        ls_sequence_ids ids = {ls_chunked_part(&cut->chunks, now, k), "wpe", cut->rows, STD};
        x[k] = ls_sequence_embed(&cut->s, &ids, words, tied[k]);
        x[k] = ls_cut_embedded(cut, &x[k]);
    }
    for (int i = 0; i < (int)c->model.layers; i++) {
        (ls_scope)(m, "h.%d", i);
        cut->block = i;
        add_block(g, x);
        ls_scope_end(m);
    }
    for (int k = 0; k < cut->chunks.n; k++) {
        ls_cut_begin(cut, k);
        x[k] = ls_sequence_normalize(&cut->s, &x[k], (ls_sequence_norm){.name = "ln_f"});
        ls_sequence_end end = {.name = "head", .vocab = c->model.vocab, .tied = tied[k]};
        ls_cut_loss(cut, &x[k], next, end);
    }
}

ls_status ls_cut_gpt_create(const ls_config *c, bool whole, ls_model *m_p, ls_error *e) {
    ls_model m = {0};
    int64_t C = c->model.width, heads = c->model.heads;
    ls_sliced_sizes sizes = {
        .heads = heads, .kv_heads = heads, .ffn = 4 * C, .vocab = c->model.vocab};
    LS_TRY(ls_sliced_check(c, &sizes, e));
    if (C % heads)
        return ls_fail(e, LS_EINVAL, "model.heads %lld must divide model.width %lld",
                       (long long)heads, (long long)C);
    gpt g = {.cut = ls_cut_of(c, whole, &m),
             .C = C,
             .heads = heads,
             .out_std = STD / sqrtf(2.0f * (float)c->model.layers)};
    build(&g, c);
    if (g.cut.s.n > 1) ls_tensor_part_number(&m);
    return ls_build_finish_as(&m, m_p, e);
}
