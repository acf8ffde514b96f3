/* export_onnx.c - see export_onnx.h. */
#include "onnx/export_onnx.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "onnx/kinds.h"

typedef struct job {
    ls_onnx_writer w;
    const ls_model *m;
    ls_prediction list[LS_PREDICTIONS];
    int n;
    bool *layers, *fields; /* that the predictions need */
    ls_onnx_exported *x;
} job;

/* ---- what is possible ---- */

static ls_status check_layer(const ls_layer *l, ls_error *e) {
    const char *kind = ls_layer_facts(l).user_kind;
    if (kind)
        return ls_fail(e, LS_EINVAL, "layer '%s': a layer of a program (%s) has no form in ONNX",
                       l->name, kind);
    if (!ls_onnx_kind_of(l))
        return ls_fail(e, LS_EINVAL, "layer '%s': a layer of the kind %s has no form in ONNX",
                       l->name, l->ops->kind);
    return LS_OK;
}

static ls_status check(const job *j, ls_error *e) {
    if (j->m->nslices > 1)
        return ls_fail(e, LS_EINVAL,
                       "the model is cut into slices (parallel.tensor_virtual), which have no form "
                       "in ONNX; `lockstep export --to safetensors -o DIR` writes it as a whole, "
                       "and `lockstep export DIR --to onnx` that");
    if (!j->n)
        return ls_fail(e, LS_EINVAL,
                       "the model's losses compare nothing that it predicts: there is nothing that "
                       "an ONNX graph could compute");
    for (int i = 0; i < j->m->nlayers; i++)
        if (j->layers[i]) LS_TRY(check_layer(&j->m->layers[i], e));
    return LS_OK;
}

/* The rows of a model of tokens, if all that it computes has them: their number is free. Else 0. A
 * text has one token more than the model reads. */
static int64_t free_rows(const job *j) {
    int64_t T = j->list[0].is_fused ? j->list[0].rows : 0;
    for (int i = 0; T && i < j->m->nlayers; i++)
        if (j->layers[i] && !ls_onnx_kind_of(&j->m->layers[i])->by_rows) T = 0;
    for (int i = 0; T && i < j->m->ninputs; i++) {
        const ls_field *f = &j->m->inputs[i];
        if (j->fields[i] && (f->ndims != 1 || f->dims[0] < T || f->dims[0] > T + 1)) T = 0;
    }
    return j->n == 1 ? T : 0;
}

/* ---- inputs and outputs ---- */

static void note_end(job *j, const char *name, bool is_output, ls_dtype type, ls_onnx_shape s) {
    ls_onnx_exported *x = j->x;
    x->ends = ls_grow(x->ends, x->nends, sizeof *x->ends);
    x->ends[x->nends++] = (ls_onnx_end){ls_strdup(name), is_output, type, s};
}

static void add_inputs(job *j) {
    for (int i = 0; i < j->m->ninputs; i++) {
        const ls_field *f = &j->m->inputs[i];
        ls_dtype type = f->type == LS_U32 ? LS_I32 : f->type;
        ls_onnx_shape s = {f->ndims + 1, {LS_ONNX_SAMPLES}};
        if (!j->fields[i]) continue;
        for (int k = 0; k < f->ndims; k++) s.of[k + 1] = j->w.rows ? LS_ONNX_ROWS : f->dims[k];
        j->w.fields[i] = ls_onnx_input(j->w.g, f->name, type, s);
        note_end(j, f->name, false, type, s);
    }
}

static void add_output(job *j, const char *tensor, const char *name, const char *suffix,
                       ls_onnx_shape dims) {
    ls_onnx_shape s = ls_onnx_batch_of(&j->w, dims);
    char full[LS_FIELD_NAME + 32];
    snprintf(full, sizeof full, "%s%s", name, suffix);
    ls_onnx_output(j->w.g, tensor, full, s);
    note_end(j, full, true, LS_F32, s);
}

/* Does an input of the graph, or an earlier prediction, have this name? */
static bool is_taken(const job *j, int k, const char *name) {
    for (int i = 0; i < j->m->ninputs; i++)
        if (j->fields[i] && strcmp(j->m->inputs[i].name, name) == 0) return true;
    for (int i = 0; i < k; i++)
        if (strcmp(j->list[i].name, name) == 0) return true;
    return false;
}

