/* rows.c - layers that compute each row of a sample, and those that read rows of tables. */
#include <stdlib.h>

#include "layers/linear.h"
#include "layers/lora_merge.h"
#include "onnx/kinds.h"

/* ---- products ---- */

const char *ls_onnx_linear(ls_onnx_writer *w, const char *x, const char *weight, bool out_in,
                           const char *bias) {
    if (out_in) weight = ls_onnx_transpose(w, weight, 2, (const int64_t[]){1, 0});
    const char *y = LS_ONNX_ADD(w->g, "MatMul", x, weight);
    return bias ? LS_ONNX_ADD(w->g, "Add", y, bias) : y;
}

/* The weight with its adapter, under the weight's name. */
static const char *merged(ls_onnx_writer *w, const ls_layer *l, const int numbers[3]) {
    const ls_param *p = &w->m->params[l->params[0]];
    float *own[4] = {NULL}, *y = LS_NEW_ARRAY(float, p->count);
    const float *x[4] = {NULL};
    if (w->params[l->params[0]]) {
        free(y);
        return w->params[l->params[0]];
    }
    x[3] = ls_onnx_param_values(w, l->params[0], &own[3]);
    for (int i = 0; i < 3; i++)
        if (i < 2 || numbers[i]) x[i] = ls_onnx_param_values(w, l->params[numbers[i]], &own[i]);
    for (size_t i = 0; i < p->count; i++) y[i] = x[3][i];
    const ls_lora_values v = {l, x[0], x[1], x[2]};
    ls_lora_merge(&v, w->weights->compute, 0, p->dims[0], y);
    for (int i = 0; i < 4; i++) free(own[i]);
    w->params[l->params[0]] = ls_onnx_own_numbers(w->g, p->name, ls_onnx_shape_of(p->dims), y);
    return w->params[l->params[0]];
}

/* x has as many dimensions as y. */
void ls_onnx_write_linear(ls_onnx_writer *w, const ls_layer *l, const ls_facts *f) {
    int adapter[3];
    ls_onnx_shape y = ls_onnx_output_dims(l), x = y;
    x.of[x.n - 1] = l->C;
    const char *weight = ls_lora_find(l, adapter) ? merged(w, l, adapter) : ls_onnx_param(w, l, 0);
    const char *bias = f->bias ? ls_onnx_param(w, l, f->bias) : NULL;
    ls_onnx_set(w, l, ls_onnx_linear(w, ls_onnx_read(w, l, 0, x), weight, f->out_in, bias), y);
}

/* The logits of a loss that is a product itself: its table is [classes, C]. */
void ls_onnx_write_logits(ls_onnx_writer *w, const ls_layer *l, const ls_facts *f) {
    ls_onnx_shape x = {2, {l->T, l->C}}, y = {2, {l->T, l->V}};
    (void)f;
    const char *logits =
        ls_onnx_linear(w, ls_onnx_read(w, l, 0, x), ls_onnx_param(w, l, 0), true, NULL);
    w->values[l - w->m->layers] = (ls_onnx_value){.rows = logits, .dims = y};
}

/* ---- norms ---- */

const char *ls_onnx_layer_norm(ls_onnx_writer *w, const char *x, const char *weight,
                               const char *bias) {
    const char *y = LS_ONNX_ADD(w->g, "LayerNormalization", x, weight, bias);
    ls_onnx_set_int(w->g, "axis", -1);
    ls_onnx_set_real(w->g, "epsilon", 1e-5f);
    return y;
}

void ls_onnx_write_layer_norm(ls_onnx_writer *w, const ls_layer *l, const ls_facts *f) {
    ls_onnx_shape dims = ls_onnx_output_dims(l);
    (void)f;
    const char *x = ls_onnx_read(w, l, 0, dims);
    x = ls_onnx_layer_norm(w, x, ls_onnx_param(w, l, 0), ls_onnx_param(w, l, 1));
    ls_onnx_set(w, l, x, dims);
}

