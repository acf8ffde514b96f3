/* gpt.c - GPT's own layers (layers/gpt.h): with the norm that they begin with, and the sum
 * behind. */
#include "onnx/kinds.h"

static ls_onnx_shape rows_of(const ls_layer *l) { return (ls_onnx_shape){2, {l->T, l->C}}; }

void ls_onnx_write_gpt_embedding(ls_onnx_writer *w, const ls_layer *l, const ls_facts *f) {
    ls_onnx_graph *g = w->g;
    (void)f;
    const char *words = LS_ONNX_ADD(g, "Gather", ls_onnx_param(w, l, 0), ls_onnx_field(w, l, 0));
    const char *places =
        LS_ONNX_ADD(g, "Gather", ls_onnx_param(w, l, 1), ls_onnx_row_numbers(w, l->T));
    ls_onnx_set(w, l, LS_ONNX_ADD(g, "Add", words, places), rows_of(l));
}

/* Parameters of all: weight and bias of the norm, of the first and of the second product. */
static const char *norm(ls_onnx_writer *w, const ls_layer *l) {
    return ls_onnx_layer_norm(w, ls_onnx_read(w, l, 0, rows_of(l)), ls_onnx_param(w, l, 0),
                              ls_onnx_param(w, l, 1));
}

static const char *product(ls_onnx_writer *w, const ls_layer *l, const char *x, int weight) {
    return ls_onnx_linear(w, x, ls_onnx_param(w, l, weight), false,
                          ls_onnx_param(w, l, weight + 1));
}

static void set_sum(ls_onnx_writer *w, const ls_layer *l, const char *y) {
    const char *x = ls_onnx_read(w, l, 0, rows_of(l));
    ls_onnx_set(w, l, LS_ONNX_ADD(w->g, "Add", x, y), rows_of(l));
}

void ls_onnx_write_gpt_attention(ls_onnx_writer *w, const ls_layer *l, const ls_facts *f) {
    int64_t C = l->C;
    const char *qkv = product(w, l, norm(w, l), 2);
    const char *y =
        ls_onnx_attend(w, &(ls_onnx_heads){.heads = f->heads,
                                           .kv_heads = f->heads,
                                           .D = C / f->heads,
                                           .T = l->T,
                                           .causal = true,
                                           .q = ls_onnx_slice(w, qkv, 2, 0, C),
                                           .k = ls_onnx_slice(w, qkv, 2, C, 2 * C),
                                           .v = ls_onnx_slice(w, qkv, 2, 2 * C, 3 * C)});
    set_sum(w, l, product(w, l, y, 4));
}

void ls_onnx_write_gpt_mlp(ls_onnx_writer *w, const ls_layer *l, const ls_facts *f) {
    (void)f;
    set_sum(w, l, product(w, l, ls_onnx_gelu(w, product(w, l, norm(w, l), 2)), 4));
}

/* The logits, by the table of the embedding. */
void ls_onnx_write_gpt_head(ls_onnx_writer *w, const ls_layer *l, const ls_facts *f) {
    (void)f;
    const char *logits = ls_onnx_linear(w, norm(w, l), ls_onnx_param(w, l, 2), true, NULL);
    w->values[l - w->m->layers] = (ls_onnx_value){.rows = logits, .dims = {2, {l->T, l->V}}};
}
