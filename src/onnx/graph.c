/* graph.c - see graph.h. Messages of protobuf-c are structs with pointers; all that the graph
 * allocates is in one list, and is freed with it. */
#include "onnx/graph.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/fresh.h"
#include "base/round_up.h"
#include "lockstep/lockstep.h"
#include "onnx.pb-c.h"

enum { OPS = 64, ALIGNMENT = 64 };

/* How often an operator is in the scope. */
typedef struct uses {
    const char *op;
    int n;
} uses;

struct ls_onnx_graph {
    LsOnnx__Model model;
    LsOnnx__OperatorSet opset;
    LsOnnx__OperatorSet *opsets[1];
    LsOnnx__Graph graph;
    LsOnnx__Node *node; /* the latest */
    const char *scope;
    uses counts[OPS]; /* [ncounts] of the scope */
    int ncounts;
    void **owned; /* [nowned] */
    size_t nowned;
};

/* ---- memory ---- */

static void *own(ls_onnx_graph *g, void *p) {
    g->owned = ls_grow(g->owned, g->nowned, sizeof *g->owned);
    g->owned[g->nowned++] = p;
    return p;
}

static char *own_text(ls_onnx_graph *g, const char *s) { return own(g, ls_strdup(s)); }

/* Appends to a message's list of pointers. */
#define APPEND(list, n, item)                                                                      \
    do {                                                                                           \
        (list) = ls_grow((list), (n), sizeof *(list));                                             \
        (list)[(n)++] = (item);                                                                    \
    } while (0)

ls_onnx_graph *ls_onnx_graph_new(void) {
    ls_onnx_graph *g = LS_NEW(ls_onnx_graph);
    ls_onnx__model__init(&g->model);
    ls_onnx__graph__init(&g->graph);
    ls_onnx__operator_set__init(&g->opset);
    g->opset.domain = own_text(g, "");
    g->opset.has_version = true;
    g->opset.version = LS_ONNX_OPSET;
    g->opsets[0] = &g->opset;
    g->graph.name = own_text(g, "model");
    g->model.has_ir_version = true;
    g->model.ir_version = LS_ONNX_IR;
    g->model.producer_name = own_text(g, "lockstep");
    g->model.producer_version = own_text(g, ls_version());
    g->model.graph = &g->graph;
    g->model.n_opset_import = 1;
    g->model.opset_import = g->opsets;
    g->scope = "";
    return g;
}

void ls_onnx_graph_free(ls_onnx_graph *g) {
    if (!g) return;
    for (size_t i = 0; i < g->graph.n_node; i++) {
        free(g->graph.node[i]->input);
        free(g->graph.node[i]->output);
        free(g->graph.node[i]->attribute);
    }
    for (size_t i = 0; i < g->nowned; i++) free(g->owned[i]);
    free(g->owned);
    free(g->graph.node);
    free(g->graph.initializer);
    free(g->graph.input);
    free(g->graph.output);
    free(g->model.metadata_props);
    free(g);
}

/* ---- nodes ---- */

void ls_onnx_scope(ls_onnx_graph *g, const char *name) {
    g->scope = own_text(g, name);
    g->ncounts = 0;
}

/* The next name of an operator in this scope. */
static char *name_of(ls_onnx_graph *g, const char *op) {
    int i = 0;
    while (i < g->ncounts && strcmp(g->counts[i].op, op) != 0) i++;
    assert(i < OPS); /* OPS is more than the number of operators */
    if (i == g->ncounts) g->counts[g->ncounts++] = (uses){op, 0};
    int n = ++g->counts[i].n;
    if (n == 1) return own(g, ls_format("%s/%s", g->scope, op));
    return own(g, ls_format("%s/%s_%d", g->scope, op, n));
}

const char *ls_onnx_add(ls_onnx_graph *g, const char *op, const char *const *inputs) {
    LsOnnx__Node *node = own(g, LS_NEW(LsOnnx__Node));
    ls_onnx__node__init(node);
    node->op_type = own_text(g, op);
    node->name = name_of(g, op);
    for (int i = 0; inputs[i]; i++) APPEND(node->input, node->n_input, own_text(g, inputs[i]));
    APPEND(node->output, node->n_output, node->name);
    APPEND(g->graph.node, g->graph.n_node, node);
    g->node = node;
    return node->name;
}

const char *ls_onnx_second_output(ls_onnx_graph *g) {
    char *name = own(g, ls_format("%s:second", g->node->name));
    APPEND(g->node->output, g->node->n_output, name);
    return name;
}

