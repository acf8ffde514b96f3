/* gpt_attention.c - y = x + projection(causal attention(layer norm(x))).
 *
 * params: gamma, beta [C]; w_qkv [C, 3C], b_qkv [3C]; w_out [C, C], b_out [C]
 * saved, per row: h = layer norm(x) [C] | qkv [3C] | att [C] | mean, rstd; and stat [heads, T, 2]
 * With dropout the probabilities have a mask, and the projection's rows.
 *
 * The heads themselves: heads.h.
 */
#include "layers/gpt.h"

#include "layers/continued.h"
#include "layers/dropout.h"
#include "layers/heads.h"
#include "layers/kept.h"
#include "model/row_ops.h"

enum { W_QKV = 2, W_OUT = 4 }; /* the bias of each follows it */

typedef struct own {
    int64_t heads;
    ls_dropout_mask in_heads, in_rows;
} own;

static const own *own_of(const ls_layer *l) { return &LS_LAYER_OWN_OF(own, l); }

typedef struct saved {
    ls_numbers h, qkv, att;
    float *mean, *rstd, *stat;
} saved;

static saved saved_of(const ls_layer *l, const ls_layer_call *c) {
    int64_t rows = c->n * c->T;
    saved s;
    s.h = ls_rows_saved(l, c);
    s.qkv = ls_numbers_at(s.h, rows * l->C);
    s.att = ls_numbers_at(s.qkv, rows * 3 * l->C);
    s.mean = ls_layer_saved_exact(l, c);
    s.rstd = s.mean + rows;
    s.stat = s.rstd + rows; /* [n, heads, T, 2] */
    return s;
}

ls_gpt_seen ls_gpt_attention_saw(const ls_layer *l, int64_t T, bool bf16, const void *from) {
    ls_matrix rows = {from, 3 * l->C, 1, bf16 && l->half.as_stored & LS_OPERAND_SAVED};
    ls_matrix qkv = ls_matrix_from(rows, 0, T * l->C);
    return (ls_gpt_seen){ls_matrix_from(qkv, 0, l->C), ls_matrix_from(qkv, 0, 2 * l->C)};
}

static ls_heads heads_of(const ls_layer *l, const ls_layer_call *c, const saved *s) {
    int64_t C = l->C, heads = own_of(l)->heads;
    return (ls_heads){.compute = c->compute,
                      .bf16 = ls_layer_in_bf16(c),
                      .stored = s->qkv.bf16,
                      .n = c->n,
                      .T = c->T,
                      .S = c->T,
                      .heads = heads,
                      .kv_heads = heads,
                      .D = C / heads,
                      .causal = true,
                      .q = s->qkv.p,
                      .k = ls_numbers_at(s->qkv, C).p,
                      .v = ls_numbers_at(s->qkv, 2 * C).p,
                      .q_row = 3 * C,
                      .kv_row = 3 * C,
                      .drop = &own_of(l)->in_heads,
                      .call = c,
                      .stat = s->stat,
                      .y = s->att.p};
}

/* In bf16, work: qkv [rows, 3C] before it is rounded, later y [rows, C]. */
static void forward(const ls_layer *l, const ls_layer_call *c) {
    int64_t rows = c->n * c->T, C = l->C;
    saved s = saved_of(l, c);
    bool stored = s.qkv.bf16;
    float *qkv = stored ? c->work : s.qkv.p, *y = stored ? c->work : c->y;
    ls_rows_norm(l, c, s.h, s.mean, s.rstd);
    ls_rows_linear(l, c, W_QKV, ls_numbers_rows(s.h, C), qkv);
    if (stored) ls_rows_round(c->compute, rows * 3 * C, qkv, s.qkv.p);
    ls_heads heads = heads_of(l, c, &s);
    if (c->past.texts || c->past.kept)
        ls_heads_continue(&heads);
    else
        ls_heads_forward(&heads);
    ls_rows_linear(l, c, W_OUT, ls_numbers_rows(s.att, C), y);
    ls_dropout_rows(c, &own_of(l)->in_rows, C, y);
    ls_rows_add(c->compute, rows * C, ls_rows_x(l, c, 0, C), y, (ls_numbers){c->y, stored});
}

