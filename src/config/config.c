/* config.c - see config.h: reading configs, and setting single keys. */
#include "config/config.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/intern.h"
#include "base/log.h"
#include "base/utf8.h"
#include "base/yaml.h"
#include "config/keys.h"
#include "config/own.h"
#include "config/phases.h"
#include "config/suggest.h"

_Static_assert((int)LS_NCONFIG_KEYS <= (int)LS_CONFIG_MOST_KEYS,
               "each key has a place in `written`");

static int64_t *integer_at(ls_config *c, const ls_config_key *k) {
    return (int64_t *)(void *)((char *)c + k->offset);
}
static int *choice_at(ls_config *c, const ls_config_key *k) {
    return (int *)(void *)((char *)c + k->offset);
}
static double *real_at(ls_config *c, const ls_config_key *k) {
    return (double *)(void *)((char *)c + k->offset);
}
static ls_config_span *span_at(ls_config *c, const ls_config_key *k) {
    return (ls_config_span *)(void *)((char *)c + k->offset);
}
static const char **text_at(ls_config *c, const ls_config_key *k) {
    return (const char **)(void *)((char *)c + k->offset);
}

void ls_config_defaults(ls_config *c) {
    *c = (ls_config){0};
    const ls_config_key *k = NULL;
    for (int i = 0; (k = ls_config_key_at(i)); i++) {
        if (k->type == LS_KEY_INTEGER) *integer_at(c, k) = k->whole[LS_KEY_USUAL];
        if (k->type == LS_KEY_CHOICE) *choice_at(c, k) = (int)k->whole[LS_KEY_USUAL];
        if (k->type == LS_KEY_REAL) *real_at(c, k) = k->real[LS_KEY_USUAL];
        if (k->type == LS_KEY_SPAN) span_at(c, k)->n = k->real[LS_KEY_USUAL];
        if (ls_config_key_is_text(k)) *text_at(c, k) = "";
    }
    for (int i = 0; i < LS_OWN_TEXTS; i++) c->own.texts[i] = "";
    ls_config_own_defaults(c);
}

/* ---- keys ---- */

static ls_status group_alone(const char *where, const char *name, ls_error *e) {
    ls_buf groups = {0};
    ls_config_key_list_groups(&groups);
    ls_status s =
        ls_fail(e, LS_EINVAL,
                "%.300s: '%.60s' is a group, not a key; set keys in it, e.g. train.steps, "
                "or remove it (the groups are %s)",
                where, name, groups.data);
    ls_buf_free(&groups);
    return s;
}

static ls_status not_maps(const char *where, const ls_config_key *k, ls_error *e) {
    return ls_fail(e, LS_EINVAL, "%.300s: '%.60s' is a list of maps: [{key: value, ...}, ...]",
                   where, k->name);
}

static ls_status unknown_key(const char *where, const char *name, ls_error *e) {
    if (ls_config_key_is_group(name)) return group_alone(where, name, e);
    const char *dot = strrchr(name, '.');
    char *above = ls_format("%.*s", dot ? (int)(dot - name) : 0, name);
    const ls_config_key *k = ls_config_key_find(above);
    free(above);
    if (k && k->type == LS_KEY_MAPS) return not_maps(where, k, e);
    const char *names[LS_NCONFIG_KEYS + LS_OWN_NUMBERS];
    int n = 0;
    for (; (k = ls_config_key_at(n)); n++) names[n] = k->name;
    const char *meant = ls_config_suggest(name, names, n);
    return ls_fail(e, LS_EINVAL,
                   "%.300s: unknown key '%.60s'%s%s%s 'lockstep help config' lists all", where,
                   name, meant ? "; did you mean '" : ";", meant ? meant : "", meant ? "'?" : "");
}

/* ---- values ---- */

static ls_status range_failed(const char *where, const ls_config_key *k, const char *value,
                              ls_error *e) {
    char range[LS_KEY_RANGE];
    ls_config_key_write_range(k, range);
    return ls_fail(e, LS_EINVAL, "%s: %s: %.60s is out of range; expected %s", where, k->name,
                   value, range);
}

static ls_status not_a_number(const char *where, const ls_config_key *k, const char *value,
                              const char *what, ls_error *e) {
    char range[LS_KEY_RANGE];
    ls_config_key_write_range(k, range);
    return ls_fail(e, LS_EINVAL, "%s: %s: '%.60s' is not a %s; expected %s", where, k->name, value,
                   what, range);
}

