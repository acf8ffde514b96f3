/* layer_options.c - see layer_options.h. */
#include "networks/layer_options.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "config/key.h"
#include "model/builder.h"

typedef struct number {
    double value;
    bool is_whole;
} number;

/* A number, or of a flag a word. */
static bool read_number(const char *text, bool is_flag, number *x_p) {
    char *end = NULL;
    int truth = is_flag ? ls_config_truth(text) : -1;
    double v = truth >= 0 ? truth : strtod(text, &end);
    *x_p = (number){v, v == floor(v)};
    return truth >= 0 || (*text && !*end && isfinite(v));
}

static const char *type_name(ls_option_type type) {
    static const char *const names[] = {[LS_OPTION_INT] = "whole number",
                                        [LS_OPTION_INTS] = "whole number",
                                        [LS_OPTION_REAL] = "number",
                                        [LS_OPTION_REALS] = "number",
                                        [LS_OPTION_FLAG] = "on, off, true or false",
                                        [LS_OPTION_VALUE] = "name of a value"};
    return names[type];
}

static bool is_list(const ls_layer_option *o) {
    return o->type == LS_OPTION_INTS || o->type == LS_OPTION_REALS;
}

static void store(const ls_layer_option *o, double x, void *to) {
    if (o->type == LS_OPTION_INT || o->type == LS_OPTION_INTS)
        memcpy(to, &(int64_t){(int64_t)x}, sizeof(int64_t));
    else if (o->type == LS_OPTION_FLAG)
        memcpy(to, &(bool){x != 0}, sizeof(bool));
    else
        memcpy(to, &(float){(float)x}, sizeof(float));
}

static void set_number(const ls_list_at *at, const ls_yaml_node *n, const ls_layer_option *o,
                       void *to) {
    number x = {0};
    bool whole = o->type != LS_OPTION_REAL && o->type != LS_OPTION_REALS;
    ls_list_go(at, n);
    bool flag = o->type == LS_OPTION_FLAG;
    if (n->kind != LS_YAML_TEXT || !read_number(n->text, flag, &x) || (whole && !x.is_whole))
        ls_build_fail(at->m, "option '%s': '%.60s' is no %s", o->name,
                      n->kind == LS_YAML_TEXT ? n->text : "a list or a map", type_name(o->type));
    else if (x.value < o->low || x.value > o->high)
        ls_build_fail(at->m, "option '%s': %.60s is out of range; expected %g to %g", o->name,
                      n->text, o->low, o->high);
    else
        store(o, x.value, to);
}

static void set_value(const ls_list_at *at, const ls_yaml_node *n, const ls_layer_option *o,
                      void *to) {
    ls_list_go(at, n);
    if (n->kind != LS_YAML_TEXT)
        ls_build_fail(at->m, "option '%s': a list or a map is no %s", o->name, type_name(o->type));
    else
        memcpy(to, &(ls_value *){ls_names_get(at, n, n->text)}, sizeof(ls_value *));
}

static void set_option(const ls_list_at *at, const ls_yaml_node *n, const ls_layer_option *o,
                       void *options) {
    char *to = (char *)options + o->offset;
    if (o->type == LS_OPTION_VALUE) {
        set_value(at, n, o, to);
        return;
    }
    if (!is_list(o)) {
        set_number(at, n, o, to);
        return;
    }
    size_t each = o->type == LS_OPTION_INTS ? sizeof(int64_t) : sizeof(float);
    ls_list_go(at, n);
    if (n->kind != LS_YAML_LIST || (size_t)n->nitems > o->most)
        ls_build_fail(at->m, "option '%s': a list of at most %zu numbers is expected", o->name,
                      o->most);
    for (int i = 0; i < n->nitems && ls_build_is_good(at->m); i++)
        set_number(at, n->items[i], o, to + (size_t)i * each);
}

static const ls_layer_option *find_option(const ls_option_list *list, const char *name) {
    for (int i = 0; i < LS_MOST_OPTIONS && list->of[i].name; i++)
        if (strcmp(list->of[i].name, name) == 0) return &list->of[i];
    return NULL;
}

static bool is_among(const char *const *names, const char *name) {
    for (; names && *names; names++)
        if (strcmp(*names, name) == 0) return true;
    return false;
}

static void unknown_option(const ls_list_at *at, const ls_yaml_node *n, const ls_option_list *list,
                           const char *const *others) {
    ls_buf all = {0};
    ls_buf_printf(&all, "name");
    for (; others && *others; others++) ls_buf_printf(&all, ", %s", *others);
    for (int i = 0; i < LS_MOST_OPTIONS && list->of[i].name; i++)
        ls_buf_printf(&all, ", %s", list->of[i].name);
    ls_list_go(at, n);
    ls_build_fail(at->m, "%s has no option '%.60s'; its options are %s", list->kind, n->key,
                  all.data);
    ls_buf_free(&all);
}

/* `value` is that of the only option that can stand alone. */
static bool is_lone(const ls_layer_option *lone, const ls_yaml_node *value) {
    if (!lone) return false;
    return value->kind == LS_YAML_TEXT || (value->kind == LS_YAML_LIST && is_list(lone));
}

void ls_options_read(const ls_list_at *at, const ls_option_list *list, const ls_yaml_node *value,
                     const char *const *others, void *options) {
    const ls_layer_option *lone = list->lone ? find_option(list, list->lone) : NULL;
    for (int i = 0; i < LS_MOST_OPTIONS && list->of[i].name; i++)
        if (list->of[i].usual != 0)
            store(&list->of[i], list->of[i].usual, (char *)options + list->of[i].offset);
    if (!value) return;
    if (is_lone(lone, value)) {
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
        else if (!is_among(others, n->key))
            unknown_option(at, n, list, others);
    }
}

bool ls_option_whole(const char *text, int64_t *x_p) {
    number x = {0};
    bool good = read_number(text, false, &x) && x.is_whole && fabs(x.value) < 9e15;
    if (good) *x_p = (int64_t)x.value;
    return good;
}
