/* export_onnx.c - see export_onnx.h. */
#include "cli/export_onnx.h"

#include "base/file.h"
#include "base/json.h"
#include "base/print.h"
#include "cli/export_ids.h"
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
    if (x->file.data)
        ls_print("%s: its numbers, which are more than fit into one message; both files belong "
                 "together\n",
                 x->file.data);
    for (size_t i = 0; i < x->nends; i++) print_end(&x->ends[i]);
}

static ls_status write_graph(const cli_onnx *a, const ls_trained *t, ls_error *e) {
    ls_onnx_exported x;
    const ls_onnx_weights weights = {t->params, t->infer.frozen, &t->compute};
    LS_TRY(ls_onnx_export(&t->model, &weights, a->to, 0, &x, e));
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
