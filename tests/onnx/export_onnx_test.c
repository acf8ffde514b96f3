/* export_onnx_test.c - ONNX files: each node reads what is there before it, names differ, shapes
 * and weights are those of the model; numbers in a file of their own; what is refused. What the
 * graphs compute is compared with onnxruntime by scripts/check_onnx.py. */
#include "onnx/export_onnx.h"

#include <string.h>

#include "base/file.h"
#include "folder.h"
#include "model/builder.h"
#include "networks/gpt2.h"
#include "onnx.pb-c.h"
#include "test.h"

/* A model with its initial weights, its file, and what the file has. */
typedef struct network {
    ls_model m;
    ls_compute compute;
    float *params;
    char *path;
    ls_onnx_exported x;
    LsOnnx__Model *file;
} network;

static ls_status export(network *n, const char *name, size_t most, ls_error *e) {
    n->params = LS_NEW_ARRAY(float, n->m.nfloats);
    n->path = ls_format("%s/%s.onnx", folder, name);
    ls_model_init(&n->m, 7, 0, n->m.nfloats, n->params);
    assert_ls_ok(ls_compute_init(&n->compute, 1, 0, e), *e);
    const ls_onnx_weights weights = {n->params, NULL, &n->compute};
    static const ls_onnx_remark remark = {"classes", "[\"cat\", \"d\\\"og\"]"};
    const ls_onnx_to to = {.path = n->path, .most = most, .remarks = &remark, .nremarks = 1};
    return ls_onnx_export(&n->m, &weights, &to, &n->x, e);
}

static void read_file(network *n) {
    ls_buf b = {0};
    ls_error e = {0};
    assert_ls_ok(ls_file_read(n->path, 1 << 24, &b, &e), e);
    assert_int_equal(n->x.file.nbytes, b.len);
    n->file = ls_onnx__model__unpack(NULL, b.len, (const uint8_t *)b.data);
    ls_buf_free(&b);
    assert_non_null(n->file);
}

static void close_network(network *n) {
    if (n->file) ls_onnx__model__free_unpacked(n->file, NULL);
    ls_onnx_exported_free(&n->x);
    ls_compute_close(&n->compute);
    ls_model_free(&n->m);
    free(n->params);
    free(n->path);
}

/* ---- what must hold ---- */

enum { MOST_NAMES = 4096 };
typedef struct names {
    const char *of[MOST_NAMES];
    size_t n;
} names;

static bool knows(const names *s, const char *name) {
    for (size_t i = 0; i < s->n; i++)
        if (strcmp(s->of[i], name) == 0) return true;
    return false;
}

static void take(names *s, const char *name) {
    assert_true(*name && !knows(s, name) && s->n < MOST_NAMES);
    s->of[s->n++] = name;
}

static void check_tensor(const LsOnnx__Tensor *t) {
    size_t size = t->data_type == LS_ONNX__TENSOR__DATA_TYPE__INT64 ? 8 : 4;
    for (size_t i = 0; i < t->n_dims; i++) size *= (size_t)t->dims[i];
    if (t->has_raw_data) assert_int_equal(t->raw_data.len, size);
}

/* Tensors come before nodes that read them, and each has one origin; nodes have different names;
 * each node's result, and each tensor, is used. */
static void check_graph(const LsOnnx__Model *file) {
    static names known, nodes, used;
    const LsOnnx__Graph *g = file->graph;
    known.n = nodes.n = used.n = 0;
    for (size_t i = 0; i < g->n_input; i++) take(&known, g->input[i]->name);
    for (size_t i = 0; i < g->n_initializer; i++) {
        take(&known, g->initializer[i]->name);
        check_tensor(g->initializer[i]);
    }
    for (size_t i = 0; i < g->n_node; i++) {
        const LsOnnx__Node *node = g->node[i];
        take(&nodes, node->name);
        for (size_t k = 0; k < node->n_input; k++) {
            assert_true(knows(&known, node->input[k]));
            if (!knows(&used, node->input[k])) take(&used, node->input[k]);
        }
        for (size_t k = 0; k < node->n_output; k++) take(&known, node->output[k]);
    }
    for (size_t i = 0; i < g->n_output; i++) {
        assert_true(knows(&known, g->output[i]->name));
        take(&used, g->output[i]->name);
    }
    for (size_t i = 0; i < g->n_initializer; i++)
        assert_true(knows(&used, g->initializer[i]->name));
    assert_int_equal(file->ir_version, 8);
    assert_int_equal(file->opset_import[0]->version, 17);
    assert_int_equal(file->n_metadata_props, 1);
    assert_string_equal(file->metadata_props[0]->key, "classes");
    assert_string_equal(file->metadata_props[0]->value, "[\"cat\", \"d\\\"og\"]");
}