static LsOnnx__Attribute *add_attribute(ls_onnx_graph *g, const char *name,
                                        LsOnnx__Attribute__Type type) {
    LsOnnx__Attribute *a = own(g, LS_NEW(LsOnnx__Attribute));
    ls_onnx__attribute__init(a);
    a->name = own_text(g, name);
    a->has_type = true;
    a->type = type;
    APPEND(g->node->attribute, g->node->n_attribute, a);
    return a;
}

void ls_onnx_set_int(ls_onnx_graph *g, const char *name, int64_t i) {
    LsOnnx__Attribute *a = add_attribute(g, name, LS_ONNX__ATTRIBUTE__TYPE__INT);
    a->has_i = true;
    a->i = i;
}

void ls_onnx_set_real(ls_onnx_graph *g, const char *name, float f) {
    LsOnnx__Attribute *a = add_attribute(g, name, LS_ONNX__ATTRIBUTE__TYPE__FLOAT);
    a->has_f = true;
    a->f = f;
}

void ls_onnx_set_ints(ls_onnx_graph *g, const char *name, int n, const int64_t *ints) {
    LsOnnx__Attribute *a = add_attribute(g, name, LS_ONNX__ATTRIBUTE__TYPE__INTS);
    a->n_ints = (size_t)n;
    a->ints = own(g, LS_NEW_ARRAY(int64_t, (size_t)n));
    memcpy(a->ints, ints, (size_t)n * sizeof *ints);
}

/* ---- constants ---- */

static const char *add_tensor(ls_onnx_graph *g, const char *name, LsOnnx__Tensor__DataType type,
                              ls_onnx_shape shape, const void *data) {
    LsOnnx__Tensor *t = own(g, LS_NEW(LsOnnx__Tensor));
    size_t count = 1;
    ls_onnx__tensor__init(t);
    t->name = own_text(g, name);
    t->has_data_type = true;
    t->data_type = (int32_t)type;
    t->n_dims = (size_t)shape.n;
    t->dims = own(g, LS_NEW_ARRAY(int64_t, (size_t)shape.n + 1));
    for (int i = 0; i < shape.n; i++) {
        t->dims[i] = shape.of[i];
        count *= (size_t)shape.of[i];
    }
    t->has_raw_data = true;
    t->raw_data.data = (uint8_t *)(uintptr_t)data; /* only read */
    t->raw_data.len = count * (type == LS_ONNX__TENSOR__DATA_TYPE__INT64 ? 8 : 4);
    APPEND(g->graph.initializer, g->graph.n_initializer, t);
    return t->name;
}

const char *ls_onnx_numbers(ls_onnx_graph *g, const char *name, ls_onnx_shape shape,
                            const float *x) {
    return add_tensor(g, name, LS_ONNX__TENSOR__DATA_TYPE__FLOAT, shape, x);
}

const char *ls_onnx_own_numbers(ls_onnx_graph *g, const char *name, ls_onnx_shape shape, float *x) {
    return ls_onnx_numbers(g, name, shape, own(g, x));
}

const char *ls_onnx_vector(ls_onnx_graph *g, const char *what, int64_t n, const float *x) {
    float *copy = LS_NEW_ARRAY(float, (size_t)n);
    memcpy(copy, x, (size_t)n * sizeof *x);
    return ls_onnx_own_numbers(g, name_of(g, what), (ls_onnx_shape){1, {n}}, copy);
}

/* The initializer of this name; NULL: there is none. */
static const char *find(const ls_onnx_graph *g, const char *name) {
    for (size_t i = 0; i < g->graph.n_initializer; i++)
        if (strcmp(g->graph.initializer[i]->name, name) == 0) return g->graph.initializer[i]->name;
    return NULL;
}

const char *ls_onnx_number(ls_onnx_graph *g, float x) {
    char name[64];
    snprintf(name, sizeof name, "number/%.9g", (double)x);
    const char *there = find(g, name);
    if (there) return there;
    float *copy = LS_NEW(float);
    *copy = x;
    return ls_onnx_own_numbers(g, name, (ls_onnx_shape){0}, copy);
}

static const char *add_integers(ls_onnx_graph *g, const char *name, ls_onnx_shape shape, int64_t n,
                                const int64_t *x) {
    const char *there = find(g, name);
    if (there) return there;
    int64_t *copy = own(g, LS_NEW_ARRAY(int64_t, (size_t)n));
    memcpy(copy, x, (size_t)n * sizeof *x);
    return add_tensor(g, name, LS_ONNX__TENSOR__DATA_TYPE__INT64, shape, copy);
}