static ls_status set_integer(ls_config *c, const ls_config_key *k, const char *where,
                             const char *value, ls_error *e) {
    char *end = NULL;
    errno = 0;
    if (k->choices && strcmp(value, k->choices[0]) == 0) {
        *integer_at(c, k) = LS_AUTO;
        return LS_OK;
    }
    long long v = strtoll(value, &end, 10);
    bool number = *value && !*end && strspn(value, "+-0123456789") == strlen(value);
    if (!number) return not_a_number(where, k, value, "whole number", e);
    if (errno || v < k->whole[LS_KEY_LOW] || v > k->whole[LS_KEY_HIGH])
        return range_failed(where, k, value, e);
    *integer_at(c, k) = v;
    return LS_OK;
}

static ls_status set_real(ls_config *c, const ls_config_key *k, const char *where,
                          const char *value, ls_error *e) {
    char *end = NULL;
    double v = strtod(value, &end);
    bool number = *value && !*end && strspn(value, "+-.0123456789eE") == strlen(value);
    if (!number) return not_a_number(where, k, value, "number", e);
    if (!isfinite(v) || v < k->real[LS_KEY_LOW] || v > k->real[LS_KEY_HIGH])
        return range_failed(where, k, value, e);
    *real_at(c, k) = v;
    return LS_OK;
}

/* "100", "2000 samples", "0.5 epochs", "auto": steps and samples are whole. */
static ls_status set_span(ls_config *c, const ls_config_key *k, const char *where,
                          const char *value, ls_error *e) {
    char *end = NULL;
    if (k->choices && strcmp(value, k->choices[0]) == 0) {
        *span_at(c, k) = (ls_config_span){.n = LS_AUTO};
        return LS_OK;
    }
    double v = strtod(value, &end);
    const char *unit = end + strspn(end, " ");
    int u = 0;
    while (ls_config_span_units[u] && strcmp(ls_config_span_units[u], unit) != 0) u++;
    bool number = end > value && strspn(value, "+-.0123456789eE") >= (size_t)(end - value);
    bool whole = u == LS_SPAN_EPOCHS || v == floor(v);
    if (!number || (*unit && !ls_config_span_units[u]) || !whole)
        return ls_fail(e, LS_EINVAL,
                       "%s: %s: '%.60s' is neither a number of steps nor a text such as \"2000 "
                       "samples\" or \"0.5 epochs\"",
                       where, k->name, value);
    if (!isfinite(v) || v < k->real[LS_KEY_LOW] || v > k->real[LS_KEY_HIGH])
        return range_failed(where, k, value, e);
    *span_at(c, k) = (ls_config_span){v, *unit ? u : LS_SPAN_STEPS};
    return LS_OK;
}

int ls_config_truth(const char *word) {
    static const char *const words[] = {"off", "on", "false", "true"};
    for (int i = 0; i < 4; i++)
        if (strcmp(word, words[i]) == 0) return i % 2;
    return -1;
}

/* Where a key may be on or off, YAML's true and false are these, too. */
static const char *word_of(const ls_config_key *k, const char *value) {
    bool on = false, off = false;
    int truth = ls_config_truth(value);
    for (int i = 0; k->choices[i]; i++) {
        on = on || strcmp(k->choices[i], "on") == 0;
        off = off || strcmp(k->choices[i], "off") == 0;
    }
    return on && off && truth >= 0 ? (truth ? "on" : "off") : value;
}

static ls_status set_choice(ls_config *c, const ls_config_key *k, const char *where,
                            const char *value, ls_error *e) {
    ls_buf list = {0};
    value = word_of(k, value);
    for (int i = 0; k->choices[i]; i++) {
        if (strcmp(k->choices[i], value) == 0) {
            *choice_at(c, k) = i;
            ls_buf_free(&list);
            return LS_OK;
        }
        ls_buf_printf(&list, "%s%s", i ? ", " : "", k->choices[i]);
    }
    ls_status s =
        ls_fail(e, LS_EINVAL, "%s: %s: '%.60s' is not one of %s", where, k->name, value, list.data);
    ls_buf_free(&list);
    return s;
}

static ls_status set_text(ls_config *c, const ls_config_key *k, const char *where,
                          const char *value, ls_error *e) {
    size_t size = k->type == LS_KEY_TEXT ? LS_CONFIG_TEXT : LS_CONFIG_TREE;
    if (strlen(value) >= size)
        return ls_fail(e, LS_EINVAL, "%s: %s: is longer than %zu bytes", where, k->name, size - 1);
    if (!ls_utf8_is_valid(value, strlen(value))) /* else it could not be written as YAML */
        return ls_fail(e, LS_EINVAL, "%s: %s: is not UTF-8", where, k->name);
    *text_at(c, k) = ls_intern(value);
    return LS_OK;
}

