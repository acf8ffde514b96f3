/* export_onnx.c - see export_onnx.h. */
#include "cli/export_onnx.h"

#include "base/file.h"
#include "base/json.h"
#include "base/print.h"
#include "cli/export_ids.h"
#include "dataset/data_record.h"
#include "infer/generate.h"
#include "onnx/export.h"

static const char *free_name(int64_t dim) { return dim == LS_ONNX_ROWS ? "T" : "N"; }

static ls_json *shape_of(const ls_onnx_shape *s) {
    ls_json *list = ls_json_new_array();
    for (int i = 0; i < s->n; i++)
        ls_json_push(list, s->of[i] < 0 ? ls_json_new_text(free_name(s->of[i]))
                                        : ls_json_new_integer(s->of[i]));
    return list;
}

static ls_json *list_of(const ls_onnx_exported *x, bool outputs) {
    ls_json *list = ls_json_new_array();
    for (size_t i = 0; i < x->nends; i++) {
        const ls_onnx_end *end = &x->ends[i];
        if (end->is_output != outputs) continue;
        ls_json *o = ls_json_new_object();
        ls_json_set_text(o, "name", end->name);
        ls_json_set_text(o, "type", ls_dtype_name(end->type));
        ls_json_set(o, "shape", shape_of(&end->shape));
        ls_json_push(list, o);
    }
    return list;
}

static void print_end(const ls_onnx_end *end) {
    ls_print("%s %s: %s [", end->is_output ? "output" : "input ", end->name,
             ls_dtype_name(end->type));
    for (int i = 0; i < end->shape.n; i++) {
        if (i) ls_print(", ");
        if (end->shape.of[i] < 0)
            ls_print("%s", free_name(end->shape.of[i]));
        else
            ls_print("%lld", (long long)end->shape.of[i]);
    }
    ls_print("]\n");
}

static void print_json(const cli_onnx *a, const ls_trained *t, const ls_onnx_exported *x) {
    ls_json *o = ls_json_new_object();
    ls_json_set(o, "path", ls_json_new_path(a->to));
    ls_json_set_text(o, "form", "onnx");
    if (x->file.data) ls_json_set(o, "data", ls_json_new_path(x->file.data));
    ls_json_set_integer(o, "opset", LS_ONNX_OPSET);
    ls_json_set_integer(o, "parameters", (int64_t)t->model.count);
    ls_json_set_integer(o, "nodes", (int64_t)x->file.nnodes);
    ls_json_set_integer(o, "bytes", (int64_t)x->file.nbytes);
    ls_json_set(o, "inputs", list_of(x, false));
    ls_json_set(o, "outputs", list_of(x, true));
    ls_print_json(o);
    ls_json_free(o);
}

static void print(const cli_onnx *a, const ls_trained *t, const ls_onnx_exported *x) {
    ls_print("%s: ONNX, operators of set %d: %zu parameters, %zu nodes, %.3f MB\n", a->to,
             LS_ONNX_OPSET, t->model.count, x->file.nnodes, (double)x->file.nbytes / 1e6);
    if (x->file.data) ls_print("%s: its numbers; both files belong together\n", x->file.data);
    for (size_t i = 0; i < x->nends; i++) print_end(&x->ends[i]);
}

/* ---- what the run's data call it ---- */

/* The names of the classes that the model predicts first; NULL: they have none. */
static ls_status find_classes(const ls_trained *t, ls_json **list_p, ls_error *e) {
    ls_prediction list[LS_PREDICTIONS];
    int n = ls_predictions_of(&t->model, list);
    *list_p = NULL;
    for (int k = 0; k < n && !*list_p; k++) {
        ls_classes c = {0};
        if (list[k].kind != LS_CLASSES) continue;
        LS_TRY(ls_data_record_classes(t->path, list[k].name, &c, e));
        if (c.n) *list_p = ls_json_new_array();
        for (int i = 0; i < c.n; i++) ls_json_push(*list_p, ls_json_new_path(c.names[i]));
        ls_classes_free(&c);
    }
    return LS_OK;
}

/* texts: of each column of texts, those that stand for 0, 1, ...; columns: of each field that is made
 * of several, their names. */
static void add_columns(const ls_numbering *c, ls_json *texts, ls_json *columns) {
    for (size_t i = 0; i < c->n; i++) {
        const ls_numbered *x = &c->list[i];
        ls_json *list = ls_json_new_array(), *field = NULL;
        for (int k = 0; k < x->in.n; k++) ls_json_push(list, ls_json_new_path(x->in.names[k]));
        if (x->text && x->in.n)
            ls_json_set(texts, x->name, list);
        else
            ls_json_free(list);
        if (!x->joined) continue;
        if (!ls_json_get(columns, x->field)) ls_json_set(columns, x->field, ls_json_new_array());
        field = (ls_json *)(uintptr_t)ls_json_get(columns, x->field);
        ls_json_push(field, ls_json_new_path(x->name));
    }
}

typedef struct remarks {
    ls_buf values[3];
    ls_onnx_remark list[3]; /* [n] */
    int n;
} remarks;

/* Frees the value. */
static void add_remark(remarks *r, const char *key, ls_json *value) {
    ls_buf *b = &r->values[r->n];
    const char *name = NULL;
    const ls_json *first = NULL;
    if (ls_json_is_array(value) || (value && ls_json_next(value, NULL, &name, &first))) {
        ls_json_write(value, 0, b);
        ls_buf_append(b, "", 1);
        r->list[r->n++] = (ls_onnx_remark){key, b->data};
    }
    ls_json_free(value);
}

static ls_status find_remarks(const ls_trained *t, remarks *r, ls_error *e) {
    ls_json *classes = NULL, *texts = ls_json_new_object(), *columns = ls_json_new_object();
    ls_numbering numbering = {0};
    ls_status s = LS_OK;
    if (!t->is_published && !ls_config_has_corpus(&t->config)) {
        s = find_classes(t, &classes, e);
        if (s == LS_OK && ls_data_record_numbering(t->path, &numbering, NULL) == LS_OK)
            add_columns(&numbering, texts, columns);
        ls_numbering_free(&numbering);
    }
    add_remark(r, "classes", classes);
    add_remark(r, "texts", texts);
    add_remark(r, "columns", columns);
    return s;
}

static ls_status write_graph(const cli_onnx *a, const ls_trained *t, ls_error *e) {
    ls_onnx_exported x;
    remarks r = {.n = 0};
    const ls_onnx_weights weights = {t->params, t->infer.frozen, &t->compute};
    ls_status s = find_remarks(t, &r, e);
    const ls_onnx_to to = {a->to, a->external ? 1 : 0, r.list, r.n};
    if (s == LS_OK) s = ls_onnx_export(&t->model, &weights, &to, &x, e);
    for (int i = 0; i < r.n; i++) ls_buf_free(&r.values[i]);
    LS_TRY(s);
    if (a->json)
        print_json(a, t, &x);
    else
        print(a, t, &x);
    ls_onnx_exported_free(&x);
    return LS_OK;
}

ls_status cli_export_onnx(const cli_onnx *a, ls_error *e) {
    ls_trained t;
    const ls_trained_options o = {.ema = a->ema, .in_f32 = true};
    LS_TRY(ls_file_check_new(a->to, "file", e));
    LS_TRY(ls_trained_open(a->from, &o, &t, e));
    ls_status s = write_graph(a, &t, e);
    if (s == LS_OK && !t.is_published) s = cli_export_ids(t.path, a->to, a->json, e);
    ls_trained_close(&t);
    return s;
}
