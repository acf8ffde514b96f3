/* predicted.c - see predicted.h. */
#include "infer/predicted.h"

#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/log.h"
#include "base/plural.h"
#include "infer/texts.h"
#include "storage/checkpoint.h"

struct ls_predicted {
    ls_predictor *p;
    ls_dataset data; /* its validation part is what is predicted; empty: texts */
    ls_texts texts;
};

/* ---- opening ---- */

static ls_status open_own(ls_predicted *d, ls_error *e) {
    const ls_trained *t = &d->p->trained;
    char *run = ls_checkpoint_run(t->path);
    ls_status s = ls_dataset_open(&d->data, run, &t->config, &t->model, e);
    free(run);
    return s;
}

static ls_status open_files(ls_predicted *d, const char *paths, const char *labels, ls_error *e) {
    const ls_trained *t = &d->p->trained;
    const ls_other_samples other = {
        .paths = paths, .labels = labels ? labels : "", .fields = d->p->fields, .dir = t->path};
    return ls_dataset_open_files(&d->data, &t->config, &t->model, &other, e);
}

static ls_status open_data(ls_predicted *d, const char *paths, const char *labels, ls_error *e) {
    if (!d->p->is_text) return paths ? open_files(d, paths, labels, e) : open_own(d, e);
    if (!d->p->trained.tokenizer)
        return ls_fail(e, LS_EINVAL,
                       "%s: was trained on files of tokens, without a tokenizer; predictions of a "
                       "language model begin with texts",
                       d->p->trained.path);
    if (paths) return ls_texts_open(paths, d->p->trained.tokenizer, &d->texts, e);
    return ls_fail(e, LS_EINVAL, "%s: is a language model: name the file of texts to predict from",
                   d->p->trained.path);
}

ls_status ls_predicted_open(ls_predictor *p, const char *paths, const char *labels,
                            ls_predicted **d_p, ls_error *e) {
    ls_predicted *d = LS_NEW(ls_predicted);
    d->p = p;
    ls_status s = open_data(d, paths, labels, e);
    if (s == LS_OK && ls_predicted_count(d) == 0)
        s = ls_fail(e, LS_EINVAL, "%s: has no samples", paths ? paths : p->trained.path);
    if (s == LS_OK)
        *d_p = d;
    else
        ls_predicted_close(d);
    return s;
}

void ls_predicted_close(ls_predicted *d) {
    if (!d) return;
    if (d->p->is_text)
        ls_texts_close(&d->texts);
    else
        ls_dataset_free(&d->data);
    free(d);
}

uint64_t ls_predicted_count(const ls_predicted *d) {
    return d->p->is_text ? d->texts.n : d->data.nval;
}

bool ls_predicted_has_names(const ls_predicted *d) {
    if (d->p->is_text) return d->texts.nfiles > 1;
    return ls_samples_have_names(d->data.samples);
}

ls_status ls_predicted_verify(const ls_predicted *d, ls_error *e) {
    return d->p->is_text ? LS_OK : ls_samples_verify(d->data.samples, e);
}

/* ---- rows ---- */

typedef struct outputs {
    float *values[LS_PREDICTIONS]; /* of so many samples */
    int64_t counts[LS_PREDICTIONS];
    int n;
} outputs;

static outputs make_outputs(const ls_predictor *p, int64_t samples) {
    outputs o = {.n = p->n};
    for (int k = 0; k < p->n; k++) {
        o.counts[k] = ls_prediction_count(&p->list[k]);
        o.values[k] = ls_alloc((size_t)(samples * o.counts[k]) * sizeof(float));
    }
    return o;
}

static void free_outputs(outputs *o) {
    for (int k = 0; k < o->n; k++) free(o->values[k]);
}

/* The row of sample i, the j-th one of the outputs. */
static void add_row(const ls_predicted *d, const ls_predictions *form, uint64_t i, int64_t j,
                    const outputs *o, ls_buf *out) {
    const float *values[LS_PREDICTIONS];
    ls_buf name = {0};
    for (int k = 0; k < o->n; k++) values[k] = o->values[k] + j * o->counts[k];
    if (form->has_names && !d->p->is_text) ls_samples_put_name(d->data.samples, i, &name);
    if (form->has_names && d->p->is_text) ls_buf_printf(&name, "%s", ls_texts_file(&d->texts, i));
    ls_buf_append(&name, "", 1);
    ls_predictions_add(form, i, name.data, values, out);
    ls_buf_free(&name);
}

static ls_status add_samples(const ls_predicted *d, const ls_predictions *form, uint64_t first,
                             uint64_t end, ls_buf *out, ls_error *e) {
    size_t nbytes = d->p->trained.model.sample_nbytes;
    int64_t most = d->p->batch;
    char *samples = ls_alloc((size_t)most * nbytes);
    outputs o = make_outputs(d->p, most);
    ls_status s = LS_OK;
    for (uint64_t i = first; s == LS_OK && i < end; i += (uint64_t)most) {
        int64_t n = end - i < (uint64_t)most ? (int64_t)(end - i) : most;
        memset(samples, 0, (size_t)n * nbytes);
        for (int64_t j = 0; s == LS_OK && j < n; j++)
            s = ls_dataset_val_sample(&d->data, i + (uint64_t)j, samples + (size_t)j * nbytes, e);
        if (s == LS_OK) s = ls_predictor_run(d->p, n, samples, o.values, e);
        for (int64_t j = 0; s == LS_OK && j < n; j++) add_row(d, form, i + (uint64_t)j, j, &o, out);
    }
    free(samples);
    free_outputs(&o);
    return s;
}

static ls_status add_texts(const ls_predicted *d, const ls_predictions *form, uint64_t first,
                           uint64_t end, ls_buf *out, ls_error *e) {
    outputs o = make_outputs(d->p, 1);
    ls_status s = LS_OK;
    for (uint64_t i = first; s == LS_OK && i < end; i++) {
        ls_token_list tokens = {0};
        s = ls_texts_tokens(&d->texts, i, d->p->trained.config.model.context, &tokens, e);
        if (s == LS_OK)
            s = ls_predictor_run_text(d->p, tokens.ids, (int64_t)tokens.n, o.values[0], e);
        if (s == LS_OK) add_row(d, form, i, 0, &o, out);
        free(tokens.ids);
    }
    free_outputs(&o);
    return s;
}

ls_status ls_predicted_rows(const ls_predicted *d, const ls_predictions *form, uint64_t first,
                            uint64_t end, ls_buf *out, ls_error *e) {
    return (d->p->is_text ? add_texts : add_samples)(d, form, first, end, out, e);
}
