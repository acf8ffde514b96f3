/* list.c - see list.h. */
#include "networks/list.h"

#include <string.h>

#include "base/mem.h"
#include "networks/layer_table.h"

enum { MOST_TIMES = 1000 };

static ls_value *fail_at(const ls_list_at *at, const ls_yaml_node *n, const char *what,
                         const char *name) {
    ls_list_go(at, n);
    return ls_build_fail(at->m, what, name);
}

/* ---- layers ---- */

static ls_value *unknown_layer(const ls_list_at *at, const ls_yaml_node *n, const char *kind) {
    static const char *const structures[] = {"residual", "repeat"};
    ls_buf all = {0};
    const char *name = NULL;
    for (int i = 0; (name = ls_layer_entry_name(i)); i++) ls_buf_printf(&all, "%s, ", name);
    for (size_t i = 0; i < sizeof structures / sizeof *structures; i++)
        ls_buf_printf(&all, "%s%s", i ? ", " : "", structures[i]);
    ls_list_go(at, n);
    ls_value *v =
        ls_build_fail(at->m, "there is no layer '%.60s'; the layers are %.300s", kind, all.data);
    ls_buf_free(&all);
    return v;
}

static ls_value *build_residual(const ls_list_at *at, const ls_yaml_node *n, ls_value *x) {
    const ls_yaml_node *layers = n, *shortcut = NULL;
    if (n->kind == LS_YAML_MAP) {
        layers = ls_yaml_node_find(n, "layers");
        shortcut = ls_yaml_node_find(n, "shortcut");
        if (n->nitems != (layers != NULL) + (shortcut != NULL)) layers = NULL;
    }
    if (!layers || layers->kind != LS_YAML_LIST || (shortcut && shortcut->kind != LS_YAML_LIST))
        return fail_at(at, n, "%s: a list of layers, or {layers: [...], shortcut: [...]}",
                       "residual");
    ls_list_go(at, n);
    ls_value *y = ls_list_build(at, layers, x);
    if (shortcut) x = ls_list_build(at, shortcut, x);
    ls_list_go(at, n);
    return (ls_add)(at->m, x, y);
}

static ls_value *build_repeat(const ls_list_at *at, const ls_yaml_node *n, ls_value *x) {
    const ls_yaml_node *times = ls_yaml_node_find(n, "times"),
                       *layers = ls_yaml_node_find(n, "layers"),
                       *name = ls_yaml_node_find(n, "name");
    int64_t count = 0;
    bool good = times && layers && times->kind == LS_YAML_TEXT && layers->kind == LS_YAML_LIST &&
                n->nitems == 2 + (name != NULL) && (!name || name->kind == LS_YAML_TEXT);
    if (!good || !ls_option_whole(times->text, &count) || count < 1 || count > MOST_TIMES)
        return fail_at(at, n, "%s: {times: N, layers: [...]}, with N from 1 to 1000", "repeat");
    for (int i = 0; i < (int)count && ls_build_is_good(at->m); i++) {
        ls_list_go(at, n);
        (ls_scope)(at->m, "%s.%d", name ? name->text : "repeat", i);
        x = ls_list_build(at, layers, x);
        ls_scope_end(at->m);
    }
    return x;
}

static ls_value *build_layer(const ls_list_at *at, const ls_yaml_node *item, ls_value *x) {
    const ls_yaml_node *value = NULL;
    const char *kind = item->text;
    if (item->kind == LS_YAML_LIST || (item->kind == LS_YAML_MAP && item->nitems != 1))
        return fail_at(at, item, "%s is 'NAME' or 'NAME: {option: value, ...}'", "a layer");
    if (item->kind == LS_YAML_MAP) {
        value = item->items[0];
        kind = value->key;
    }
    if (value && strcmp(kind, "residual") == 0) return build_residual(at, value, x);
    if (value && strcmp(kind, "repeat") == 0) return build_repeat(at, value, x);
    const ls_layer_entry *entry = ls_layer_entry_find(kind);
    if (!entry) return unknown_layer(at, item, kind);
    _Alignas(16) char options[LS_OPTIONS_NBYTES] = {0};
    ls_options_read(at, &entry->options, value, NULL, options);
    ls_list_go(at, item);
    return entry->add(at->m, x, options);
}

ls_value *ls_list_build(const ls_list_at *at, const ls_yaml_node *list, ls_value *x) {
    for (int i = 0; i < list->nitems && ls_build_is_good(at->m); i++)
        x = build_layer(at, list->items[i], x);
    return ls_build_is_good(at->m) ? x : ls_build_failed(at->m);
}
