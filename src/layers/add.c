/* add.c - y = the sum of the inputs, which have one shape.
 *
 * Saves nothing; every input's gradient is dy. */
#include <string.h>

#include "layers/layers.h"
#include "model/rows.h"

static void forward(const ls_layer *l, const ls_layer_call *c) {
    int64_t floats = c->n * c->T * l->C;
    ls_rows_add(c->compute, floats, c->x[0], c->x[1], c->y);
    for (int k = 2; k < l->ninputs; k++) ls_rows_add(c->compute, floats, c->y, c->x[k], c->y);
}

static void backward(const ls_layer *l, const ls_layer_call *c) {
    size_t nbytes = (size_t)(c->n * c->T * l->C) * sizeof(float);
    for (int k = 0; k < l->ninputs; k++)
        if (c->dx[k]) memcpy(c->dx[k], c->dy, nbytes);
}

static const ls_layer_ops ops = {.kind = "add", .forward = forward, .backward = backward};

void ls_add_declare(ls_layer *l, int64_t T, int64_t C, int ninputs) {
    l->ops = &ops;
    l->T = T;
    l->C = C;
    l->ninputs = ninputs;
    for (int k = 0; k < ninputs; k++) l->input_floats[k] = (size_t)(T * C);
    l->y_floats = (size_t)(T * C);
    l->forward_flops = (double)((ninputs - 1) * T * C);
    for (int k = 1; k < ninputs; k++) ls_works_pass(&l->forward_work, LS_WORK_ADD, T * C);
    for (int k = 0; k < ninputs; k++) ls_works_pass(&l->backward_work, LS_WORK_ADD, T * C);
}

ls_value *(ls_add)(ls_model *m, ls_value *a, ls_value *b) {
    ls_value *x[] = {a, b};
    ls_layer *l = ls_build_layer(m, "add", NULL, x, 2);
    if (!l) return ls_build_failed(m);
    if (!ls_value_same_dims(a, b))
        return ls_build_fail(m, "the inputs have other shapes: %s and %s",
                             ls_dims_write(a->dims).text, ls_dims_write(b->dims).text);
    ls_add_declare(l, 1, ls_value_count(a), 2);
    return ls_build_value(m, a->dims);
}
