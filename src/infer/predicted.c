/* predicted.c - see predicted.h. */
#include "infer/predicted.h"

#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/plural.h"
#include "infer/rated_pairs.h"
#include "infer/texts.h"
#include "storage/checkpoint.h"

struct ls_predicted {
    ls_predictor *p;
    ls_dataset data;       /* its validation part is what is predicted } */
    ls_rated_pairs *pairs; /* of a run on ratings                      } one of these */
    ls_texts texts;        /* of a language model                      } */
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
    const ls_trained *t = &d->p->trained;
    if (d->p->is_text) {
        if (paths) return ls_texts_open(paths, t, &d->texts, e);
        return ls_fail(e, LS_EINVAL, "%s: is a language model: name the file of %s to predict from",
                       t->path, t->tokenizer ? "texts" : "rows of tokens");
    }
    if (!paths) LS_TRY(ls_trained_needs_own_data(t, e));
    if (!ls_rater_is_possible(d->p))
        return paths ? open_files(d, paths, labels, e) : open_own(d, e);
    if (!d->p->vectors) return ls_rated_pairs_open(d->p, paths, &d->pairs, e);
    return ls_fail(e, LS_EINVAL,
                   "--vectors: %s is trained on ratings: --similar compares the vectors of items",
                   t->path);
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
    ls_texts_close(&d->texts);
    ls_rated_pairs_close(d->pairs);
    ls_dataset_free(&d->data);
    free(d);
}

uint64_t ls_predicted_count(const ls_predicted *d) {
    return d->p->is_text ? d->texts.n : d->pairs ? d->pairs->n : d->data.nval;
}

ls_status ls_predicted_verify(const ls_predicted *d, ls_error *e) {
    return d->data.samples ? ls_samples_verify(d->data.samples, e) : LS_OK;
}

/* ---- what was left out ---- */

/* The source of the samples, with all its records. */
static const ls_source *source_of(const ls_predicted *d) {
    const ls_source *const *files = d->data.samples->files;
    return files[1] ? files[1] : files[0];
}

static void log_left_out(const ls_predicted *d) {
    const ls_source *s = d->data.samples ? source_of(d) : NULL;
    uint64_t missing = s ? s->nmissing : d->pairs ? d->pairs->nmissing : 0;
    uint64_t damaged = s ? s->damage.n : d->pairs ? d->pairs->ndamaged : 0;
    if (missing + damaged == 0) return;
    ls_buf b = {0};
    if (missing)
        ls_buf_printf(&b, "%llu record%s without a value (data.missing)",
                      (unsigned long long)missing, ls_plural((int64_t)missing));
    if (damaged)
        ls_buf_printf(&b, "%s%llu damaged record%s (data.damaged)", missing ? ", " : "",
                      (unsigned long long)damaged, ls_plural((int64_t)damaged));
    ls_log("left out, without predictions: %s%s", b.data,
           d->pairs || s->record ? "; the numbers of the samples count them" : "");
    ls_buf_free(&b);
}

void ls_predicted_log(const ls_predicted *d) {
    log_left_out(d);
    if (d->texts.nempty)
        ls_log("left out, without predictions: %llu empty line%s; the numbers of the samples count "
               "them",
               (unsigned long long)d->texts.nempty, ls_plural((int64_t)d->texts.nempty));
    if (d->pairs && d->pairs->nunknown)
        ls_log("%llu of %llu rows have a user or an item that the training data do not have: their "
               "predictions are empty",
               (unsigned long long)d->pairs->nunknown, (unsigned long long)d->pairs->n);
}

/* ---- what a row has ---- */

static bool has_files(const ls_predicted *d) {
    if (d->p->is_text) return d->texts.nfiles > 1;
    return d->data.samples && ls_samples_have_names(d->data.samples);
}

void ls_predicted_set_keys(const ls_predicted *d, ls_predictions *form) {
    bool files = has_files(d), rows = d->p->is_text || !d->pairs ? files : false;
    if (rows && d->data.samples) rows = source_of(d)->record != NULL;
    if (files) form->keys[form->nkeys++] = (ls_predicted_key){"file", false};
    if (rows) form->keys[form->nkeys++] = (ls_predicted_key){"row", true};
    if (!d->pairs) return;
    form->keys[form->nkeys++] = (ls_predicted_key){"user", false};
    form->keys[form->nkeys++] = (ls_predicted_key){"item", false};
}

/* A sample may have several items; a pair needs the first of them. */
ls_predictor_output ls_predicted_output(const ls_predicted *d, int k) {
    ls_predictor_output o = ls_predictor_get_output(d->p, k);
    int64_t width = d->pairs ? d->pairs->rater.width : 1;
    if (width == 1 || o.dims.of[0] != width) return o;
    o.count /= width;
    o.rows /= o.rows > 1 ? width : 1;
    o.width = o.count / o.rows;
    return o;
}

/* ---- rows ---- */

typedef struct outputs {
    float *values[LS_PREDICTIONS]; /* [samples][counts] */
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

static void put_number(uint64_t i, ls_buf *b) { ls_buf_printf(b, "%llu", (unsigned long long)i); }

/* The number of sample i, and its keys. */
static ls_record_at put_keys(const ls_predicted *d, uint64_t i, ls_buf *keys) {
    ls_record_at at;
    if (d->pairs) {
        ls_buf_printf(&keys[0], "%s", ls_rated_pairs_user(d->pairs, i));
        ls_buf_printf(&keys[1], "%s", ls_rated_pairs_item(d->pairs, i));
        i = ls_gaps_record(&d->pairs->gaps, i);
        return (ls_record_at){i, i};
    }
    if (d->p->is_text) {
        at = ls_texts_record(&d->texts, i);
        ls_buf_printf(&keys[0], "%s", ls_texts_file(&d->texts, i));
    } else {
        at = ls_samples_record(d->data.samples, i);
        ls_samples_put_name(d->data.samples, i, &keys[0]);
    }
    put_number(at.in_file, &keys[1]);
    return at;
}

/* The row of sample i, the j-th one of the outputs. */
static void add_row(const ls_predicted *d, const ls_predictions *form, uint64_t i, int64_t j,
                    const outputs *o, ls_buf *out) {
    ls_predicted_sample row = {.number = 0};
    bool known = !d->pairs || ls_rated_pairs_is_known(d->pairs, i);
    for (int k = 0; k < o->n && known; k++) row.values[k] = o->values[k] + j * o->counts[k];
    row.number = put_keys(d, i, row.keys).number;
    for (int k = 0; k < LS_PREDICTED_KEYS; k++) ls_buf_append(&row.keys[k], "", 1);
    ls_predictions_add(form, &row, out);
    for (int k = 0; k < LS_PREDICTED_KEYS; k++) ls_buf_free(&row.keys[k]);
}

static ls_status read_sample(const ls_predicted *d, uint64_t i, char *sample, ls_error *e) {
    if (!d->pairs) return ls_dataset_val_sample(&d->data, i, sample, e);
    ls_rated_pairs_sample(d->pairs, i, sample);
    return LS_OK;
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
            s = read_sample(d, i + (uint64_t)j, samples + (size_t)j * nbytes, e);
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
        s = ls_texts_tokens(&d->texts, i, &tokens, e);
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