const char *ls_onnx_integers(ls_onnx_graph *g, int n, const int64_t *x) {
    ls_buf name = {0};
    ls_buf_printf(&name, "integers/");
    for (int i = 0; i < n; i++) ls_buf_printf(&name, "%s%lld", i ? "," : "", (long long)x[i]);
    const char *t = add_integers(g, name.data, (ls_onnx_shape){1, {n}}, n, x);
    ls_buf_free(&name);
    return t;
}

const char *ls_onnx_integer(ls_onnx_graph *g, int64_t x) {
    char name[64];
    snprintf(name, sizeof name, "integer/%lld", (long long)x);
    return add_integers(g, name, (ls_onnx_shape){0}, 1, &x);
}

const char *ls_onnx_places(ls_onnx_graph *g, int64_t n) {
    char name[64];
    int64_t *x = LS_NEW_ARRAY(int64_t, (size_t)n);
    for (int64_t i = 0; i < n; i++) x[i] = i;
    snprintf(name, sizeof name, "places/%lld", (long long)n);
    const char *t = add_integers(g, name, (ls_onnx_shape){1, {n}}, n, x);
    free(x);
    return t;
}

/* ---- ends ---- */

static LsOnnx__Dimension *dimension_of(ls_onnx_graph *g, int64_t n) {
    LsOnnx__Dimension *d = own(g, LS_NEW(LsOnnx__Dimension));
    ls_onnx__dimension__init(d);
    if (n >= 0) {
        d->value_case = LS_ONNX__DIMENSION__VALUE_DIM_VALUE;
        d->dim_value = n;
    } else {
        d->value_case = LS_ONNX__DIMENSION__VALUE_DIM_PARAM;
        d->dim_param = own_text(g, n == LS_ONNX_ROWS ? "T" : "N");
    }
    return d;
}

static LsOnnx__ValueInfo *end_of(ls_onnx_graph *g, const char *name, LsOnnx__Tensor__DataType type,
                                 ls_onnx_shape shape) {
    LsOnnx__ValueInfo *v = own(g, LS_NEW(LsOnnx__ValueInfo));
    ls_onnx__value_info__init(v);
    v->name = own_text(g, name);
    v->type = own(g, LS_NEW(LsOnnx__Type));
    ls_onnx__type__init(v->type);
    LsOnnx__TensorType *t = v->type->tensor_type = own(g, LS_NEW(LsOnnx__TensorType));
    ls_onnx__tensor_type__init(t);
    t->has_elem_type = true;
    t->elem_type = (int32_t)type;
    t->shape = own(g, LS_NEW(LsOnnx__Shape));
    ls_onnx__shape__init(t->shape);
    t->shape->n_dim = (size_t)shape.n;
    t->shape->dim = own(g, LS_NEW_ARRAY(LsOnnx__Dimension *, (size_t)shape.n + 1));
    for (int i = 0; i < shape.n; i++) t->shape->dim[i] = dimension_of(g, shape.of[i]);
    return v;
}

const char *ls_onnx_input(ls_onnx_graph *g, const char *name, ls_dtype type, ls_onnx_shape shape) {
    LsOnnx__Tensor__DataType t = type == LS_U8    ? LS_ONNX__TENSOR__DATA_TYPE__UINT8
                                 : type == LS_F32 ? LS_ONNX__TENSOR__DATA_TYPE__FLOAT
                                                  : LS_ONNX__TENSOR__DATA_TYPE__INT32;
    LsOnnx__ValueInfo *v = end_of(g, name, t, shape);
    APPEND(g->graph.input, g->graph.n_input, v);
    return v->name;
}

/* By a node of its own: the tensor may be an input of the graph, or several outputs. */
void ls_onnx_output(ls_onnx_graph *g, const char *from, const char *name, ls_onnx_shape shape) {
    LsOnnx__ValueInfo *v = end_of(g, name, LS_ONNX__TENSOR__DATA_TYPE__FLOAT, shape);
    LS_ONNX_ADD(g, "Identity", from);
    g->node->output[0] = v->name;
    APPEND(g->graph.output, g->graph.n_output, v);
}

static LsOnnx__Entry *entry_of(ls_onnx_graph *g, const char *key, const char *value) {
    LsOnnx__Entry *entry = own(g, LS_NEW(LsOnnx__Entry));
    ls_onnx__entry__init(entry);
    entry->key = own_text(g, key);
    entry->value = own_text(g, value);
    return entry;
}

void ls_onnx_note(ls_onnx_graph *g, const char *key, const char *value) {
    APPEND(g->model.metadata_props, g->model.n_metadata_props, entry_of(g, key, value));
}

/* ---- the file ---- */

static const size_t FORMAT_MOST = 2000000000;

