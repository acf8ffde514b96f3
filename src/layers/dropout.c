/* dropout.c - y = x with zeros at random, the rest times 1 / (1 - rate); y = x outside of training.
 *
 * The number of the mask (model/dropout.h) is that of the layer among those of dropout, unless a
 * model says another. */
#include "model/dropout.h"
#include "layers/layers.h"
#include "tensor/gemm.h"

static void drop(const ls_layer *l, const ls_layer_call *c, const float *x, float *y) {
    int64_t count = (int64_t)l->y_floats;
    ls_dropout_run(&LS_LAYER_OWN_OF(ls_dropout_mask, l), c, count, ls_matrix_of(x, count), y);
}

static void forward(const ls_layer *l, const ls_layer_call *c) { drop(l, c, c->x[0], c->y); }

static void backward(const ls_layer *l, const ls_layer_call *c) {
    if (c->dx[0]) drop(l, c, c->dy, c->dx[0]);
}

static const ls_layer_ops ops = {.kind = "dropout", .forward = forward, .backward = backward};

static ls_value *add_layer(ls_model *m, ls_value *x, const char *name, ls_dropout_mask mask) {
    ls_layer *l = ls_build_layer(m, "dropout", name, &x, 1);
    if (!l) return ls_build_failed(m);
    if (!(mask.rate >= 0 && mask.rate < 1))
        return ls_build_fail(m, "rate is %g; it is from 0 to below 1", (double)mask.rate);
    l->ops = &ops;
    ls_build_unread(l);
    LS_LAYER_OWN_AS(ls_dropout_mask, l) = mask;
    ls_works_dropout(&l->forward_work, ls_value_count(x));
    ls_works_dropout(&l->backward_work, ls_value_count(x));
    return ls_build_value(m, x->dims);
}

ls_value *(ls_dropout)(ls_model *m, ls_value *x, ls_dropout_options o) {
    uint32_t number = 0;
    for (int i = 0; i < m->nlayers; i++) number += m->layers[i].ops == &ops;
    return add_layer(m, x, o.name, (ls_dropout_mask){.rate = o.rate, .number = number});
}

ls_value *ls_layers_dropout(ls_model *m, ls_value *x, ls_dropout_mask mask) {
    return add_layer(m, x, NULL, mask);
}