/* The name of prediction k; also where several losses compare with one field. */
static void name_of(const job *j, int k, char name[LS_FIELD_NAME]) {
    const char *own = j->list[k].name;
    snprintf(name, LS_FIELD_NAME, "%s", own);
    if (is_taken(j, k, name))
        snprintf(name, LS_FIELD_NAME, "%.*s_prediction", LS_FIELD_NAME - 24, own);
    for (int n = 2; is_taken(j, k, name) && n < LS_PREDICTIONS + 2; n++)
        snprintf(name, LS_FIELD_NAME, "%.*s_prediction_%d", LS_FIELD_NAME - 24, own, n);
}

static bool is_of_rows(const ls_prediction *p, ls_onnx_shape dims) {
    return dims.of[dims.n - 1] == p->width;
}

static void add_prediction(job *j, int k) {
    ls_prediction *p = &j->list[k];
    bool classes = p->kind == LS_CLASSES, chances = p->kind == LS_CHANCES;
    const ls_layer *l = &j->m->layers[p->layer];
    ls_onnx_shape dims = j->w.values[p->layer].dims;
    char name[LS_FIELD_NAME], scope[LS_FIELD_NAME + 16];
    if (classes && !is_of_rows(p, dims))
        dims =
            p->rows == 1 ? (ls_onnx_shape){1, {p->width}} : (ls_onnx_shape){2, {p->rows, p->width}};
    bool is_text = p->is_fused && j->n == 1;
    if (is_text)
        snprintf(name, sizeof name, "logits");
    else
        name_of(j, k, name);
    memcpy(p->name, name, sizeof name); /* the next ones differ from it */
    snprintf(scope, sizeof scope, "output/%s", name);
    ls_onnx_scope(j->w.g, scope);
    const char *x = ls_onnx_read_output(&j->w, l, dims);
    if (is_text) {
        add_output(j, x, name, "", dims);
        return;
    }
    add_output(j, x, name, classes || chances ? "_logits" : "", dims);
    if (!classes && !chances) return;
    const char *y = LS_ONNX_ADD(j->w.g, classes ? "Softmax" : "Sigmoid", x);
    if (classes) ls_onnx_set_int(j->w.g, "axis", -1);
    add_output(j, y, name, "_probability", dims);
}

/* ---- the whole ---- */

static void build(job *j) {
    add_inputs(j);
    for (int i = 0; i < j->m->nlayers; i++) {
        const ls_layer *l = &j->m->layers[i];
        const ls_facts f = ls_layer_facts(l);
        if (!j->layers[i]) continue;
        ls_onnx_scope(j->w.g, l->name);
        ls_onnx_kind_of(l)->write(&j->w, l, &f);
    }
    for (int k = 0; k < j->n; k++) add_prediction(j, k);
}

ls_status ls_onnx_export(const ls_model *m, const ls_onnx_weights *weights, const ls_onnx_to *to,
                         ls_onnx_exported *x_p, ls_error *e) {
    ls_onnx_exported x = {0};
    job j = {.w = ls_onnx_writer_of(m, weights), .m = m, .x = &x};
    j.layers = LS_NEW_ARRAY(bool, (size_t)m->nlayers);
    j.fields = LS_NEW_ARRAY(bool, (size_t)m->ninputs + 1);
    j.n = ls_predictions_of(m, j.list);
    ls_predictions_need(m, j.list, j.n, j.layers, j.fields);
    ls_status s = check(&j, e);
    if (s == LS_OK) {
        j.w.rows = free_rows(&j);
        build(&j);
        for (int i = 0; i < to->nremarks; i++)
            ls_onnx_note(j.w.g, to->remarks[i].key, to->remarks[i].value);
        s = ls_onnx_write(j.w.g, to->path, to->most, &x.file, e);
    }
    ls_onnx_writer_close(&j.w);
    free(j.layers);
    free(j.fields);
    if (s == LS_OK)
        *x_p = x;
    else
        ls_onnx_exported_free(&x);
    return s;
}

void ls_onnx_exported_free(ls_onnx_exported *x) {
    for (size_t i = 0; i < x->nends; i++) free(x->ends[i].name);
    free(x->ends);
    free(x->file.data);
    *x = (ls_onnx_exported){0};
}