/* Bytes go from the numbers' own place into the file. */
typedef struct sink {
    ProtobufCBuffer base; /* first: it is what protobuf-c knows */
    ls_file *file;
    ls_buf small; /* of the message's small parts */
    ls_status status;
    ls_error *e;
} sink;

static void flush(sink *s) {
    if (s->status == LS_OK) s->status = ls_file_put(s->file, s->small.data, s->small.len, s->e);
    s->small.len = 0;
}

static void put(ProtobufCBuffer *base, size_t len, const uint8_t *data) {
    enum { LARGE = 1 << 16 };
    sink *s = (sink *)(void *)base;
    if (s->small.len + len > LARGE) flush(s);
    if (len <= LARGE)
        ls_buf_append(&s->small, data, len);
    else if (s->status == LS_OK)
        s->status = ls_file_put(s->file, data, len, s->e);
}

static ls_status put_model(const ls_onnx_graph *g, ls_file *file, ls_error *e) {
    sink s = {.base = {.append = put}, .file = file, .e = e};
    ls_onnx__model__pack_to_buffer(&g->model, &s.base);
    if (s.small.len) flush(&s);
    ls_buf_free(&s.small);
    return s.status;
}

static ls_status put_data(const ls_onnx_graph *g, ls_file *file, ls_error *e) {
    static const char zeros[ALIGNMENT];
    for (size_t i = 0; i < g->graph.n_initializer; i++) {
        const ProtobufCBinaryData *d = &g->graph.initializer[i]->raw_data;
        LS_TRY(ls_file_put(file, d->data, d->len, e));
        if (d->len % ALIGNMENT) LS_TRY(ls_file_put(file, zeros, ALIGNMENT - d->len % ALIGNMENT, e));
    }
    return LS_OK;
}

typedef ls_status put_fn(const ls_onnx_graph *, ls_file *, ls_error *);

static ls_status write_file(const ls_onnx_graph *g, const char *path, put_fn *fn, ls_error *e) {
    ls_fresh fresh;
    ls_file file;
    LS_TRY(ls_fresh_begin(path, LS_FRESH_FILE, &fresh, e));
    ls_status s = ls_file_create(fresh.at, &file, e);
    if (s == LS_OK) {
        s = fn(g, &file, e);
        if (s == LS_OK)
            s = ls_file_close(&file, e);
        else
            ls_file_discard(&file);
    }
    if (s == LS_OK) return ls_fresh_end(&fresh, e);
    ls_fresh_discard(&fresh);
    return s;
}

/* From now on the numbers are in the file of this name. Small ones, as shapes, which other programs
 * want to know, stay. */
static void move_out(ls_onnx_graph *g, const char *name) {
    size_t at = 0;
    for (size_t i = 0; i < g->graph.n_initializer; i++) {
        LsOnnx__Tensor *t = g->graph.initializer[i];
        char *offset = ls_format("%zu", at), *length = ls_format("%zu", t->raw_data.len);
        t->has_raw_data = t->raw_data.len < 1024;
        at += ls_round_up(t->raw_data.len, ALIGNMENT);
        if (!t->has_raw_data) {
            t->has_data_location = true;
            t->data_location = LS_ONNX__TENSOR__LOCATION__EXTERNAL;
            t->n_external_data = 3;
            t->external_data = own(g, LS_NEW_ARRAY(LsOnnx__Entry *, 3));
            t->external_data[0] = entry_of(g, "location", name);
            t->external_data[1] = entry_of(g, "offset", offset);
            t->external_data[2] = entry_of(g, "length", length);
        }
        free(offset);
        free(length);
    }
}

static ls_status write_both(ls_onnx_graph *g, const char *path, ls_onnx_written *w, ls_error *e) {
    char *data = ls_format("%s.data", path);
    ls_status s = ls_file_check_new(path, "file", e);
    if (s == LS_OK) s = write_file(g, data, put_data, e);
    if (s == LS_OK) {
        move_out(g, ls_file_name(data));
        s = write_file(g, path, put_model, e);
        if (s != LS_OK) remove(data);
    }
    if (s == LS_OK)
        w->data = data;
    else
        free(data);
    return s;
}

ls_status ls_onnx_write(ls_onnx_graph *g, const char *path, size_t most, ls_onnx_written *w_p,
                        ls_error *e) {
    ls_onnx_written w = {.nnodes = g->graph.n_node,
                         .nbytes = ls_onnx__model__get_packed_size(&g->model)};
    if (w.nbytes >= (most ? most : FORMAT_MOST))
        LS_TRY(write_both(g, path, &w, e));
    else
        LS_TRY(write_file(g, path, put_model, e));
    *w_p = w;
    return LS_OK;
}
