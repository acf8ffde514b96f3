/* eval_print.c - see eval_print.h. */
#include "cli/eval_print.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/escape.h"
#include "base/plural.h"
#include "base/print.h"

/* ---- for programs ---- */

static void set_level(ls_json *o, const char *key, const ls_evaluated *m, const ls_evaluation *v) {
    ls_json *level = ls_json_new_object();
    ls_json_set_number(level, "loss", v->loss);
    if (m->has_tokens) ls_json_set_number(level, "perplexity", exp(v->loss));
    if (v->bits_per_byte > 0) ls_json_set_number(level, "bits_per_byte", v->bits_per_byte);
    ls_json *metrics = ls_json_new_object();
    for (int i = 0; i < v->nmetrics; i++)
        ls_json_set_number(metrics, v->metrics[i].name, v->metrics[i].value);
    if (v->nmetrics)
        ls_json_set(level, "metrics", metrics);
    else
        ls_json_free(metrics);
    ls_json_set(o, key, level);
}

static void set_classes(ls_json *o, const ls_confusion_matrix *c) {
    ls_json *classes = ls_json_new_array(), *rows = ls_json_new_array();
    for (int i = 0; i < c->n; i++) {
        ls_class_score s = ls_confusion_score(c, i);
        ls_json *one = ls_json_new_object(), *row = ls_json_new_array();
        if (i < c->nnames)
            ls_json_set_path(one, "class", c->names[i]);
        else
            ls_json_set_integer(one, "class", i);
        ls_json_set_integer(one, "samples", (int64_t)s.samples);
        ls_json_set_number(one, "precision", s.precision);
        ls_json_set_number(one, "recall", s.recall);
        ls_json_set_number(one, "f1", s.f1);
        ls_json_push(classes, one);
        for (int k = 0; k < c->n; k++)
            ls_json_push(row, ls_json_new_integer((int64_t)c->counts[i * c->n + k]));
        ls_json_push(rows, row);
    }
    ls_json_set(o, "classes", classes);
    ls_json_set(o, "confusion", rows);
}

static void print_json(const ls_evaluated *m) {
    ls_json *o = ls_json_new_object();
    ls_json_set_path(o, "checkpoint", m->checkpoint);
    ls_json_set_text(o, "weights", m->ema ? "ema" : "last");
    ls_json_set(o, "data", m->data ? ls_json_new_path(m->data) : ls_json_new_null());
    if (m->reference) ls_json_set_path(o, "reference", m->reference);
    ls_json_set_integer(o, m->has_tokens ? "tokens" : "samples", m->count);
    set_level(o, "model", m, &m->model);
    if (m->has_bigram) set_level(o, "bigram", m, &m->bigram);
    if (m->classes.n) set_classes(o, &m->classes);
    ls_print_json(o);
}

void cli_evaluated_print_json(const ls_evaluated *m, int n) {
    for (int i = 0; i < n; i++) print_json(&m[i]);
}

/* ---- for people ---- */

static void print_level(const char *name, const ls_evaluated *m, const ls_evaluation *v) {
    char loss[LS_LOSS_TEXT];
    ls_print("%-8s loss %s", name, ls_loss_text(v->loss, loss));
    if (m->has_tokens) ls_print(" nats/token, perplexity %.3f", exp(v->loss));
    if (v->bits_per_byte > 0) ls_print(", %.4f bits/byte", v->bits_per_byte);
    ls_buf metrics = {0};
    ls_evaluation_print(v, &metrics);
    ls_print("%s\n", metrics.len ? metrics.data : "");
    ls_buf_free(&metrics);
}