/* "x: 1 [N,3]": the type's number and the dimensions. */
static void check_end(const LsOnnx__ValueInfo *v, const char *want) {
    ls_buf b = {0};
    const LsOnnx__TensorType *t = v->type->tensor_type;
    ls_buf_printf(&b, "%s: %d [", v->name, t->elem_type);
    for (size_t i = 0; i < t->shape->n_dim; i++) {
        const LsOnnx__Dimension *d = t->shape->dim[i];
        ls_buf_printf(&b, i ? "," : "");
        if (d->value_case == LS_ONNX__DIMENSION__VALUE_DIM_PARAM)
            ls_buf_printf(&b, "%s", d->dim_param);
        else
            ls_buf_printf(&b, "%d", (int)d->dim_value);
    }
    ls_buf_printf(&b, "]");
    assert_string_equal(b.data, want);
    ls_buf_free(&b);
}

static const LsOnnx__Tensor *tensor(const LsOnnx__Model *file, const char *name) {
    for (size_t i = 0; i < file->graph->n_initializer; i++)
        if (strcmp(file->graph->initializer[i]->name, name) == 0)
            return file->graph->initializer[i];
    fail_msg("no tensor is called %s", name);
    return NULL;
}

static int count(const LsOnnx__Model *file, const char *op) {
    int n = 0;
    for (size_t i = 0; i < file->graph->n_node; i++)
        n += strcmp(file->graph->node[i]->op_type, op) == 0;
    return n;
}

static const float *weight(const network *n, const char *name) {
    for (int i = 0; i < n->m.nparams; i++)
        if (strcmp(n->m.params[i].name, name) == 0) return n->params + n->m.params[i].offset;
    fail_msg("no parameter is called %s", name);
    return NULL;
}

/* ---- networks ---- */

/* An image, ids, and two losses. */
static void build_network(ls_model *m) {
    ls_value *image = ls_input(m, "image", LS_U8, LS_DIMS(6, 6, 3));
    ls_value *ids = ls_input(m, "ids", LS_I32, LS_DIMS(4));
    ls_value *label = ls_input(m, "label", LS_I32, LS_SCALAR);
    ls_value *price = ls_input(m, "price", LS_F32, LS_SCALAR);
    ls_value *x = ls_affine(m, image, 1 / 255.0f, -0.5f);
    x = ls_conv2d(m, x, .name = "first", .channels = 4, .kernel = 3);
    ls_value *y = ls_batch_norm(m, x, .relu = true);
    y = ls_group_norm(m, ls_conv2d(m, y, .channels = 4, .kernel = 1), .groups = 2);
    y = ls_concat(m, -1, ls_add_relu(m, x, y), ls_gelu(m, y));
    y = ls_flatten(m, ls_max_pool(m, y, .kernel = 2));
    ls_value *words = ls_embedding_sum(m, ids, .name = "words", .rows = 9, .width = 5);
    y = ls_concat(m, -1, y, words);
    ls_cross_entropy(m, ls_linear(m, y, .name = "head", .out = 3), label, LS_DEFAULTS);
    ls_mean_squared_error(m, ls_linear(m, y, .name = "cost", .out = 1), price, LS_DEFAULTS);
}

