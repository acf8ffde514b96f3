/* writer.c - see writer.h. */
#include "onnx/writer.h"

#include <stdlib.h>
#include <string.h>

#include "tensor/stored.h"

ls_onnx_writer ls_onnx_writer_of(const ls_model *m, const ls_onnx_weights *weights) {
    return (ls_onnx_writer){.g = ls_onnx_graph_new(),
                            .m = m,
                            .weights = weights,
                            .values = LS_NEW_ARRAY(ls_onnx_value, (size_t)m->nlayers),
                            .fields = LS_NEW_ARRAY(const char *, (size_t)m->ninputs + 1),
                            .params = LS_NEW_ARRAY(const char *, (size_t)m->nparams + 1)};
}

void ls_onnx_writer_close(ls_onnx_writer *w) {
    ls_onnx_graph_free(w->g);
    for (size_t i = 0; i < w->nshared; i++) free(w->shared[i].key);
    free(w->shared);
    free(w->values);
    free(w->fields);
    free(w->params);
    *w = (ls_onnx_writer){0};
}

/* ---- weights and fields ---- */

const float *ls_onnx_param_values(const ls_onnx_writer *w, int param, float **own_p) {
    const ls_param *p = &w->m->params[param];
    *own_p = NULL;
    if (!p->frozen) return w->weights->params + p->offset;
    ls_stored stored = w->weights->frozen[param];
    if (stored.type == LS_BLOCK_F32) return stored.data;
    *own_p = LS_NEW_ARRAY(float, p->count);
    ls_stored_read(w->weights->compute->k, stored, 0, (int64_t)p->count, *own_p);
    return *own_p;
}

const char *ls_onnx_param(ls_onnx_writer *w, const ls_layer *l, int i) {
    int number = l->params[i];
    const ls_param *p = &w->m->params[number];
    float *own = NULL;
    if (w->params[number]) return w->params[number];
    const float *x = ls_onnx_param_values(w, number, &own);
    ls_onnx_shape dims = ls_onnx_shape_of(p->dims);
    w->params[number] = own ? ls_onnx_own_numbers(w->g, p->name, dims, own)
                            : ls_onnx_numbers(w->g, p->name, dims, x);
    return w->params[number];
}

const char *ls_onnx_field(ls_onnx_writer *w, const ls_layer *l, int i) {
    size_t at = l->field_at[i];
    for (int k = 0; k < w->m->ninputs; k++)
        if (w->m->inputs[k].offset == at) return w->fields[k];
    return NULL; /* a part of a field, of a model that is cut */
}

const char **ls_onnx_share(ls_onnx_writer *w, const char *key) {
    for (size_t i = 0; i < w->nshared; i++)
        if (strcmp(w->shared[i].key, key) == 0) return &w->shared[i].tensor;
    w->shared = ls_grow(w->shared, w->nshared, sizeof *w->shared);
    w->shared[w->nshared] = (ls_onnx_shared){ls_strdup(key), NULL};
    return &w->shared[w->nshared++].tensor;
}

/* ---- shapes ---- */

ls_onnx_shape ls_onnx_shape_of(const int64_t *dims) {
    ls_onnx_shape s = {0};
    for (; s.n < LS_PARAM_DIMS && dims[s.n]; s.n++) s.of[s.n] = dims[s.n];
    if (!s.n) s.of[s.n++] = 1;
    return s;
}

int64_t ls_onnx_count(ls_onnx_shape s) {
    int64_t n = 1;
    for (int i = 0; i < s.n; i++) n *= s.of[i];
    return n;
}

ls_onnx_shape ls_onnx_batch_of(const ls_onnx_writer *w, ls_onnx_shape dims) {
    ls_onnx_shape s = {dims.n + 1, {LS_ONNX_SAMPLES}};
    for (int i = 0; i < dims.n; i++) s.of[i + 1] = dims.of[i];
    if (w->rows && dims.of[0] == w->rows) s.of[1] = LS_ONNX_ROWS;
    return s;
}

ls_onnx_shape ls_onnx_output_dims(const ls_layer *l) {
    if (l->y_dims[0] || l->T <= 1) return ls_onnx_shape_of(l->y_dims);
    return (ls_onnx_shape){2, {l->T, (int64_t)l->y_floats / l->T}}; /* GPT's layers */
}

static bool is_same(ls_onnx_shape a, ls_onnx_shape b) {
    return a.n == b.n && memcmp(a.of, b.of, (size_t)a.n * sizeof *a.of) == 0;
}

/* ---- often used ---- */

const char *ls_onnx_reshape(ls_onnx_writer *w, const char *x, ls_onnx_shape s) {
    return LS_ONNX_ADD(w->g, "Reshape", x, ls_onnx_integers(w->g, s.n, s.of));
}

const char *ls_onnx_transpose(ls_onnx_writer *w, const char *x, int n, const int64_t *order) {
    const char *y = LS_ONNX_ADD(w->g, "Transpose", x);
    ls_onnx_set_ints(w->g, "perm", n, order);
    return y;
}

