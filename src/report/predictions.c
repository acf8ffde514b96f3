/* predictions.c - see predictions.h. */
#include "report/predictions.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/escape.h"
#include "base/json.h"
#include "base/utf8.h"

/* A name that is not UTF-8 is escaped, as in JSON (ls_json_new_path()). */
static void put_text(ls_buf *b, const char *text) {
    size_t n = strlen(text);
    if (ls_utf8_is_valid(text, n))
        ls_buf_append(b, text, n);
    else
        ls_buf_escape(b, LS_ESCAPE_LINE, text, n);
}

void ls_csv_quote(ls_buf *b, const char *text) {
    ls_buf all = {0};
    put_text(&all, text);
    ls_buf_printf(b, "\"");
    for (size_t i = 0; i < all.len; i++)
        ls_buf_printf(b, all.data[i] == '"' ? "\"\"" : "%c", all.data[i]);
    ls_buf_printf(b, "\"");
    ls_buf_free(&all);
}

void ls_csv_put(ls_buf *b, const char *text) {
    size_t n = strlen(text);
    if (strpbrk(text, ",\"\r\n") || (n && (text[0] == ' ' || text[n - 1] == ' ')))
        ls_csv_quote(b, text);
    else
        put_text(b, text);
}

ls_status ls_predictions_check(const ls_predictions *p, ls_error *e) {
    bool some = false;
    for (int k = 0; k < p->n; k++) {
        some = some || p->list[k].kind == LS_CLASSES;
        if (p->list[k].kind == LS_CLASSES && p->list[k].rows > 1 && p->top > 1)
            return ls_fail(e, LS_EINVAL,
                           "--top: a sample has %lld labels of '%s'; the best class of each is "
                           "written",
                           (long long)p->list[k].rows, p->list[k].name);
    }
    if (some || p->top == 1) return LS_OK;
    return ls_fail(e, LS_EINVAL, "--top: the model predicts no classes");
}

/* ---- classes ---- */

int64_t ls_top_of(const float *x, int64_t n, int64_t k, int64_t *top) {
    int64_t have = 0;
    for (int64_t i = 0; i < n; i++) {
        int64_t at = have;
        while (at > 0 && (x[i] > x[top[at - 1]] || (isnan(x[top[at - 1]]) && !isnan(x[i])))) at--;
        if (at >= k) continue;
        if (have < k) have++;
        memmove(top + at + 1, top + at, (size_t)(have - at - 1) * sizeof *top);
        top[at] = i;
    }
    return have;
}

static int64_t top_of(const ls_predictions *p, const ls_predictor_output *o) {
    return p->top < o->width ? p->top : o->width;
}

static void put_class(const ls_predictions *p, const ls_predictor_output *o, int64_t class,
                      ls_buf *b) {
    ls_buf bytes = {0}; /* of a token: perhaps of a part of a character */
    if (class < o->nclasses)
        ls_buf_printf(&bytes, "%s", o->classes[class]);
    else if (p->put_class)
        p->put_class(p->arg, class, &bytes);
    else
        ls_buf_printf(&bytes, "%lld", (long long)class);
    ls_utf8_put(b, bytes.data, bytes.len);
    ls_buf_append(b, "", 1); /* ends the text */
    ls_buf_free(&bytes);
}

/* ---- CSV ---- */

static void put_number(ls_buf *b, float x) { ls_buf_printf(b, "%.9g", (double)x); }

/* Has each class of the output a number beside it? */
static bool has_chances(const ls_predictor_output *o) {
    return o->kind == LS_CLASSES && o->rows == 1;
}

/* The classes or numbers that are written of it. */
static int64_t count_of(const ls_predictions *p, const ls_predictor_output *o) {
    return has_chances(o) ? top_of(p, o) : o->kind == LS_CLASSES ? o->rows : o->count;
}

static void begin_output(const ls_predictions *p, const ls_predictor_output *o, ls_buf *b) {
    const char *value = p->logits ? "logit" : "probability";
    ls_buf name = {0};
    bool classes = has_chances(o);
    int64_t n = count_of(p, o);
    for (int64_t i = 0; i < n; i++) {
        name.len = 0;
        ls_buf_printf(&name, "%s", o->name);
        if (n > 1) ls_buf_printf(&name, "_%lld", (long long)(classes ? i + 1 : i));
        ls_buf_printf(b, ",");
        ls_csv_put(b, name.data);
        if (!classes) continue;
        ls_buf_printf(&name, "_%s", value);
        ls_buf_printf(b, ",");
        ls_csv_put(b, name.data);
    }
    ls_buf_free(&name);
}

void ls_predictions_begin(const ls_predictions *p, ls_buf *b) {
    if (p->json) return;
    ls_buf_printf(b, "sample");
    for (int i = 0; i < p->nkeys; i++) ls_buf_printf(b, ",%s", p->keys[i].name);
    for (int k = 0; k < p->n; k++) begin_output(p, &p->list[k], b);
    ls_buf_printf(b, "\n");
}

