/* scales.c - see scales.h. */
#include "networks/scales.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/intern.h"
#include "base/mem.h"
#include "base/yaml.h"
#include "networks/losses.h"
#include "networks/model_metrics.h"

enum { MOST_NUMBERS = 1 << 20 };

/* ---- the list ---- */

ls_field_scale *ls_scales_add(ls_scales *s, const char *field, int64_t n) {
    s->list = ls_grow(s->list, (size_t)s->n, sizeof *s->list);
    ls_field_scale *of = &s->list[s->n++];
    *of = (ls_field_scale){.n = n,
                           .mean = LS_NEW_ARRAY(float, (size_t)n),
                           .deviation = LS_NEW_ARRAY(float, (size_t)n)};
    snprintf(of->field, sizeof of->field, "%s", field);
    return of;
}

const ls_field_scale *ls_scales_find(const ls_scales *s, const char *field) {
    for (int i = 0; i < s->n; i++)
        if (strcmp(s->list[i].field, field) == 0) return &s->list[i];
    return NULL;
}

void ls_scales_free(ls_scales *s) {
    for (int i = 0; i < s->n; i++) {
        free(s->list[i].mean);
        free(s->list[i].deviation);
    }
    free(s->list);
    *s = (ls_scales){0};
}

/* ---- reading ---- */

static bool read_number(const ls_yaml_node *n, float *x_p) {
    const char *text = n->kind == LS_YAML_TEXT ? n->text : "";
    char *end = NULL;
    *x_p = strtof(text, &end);
    bool good = *text && !*end && strspn(text, "+-.0123456789eE") == strlen(text);
    return good && fabsf(*x_p) <= LS_SCALE_MOST;
}

static int64_t count_of(const ls_yaml_node *n) {
    if (!n || n->kind == LS_YAML_MAP) return 0;
    return n->kind == LS_YAML_LIST ? n->nitems : 1;
}

/* A number, or a list of them. */
static bool read_numbers(const ls_yaml_node *n, float *to) {
    if (n->kind != LS_YAML_LIST) return read_number(n, to);
    for (int i = 0; i < n->nitems; i++)
        if (!read_number(n->items[i], &to[i])) return false;
    return true;
}

static bool read_scale(const ls_yaml_node *n, ls_scales *s) {
    if (n->kind != LS_YAML_MAP || n->nitems != 2 || strlen(n->key) >= LS_FIELD_NAME) return false;
    const ls_yaml_node *mean = ls_yaml_node_find(n, "mean"),
                       *deviation = ls_yaml_node_find(n, "deviation");
    int64_t count = count_of(mean);
    if (count < 1 || count > MOST_NUMBERS || count_of(deviation) != count) return false;
    ls_field_scale *of = ls_scales_add(s, n->key, count);
    bool good = read_numbers(mean, of->mean) && read_numbers(deviation, of->deviation);
    for (int64_t i = 0; good && i < count; i++) {
        good = of->deviation[i] >= 0;
        if (of->deviation[i] < LS_SCALE_LEAST) of->deviation[i] = 0;
    }
    return good;
}

static ls_status fail(const ls_config_tree *t, ls_error *e) {
    return ls_fail(e, LS_EINVAL,
                   "%s:%d: data.normalize is auto, off, {mean: [0.28], deviation: [0.35]} for the "
                   "channels of pixels from 0 to 1, with deviations above 0, or the same for each "
                   "field of numbers: {age: {mean: 38.2, deviation: 13.6}}",
                   t->file, t->line);
}

bool ls_scales_are_of_fields(const ls_yaml_node *root) {
    return root->kind == LS_YAML_MAP && root->nitems && root->items[0]->kind == LS_YAML_MAP;
}

