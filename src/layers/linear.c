/* linear.c - y = x . w + bias, for each row of a sample.
 *
 * params: w [in, out], bias [out] (not with no_bias). Backward reads x, and saves nothing else. */
#include <math.h>

#include "model/builder.h"
#include "model/rows.h"

enum { W };

static void forward(const ls_layer *l, const ls_layer_call *c) {
    ls_rows_linear(l, c, W, c->x[0], c->y);
}

static void backward(const ls_layer *l, const ls_layer_call *c) {
    if (c->dx[0]) ls_rows_linear_dx(l, c, W, c->dy, c->dx[0]);
    ls_rows_linear_dw(l, c, W, c->x[0], c->dy);
}

static const ls_layer_ops ops = {.kind = "linear", .forward = forward, .backward = backward};

ls_value *(ls_linear)(ls_model *m, ls_value *x, ls_linear_options o) {
    ls_layer *l = ls_build_layer(m, "linear", o.name, &x, 1);
    if (!l) return ls_build_failed(m);
    int64_t in = ls_value_last(x), rows = ls_value_count(x) / in;
    if (o.out < 1) return ls_build_fail(m, "out is %lld; it is at least 1", (long long)o.out);
    l->ops = &ops;
    l->T = rows;
    l->C = in;
    l->forward_flops = 2.0 * (double)(rows * in * o.out);
    ls_works_linear(&l->forward_work, &l->backward_work, rows, in, o.out);
    ls_build_param(
        m, l, "weight",
        &(ls_param){
            .ndims = 2, .dims = {in, o.out}, .decay = true, .init_std = 1 / sqrtf((float)in)});
    if (!o.no_bias) ls_build_param(m, l, "bias", &(ls_param){.ndims = 1, .dims = {o.out}});
    ls_dims dims = x->dims;
    dims.of[x->ndims ? x->ndims - 1 : 0] = o.out;
    return ls_build_value(m, dims);
}
