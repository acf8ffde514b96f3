/* results.c - see results.h. */
#include "infer/results.h"

#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/log.h"
#include "base/plural.h"
#include "base/print.h"
#include "report/confusion.h"
#include "report/predictions.h"
#include "report/sheet.h"

enum { MOST_MISTAKES = 64 };

typedef struct mistake {
    uint64_t sample; /* of the validation part */
    double loss;
    int label, predicted;
} mistake;

/* A source of the mistakes' samples, for a contact sheet. */
typedef struct mistakes {
    ls_source source;
    const ls_dataset *data;
    char *const *names; /* [nnames] of the classes */
    int nnames;
    mistake *list; /* [n] */
    size_t n;
} mistakes;

/* The names of the classes that a measure counts; 0: they have none. */
static int find_names(const ls_model *m, const ls_dataset *d, const ls_measure *x,
                      char *const **names_p) {
    const ls_field *label = ls_model_field_at(m, x->layer.field_at[0]);
    return d->samples && label ? ls_source_classes(d->samples->source, label->name, names_p) : 0;
}

/* ---- the matrix ---- */

ls_confusion_matrix ls_results_confusion(const ls_model *m, const ls_dataset *d,
                                         const ls_measure *x, const double *records) {
    ls_confusion_matrix c =
        ls_confusion_of(records + x->at, d->nval, ls_record_size(m), x->classes);
    c.nnames = find_names(m, d, x, &c.names);
    return c;
}

/* ---- mistakes ---- */

/* The highest loss first; NaN before all others. */
static int compare_mistakes(const void *a, const void *b) {
    const mistake *x = a, *y = b;
    bool x_nan = x->loss != x->loss, y_nan = y->loss != y->loss;
    if (x_nan != y_nan) return y_nan - x_nan;
    if (!x_nan && x->loss != y->loss) return x->loss < y->loss ? 1 : -1;
    return (x->sample > y->sample) - (x->sample < y->sample);
}

static void find_mistakes(mistakes *x, const double *records, size_t stride, size_t at) {
    x->list = LS_NEW_ARRAY(mistake, x->data->nval + 1);
    for (uint64_t i = 0; i < x->data->nval; i++, records += stride) {
        const double *pair = records + at;
        if (pair[1] < 0 || (int)pair[0] == (int)pair[1]) continue;
        x->list[x->n++] = (mistake){i, records[LS_RECORD_LOSS], (int)pair[1], (int)pair[0]};
    }
    qsort(x->list, x->n, sizeof *x->list, compare_mistakes);
    if (x->n > MOST_MISTAKES) x->n = MOST_MISTAKES;
}

static ls_status read_mistake(const ls_source *s, uint64_t i, void *sample, ls_error *e) {
    const mistakes *x = (const mistakes *)s;
    return ls_dataset_val_sample(x->data, x->list[i].sample, sample, e);
}

/* "": it has none. */
static const char *class_name(const mistakes *x, int class) {
    return class < x->nnames ? x->names[class] : "";
}

static void put_class(const mistakes *x, int class, ls_buf *out) {
    ls_buf_printf(out, ",%d,", class);
    ls_csv_quote(out, class_name(x, class));
}

/* The number of the sample in its files, and its name there, if it has one. */
static void put_place(const ls_dataset *d, uint64_t i, ls_buf *out) {
    const ls_source *from = NULL;
    ls_buf name = {0};
    uint64_t at = d->samples ? ls_samples_val_at(d->samples, i, &from) : i;
    if (from) ls_source_put_name(from, at, &name);
    if (from) at = ls_source_record(from, at).number;
    ls_buf_printf(out, ",%llu,", (unsigned long long)at);
    ls_csv_quote(out, name.len ? name.data : "");
    ls_buf_free(&name);
}