const char *ls_onnx_slice(ls_onnx_writer *w, const char *x, int dim, int64_t first, int64_t end) {
    const int64_t at = dim;
    return LS_ONNX_ADD(w->g, "Slice", x, ls_onnx_integers(w->g, 1, &first),
                       ls_onnx_integers(w->g, 1, &end), ls_onnx_integers(w->g, 1, &at));
}

const char *ls_onnx_expand(ls_onnx_writer *w, const char *x, int n, const int64_t *dims) {
    return LS_ONNX_ADD(w->g, "Unsqueeze", x, ls_onnx_integers(w->g, n, dims));
}

/* In this set of operators the sum takes the dimension as an input, the mean as an attribute. */
const char *ls_onnx_reduce(ls_onnx_writer *w, const char *op, const char *x, int dim, bool keep) {
    const int64_t at = dim;
    bool is_sum = strcmp(op, "ReduceSum") == 0;
    const char *y = is_sum ? LS_ONNX_ADD(w->g, op, x, ls_onnx_integers(w->g, 1, &at))
                           : LS_ONNX_ADD(w->g, op, x);
    if (!is_sum) ls_onnx_set_ints(w->g, "axes", 1, &at);
    ls_onnx_set_int(w->g, "keepdims", keep);
    return y;
}

/* 0, 1, ... T - 1; where the number of rows is free, up to the number that the graph's first input
 * has. */
const char *ls_onnx_row_numbers(ls_onnx_writer *w, int64_t T) {
    if (!w->rows || T != w->rows) return ls_onnx_places(w->g, T);
    const char **shared = ls_onnx_share(w, "rows"), *tokens = NULL;
    if (*shared) return *shared;
    for (int k = 0; !tokens && k < w->m->ninputs; k++) tokens = w->fields[k];
    const char *shape = LS_ONNX_ADD(w->g, "Shape", tokens);
    const char *n = LS_ONNX_ADD(w->g, "Gather", shape, ls_onnx_integer(w->g, 1));
    return *shared =
               LS_ONNX_ADD(w->g, "Range", ls_onnx_integer(w->g, 0), n, ls_onnx_integer(w->g, 1));
}

/* ---- values ---- */

static const char *rows_of(ls_onnx_writer *w, ls_onnx_value *v) {
    if (!v->rows) v->rows = ls_onnx_transpose(w, v->planes, 4, (const int64_t[]){0, 2, 3, 1});
    return v->rows;
}

static const char *planes_of(ls_onnx_writer *w, ls_onnx_value *v) {
    if (!v->planes) v->planes = ls_onnx_transpose(w, v->rows, 4, (const int64_t[]){0, 3, 1, 2});
    return v->planes;
}

/* From the shape `from` to `to`. Free rows stay where they are first in both. */
static const char *reshape_rows(ls_onnx_writer *w, const char *x, ls_onnx_shape from,
                                ls_onnx_shape to) {
    ls_onnx_shape s = {to.n + 1, {0}};
    for (int i = 0; i < to.n; i++) s.of[i + 1] = to.of[i];
    if (w->rows && to.of[0] == w->rows) s.of[1] = from.of[0] == w->rows ? 0 : -1;
    return is_same(from, to) ? x : ls_onnx_reshape(w, x, s);
}

static ls_onnx_value *input(const ls_onnx_writer *w, const ls_layer *l, int k) {
    return &w->values[l->inputs[k]];
}

static const char *read_value(ls_onnx_writer *w, ls_onnx_value *v, ls_onnx_shape dims) {
    return reshape_rows(w, rows_of(w, v), v->dims, dims);
}

const char *ls_onnx_read(ls_onnx_writer *w, const ls_layer *l, int k, ls_onnx_shape dims) {
    return read_value(w, input(w, l, k), dims);
}

const char *ls_onnx_read_output(ls_onnx_writer *w, const ls_layer *l, ls_onnx_shape dims) {
    return read_value(w, &w->values[l - w->m->layers], dims);
}

const char *ls_onnx_read_planes(ls_onnx_writer *w, const ls_layer *l, int k, ls_onnx_shape dims) {
    ls_onnx_value *v = input(w, l, k), view = {.dims = dims};
    if (is_same(v->dims, dims)) return planes_of(w, v);
    view.rows = ls_onnx_read(w, l, k, dims);
    return planes_of(w, &view);
}

bool ls_onnx_has_planes(const ls_onnx_writer *w, const ls_layer *l, int k, ls_onnx_shape dims) {
    const ls_onnx_value *v = input(w, l, k);
    return v->planes && is_same(v->dims, dims);
}

void ls_onnx_set(ls_onnx_writer *w, const ls_layer *l, const char *tensor, ls_onnx_shape dims) {
    ls_onnx_shape y = ls_onnx_output_dims(l);
    w->values[l - w->m->layers] =
        (ls_onnx_value){.rows = reshape_rows(w, tensor, dims, y), .dims = y};
}

void ls_onnx_set_planes(ls_onnx_writer *w, const ls_layer *l, const char *tensor) {
    w->values[l - w->m->layers] = (ls_onnx_value){.planes = tensor, .dims = ls_onnx_output_dims(l)};
}