/* Appends on which data the model was measured. */
static void put_data(const ls_evaluated *m, ls_buf *b) {
    long long count = (long long)m->count;
    if (m->reference)
        ls_buf_put(b, "on the %lld pair%s of %s, beside %s", count, ls_plural(count), m->data,
                   m->reference);
    else if (m->unit)
        ls_buf_put(b, "on the %s of %s", m->unit, m->data);
    else if (m->file_tokens)
        ls_buf_put(b, "on %s: %lld of %zu tokens, in whole contexts", m->data, count,
                   m->file_tokens);
    else
        ls_buf_put(b, "%lld %s%s of %s", count, m->has_tokens ? "token" : "sample",
                   ls_plural(count), m->data ? m->data : "the validation part");
    ls_buf_append(b, "", 1);
}

static void print_classes(const ls_confusion_matrix *c) {
    ls_buf b = {0};
    ls_confusion_table(c, &b);
    ls_print_text(b.data, b.len);
    ls_buf_free(&b);
}

static void print_one(const ls_evaluated *m) {
    ls_buf data = {0};
    put_data(m, &data);
    bool begins = strncmp(data.data, "on ", 3) == 0;
    ls_print("%s%s %s\n", m->checkpoint, begins ? "" : ":", data.data);
    ls_buf_free(&data);
    print_level(m->ema ? "average" : "model", m, &m->model);
    if (m->has_bigram) print_level("bigram", m, &m->bigram);
    if (m->classes.n) print_classes(&m->classes);
}

/* The value of the metric of this name. */
static double metric_of(const ls_evaluation *v, const char *name) {
    for (int i = 0; i < v->nmetrics; i++)
        if (strcmp(v->metrics[i].name, name) == 0) return v->metrics[i].value;
    return (double)NAN;
}

static void put_cell(ls_buf *b, int width, double x) {
    char text[LS_LOSS_TEXT];
    if (fabs(x) < 0.01 && x != 0)
        snprintf(text, sizeof text, "%.3g", x);
    else
        ls_loss_text(x, text);
    ls_buf_printf(b, "  %*s", width, isnan(x) ? "-" : text);
}

static int width_of(const char *name) { return strlen(name) > 10 ? (int)strlen(name) : 10; }

static int name_width(const ls_evaluated *m, int n) {
    size_t most = 0;
    for (int i = 0; i < n; i++)
        if (strlen(m[i].checkpoint) > most) most = strlen(m[i].checkpoint);
    return (int)most;
}

static void put_row(const ls_evaluated *m, const ls_evaluation *columns, int width, ls_buf *b) {
    ls_buf_put(b, "%-*s", width, m->checkpoint);
    put_cell(b, 10, m->model.loss);
    if (m->has_tokens) put_cell(b, 10, exp(m->model.loss));
    if (columns->bits_per_byte > 0) put_cell(b, 10, m->model.bits_per_byte);
    for (int i = 0; i < columns->nmetrics; i++) {
        const char *name = columns->metrics[i].name;
        put_cell(b, width_of(name), metric_of(&m->model, name));
    }
    ls_buf_printf(b, "\n");
}

/* The columns are those of the first. */
static void print_table(const ls_evaluated *m, int n) {
    ls_buf data = {0}, b = {0};
    int width = name_width(m, n);
    put_data(m, &data);
    ls_print("%s\n", data.data);
    ls_buf_printf(&b, "%-*s  %10s", width, "", "loss");
    if (m->has_tokens) ls_buf_printf(&b, "  %10s", "perplexity");
    if (m->model.bits_per_byte > 0) ls_buf_printf(&b, "  %10s", "bits/byte");
    for (int i = 0; i < m->model.nmetrics; i++)
        ls_buf_put(&b, "  %*s", width_of(m->model.metrics[i].name), m->model.metrics[i].name);
    ls_buf_printf(&b, "\n");
    for (int i = 0; i < n; i++) put_row(&m[i], &m->model, width, &b);
    ls_print_text(b.data, b.len);
    ls_buf_free(&b);
    ls_buf_free(&data);
}

void cli_evaluated_print(const ls_evaluated *m, int n) {
    if (n == 1)
        print_one(m);
    else
        print_table(m, n);
}