static void test_network(void **state) {
    network n = {0};
    ls_error e = {0};
    (void)state;
    build_network(&n.m);
    assert_ls_ok(ls_build_finish(&n.m, &e), e);
    assert_ls_ok(export(&n, "network", 0, &e), e);
    read_file(&n);
    check_graph(n.file);
    const LsOnnx__Graph *g = n.file->graph;
    assert_int_equal(g->n_input, 2); /* no targets */
    check_end(g->input[0], "image: 2 [N,6,6,3]");
    check_end(g->input[1], "ids: 6 [N,4]");
    assert_int_equal(g->n_output, 3);
    check_end(g->output[0], "label_logits: 1 [N,3]");
    check_end(g->output[1], "label_probability: 1 [N,3]");
    check_end(g->output[2], "price: 1 [N,1]");
    assert_int_equal(n.x.nends, 5);
    assert_int_equal(n.x.file.nnodes, g->n_node);
    assert_null(n.x.file.data);
    /* one transpose before the first convolution, one behind the last layer of images */
    assert_int_equal(count(n.file, "Transpose"), 2);
    assert_int_equal(count(n.file, "Conv"), 2);
    const LsOnnx__Tensor *w = tensor(n.file, "head.weight");
    assert_memory_equal(w->raw_data.data, weight(&n, "head.weight"), w->raw_data.len);
    /* [kernel_h, kernel_w, in, out] is there as [out, in, kernel_h, kernel_w] */
    const float *ours = weight(&n, "first.weight"), *theirs;
    w = tensor(n.file, "first.weight");
    assert_int_equal(w->dims[0], 4);
    assert_int_equal(w->dims[1], 3);
    theirs = (const float *)(const void *)w->raw_data.data;
    for (int r = 0; r < 9; r++)
        for (int c = 0; c < 3; c++)
            for (int k = 0; k < 4; k++)
                assert_true(memcmp(&theirs[(k * 3 + c) * 9 + r], &ours[(r * 3 + c) * 4 + k],
                                   sizeof *ours) == 0);
    close_network(&n);
}

/* The target is the input; logits of each pixel. */
static void test_names(void **state) {
    network n = {0};
    ls_error e = {0};
    (void)state;
    ls_value *x = ls_input(&n.m, "x", LS_F32, LS_DIMS(4, 2));
    ls_value *kinds = ls_input(&n.m, "kinds", LS_I32, LS_DIMS(4));
    ls_mean_squared_error(&n.m, ls_linear(&n.m, x, .out = 2), x, LS_DEFAULTS);
    ls_mean_squared_error(&n.m, ls_tanh(&n.m, x), x, LS_DEFAULTS);
    ls_cross_entropy(&n.m, ls_linear(&n.m, x, .name = "head", .out = 5), kinds, LS_DEFAULTS);
    assert_ls_ok(ls_build_finish(&n.m, &e), e);
    assert_ls_ok(export(&n, "names", 0, &e), e);
    read_file(&n);
    check_graph(n.file);
    check_end(n.file->graph->output[0], "x_prediction: 1 [N,4,2]");
    check_end(n.file->graph->output[1], "x_prediction_2: 1 [N,4,2]");
    check_end(n.file->graph->output[2], "kinds_logits: 1 [N,4,5]");
    close_network(&n);
}

/* ---- language models ---- */

static void test_gpt(void **state) {
    network n = {0};
    ls_error e = {0};
    (void)state;
    const ls_gpt_config c = {.layers = 2, .width = 8, .heads = 2, .context = 6, .vocab = 11};
    assert_ls_ok(ls_gpt_create(&c, &n.m, &e), e);
    assert_ls_ok(export(&n, "gpt", 0, &e), e);
    read_file(&n);
    check_graph(n.file);
    check_end(n.file->graph->input[0], "tokens: 6 [N,T]");
    check_end(n.file->graph->output[0], "logits: 1 [N,T,11]");
    assert_int_equal(n.file->graph->n_output, 1);
    assert_int_equal(count(n.file, "Range"), 1);       /* all layers share the rows' numbers ... */
    assert_int_equal(count(n.file, "LessOrEqual"), 1); /* ... and the mask */
    close_network(&n);
}

/* Rows whose number is fixed, since a layer requires it. */
static void test_fixed_rows(void **state) {
    network n = {0};
    ls_error e = {0};
    (void)state;
    ls_value *ids = ls_input(&n.m, "ids", LS_I32, LS_DIMS(5));
    ls_value *label = ls_input(&n.m, "label", LS_I32, LS_DIMS(5));
    ls_value *x = ls_embedding(&n.m, ids, .rows = 7, .width = 6);
    x = ls_add(&n.m, x, ls_learned(&n.m, LS_DIMS(5, 6), .name = "places"));
    ls_linear_cross_entropy(&n.m, x, label, .classes = 7);
    assert_ls_ok(ls_build_finish(&n.m, &e), e);
    assert_ls_ok(export(&n, "fixed", 0, &e), e);
    read_file(&n);
    check_graph(n.file);
    check_end(n.file->graph->input[0], "ids: 6 [N,5]");
    check_end(n.file->graph->output[0], "logits: 1 [N,5,7]");
    close_network(&n);
}

