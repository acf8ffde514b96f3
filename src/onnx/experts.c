/* experts.c - a mixture of experts. All experts compute all rows, and those that a row has not
 * chosen have the weight 0 there: ONNX has no other way that does not depend on the numbers. */
#include "onnx/kinds.h"

/* x [N, T, C] . weight [experts, C]^T */
void ls_onnx_write_router(ls_onnx_writer *w, const ls_layer *l, const ls_facts *f) {
    ls_onnx_shape y = ls_onnx_output_dims(l), x = y;
    (void)f;
    x.of[x.n - 1] = l->C;
    const char *logits =
        ls_onnx_linear(w, ls_onnx_read(w, l, 0, x), ls_onnx_param(w, l, 0), true, NULL);
    ls_onnx_set(w, l, logits, y);
}

/* 1 for the k greatest scores of a row, of equal ones those that come first, and 0 for the
 * others. */
static const char *choose(ls_onnx_writer *w, const char *scores, int64_t k) {
    ls_onnx_graph *g = w->g;
    LS_ONNX_ADD(g, "TopK", scores, ls_onnx_integers(g, 1, &k));
    ls_onnx_set_int(g, "axis", -1);
    const char *chosen = ls_onnx_second_output(g), *zero = ls_onnx_number(g, 0);
    const char *zeros = LS_ONNX_ADD(g, "Mul", scores, zero);
    const char *shape = LS_ONNX_ADD(g, "Shape", chosen);
    const char *ones = LS_ONNX_ADD(g, "Expand", ls_onnx_number(g, 1), shape);
    const char *y = LS_ONNX_ADD(g, "ScatterElements", zeros, chosen, ones);
    ls_onnx_set_int(g, "axis", -1);
    return y;
}

static const char *softmax(ls_onnx_writer *w, const char *x) {
    const char *y = LS_ONNX_ADD(w->g, "Softmax", x);
    ls_onnx_set_int(w->g, "axis", -1);
    return y;
}

void ls_onnx_write_router_bias(ls_onnx_writer *w, const ls_layer *l, const ls_facts *f) {
    ls_onnx_shape dims = ls_onnx_output_dims(l);
    const char *p = softmax(w, ls_onnx_read(w, l, 0, dims));
    const char *scores = LS_ONNX_ADD(w->g, "Add", p, ls_onnx_param(w, l, 0));
    ls_onnx_set(w, l, choose(w, scores, f->per_row), dims);
}

/* The weight of each expert for each row: 0 if the row has not chosen it. */
static const char *weigh(ls_onnx_writer *w, const ls_layer *l, const ls_facts *f) {
    ls_onnx_graph *g = w->g;
    ls_onnx_shape dims = {2, {l->T, f->experts}};
    const char *logits = ls_onnx_read(w, l, 1, dims);
    const char *chosen =
        choose(w, l->ninputs > 2 ? ls_onnx_read(w, l, 2, dims) : logits, f->per_row);
    if (!f->normalized) return LS_ONNX_ADD(g, "Mul", softmax(w, logits), chosen);
    const char *is = LS_ONNX_ADD(g, "Cast", chosen);
    ls_onnx_set_int(g, "to", 9);
    return softmax(w, LS_ONNX_ADD(g, "Where", is, logits, ls_onnx_number(g, -3e38f)));
}

/* x [N, 1, T, in] . weight [experts, out, in]^T: [N, experts, T, out] */
static const char *all_of(ls_onnx_writer *w, const ls_layer *l, const char *x, int param) {
    const char *weight =
        ls_onnx_transpose(w, ls_onnx_param(w, l, param), 3, (const int64_t[]){0, 2, 1});
    return LS_ONNX_ADD(w->g, "MatMul", x, weight);
}

void ls_onnx_write_experts(ls_onnx_writer *w, const ls_layer *l, const ls_facts *f) {
    enum { GATE, UP, DOWN };
    const int64_t first = 1, last = -1;
    ls_onnx_graph *g = w->g;
    ls_onnx_shape rows = {2, {l->T, l->C}};
    const char *x = ls_onnx_expand(w, ls_onnx_read(w, l, 0, rows), 1, &first);
    const char *weights = ls_onnx_transpose(w, weigh(w, l, f), 3, (const int64_t[]){0, 2, 1});
    const char *h =
        LS_ONNX_ADD(g, "Mul", ls_onnx_silu(w, all_of(w, l, x, GATE)), all_of(w, l, x, UP));
    h = LS_ONNX_ADD(g, "Mul", h, ls_onnx_expand(w, weights, 1, &last));
    const char *y = ls_onnx_reduce(w, "ReduceSum", all_of(w, l, h, DOWN), 1, false);
    ls_onnx_set(w, l, y, rows);
}