void ls_onnx_write_rms_norm(ls_onnx_writer *w, const ls_layer *l, const ls_facts *f) {
    ls_onnx_shape dims = ls_onnx_output_dims(l);
    ls_onnx_graph *g = w->g;
    const char *x = ls_onnx_read(w, l, 0, dims);
    const char *mean = ls_onnx_reduce(w, "ReduceMean", LS_ONNX_ADD(g, "Mul", x, x), -1, true);
    const char *root =
        LS_ONNX_ADD(g, "Sqrt", LS_ONNX_ADD(g, "Add", mean, ls_onnx_number(g, f->eps)));
    const char *weight = ls_onnx_param(w, l, 0);
    if (f->plus_one) weight = LS_ONNX_ADD(g, "Add", weight, ls_onnx_number(g, 1));
    const char *y = LS_ONNX_ADD(g, "Mul", LS_ONNX_ADD(g, "Div", x, root), weight);
    ls_onnx_set(w, l, y, dims);
}

/* ---- rows of tables ---- */

static const char *zero(ls_onnx_writer *w) {
    const char **shared = ls_onnx_share(w, "zero of i32");
    if (*shared) return *shared;
    const char *x = LS_ONNX_ADD(w->g, "Cast", ls_onnx_integer(w->g, 0));
    ls_onnx_set_int(w->g, "to", 6);
    return *shared = x;
}

/* 1 for each id, 0 for a negative one, which stands for none. */
static const char *count_ids(ls_onnx_writer *w, const char *ids) {
    const char *x = LS_ONNX_ADD(w->g, "Cast", LS_ONNX_ADD(w->g, "GreaterOrEqual", ids, zero(w)));
    ls_onnx_set_int(w->g, "to", 1);
    return x;
}

/* The rows of ids [N, ..], and zeros for those that stand for none; `there`: as above. */
static const char *gather(ls_onnx_writer *w, const ls_layer *l, const char *ids,
                          const char *there) {
    const int64_t last = -1;
    const char *rows =
        LS_ONNX_ADD(w->g, "Gather", ls_onnx_param(w, l, 0), LS_ONNX_ADD(w->g, "Max", ids, zero(w)));
    return LS_ONNX_ADD(w->g, "Mul", rows, ls_onnx_expand(w, there, 1, &last));
}

static void write_sum(ls_onnx_writer *w, const ls_layer *l, const ls_facts *f) {
    const char *ids = ls_onnx_field(w, l, 0);
    ids = ls_onnx_reshape(w, ids, (ls_onnx_shape){2, {-1, f->nids}});
    const char *there = count_ids(w, ids);
    const char *y = ls_onnx_reduce(w, "ReduceSum", gather(w, l, ids, there), 1, false);
    if (f->mean) {
        const char *n = ls_onnx_reduce(w, "ReduceSum", there, 1, true);
        y = LS_ONNX_ADD(w->g, "Div", y, LS_ONNX_ADD(w->g, "Max", n, ls_onnx_number(w->g, 1)));
    }
    ls_onnx_set(w, l, y, (ls_onnx_shape){1, {l->C}});
}

/* Positions are added to the rows of all ids, in their order. */
void ls_onnx_write_embedding(ls_onnx_writer *w, const ls_layer *l, const ls_facts *f) {
    ls_onnx_shape dims = ls_onnx_output_dims(l), rows = {2, {f->nids, l->C}};
    if (f->sums) {
        write_sum(w, l, f);
        return;
    }
    const char *ids = ls_onnx_field(w, l, 0);
    const char *y = gather(w, l, ids, count_ids(w, ids));
    if (f->positions) {
        if (dims.n != 2) y = ls_onnx_reshape(w, y, (ls_onnx_shape){3, {-1, f->nids, l->C}});
        y = LS_ONNX_ADD(
            w->g, "Add", y,
            LS_ONNX_ADD(w->g, "Gather", ls_onnx_param(w, l, 1), ls_onnx_row_numbers(w, f->nids)));
    }
    ls_onnx_set(w, l, y, f->positions ? rows : dims);
}