ls_status ls_config_key_set(ls_config *c, const ls_config_key *k, const char *where,
                            const char *value, ls_error *e) {
    switch (k->type) {
    case LS_KEY_INTEGER: return set_integer(c, k, where, value, e);
    case LS_KEY_REAL: return set_real(c, k, where, value, e);
    case LS_KEY_CHOICE: return set_choice(c, k, where, value, e);
    case LS_KEY_SPAN: return set_span(c, k, where, value, e);
    case LS_KEY_TEXT:
    case LS_KEY_MAPS:
    case LS_KEY_TREE:
    case LS_KEY_LIST: break;
    }
    return set_text(c, k, where, value, e);
}

/* Keys of programs always act. */
static void mark_written(ls_config *c, const ls_config_key *k) {
    int i = ls_config_key_index(ls_config_key_find(k->name));
    if (i < LS_NCONFIG_KEYS) c->written[i] = LS_WRITTEN;
}

static bool is_tree(const char *key) { return ls_config_key_find_tree(key) != NULL; }

/* `where` is "path:line" or "--set". */
static ls_status set_tree(ls_config *c, const ls_config_key *k, const char *where,
                          const ls_yaml_item *item, ls_error *e) {
    ls_config_tree *tree = (ls_config_tree *)(void *)text_at(c, k);
    const char *slash = strrchr(where, '/'), *name = slash ? slash + 1 : where;
    const char *colon = strrchr(name, ':');
    snprintf(tree->file, sizeof tree->file, "%.*s", colon ? (int)(colon - name) : 60, name);
    tree->line = item->line;
    if (!*item->value) *tree = LS_CONFIG_NO_TREE;
    LS_TRY(set_text(c, k, where, item->value, e));
    if (tree == &c->data.missing_by) c->data.missing = LS_MISSING_REFUSE;
    return tree == &c->train.phased ? ls_config_read_phases(c, where, e) : LS_OK;
}

/* Of a key that is not a tree. */
static ls_status set_value(ls_config *c, const ls_config_key *k, const char *where,
                           const char *value, ls_error *e) {
    LS_TRY(ls_config_key_set(c, k, where, value, e));
    const void *at = (const char *)c + k->offset;
    if (at == &c->train.batch) ls_config_set_batch(c, c->train.batch);
    if (at == &c->model.layers) c->model.list = LS_CONFIG_NO_TREE;
    if (at == &c->data.missing) c->data.missing_by = LS_CONFIG_NO_TREE;
    if (at == &c->parallel.mesh_data || at == &c->parallel.mesh_pipe ||
        at == &c->parallel.mesh_tensor || at == &c->parallel.mesh_context ||
        at == &c->parallel.mesh_expert)
        c->parallel.mesh = LS_MESH_GIVEN; /* a key `parallel.mesh` comes after these */
    return LS_OK;
}

static ls_status set_item(ls_config *c, const ls_config_key *k, const char *where,
                          const ls_yaml_item *item, ls_error *e) {
    mark_written(c, k);
    if (k->type == LS_KEY_TREE) return set_tree(c, k, where, item, e);
    if (item->is_list && k->type != LS_KEY_LIST && k->type != LS_KEY_MAPS)
        return ls_fail(e, LS_EINVAL, "%.300s: '%.60s' is a list; a single value is expected", where,
                       item->key);
    if (!*item->value && item->has_maps)
        return ls_fail(e, LS_EINVAL, "%.300s: '%.60s' has an empty map", where, k->name);
    if (*item->value && item->has_maps != (k->type == LS_KEY_MAPS))
        return k->type == LS_KEY_MAPS
                   ? not_maps(where, k, e)
                   : ls_fail(e, LS_EINVAL, "%.300s: '%.60s' is a list of texts; it has maps", where,
                             k->name);
    return set_value(c, k, where, item->value, e);
}

/* Sets a list that is written as in YAML: "[a, b]". */
static ls_status set_list(ls_config *c, const ls_config_key *k, const char *value, ls_error *e) {
    ls_buf text = {0};
    ls_yaml y = {0};
    ls_buf_printf(&text, "%s: %s", k->name, value);
    ls_status s = ls_yaml_parse_lists(&text, "--set", is_tree, &y, e);
    if (s == LS_OK && y.nitems != 1)
        s = ls_fail(e, LS_EINVAL, "--set: %s: other keys follow the list", k->name);
    else if (s == LS_OK)
        s = set_item(c, k, "--set", &y.items[0], e);
    ls_yaml_free(&y);
    ls_buf_free(&text);
    return s;
}

/* ---- reading ---- */

static unsigned char *written_at(ls_config *c, const char *key) {
    return &c->written[ls_config_key_index(ls_config_key_find(key))];
}

