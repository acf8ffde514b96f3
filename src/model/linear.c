/* linear.c - y = x . w + bias, for each row of a sample.
 *
 * params: w [in, out], bias [out]. Backward reads x, and saves nothing else. */
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

void ls_linear_declare(ls_layer *l, int64_t rows, int64_t in, int64_t out) {
    l->ops = &ops;
    l->T = rows;
    l->C = in;
    l->ninputs = 1;
    l->input_floats[0] = (size_t)(rows * in);
    l->y_floats = (size_t)(rows * out);
    l->forward_flops = 2.0 * (double)(rows * in * out);
    ls_works_linear(&l->forward_work, &l->backward_work, rows, in, out);
}
