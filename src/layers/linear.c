/* linear.c - y = x . w + bias, for each row of a sample.
 *
 * params: w [in, out], or w [out, in] (out_in); bias [out] (not with no_bias). Backward reads x,
 * and saves nothing else. Both layouts have the same bits: an element is one chain either way. A
 * frozen w [out, in] is read as it is stored, at one row at the speed of memory. With .lora the
 * layer has an adapter: lora.c. */
#include "layers/linear.h"

#include <math.h>

#include "layers/row_adapters.h"
#include "model/row_ops.h"
#include "tensor/gemm.h"
#include "tensor/gemv.h"

enum { W, BIAS };

int64_t ls_linear_outputs(const ls_layer *l) { return (int64_t)l->counts[W] / l->C; }

/* ---- w [in, out] ---- */

static void forward(const ls_layer *l, const ls_layer_call *c) {
    ls_rows_linear(l, c, W, ls_rows_x(l, c, 0, l->C), c->y);
}

static void backward(const ls_layer *l, const ls_layer_call *c) {
    ls_matrix dy = ls_rows_dy(l, c, ls_linear_outputs(l));
    if (c->dx[0]) ls_rows_linear_dx(l, c, W, dy, c->dx[0]);
    ls_rows_linear_dw(l, c, W, ls_rows_x(l, c, 0, l->C), dy);
}

static void describe(const ls_layer *l, ls_facts *f) { f->bias = l->nparams > BIAS ? BIAS : 0; }

static const ls_layer_ops ops = {
    .kind = "linear", .forward = forward, .backward = backward, .describe = describe};

/* ---- w [out, in] ---- */

int ls_linear_bias(const ls_layer *l) { return LS_LAYER_OWN_OF(ls_linear_own, l).bias; }

void ls_linear_product(const ls_layer *l, const ls_layer_call *c, bool with_bias, float *y) {
    int64_t rows = c->n * c->T, out = ls_linear_outputs(l);
    ls_stored w = ls_layer_stored(l, c, W);
    const float *bias =
        with_bias && ls_linear_bias(l) ? ls_layer_param(l, c, ls_linear_bias(l)) : NULL;
    ls_matrix x = ls_rows_x(l, c, 0, l->C);
    uint16_t *rounded = y == c->y ? ls_layer_rounded(l, c, LS_OPERAND_Y) : NULL;
    if (rows == 1 && !c->compute->device)
        ls_gemv_table(c->compute, &(ls_gemv_table_job){.w = w,
                                                       .V = out,
                                                       .C = l->C,
                                                       .x = x.bf16 ? NULL : x.p,
                                                       .x_bf16 = x.bf16 ? x.p : NULL,
                                                       .bias = bias,
                                                       .y = y,
                                                       .bf16 = ls_layer_in_bf16(c)});
    else
        ls_gemm(c->compute, &(ls_gemm_job){.bf16 = ls_layer_in_bf16(c),
                                           .M = rows,
                                           .N = out,
                                           .K = l->C,
                                           .a = x,
                                           .w = ls_weights_transposed(w, l->C),
                                           .c = y,
                                           .ldc = out,
                                           .rounded = rounded,
                                           .start = bias ? LS_GEMM_BIAS : LS_GEMM_ZERO,
                                           .bias = bias});
}

void ls_linear_product_dx(const ls_layer *l, const ls_layer_call *c, ls_matrix dy, float *dx) {
    int64_t out = ls_linear_outputs(l);
    ls_gemm(c->compute, &(ls_gemm_job){.bf16 = ls_layer_in_bf16(c),
                                       .M = c->n * c->T,
                                       .N = l->C,
                                       .K = out,
                                       .a = dy,
                                       .w = ls_weights_of(ls_layer_stored(l, c, W), l->C),
                                       .c = dx,
                                       .ldc = l->C,
                                       .rounded = ls_layer_rounded(l, c, LS_OPERAND_DX)});
}

void ls_linear_product_dw(const ls_layer *l, const ls_layer_call *c, ls_matrix dy) {
    int64_t out = ls_linear_outputs(l);
    if (ls_layer_trains(l, W))
        ls_gemm(c->compute, &(ls_gemm_job){.bf16 = ls_layer_in_bf16(c),
                                           .M = out,
                                           .N = l->C,
                                           .K = c->n * c->T,
                                           .a = ls_matrix_across(dy),
                                           .b = ls_rows_x(l, c, 0, l->C),
                                           .c = ls_layer_grad(l, c, W),
                                           .ldc = l->C,
                                           .rounded = ls_layer_rounded_grad(l, c, W),
                                           .units = ls_rows_units(c),
                                           .start = c->grads_start ? LS_GEMM_ZERO : LS_GEMM_ADD});
}

