/* gelu.c - y = GELU(x), elementwise. */
#include <string.h>

#include "model/rows.h"

static void forward(const ls_layer *l, const ls_layer_call *c) {
    ls_rows_gelu(c->compute, c->n * c->T * l->C, c->x[0], c->y);
}

/* work: the output again, which is not used. */
static void backward(const ls_layer *l, const ls_layer_call *c) {
    int64_t floats = c->n * c->T * l->C;
    if (!c->dx[0]) return;
    memcpy(c->dx[0], c->dy, (size_t)floats * sizeof(float));
    ls_rows_gelu_back(c->compute, floats, c->x[0], c->dx[0], c->work);
}

static const ls_layer_ops ops = {.kind = "gelu", .forward = forward, .backward = backward};

void ls_gelu_declare(ls_layer *l, int64_t rows, int64_t C) {
    l->ops = &ops;
    l->T = rows;
    l->C = C;
    l->ninputs = 1;
    l->input_floats[0] = l->y_floats = l->work_floats = (size_t)(rows * C);
    ls_works_pass(&l->forward_work, LS_WORK_GELU, rows * C);
    ls_works_pass(&l->backward_work, LS_WORK_GELU_BACK, rows * C);
}