static ls_status apply(ls_config *c, const char *path, const ls_yaml *y, ls_error *e) {
    int lines[LS_NCONFIG_KEYS + LS_OWN_NUMBERS] = {
        0}; /* the line of each key that was read; 0: none */
    for (size_t i = 0; i < y->nitems; i++) {
        const ls_yaml_item *item = &y->items[i];
        char where[LS_CONFIG_TEXT];
        snprintf(where, sizeof where, "%.900s:%d", path, item->line);
        const ls_config_key *k =
            item->is_tree ? ls_config_key_find_tree(item->key) : ls_config_key_find(item->key);
        if (!k && item->is_list && ls_config_key_is_group(item->key))
            return ls_fail(e, LS_EINVAL, "%.300s: '%.60s' is a list; a single value is expected",
                           where, item->key);
        if (!k && c->model.kind == LS_MODEL_PROGRAM && !ls_config_program()) {
            ls_config_owner o = ls_config_read_owner(path);
            return ls_fail(e, LS_EINVAL,
                           "%.300s: '%.60s' is a key of the program that this config is of "
                           "(model.kind is program); start that program%s%s",
                           where, item->key, *o.name ? ", " : "", o.name);
        }
        if (!k) return unknown_key(where, item->key, e);
        int *line = &lines[ls_config_key_index(ls_config_key_find(item->key))];
        if (*line)
            return ls_fail(e, LS_EINVAL, "%.300s: '%.60s' occurs twice; first in line %d", where,
                           item->key, *line);
        *line = item->line;
        LS_TRY(set_item(c, k, where, item, e));
    }
    return LS_OK;
}

/* A file that names most keys was written by the program: nobody asks for each of them. */
static void settle_whole(ls_config *c, size_t nitems) {
    for (int i = 0; 2 * nitems > LS_NCONFIG_KEYS && i < LS_NCONFIG_KEYS; i++)
        if (c->written[i]) c->written[i] = LS_SAVED;
}

static bool is_named_yaml(const char *path) {
    const char *dot = strrchr(path, '.');
    return dot && (strcmp(dot, ".yaml") == 0 || strcmp(dot, ".yml") == 0);
}

/* Users often pass the text instead of a config that names it. */
static ls_status not_a_config(const char *path, ls_status s, ls_error *e) {
    char why[sizeof e->msg];
    if (!e || s != LS_EINVAL || is_named_yaml(path)) return s;
    snprintf(why, sizeof why, "%.380s", e->msg);
    return ls_fail(e, s, "%s; a config is a YAML file; a text belongs in its key data.path", why);
}

ls_status ls_config_read(const char *path, ls_config *c_p, ls_error *e) {
    ls_yaml y;
    ls_status s = ls_yaml_read_lists(path, is_tree, &y, e);
    if (s != LS_OK) return not_a_config(path, s, e);
    ls_config_defaults(c_p);
    s = apply(c_p, path, &y, e);
    if (s == LS_OK && c_p->train.epochs > 0 && !*written_at(c_p, "train.steps"))
        c_p->train.steps = 0;
    if (s == LS_OK) settle_whole(c_p, y.nitems);
    ls_yaml_free(&y);
    return s;
}

/* train.epochs takes the place of train.steps, and train.steps that of train.epochs. */
static void replace_length(ls_config *c, const char *set) {
    bool epochs = strcmp(set, "train.epochs") == 0 && c->train.epochs > 0;
    if (epochs) {
        *written_at(c, "train.steps") = LS_NOT_WRITTEN;
        c->train.steps = 0;
    } else if (strcmp(set, "train.steps") == 0) {
        *written_at(c, "train.epochs") = LS_NOT_WRITTEN;
        c->train.epochs = 0;
    } else if (strcmp(set, "train.epochs") == 0 && c->train.steps == 0) {
        c->train.steps = ls_config_key_find("train.steps")->whole[LS_KEY_USUAL];
        ls_log("train.epochs 0: the run takes train.steps, %lld, the default",
               (long long)c->train.steps);
    }
}

ls_status ls_config_set(ls_config *c, const char *assignment, ls_error *e) {
    const char *equals = strchr(assignment, '=');
    if (!equals)
        return ls_fail(e, LS_EINVAL,
                       "--set: '%.100s' has no '='; write key=value, e.g. train.steps=50",
                       assignment);
    char *name = ls_format("%.*s", (int)(equals - assignment), assignment);
    const ls_config_key *k = ls_config_key_find(name), *tree = ls_config_key_find_tree(name);
    if (tree && strchr("[{", equals[1]) && equals[1]) k = tree;
    bool is_list = k && (k->type == LS_KEY_MAPS || k->type == LS_KEY_TREE ||
                         (k->type == LS_KEY_LIST && equals[1] == '['));
    ls_status s = LS_OK;
    if (!k)
        s = unknown_key("--set", name, e);
    else if (is_list)
        s = set_list(c, k, equals + 1, e);
    else
        s = set_value(c, k, "--set", equals + 1, e);
    if (k) mark_written(c, k);
    if (s == LS_OK) replace_length(c, k->name);
    free(name);
    return s;
}