void ls_linear_bias_back(const ls_layer *l, const ls_layer_call *c) {
    int bias = ls_linear_bias(l);
    if (bias && ls_layer_trains(l, bias))
        ls_rows_column_sum(c, c->n * c->T, ls_rows_dy(l, c, ls_linear_outputs(l)),
                           ls_layer_grad(l, c, bias));
}

static void forward_out_in(const ls_layer *l, const ls_layer_call *c) {
    ls_linear_product(l, c, true, c->y);
    if (c->adapters) ls_row_adapters_add(l, c, c->y);
}

static void backward_out_in(const ls_layer *l, const ls_layer_call *c) {
    ls_matrix dy = ls_rows_dy(l, c, ls_linear_outputs(l));
    if (c->dx[0]) ls_linear_product_dx(l, c, dy, c->dx[0]);
    ls_linear_product_dw(l, c, dy);
    ls_linear_bias_back(l, c);
}

static void describe_out_in(const ls_layer *l, ls_facts *f) {
    *f = (ls_facts){.out_in = true, .bias = ls_linear_bias(l)};
}

static const ls_layer_ops ops_out_in = {.kind = "linear",
                                        .forward = forward_out_in,
                                        .backward = backward_out_in,
                                        .describe = describe_out_in};

bool ls_linear_takes_adapters(const ls_layer *l) { return l->ops == &ops_out_in; }

ls_value *(ls_linear)(ls_model *m, ls_value *x, ls_linear_options o) {
    ls_layer *l = ls_build_layer(m, "linear", o.name, &x, 1);
    if (!l) return ls_build_failed(m);
    int64_t in = ls_value_last(x), rows = ls_value_count(x) / in;
    if (!ls_build_takes(m, "deviation", (double)o.deviation, 0)) return ls_build_failed(m);
    if (o.out < 1) return ls_build_fail(m, "out is %lld; it is at least 1", (long long)o.out);
    if (o.lora.rank && !o.out_in)
        return ls_build_fail(m, "only a weight [out, in] can have an adapter; set out_in");
    l->ops = o.out_in ? &ops_out_in : &ops;
    l->T = rows;
    l->C = in;
    l->traits.only_first_reads = true;
    l->traits.on_device = true;
    l->cost.flops = 2.0 * (double)(rows * in * o.out);
    ls_works_linear(&l->cost.forward, &l->cost.backward, W, rows, in, o.out);
    ls_param w = {.ndims = 2, .dims = {in, o.out}, .decay = true};
    if (o.out_in) w.dims[0] = o.out, w.dims[1] = in;
    l->half.reads_stored[W] = o.out_in;
    l->half.in_products[W] = l->half.rounds_grads[W] = true;
    if (o.out_in && !o.lora.rank) l->half.rounds = LS_OPERAND_Y | LS_OPERAND_DX;
    l->half.as_stored = LS_OPERAND_X | LS_OPERAND_DY;
    w.init.std = o.deviation > 0 ? o.deviation : 1 / sqrtf((float)in);
    w.frozen = o.lora.rank != 0;
    ls_build_param(m, l, "weight", &w);
    ls_param bias = {.ndims = 1, .dims = {o.out}, .frozen = w.frozen};
    if (!o.no_bias) {
        ls_build_param(m, l, "bias", &bias);
        ls_conversions_add(&l->cost.backward_converts, (ls_conversion){.operand = LS_OPERAND_DY,
                                                                       .grads = 1u << BIAS,
                                                                       .numbers = rows * o.out});
    }
    LS_LAYER_OWN_AS(ls_linear_own, l) = (ls_linear_own){.bias = o.no_bias ? 0 : BIAS};
    if (o.lora.rank && !ls_lora_add(m, l, &o.lora)) return ls_build_failed(m);
    ls_dims dims = x->dims;
    dims.of[x->ndims ? x->ndims - 1 : 0] = o.out;
    return ls_build_value(m, dims);
}
