/* attention.c - y = x + projection(causal attention(layer norm(x))).
 *
 * params: gamma, beta [C]; w_qkv [C, 3C], b_qkv [3C]; w_out [C, C], b_out [C]
 * saved, per row: h = layer norm(x) [C] | qkv [3C] | att [C] | mean, rstd; and stat [heads, T, 2]
 *
 * The heads themselves: heads.h.
 */
#include "model/attention.h"

#include "model/heads.h"
#include "model/kept.h"
#include "model/rows.h"

enum { W_QKV = 2, W_OUT = 4 }; /* the bias of each follows it */

typedef struct saved {
    float *h, *qkv, *att, *mean, *rstd, *stat;
} saved;

static saved saved_of(const ls_layer *l, const ls_layer_call *c) {
    int64_t rows = c->n * c->T;
    saved s;
    s.h = c->saved;
    s.qkv = s.h + rows * l->C;
    s.att = s.qkv + rows * 3 * l->C;
    s.mean = s.att + rows * l->C;
    s.rstd = s.mean + rows;
    s.stat = s.rstd + rows; /* [n, heads, T, 2] */
    return s;
}

ls_attention_seen ls_attention_saw(const ls_layer *l, int64_t T, const float *p) {
    const float *qkv = p + T * l->C;
    return (ls_attention_seen){qkv + l->C, qkv + 2 * l->C, 3 * l->C};
}

static ls_heads heads_of(const ls_layer *l, const ls_layer_call *c, const saved *s) {
    int64_t C = l->C;
    return (ls_heads){.compute = c->compute,
                      .bf16 = ls_layer_in_bf16(c),
                      .n = c->n,
                      .T = c->T,
                      .S = c->T,
                      .heads = l->heads,
                      .kv_heads = l->heads,
                      .D = C / l->heads,
                      .causal = true,
                      .q = s->qkv,
                      .k = s->qkv + C,
                      .v = s->qkv + 2 * C,
                      .q_row = 3 * C,
                      .kv_row = 3 * C,
                      .stat = s->stat,
                      .y = s->att};
}

static void forward(const ls_layer *l, const ls_layer_call *c) {
    int64_t rows = c->n * c->T, C = l->C;
    saved s = saved_of(l, c);
    ls_rows_norm(l, c, s.h, s.mean, s.rstd);
    ls_rows_linear(l, c, W_QKV, s.h, s.qkv);
    ls_heads heads = heads_of(l, c, &s);
    ls_heads_forward(&heads);
    ls_rows_linear(l, c, W_OUT, s.att, c->y);
    ls_rows_add(c->compute, rows * C, c->x[0], c->y, c->y);
}

/* work: datt [rows, C] (later dh) | dqkv [rows, 3C] */
static void backward(const ls_layer *l, const ls_layer_call *c) {
    int64_t rows = c->n * c->T, C = l->C;
    float *datt = c->work, *dqkv = datt + rows * C, *dh = datt;
    saved s = saved_of(l, c);
    bool norm = ls_rows_norm_has_back(l, c);
    ls_rows_linear_dw(l, c, W_OUT, s.att, c->dy);
    if (!norm && !ls_rows_linear_has_dw(l, W_QKV)) return;
    ls_rows_linear_dx(l, c, W_OUT, c->dy, datt);
    ls_heads heads = heads_of(l, c, &s);
    heads.dy = datt;
    heads.dq = dqkv;
    heads.dk = dqkv + C;
    heads.dv = dqkv + 2 * C;
    ls_heads_backward(&heads);
    ls_rows_linear_dw(l, c, W_QKV, s.h, dqkv);
    if (!norm) return;
    ls_rows_linear_dx(l, c, W_QKV, dqkv, dh);
    ls_rows_norm_back(l, c, s.mean, s.rstd, dh, c->dy);
}

static const ls_layer_ops ops = {.kind = "attention", .forward = forward, .backward = backward};

void ls_attention_declare(ls_layer *l, int64_t T, int64_t C, int64_t heads) {
    l->ops = &ops;
    l->T = T;
    l->C = C;
    l->ninputs = 1;
    l->input_floats[0] = (size_t)(T * C);
    l->heads = heads;
    l->y_floats = (size_t)(T * C);
    l->in_products[W_QKV] = l->in_products[W_OUT] = true;
    l->saved_rough = (size_t)(5 * C);
    l->saved_floats = (size_t)(T * (5 * C + 2 + 2 * heads));
    l->work_floats = (size_t)(T * 4 * C);
    size_t heads_floats = ls_heads_scratch_floats(T, C / heads),
           room = ls_kept_room(heads, T, C / heads);
    l->scratch_floats = heads_floats > room ? heads_floats : room;
    /* 8 C^2 per position for the products with weights; causal scores and mixing: 2 T C */
    l->forward_flops = 8.0 * (double)(T * C * C) + 2.0 * (double)(T * T * C);
    ls_works *f = &l->forward_work, *b = &l->backward_work;
    ls_works_norm(f, b, T, C);
    ls_works_linear(f, b, W_QKV, T, C, 3 * C);
    ls_heads_works(
        &(ls_heads){
            .T = T, .S = T, .heads = heads, .kv_heads = heads, .D = C / heads, .causal = true},
        f, b);
    ls_works_linear(f, b, W_OUT, T, C, C);
    ls_works_pass(f, LS_WORK_ADD, T * C);
}
