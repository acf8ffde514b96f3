/* exported.c - see exported.h. */
#include "infer/exported.h"

#include <stdlib.h>

#include "base/file.h"
#include "base/json.h"
#include "base/output.h"
#include "dataset/data_record.h"
#include "infer/published.h"
#include "source/ids.h"
#include "storage/run_model.h"

/* ---- weights ---- */

typedef ls_status export_fn(const ls_export *, const char *path, ls_written *w_p, ls_error *);

static export_fn *exporter_of(ls_export_form form) {
    return form == LS_EXPORT_GGUF ? ls_export_gguf : ls_export_folder;
}

static ls_status export_run(const ls_export_request *q, ls_written *w, ls_error *e) {
    ls_run_model r;
    LS_TRY(ls_run_model_open(q->from, (ls_run_model_options){q->ema, q->merge}, &r, e));
    const ls_export x = {.source = ls_source_of_run(&r), .text = &r.text, .type = q->type};
    ls_status s = exporter_of(q->form)(&x, q->to, w, e);
    ls_run_model_close(&r);
    return s;
}

static ls_status export_weights(const ls_export_request *q, const ls_weights *from, ls_written *w,
                                ls_error *e) {
    ls_model_text text = {0};
    LS_TRY(ls_model_text_read(from, &text, e));
    const ls_export x = {.source = ls_source_of_weights(from), .text = &text, .type = q->type};
    ls_status s = exporter_of(q->form)(&x, q->to, w, e);
    ls_model_text_free(&text);
    return s;
}

static ls_status export_published(const ls_export_request *q, ls_written *w, ls_error *e) {
    ls_weights from = {0};
    if (q->ema)
        return ls_fail(e, LS_EINVAL, "%s: is a published model, without an average of its weights",
                       q->from);
    if (q->merge)
        return ls_fail(e, LS_EINVAL, "%s: is a published model, without adapters to merge",
                       q->from);
    LS_TRY(ls_weights_open(q->from, &from, e));
    ls_status s = export_weights(q, &from, w, e);
    ls_weights_close(&from);
    return s;
}

ls_status ls_export_model(const ls_export_request *q, ls_written *w_p, ls_error *e) {
    return (ls_published_is(q->from) ? export_published : export_run)(q, w_p, e);
}

/* ---- an ONNX graph: what the run's data call its parts ---- */

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

/* texts: of each column of texts, those that stand for 0, 1, ...; columns: of each field that is
 * made of several, their names. */
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

ls_status ls_export_onnx(const ls_trained *t, const char *path, bool external,
                         ls_onnx_exported *x_p, ls_error *e) {
    remarks r = {.n = 0};
    const ls_onnx_weights weights = {t->params, t->infer.frozen, &t->compute};
    ls_status s = find_remarks(t, &r, e);
    const ls_onnx_to to = {path, external ? 1 : 0, r.list, r.n};
    if (s == LS_OK) s = ls_onnx_export(&t->model, &weights, &to, x_p, e);
    for (int i = 0; i < r.n; i++) ls_buf_free(&r.values[i]);
    return s;
}

/* ---- ids ---- */

ls_status ls_export_ids(const char *checkpoint, const char *file, char **path_p, ls_error *e) {
    char *from = ls_format("%s/" LS_IDS_FILE, checkpoint), *to = ls_format("%s.ids.json", file);
    ls_buf text = {0};
    bool there = ls_file_exists(from);
    ls_status s = there ? ls_file_read(from, LS_IDS_NBYTES, &text, e) : LS_OK;
    if (there && s == LS_OK) s = ls_output_write(to, text.data, text.len, e);
    ls_buf_free(&text);
    free(from);
    *path_p = there && s == LS_OK ? to : NULL;
    if (!*path_p) free(to);
    return s;
}

/* ---- can others load the base? ---- */

static bool has_weights(const char *dir) {
    return ls_file_exists_in(dir, "model.safetensors") ||
           ls_file_exists_in(dir, "model.safetensors.index.json") ||
           ls_file_exists_in(dir, "pytorch_model.bin") ||
           ls_file_exists_in(dir, "pytorch_model.bin.index.json");
}

static bool has_gguf_alone(const char *dir) {
    return ls_file_exists_in(dir, "config.json") && ls_file_exists_in(dir, "model.gguf") &&
           !has_weights(dir);
}

char *ls_export_base_problem(const char *base, bool is_given) {
    if (!ls_file_exists(base))
        return is_given ? NULL : ls_format("it is no longer there; give the base with --base");
    if (!ls_file_is_dir(base) || has_gguf_alone(base))
        return ls_format("it has its weights as GGUF; `lockstep import %s -o DIR --type f16` makes "
                         "a directory that transformers loads, for --base DIR",
                         base);
    if (ls_file_exists_in(base, "config.yaml") && !ls_file_exists_in(base, "config.json"))
        return ls_format("it is a run of Lockstep; `lockstep export %s --to safetensors -o DIR` "
                         "makes a directory that transformers loads, for --base DIR",
                         base);
    if (!ls_file_exists_in(base, "config.json")) return ls_format("it has no config.json");
    return has_weights(base) ? NULL : ls_format("it has no model.safetensors");
}