static void add_classes(const ls_predictions *p, const ls_predictor_output *o, const float *x,
                        ls_buf *b) {
    int64_t top[LS_PREDICTED_TOP], n = o->rows > 1 ? 1 : top_of(p, o);
    ls_buf name = {0};
    for (int64_t r = 0; r < o->rows; r++, x += o->width) {
        ls_top_of(x, o->width, n, top);
        for (int64_t i = 0; i < n; i++) {
            name.len = 0;
            put_class(p, o, top[i], &name);
            ls_buf_printf(b, ",");
            ls_csv_put(b, name.data);
            if (o->rows > 1) continue;
            ls_buf_printf(b, ",");
            put_number(b, x[top[i]]);
        }
    }
    ls_buf_free(&name);
}

static void add_numbers(const ls_predictor_output *o, const float *x, ls_buf *b) {
    for (int64_t i = 0; i < o->count; i++) {
        ls_buf_printf(b, ",");
        put_number(b, x[i]);
    }
}

static void add_nothing(const ls_predictions *p, const ls_predictor_output *o, ls_buf *b) {
    int64_t n = count_of(p, o) * (has_chances(o) ? 2 : 1);
    for (int64_t i = 0; i < n; i++) ls_buf_append(b, ",", 1);
}

static void add_csv(const ls_predictions *p, const ls_predicted_sample *s, ls_buf *b) {
    ls_buf_printf(b, "%llu", (unsigned long long)s->number);
    for (int i = 0; i < p->nkeys; i++) {
        ls_buf_printf(b, ",");
        ls_csv_put(b, s->keys[i].data);
    }
    for (int k = 0; k < p->n; k++) {
        const ls_predictor_output *o = &p->list[k];
        if (!s->values[k])
            add_nothing(p, o, b);
        else if (o->kind == LS_CLASSES)
            add_classes(p, o, s->values[k], b);
        else
            add_numbers(o, s->values[k], b);
    }
    ls_buf_printf(b, "\n");
}

/* ---- JSON ---- */

static ls_json *class_json(const ls_predictions *p, const ls_predictor_output *o, int64_t class) {
    ls_buf name = {0};
    put_class(p, o, class, &name);
    bool is_number = class >= o->nclasses && !p->put_class;
    ls_json *j =
        is_number ? ls_json_new_integer(class) : ls_json_new_bytes(name.data, name.len - 1);
    ls_buf_free(&name);
    return j;
}

static ls_json *classes_json(const ls_predictions *p, const ls_predictor_output *o,
                             const float *x) {
    int64_t top[LS_PREDICTED_TOP], n = o->rows > 1 ? 1 : top_of(p, o);
    ls_json *list = ls_json_new_array();
    for (int64_t r = 0; r < o->rows; r++, x += o->width) {
        ls_top_of(x, o->width, n, top);
        for (int64_t i = 0; i < n; i++) {
            ls_json *class = class_json(p, o, top[i]), *one = class;
            if (o->rows == 1) {
                one = ls_json_new_object();
                ls_json_set(one, "class", class);
                ls_json_set_number(one, p->logits ? "logit" : "probability", (double)x[top[i]]);
            }
            ls_json_push(list, one);
        }
    }
    return list;
}

static ls_json *numbers_json(const ls_predictor_output *o, const float *x) {
    if (o->count == 1) return ls_json_new_number((double)*x);
    ls_json *list = ls_json_new_array();
    for (int64_t i = 0; i < o->count; i++) ls_json_push(list, ls_json_new_number((double)x[i]));
    return list;
}

static ls_json *key_json(const ls_predicted_key *k, const char *text) {
    return k->is_number ? ls_json_new_integer(strtoll(text, NULL, 10)) : ls_json_new_path(text);
}

static void add_json(const ls_predictions *p, const ls_predicted_sample *s, ls_buf *b) {
    ls_json *o = ls_json_new_object();
    ls_json_set_integer(o, "sample", (int64_t)s->number);
    for (int i = 0; i < p->nkeys; i++)
        ls_json_set(o, p->keys[i].name, key_json(&p->keys[i], s->keys[i].data));
    for (int k = 0; k < p->n; k++) {
        const ls_predictor_output *x = &p->list[k];
        ls_json *key = ls_json_new_path(x->name);
        ls_json_set(o, ls_json_text(key),
                    !s->values[k]           ? ls_json_new_null()
                    : x->kind == LS_CLASSES ? classes_json(p, x, s->values[k])
                                            : numbers_json(x, s->values[k]));
        ls_json_free(key);
    }
    ls_json_write(o, 0, b);
    ls_buf_printf(b, "\n");
    ls_json_free(o);
}

void ls_predictions_add(const ls_predictions *p, const ls_predicted_sample *s, ls_buf *b) {
    (p->json ? add_json : add_csv)(p, s, b);
}
