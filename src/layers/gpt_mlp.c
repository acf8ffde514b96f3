/* gpt_mlp.c - y = x + w_out . gelu(w_in . layer norm(x) + b_in) + b_out; with dropout what is added
 * to x has a mask.
 *
 * params: gamma, beta [C]; w_in [C, 4C], b_in [4C]; w_out [4C, C], b_out [C]
 * saved, per row: h = layer norm(x) [C] | u = before GELU [4C] | mean, rstd
 * Backward recomputes the GELU, which is cheaper than saving it.
 */
#include "layers/gpt.h"

#include "layers/dropout.h"
#include "model/row_ops.h"

enum { W_IN = 2, W_OUT = 4 }; /* the bias of each follows it */

static const ls_dropout_mask *mask_of(const ls_layer *l) {
    return &LS_LAYER_OWN_OF(ls_dropout_mask, l);
}

typedef struct saved {
    ls_numbers h, u;
    float *mean, *rstd;
} saved;

static saved saved_of(const ls_layer *l, const ls_layer_call *c) {
    int64_t rows = c->n * c->T;
    saved s;
    s.h = ls_rows_saved(l, c);
    s.u = ls_numbers_at(s.h, rows * l->C);
    s.mean = ls_layer_saved_exact(l, c);
    s.rstd = s.mean + rows;
    return s;
}

/* work: gelu(u) [rows, 4C], in bf16 or f32; in bf16 then u [rows, 4C] before it is rounded, later y
 * [rows, C] */
static void forward(const ls_layer *l, const ls_layer_call *c) {
    int64_t rows = c->n * c->T, C = l->C, n = rows * 4 * C;
    saved s = saved_of(l, c);
    bool stored = s.u.bf16;
    ls_numbers act = {c->work, stored};
    float *room = c->work + n / 2, *u = stored ? room : s.u.p, *y = stored ? room : c->y;
    ls_rows_norm(l, c, s.h, s.mean, s.rstd);
    ls_rows_linear(l, c, W_IN, ls_numbers_rows(s.h, C), u);
    if (stored)
        ls_rows_gelu_keep(c->compute, n, ls_matrix_of(u, n), act, s.u.p);
    else
        ls_rows_gelu(c->compute, n, ls_matrix_of(u, n), act);
    ls_rows_linear(l, c, W_OUT, ls_numbers_rows(act, 4 * C), y);
    ls_dropout_rows(c, mask_of(l), C, y);
    ls_rows_add(c->compute, rows * C, ls_rows_x(l, c, 0, C), y, (ls_numbers){c->y, stored});
}

/* work: gelu(u) [rows, 4C], in bf16 or f32 (later dh [rows, C]) | du [rows, 4C] | with dropout, dy
 * with the mask [rows, C] */
static void backward(const ls_layer *l, const ls_layer_call *c) {
    int64_t rows = c->n * c->T, C = l->C, n = rows * 4 * C;
    saved s = saved_of(l, c);
    ls_numbers act = {c->work, s.u.bf16};
    float *du = c->work + (act.bf16 ? n / 2 : n), *dh = c->work;
    ls_matrix u = ls_numbers_rows(s.u, n), dus = ls_matrix_of(du, 4 * C);
    ls_matrix dy = ls_dropout_of_dy(l, c, mask_of(l), du + n);
    bool norm = ls_rows_norm_has_back(l, c), inner = norm || ls_rows_linear_has_dw(l, W_IN);
    if (inner) ls_rows_linear_dx(l, c, W_OUT, dy, du);
    if (inner)
        ls_rows_gelu_back(c->compute, n, u, du, act);
    else
        ls_rows_gelu(c->compute, n, u, act);
    ls_rows_linear_dw(l, c, W_OUT, ls_numbers_rows(act, 4 * C), dy);
    if (inner) ls_rows_linear_dw(l, c, W_IN, ls_numbers_rows(s.h, C), dus);
    if (!norm) return;
    ls_rows_linear_dx(l, c, W_IN, dus, dh);
    ls_rows_norm_back(l, c, s.mean, s.rstd, dh, true);
}

static void describe(const ls_layer *l, ls_facts *f) {
    (void)l;
    f->is_gpt = true;
}

static const ls_layer_ops ops = {
    .kind = "mlp", .forward = forward, .backward = backward, .describe = describe};

/* Forward rounds u and gelu(u), and the sum reads x again; backward computes gelu(u) again. */
static void declare_conversions(ls_layer *l, int64_t T, int64_t C) {
    ls_conversions *f = &l->cost.forward_converts, *b = &l->cost.backward_converts;
    ls_rows_norm_converts(l, T, C, true, true);
    ls_conversions_add(
        f, (ls_conversion){.operand = LS_OPERAND_SAVED, .rounds = true, .numbers = T * 8 * C});
    ls_conversions_add(f, (ls_conversion){.operand = LS_OPERAND_X, .numbers = T * C});
    ls_conversions_add(f,
                       (ls_conversion){.operand = LS_OPERAND_Y, .rounds = true, .numbers = T * C});
    ls_conversions_add(b, (ls_conversion){.operand = LS_OPERAND_SAVED, .numbers = T * 4 * C});
    ls_conversions_add(
        b, (ls_conversion){.operand = LS_OPERAND_SAVED, .rounds = true, .numbers = T * 4 * C});
    ls_conversions_add(
        b, (ls_conversion){.operand = LS_OPERAND_DY, .grads = 2u << W_OUT, .numbers = T * C});
}

void ls_gpt_mlp_declare(ls_layer *l, int64_t T, int64_t C) {
    l->ops = &ops;
    l->traits.on_device = true;
    l->T = T;
    l->C = C;
    l->ninputs = 1;
    l->input_floats[0] = (size_t)(T * C);
    l->y_floats = (size_t)(T * C);
    l->half.in_products[W_IN] = l->half.in_products[W_OUT] = true;
    l->half.rounds_grads[W_IN] = l->half.rounds_grads[W_OUT] = true;
    l->half.as_stored = LS_OPERAND_ALL;
    l->memory.scratch = ls_rows_norm_scratch(C);
    l->half.saved_rough = (size_t)(5 * C);
    l->memory.saved = (size_t)(T * (5 * C + 2));
    l->memory.work = (size_t)(T * 8 * C);
    l->cost.flops = 16.0 * (double)(T * C * C);
    ls_works *f = &l->cost.forward, *b = &l->cost.backward;
    ls_works_norm(f, b, T, C);
    ls_works_linear(f, b, W_IN, T, C, 4 * C);
    ls_works_linear(f, b, W_OUT, T, 4 * C, C);
    ls_works_pass(f, LS_WORK_GELU, T * 4 * C);
    ls_works_pass(f, LS_WORK_ADD, T * C);
    ls_works_pass(b, LS_WORK_GELU_BACK, T * 4 * C);
    declare_conversions(l, T, C);
}

void ls_gpt_mlp_drop(ls_layer *l, float rate, int64_t block) {
    LS_LAYER_OWN_AS(ls_dropout_mask, l) = (ls_dropout_mask){
        .rate = rate, .number = ls_dropout_number(block, LS_DROPOUT_IN_FEED_FORWARD)};
    ls_dropout_declare_rows(l);
}