ls_status ls_scales_read(const ls_config *c, ls_scales *s_p, ls_error *e) {
    const ls_config_tree *t = &c->data.normalize;
    ls_yaml_node *root = NULL;
    ls_scales s = {0};
    *s_p = s;
    if (*t->text != '{') return LS_OK;
    LS_TRY(ls_yaml_parse_tree(t->text, t->file, t->line, &root, e));
    bool good = true;
    if (ls_scales_are_of_fields(root))
        for (int i = 0; good && i < root->nitems; i++) good = read_scale(root->items[i], &s);
    ls_yaml_node_free(root);
    if (good)
        *s_p = s;
    else
        ls_scales_free(&s);
    return good ? LS_OK : fail(t, e);
}

/* ---- writing ---- */

static void put_numbers(const char *name, const float *x, int64_t n, ls_buf *out) {
    ls_buf_printf(out, "\"%s\": %s", name, n > 1 ? "[" : "");
    for (int64_t i = 0; i < n; i++) ls_buf_printf(out, "%s\"%.9g\"", i ? ", " : "", (double)x[i]);
    ls_buf_printf(out, n > 1 ? "]" : "");
}

void ls_scales_write(const ls_scales *s, ls_config_tree *t) {
    ls_buf out = {0};
    for (int i = 0; i < s->n; i++) {
        const ls_field_scale *of = &s->list[i];
        ls_buf_printf(&out, "%s\"%s\": {", i ? ", " : "{", of->field);
        put_numbers("mean", of->mean, of->n, &out);
        ls_buf_printf(&out, ", ");
        put_numbers("deviation", of->deviation, of->n, &out);
        ls_buf_printf(&out, "}");
    }
    ls_buf_printf(&out, "}");
    t->text = ls_intern(out.data);
    snprintf(t->file, sizeof t->file, "data");
    ls_buf_free(&out);
}

/* ---- what auto scales ---- */

bool ls_scales_are_unsaid(const ls_config *c) {
    return !*c->data.normalize.text && c->model.kind == LS_MODEL_MLP && !ls_config_has_tokens(c) &&
           !ls_config_has_ratings(c) && !ls_config_has_clicks(c);
}

/* The names that predictions are compared with, or weighed by. */
static bool is_compared(const ls_config *c, const ls_losses *losses, const ls_metric_list *metrics,
                        const char *name) {
    bool is = strcmp(c->model.sample_weight, name) == 0;
    for (int i = 0; i < losses->n; i++) is = is || strcmp(losses->list[i].target, name) == 0;
    for (int i = 0; i < metrics->n; i++) {
        const char *target = metrics->list[i].item->target;
        is = is || (target && strcmp(target, name) == 0);
    }
    return is;
}

static bool has_numbers(const ls_field *f) {
    return (f->type == LS_F32 || (f->type == LS_U8 && !ls_field_is_image(f))) && !f->ids;
}

static void choose(const ls_config *c, const ls_losses *losses, const ls_metric_list *metrics,
                   ls_fields *f, int *target_p) {
    int n = 0;
    bool many = f->n > 1; /* the only field is read in any case */
    bool usual = c->model.kind == LS_MODEL_MLP && losses->n == 1 && many;
    const char *target = usual && ls_loss_has_scale(&losses->list[0]) ? losses->list[0].target : "";
    for (int i = 0; i < f->n; i++) {
        const ls_field *field = &f->list[i];
        bool is_target = strcmp(field->name, target) == 0 && field->type == LS_F32;
        bool compared = many && is_compared(c, losses, metrics, field->name);
        if (!is_target && (compared || !has_numbers(field))) continue;
        if (is_target) *target_p = n;
        f->list[n++] = *field;
    }
    f->n = n;
}

ls_status ls_scales_wanted(const ls_config *c, ls_fields *f_p, int *target_p, ls_error *e) {
    ls_losses losses;
    ls_metric_list metrics = {0};
    *target_p = -1;
    LS_TRY(ls_fields_read(&c->model.input, f_p, e));
    LS_TRY(ls_losses_read(c, &losses, e));
    ls_status s = ls_metrics_read(c, &metrics, e);
    if (s == LS_OK) choose(c, &losses, &metrics, f_p, target_p);
    ls_losses_free(&losses);
    ls_metrics_free(&metrics);
    return s;
}
