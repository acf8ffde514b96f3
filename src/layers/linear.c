/* linear.c - y = x . w + bias, for each row of a sample.
 *
 * params: w [in, out], or w [out, in] (out_in); bias [out] (not with no_bias). Backward reads x, and
 * saves nothing else. Both layouts have the same bits: an element is one chain either way. A frozen w
 * [out, in] is read as it is stored, at one row at the speed of memory. */
#include <math.h>

#include "model/builder.h"
#include "model/rows.h"
#include "tensor/gemm.h"
#include "tensor/gemv.h"

enum { W, BIAS };

/* ---- w [in, out] ---- */

static void forward(const ls_layer *l, const ls_layer_call *c) {
    ls_rows_linear(l, c, W, c->x[0], c->y);
}

static void backward(const ls_layer *l, const ls_layer_call *c) {
    if (c->dx[0]) ls_rows_linear_dx(l, c, W, c->dy, c->dx[0]);
    ls_rows_linear_dw(l, c, W, c->x[0], c->dy);
}

static const ls_layer_ops ops = {.kind = "linear", .forward = forward, .backward = backward};

/* ---- w [out, in] ---- */

static int64_t outputs_of(const ls_layer *l) { return (int64_t)l->counts[W] / l->C; }

static void forward_out_in(const ls_layer *l, const ls_layer_call *c) {
    int64_t rows = c->n * c->T, out = outputs_of(l);
    ls_stored w = ls_layer_stored(l, c, W);
    const float *bias = l->nparams > BIAS ? ls_layer_param(l, c, BIAS) : NULL;
    if (rows == 1)
        ls_gemv_table(c->compute, &(ls_gemv_table_job){w, out, l->C, c->x[0], bias, c->y});
    else
        ls_gemm(c->compute, &(ls_gemm_job){.M = rows,
                                           .N = out,
                                           .K = l->C,
                                           .a = ls_matrix_of(c->x[0], l->C),
                                           .w = ls_weights_transposed(w, l->C),
                                           .c = c->y,
                                           .ldc = out,
                                           .start = bias ? LS_GEMM_BIAS : LS_GEMM_ZERO,
                                           .bias = bias});
}

static void backward_out_in(const ls_layer *l, const ls_layer_call *c) {
    int64_t rows = c->n * c->T, in = l->C, out = outputs_of(l);
    if (c->dx[0])
        ls_gemm(c->compute, &(ls_gemm_job){.M = rows,
                                           .N = in,
                                           .K = out,
                                           .a = ls_matrix_of(c->dy, out),
                                           .w = ls_weights_of(ls_layer_stored(l, c, W), in),
                                           .c = c->dx[0],
                                           .ldc = in});
    if (!l->frozen[W])
        ls_gemm(c->compute, &(ls_gemm_job){.M = out,
                                           .N = in,
                                           .K = rows,
                                           .a = ls_matrix_transposed(c->dy, out),
                                           .b = ls_matrix_of(c->x[0], in),
                                           .c = ls_layer_grad(l, c, W),
                                           .ldc = in,
                                           .start = c->grads_start ? LS_GEMM_ZERO : LS_GEMM_ADD});
    if (l->nparams > BIAS && !l->frozen[BIAS])
        ls_rows_column_sum(c, rows, out, c->dy, ls_layer_grad(l, c, BIAS));
}

static const ls_layer_ops ops_out_in = {
    .kind = "linear", .forward = forward_out_in, .backward = backward_out_in};

ls_value *(ls_linear)(ls_model *m, ls_value *x, ls_linear_options o) {
    ls_layer *l = ls_build_layer(m, "linear", o.name, &x, 1);
    if (!l) return ls_build_failed(m);
    int64_t in = ls_value_last(x), rows = ls_value_count(x) / in;
    if (o.deviation < 0)
        return ls_build_fail(m, "deviation is %g; it is not negative", (double)o.deviation);
    if (o.out < 1) return ls_build_fail(m, "out is %lld; it is at least 1", (long long)o.out);
    l->ops = o.out_in ? &ops_out_in : &ops;
    l->T = rows;
    l->C = in;
    l->only_first_reads = true;
    l->forward_flops = 2.0 * (double)(rows * in * o.out);
    ls_works_linear(&l->forward_work, &l->backward_work, W, rows, in, o.out);
    ls_param w = {.ndims = 2, .dims = {in, o.out}, .decay = true};
    if (o.out_in) w.dims[0] = o.out, w.dims[1] = in;
    l->reads_stored[W] = o.out_in;
    w.init_std = o.deviation > 0 ? o.deviation : 1 / sqrtf((float)in);
    ls_build_param(m, l, "weight", &w);
    if (!o.no_bias) ls_build_param(m, l, "bias", &(ls_param){.ndims = 1, .dims = {o.out}});
    ls_dims dims = x->dims;
    dims.of[x->ndims ? x->ndims - 1 : 0] = o.out;
    return ls_build_value(m, dims);
}