/* ---- numbers in a file of their own ---- */

static void test_data_file(void **state) {
    network n = {0};
    ls_error e = {0};
    ls_buf data = {0};
    (void)state;
    ls_value *x = ls_input(&n.m, "x", LS_F32, LS_DIMS(37));
    ls_value *y = ls_input(&n.m, "y", LS_F32, LS_DIMS(29));
    ls_mean_squared_error(&n.m, ls_linear(&n.m, ls_linear(&n.m, x, .out = 41), .out = 29), y,
                          LS_DEFAULTS);
    assert_ls_ok(ls_build_finish(&n.m, &e), e);
    assert_ls_ok(export(&n, "data", 1, &e), e);
    char *path = ls_format("%s.data", n.path);
    assert_string_equal(n.x.file.data, path);
    n.x.file.nbytes = (size_t)ls_file_folder_nbytes(folder); /* not looked at here */
    ls_buf b = {0};
    assert_ls_ok(ls_file_read(n.path, 1 << 24, &b, &e), e);
    n.file = ls_onnx__model__unpack(NULL, b.len, (const uint8_t *)b.data);
    ls_buf_free(&b);
    assert_non_null(n.file);
    check_graph(n.file);
    assert_ls_ok(ls_file_read(path, 1 << 24, &data, &e), e);
    for (int i = 0; i < 2; i++) {
        const char *name = i ? "linear_2.weight" : "linear.weight";
        const LsOnnx__Tensor *t = tensor(n.file, name);
        assert_int_equal(t->data_location, LS_ONNX__TENSOR__LOCATION__EXTERNAL);
        assert_false(t->has_raw_data);
        assert_string_equal(t->external_data[0]->value, "data.onnx.data");
        size_t at = (size_t)atol(t->external_data[1]->value);
        size_t nbytes = (size_t)atol(t->external_data[2]->value);
        assert_int_equal(nbytes, (size_t)(t->dims[0] * t->dims[1]) * sizeof(float));
        assert_true(at % 64 == 0 && at + nbytes <= data.len);
        assert_memory_equal(data.data + at, weight(&n, name), nbytes);
    }
    assert_true(tensor(n.file, "linear.bias")->has_raw_data); /* it is small */
    ls_buf_free(&data);
    free(path);
    close_network(&n);
}

/* ---- what is refused ---- */

static void swish(const ls_layer_args *a) { (void)a; }

static void test_refused(void **state) {
    static const ls_layer_kind kind = {.name = "swish", .forward = swish, .backward = swish};
    network n = {0};
    ls_error e = {0};
    (void)state;
    ls_value *x = ls_input(&n.m, "x", LS_F32, LS_DIMS(3));
    ls_value *y = ls_input(&n.m, "y", LS_F32, LS_DIMS(3));
    ls_value *own = ls_own_layer(&n.m, &kind, x, .name = "mine");
    ls_mean_squared_error(&n.m, ls_linear(&n.m, own, .out = 3), y, LS_DEFAULTS);
    assert_ls_ok(ls_build_finish(&n.m, &e), e);
    assert_ls_fails(export(&n, "refused", 0, &e), LS_EINVAL,
                    "layer 'mine': a layer of a program (swish) has no form in ONNX", e);
    assert_false(ls_file_exists(n.path));
    close_network(&n);
    n = (network){0};
    build_network(&n.m);
    assert_ls_ok(ls_build_finish(&n.m, &e), e);
    assert_ls_fails(export(&n, "network", 0, &e), LS_EINVAL, "exists", e);
    close_network(&n);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_network),   cmocka_unit_test(test_names),
        cmocka_unit_test(test_gpt),       cmocka_unit_test(test_fixed_rows),
        cmocka_unit_test(test_data_file), cmocka_unit_test(test_refused)};
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
