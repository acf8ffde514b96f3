/* options.c - see options.h. */
#include "networks/options.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "model/builder.h"

void ls_list_go(const ls_list_at *at, const ls_yaml_node *n) {
    (ls_model_at)(at->m, at->file, n->line);
}

typedef struct number {
    double value;
    bool is_whole;
} number;

/* A number, or true or false as 1 and 0. */
static bool read_number(const char *text, number *x_p) {
    char *end = NULL;
    bool word = strcmp(text, "true") == 0 || strcmp(text, "false") == 0;
    double v = word ? *text == 't' : strtod(text, &end);
    *x_p = (number){v, v == floor(v)};
    return word || (*text && !*end && isfinite(v));
}

static const char *type_name(ls_option_type type) {
    static const char *const names[] = {[LS_OPTION_INT] = "whole number",
                                        [LS_OPTION_REAL] = "number",
                                        [LS_OPTION_REALS] = "number",
                                        [LS_OPTION_FLAG] = "true or false"};
    return names[type];
}

static void set_number(const ls_list_at *at, const ls_yaml_node *n, const ls_layer_option *o,
                       void *to) {
    number x = {0};
    bool whole = o->type == LS_OPTION_INT || o->type == LS_OPTION_FLAG;
    ls_list_go(at, n);
    if (n->kind != LS_YAML_TEXT || !read_number(n->text, &x) || (whole && !x.is_whole))
        ls_build_fail(at->m, "option '%s': '%.60s' is no %s", o->name,
                      n->kind == LS_YAML_TEXT ? n->text : "a list or a map", type_name(o->type));
    else if (x.value < o->low || x.value > o->high)
        ls_build_fail(at->m, "option '%s': %.60s is out of range; expected %g to %g", o->name,
                      n->text, o->low, o->high);
    else if (o->type == LS_OPTION_INT)
        memcpy(to, &(int64_t){(int64_t)x.value}, sizeof(int64_t));
    else if (o->type == LS_OPTION_FLAG)
        memcpy(to, &(bool){x.value != 0}, sizeof(bool));
    else
        memcpy(to, &(float){(float)x.value}, sizeof(float));
}

static void set_option(const ls_list_at *at, const ls_yaml_node *n, const ls_layer_option *o,
                       void *options) {
    char *to = (char *)options + o->offset;
    if (o->type != LS_OPTION_REALS) {
        set_number(at, n, o, to);
        return;
    }
    ls_list_go(at, n);
    if (n->kind != LS_YAML_LIST || (size_t)n->nitems > o->most)
        ls_build_fail(at->m, "option '%s': a list of at most %zu numbers is expected", o->name,
                      o->most);
    for (int i = 0; i < n->nitems && ls_build_is_good(at->m); i++)
        set_number(at, n->items[i], o, to + (size_t)i * sizeof(float));
}

static const ls_layer_option *find_option(const ls_option_list *list, const char *name) {
    for (int i = 0; i < LS_MOST_OPTIONS && list->of[i].name; i++)
        if (strcmp(list->of[i].name, name) == 0) return &list->of[i];
    return NULL;
}

static void unknown_option(const ls_list_at *at, const ls_yaml_node *n,
                           const ls_option_list *list) {
    ls_buf all = {0};
    ls_buf_printf(&all, "name");
    for (int i = 0; i < LS_MOST_OPTIONS && list->of[i].name; i++)
        ls_buf_printf(&all, ", %s", list->of[i].name);
    ls_list_go(at, n);
    ls_build_fail(at->m, "%s has no option '%.60s'; its options are %s", list->kind, n->key,
                  all.data);
    ls_buf_free(&all);
}

void ls_options_read(const ls_list_at *at, const ls_option_list *list, const ls_yaml_node *value,
                     const char *other, void *options) {
    const ls_layer_option *lone = list->lone ? find_option(list, list->lone) : NULL;
    if (!value) return;
    if (value->kind == LS_YAML_TEXT && lone) {
        set_option(at, value, lone, options);
        return;
    }
    if (value->kind != LS_YAML_MAP) {
        ls_list_go(at, value);
        ls_build_fail(at->m, "%s: options are a map, {option: value, ...}", list->kind);
        return;
    }
    for (int i = 0; i < value->nitems; i++) {
        const ls_yaml_node *n = value->items[i];
        const ls_layer_option *o = find_option(list, n->key);
        if (strcmp(n->key, "name") == 0 && n->kind == LS_YAML_TEXT)
            *(const char **)options = n->text;
        else if (o)
            set_option(at, n, o, options);
        else if (!other || strcmp(n->key, other) != 0)
            unknown_option(at, n, list);
    }
}

bool ls_option_whole(const char *text, int64_t *x_p) {
    number x = {0};
    bool good = read_number(text, &x) && x.is_whole && fabs(x.value) < 9e15;
    if (good) *x_p = (int64_t)x.value;
    return good;
}
