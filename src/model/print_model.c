/* print_model.c - see print_model.h. */
#include "model/print_model.h"

#include <stdio.h>
#include <string.h>

#include "model/mixed.h"

enum { SHAPE = 32 };

/* "[28, 28, 16]"; of a layer that states no dimensions: positions and width. */
static void write_shape(const ls_layer *l, char text[SHAPE]) {
    int64_t dims[LS_PARAM_DIMS] = {0};
    memcpy(dims, l->y_dims, sizeof dims);
    if (!dims[0] && l->T > 1) dims[0] = l->T;
    if (!l->y_dims[0]) dims[l->T > 1] = (int64_t)l->y_floats / l->T;
    int at = snprintf(text, SHAPE, "[");
    for (int i = 0; i < LS_PARAM_DIMS && dims[i] && at < SHAPE; i++)
        at +=
            snprintf(text + at, (size_t)(SHAPE - at), "%s%lld", i ? ", " : "", (long long)dims[i]);
    if (at < SHAPE) snprintf(text + at, (size_t)(SHAPE - at), "]");
    if (l->traits.loss) snprintf(text, SHAPE, "loss");
}

size_t ls_layer_count(const ls_layer *l) {
    size_t n = 0;
    for (int i = 0; i < l->nparams; i++) n += l->counts[i];
    return n;
}

size_t ls_layer_frozen_count(const ls_layer *l) {
    size_t n = 0;
    for (int i = 0; i < l->nparams; i++)
        if (l->link.frozen[i]) n += l->counts[i];
    return n;
}

size_t ls_layer_saved_nbytes(const ls_layer *l, ls_dtype compute) {
    return l->y_floats * ls_dtype_size(compute) + ls_mixed_saved_nbytes(l, 1, compute);
}

/* The names of inputs, unless there is one: the layer before. */
static void write_inputs(const ls_model *m, int layer, ls_buf *out) {
    const ls_layer *l = &m->layers[layer];
    if (l->ninputs == 0 || (l->ninputs == 1 && l->inputs[0] == layer - 1)) return;
    for (int k = 0; k < l->ninputs; k++)
        ls_buf_printf(out, "%s%s", k ? ", " : "  of ", m->layers[l->inputs[k]].name);
}

void ls_model_print(const ls_model *m, ls_dtype compute, ls_buf *out) {
    int width = 5, kind = 14;
    for (int i = 0; i < m->nlayers + m->nlate; i++) {
        int n = (int)strlen(m->layers[i].name), k = (int)strlen(m->layers[i].ops->kind);
        if (n > width) width = n;
        if (k > kind) kind = k;
    }
    ls_buf_printf(out, "%-*s  %-*s %-15s %11s", width, "layer", kind, "kind", "output",
                  "parameters");
    if (m->frozen_count) ls_buf_printf(out, " %11s", "frozen");
    ls_buf_printf(out, " %12s %12s\n", "MFLOP/sample", "saved kB");
    for (int i = 0; i < m->nlayers + m->nlate; i++) {
        const ls_layer *l = &m->layers[i];
        char shape[SHAPE];
        write_shape(l, shape);
        ls_buf_printf(out, "%-*s  %-*s %-15s %11zu", width, l->name, kind, l->ops->kind, shape,
                      ls_layer_count(l));
        if (m->frozen_count) ls_buf_printf(out, " %11zu", ls_layer_frozen_count(l));
        ls_buf_printf(out, " %12.3f %12.1f", l->cost.flops / 1e6,
                      (double)ls_layer_saved_nbytes(l, compute) / 1e3);
        write_inputs(m, i, out);
        ls_buf_printf(out, i < m->nlayers ? "\n" : "  (in evaluation alone)\n");
    }
}