/* work: datt [rows, C] (later dh) | dqkv [rows, 3C] | with dropout, dy with the mask [rows, C] */
static void backward(const ls_layer *l, const ls_layer_call *c) {
    int64_t rows = c->n * c->T, C = l->C;
    float *datt = c->work, *dqkv = datt + rows * C, *dh = datt;
    saved s = saved_of(l, c);
    ls_matrix dy = ls_dropout_of_dy(l, c, &own_of(l)->in_rows, dqkv + rows * 3 * C);
    bool norm = ls_rows_norm_has_back(l, c);
    ls_rows_linear_dw(l, c, W_OUT, ls_numbers_rows(s.att, C), dy);
    if (!norm && !ls_rows_linear_has_dw(l, W_QKV)) return;
    ls_rows_linear_dx(l, c, W_OUT, dy, datt);
    ls_heads heads = heads_of(l, c, &s);
    heads.dy = ls_matrix_of(datt, C);
    heads.dq = dqkv;
    heads.dk = dqkv + C;
    heads.dv = dqkv + 2 * C;
    ls_heads_backward(&heads);
    ls_rows_linear_dw(l, c, W_QKV, ls_numbers_rows(s.h, C), ls_matrix_of(dqkv, 3 * C));
    if (!norm) return;
    ls_rows_linear_dx(l, c, W_QKV, ls_matrix_of(dqkv, 3 * C), dh);
    ls_rows_norm_back(l, c, s.mean, s.rstd, dh, true);
}

static void describe(const ls_layer *l, ls_facts *f) {
    f->is_gpt = true;
    f->heads = own_of(l)->heads;
}

static const ls_layer_ops ops = {
    .kind = "attention", .forward = forward, .backward = backward, .describe = describe};

/* Queries, keys and values, and heads' results, are rounded; the sum reads x again. */
static void declare_conversions(ls_layer *l, int64_t T, int64_t C) {
    ls_conversions *f = &l->cost.forward_converts;
    ls_rows_norm_converts(l, T, C, true, true);
    ls_conversions_add(
        f, (ls_conversion){.operand = LS_OPERAND_SAVED, .rounds = true, .numbers = T * 4 * C});
    ls_conversions_add(f, (ls_conversion){.operand = LS_OPERAND_X, .numbers = T * C});
    ls_conversions_add(f,
                       (ls_conversion){.operand = LS_OPERAND_Y, .rounds = true, .numbers = T * C});
    ls_conversions_add(
        &l->cost.backward_converts,
        (ls_conversion){.operand = LS_OPERAND_DY, .grads = 2u << W_OUT, .numbers = T * C});
}

void ls_gpt_attention_declare(ls_layer *l, int64_t T, int64_t C, int64_t heads) {
    l->ops = &ops;
    l->traits.on_device = true;
    l->T = T;
    l->C = C;
    l->ninputs = 1;
    l->input_floats[0] = (size_t)(T * C);
    LS_LAYER_OWN_AS(own, l).heads = heads;
    l->y_floats = (size_t)(T * C);
    l->half.in_products[W_QKV] = l->half.in_products[W_OUT] = true;
    l->half.rounds_grads[W_QKV] = l->half.rounds_grads[W_OUT] = true;
    l->half.as_stored = LS_OPERAND_ALL;
    l->half.saved_rough = (size_t)(5 * C);
    l->memory.saved = (size_t)(T * (5 * C + 2 + 2 * heads));
    l->memory.work = (size_t)(T * 4 * C);
    l->memory.past = ls_kept_floats(T, heads, C / heads);
    l->memory.past_factors = ls_kept_factors(heads, C / heads);
    const size_t scratch[] = {ls_heads_scratch_floats(T, C / heads),
                              (size_t)(2 * C) + ls_kept_room(heads, T, C / heads),
                              ls_rows_norm_scratch(C)};
    for (int i = 0; i < 3; i++)
        if (scratch[i] > l->memory.scratch) l->memory.scratch = scratch[i];
    /* 8 C^2 per position for the products with weights; causal scores and mixing: 2 T C */
    l->cost.flops = 8.0 * (double)(T * C * C) + 2.0 * (double)(T * T * C);
    ls_works *f = &l->cost.forward, *b = &l->cost.backward;
    ls_works_norm(f, b, T, C);
    ls_works_linear(f, b, W_QKV, T, C, 3 * C);
    ls_heads_works(
        &(ls_heads){
            .T = T, .S = T, .heads = heads, .kv_heads = heads, .D = C / heads, .causal = true},
        f, b);
    ls_works_linear(f, b, W_OUT, T, C, C);
    ls_works_pass(f, LS_WORK_ADD, T * C);
    declare_conversions(l, T, C);
}

void ls_gpt_attention_drop(ls_layer *l, float rate, int64_t block) {
    own *o = &LS_LAYER_OWN_AS(own, l);
    o->in_heads =
        (ls_dropout_mask){.rate = rate, .number = ls_dropout_number(block, LS_DROPOUT_IN_HEADS)};
    o->in_rows = (ls_dropout_mask){.rate = rate,
                                   .number = ls_dropout_number(block, LS_DROPOUT_IN_ATTENTION)};
    ls_dropout_declare_rows(l);
    int64_t scores = l->T * (l->T + 1) / 2 * o->heads;
    ls_works_dropout(&l->cost.forward, scores);
    ls_works_dropout(&l->cost.backward, 2 * scores);
}
