/* gelu.c - y = GELU(x), elementwise. */
#include <string.h>

#include "model/builder.h"
#include "model/rows.h"

static void forward(const ls_layer *l, const ls_layer_call *c) {
    ls_rows_gelu(c->compute, c->n * (int64_t)l->y_floats, c->x[0], c->y);
}

/* work: the output again, which is not used. */
static void backward(const ls_layer *l, const ls_layer_call *c) {
    int64_t floats = c->n * (int64_t)l->y_floats;
    if (!c->dx[0]) return;
    memcpy(c->dx[0], c->dy, (size_t)floats * sizeof(float));
    ls_rows_gelu_back(c->compute, floats, c->x[0], c->dx[0], c->work);
}

static const ls_layer_ops ops = {.kind = "gelu", .forward = forward, .backward = backward};

ls_value *(ls_gelu)(ls_model *m, ls_value *x) {
    ls_layer *l = ls_build_layer(m, "gelu", NULL, &x, 1);
    if (!l) return ls_build_failed(m);
    int64_t count = ls_value_count(x);
    l->ops = &ops;
    l->work_floats = (size_t)count;
    ls_works_pass(&l->forward_work, LS_WORK_GELU, count);
    ls_works_pass(&l->backward_work, LS_WORK_GELU_BACK, count);
    return ls_build_value(m, x->dims);
}