static ls_status write_list(const mistakes *x, const char *path, ls_error *e) {
    ls_buf text = {0};
    ls_buf_printf(&text, "sample,loss,label,label_name,predicted,predicted_name,record,name\n");
    for (size_t i = 0; i < x->n; i++) {
        const mistake *m = &x->list[i];
        ls_buf_printf(&text, "%llu,%.6g", (unsigned long long)m->sample, m->loss);
        put_class(x, m->label, &text);
        put_class(x, m->predicted, &text);
        put_place(x->data, m->sample, &text);
        ls_buf_printf(&text, "\n");
    }
    ls_status s = ls_file_replace(path, text.data, text.len, e);
    ls_buf_free(&text);
    return s;
}

/* ---- all ---- */

static bool is_written(ls_status s, const char *path, const ls_error *e) {
    if (s != LS_OK) ls_log("%s: can't be written: %s", path, e->msg);
    return s == LS_OK;
}

static const ls_field *image_of(const ls_model *m) {
    for (int i = 0; i < m->ninputs; i++)
        if (ls_field_is_image(&m->inputs[i])) return &m->inputs[i];
    return NULL;
}

static void put_label(const mistakes *x, int class, ls_buf *out) {
    const char *name = class_name(x, class);
    if (*name)
        ls_buf_printf(out, "%s", name);
    else
        ls_buf_printf(out, "%d", class);
}

/* The sheet, with the label of each sample and what the model takes it for. */
static ls_status write_sheet(const mistakes *x, const char *path, ls_error *e) {
    uint64_t *samples = LS_NEW_ARRAY(uint64_t, x->n);
    char **captions = LS_NEW_ARRAY(char *, x->n);
    for (size_t i = 0; i < x->n; i++) {
        ls_buf text = {0};
        samples[i] = i;
        put_label(x, x->list[i].label, &text);
        ls_buf_printf(&text, "\n> ");
        put_label(x, x->list[i].predicted, &text);
        captions[i] = text.data;
    }
    ls_sheet sheet = {&x->source, samples, captions, (int64_t)x->n};
    ls_status s = ls_sheet_write(&sheet, path, ls_file_replace, e);
    for (size_t i = 0; i < x->n; i++) free(captions[i]);
    free(captions);
    free(samples);
    return s;
}

static void write_mistakes(mistakes *x, const ls_field *image, const char *run) {
    ls_error e = {0};
    char *list = ls_format("%s/mistakes.csv", run), *sheet = ls_format("%s/mistakes.svg", run);
    x->source = (ls_source){
        .count = x->n, .nfields = 1, .nbytes = x->data->sample_nbytes, .read = read_mistake};
    x->source.fields[0] = *image;
    bool good = is_written(write_list(x, list, &e), list, &e) &&
                is_written(write_sheet(x, sheet, &e), sheet, &e);
    if (good) ls_print("the worst mistake%s: %s\n", ls_plural((int64_t)x->n), sheet);
    free(list);
    free(sheet);
}

/* The matrix of one measure, by the name of its metric. */
static void write_matrix(const ls_model *model, const ls_dataset *d, const ls_measure *m,
                         const double *records, const char *run) {
    ls_confusion_matrix c = ls_results_confusion(model, d, m, records);
    ls_buf svg = {0};
    ls_error e = {0};
    char *path = ls_format("%s/%s.svg", run, m->name);
    ls_confusion_svg(&c, &svg);
    if (is_written(ls_file_replace(path, svg.data, svg.len, &e), path, &e))
        ls_print("confusion matrix: %s\n", path);
    free(path);
    ls_buf_free(&svg);
    free(c.counts);
}

void ls_results_write(const ls_model *m, const ls_dataset *d, const double *records,
                      const char *run) {
    size_t stride = ls_record_size(m);
    const ls_measure *first = NULL;
    for (int i = 0; records && i < m->nmeasures; i++) {
        if (m->measures[i].kind != LS_MEASURE_CONFUSION) continue;
        if (!first) first = &m->measures[i];
        write_matrix(m, d, &m->measures[i], records, run);
    }
    const ls_field *image = image_of(m);
    mistakes x = {.data = d};
    if (first && image) {
        x.nnames = find_names(m, d, first, &x.names);
        find_mistakes(&x, records, stride, first->at);
    }
    if (x.n) write_mistakes(&x, image, run);
    free(x.list);
}
