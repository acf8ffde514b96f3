/* list.c - see list.h. */
#include "networks/list.h"

#include <string.h>

#include "base/mem.h"
#include "base/nearest.h"
#include "networks/layer_table.h"

enum { MOST_TIMES = 1000 };

/* ---- entries ---- */

/* An entry of the list: its kind, and what stands behind it. */
typedef struct entry {
    const ls_yaml_node *item, *value; /* value NULL: `item` is the kind alone */
    const char *kind;                 /* NULL: it is no entry */
    const ls_layer_entry *layer;      /* NULL: a structure, or unknown */
} entry;

static const char *const structures[] = {"residual", "repeat"};
enum { NSTRUCTURES = sizeof structures / sizeof *structures };

static bool is_structure(const char *kind) {
    for (int i = 0; i < NSTRUCTURES; i++)
        if (strcmp(kind, structures[i]) == 0) return true;
    return false;
}

static entry entry_of(const ls_yaml_node *item) {
    entry x = {.item = item, .kind = item->text};
    if (item->kind == LS_YAML_MAP && item->nitems == 1) {
        x.value = item->items[0];
        x.kind = x.value->key;
    }
    if (x.kind) x.layer = ls_layer_entry_find(x.kind);
    return x;
}

static bool reads_several(const ls_layer_entry *l) {
    return l && (l->reads == LS_READS_MANY || l->reads == LS_READS_TWO);
}

/* Option `of`; also the list of a layer that reads several values. NULL: there is none. */
static const ls_yaml_node *of_option(const entry *x) {
    if (!x->value) return NULL;
    if (reads_several(x->layer) && x->value->kind == LS_YAML_LIST) return x->value;
    return ls_yaml_node_find(x->value, "of");
}

static const char *name_of(const ls_yaml_node *value) {
    const ls_yaml_node *name = value ? ls_yaml_node_find(value, "name") : NULL;
    return name && name->kind == LS_YAML_TEXT ? name->text : NULL;
}

/* ---- errors ---- */

static ls_value *fail_at(const ls_list_at *at, const ls_yaml_node *n, const char *what,
                         const char *name) {
    ls_list_go(at, n);
    return ls_build_fail(at->m, what, name);
}

/* Names that a list can have, and the one that may be meant by another one. */
typedef struct known {
    ls_buf all;
    const char *meant; /* NULL: none is near */
} known;

static void note_name(known *k, const char *kind, const char *name) {
    ls_buf_printf(&k->all, "%s%s", k->all.len ? ", " : "", name);
    if (!k->meant && ls_is_near(kind, name)) k->meant = name;
}

static ls_value *unknown_layer(const ls_list_at *at, const ls_yaml_node *n, const char *kind) {
    known k = {0};
    const char *name = NULL;
    for (int i = 0; (name = ls_layer_entry_name(i)); i++) note_name(&k, kind, name);
    for (int i = 0; i < NSTRUCTURES; i++) note_name(&k, kind, structures[i]);
    ls_list_go(at, n);
    ls_value *v = ls_build_fail(at->m, "there is no layer '%.60s'; %s%.380s%s", kind,
                                k.meant ? "did you mean '" : "the layers are ",
                                k.meant ? k.meant : k.all.data, k.meant ? "'?" : "");
    ls_buf_free(&k.all);
    return v;
}

/* The model reads several fields, and the list does not say which one. */
static ls_value *no_input(const ls_list_at *at, const entry *x) {
    ls_buf all = {0};
    for (int i = 0; i < at->names->n; i++)
        ls_buf_printf(&all, "%s%s", i ? ", " : "", at->names->list[i].name);
    ls_list_go(at, x->item);
    ls_value *v = ls_build_fail(at->m,
                                "%s: which value does it read? Name one of %.200s: %s: {of: NAME, "
                                "...}",
                                x->kind, all.data ? all.data : "the fields", x->kind);
    ls_buf_free(&all);
    return v;
}

/* ---- inputs ---- */

/* The value that the entry reads: that of option `of`, or x. */
static ls_value *input_of(const ls_list_at *at, const entry *e, ls_value *x) {
    const ls_yaml_node *of = of_option(e);
    if (!of) return x ? x : no_input(at, e);
    if (of->kind != LS_YAML_TEXT) return fail_at(at, of, "%s: option 'of' is one name", e->kind);
    return ls_names_get(at, of, of->text);
}

static void many_of(const ls_list_at *at, const entry *e, ls_several *in) {
    const ls_yaml_node *of = of_option(e);
    int most = e->layer->reads == LS_READS_TWO ? 2 : LS_SEVERAL;
    if (!of || of->kind != LS_YAML_LIST || of->nitems < 2 || of->nitems > most) {
        fail_at(at, e->item,
                most == 2 ? "%s reads two values: [NAME, NAME]"
                          : "%s reads several values: [NAME, NAME, ...], or {of: [...], ...}, at "
                            "most 64",
                e->kind);
        return;
    }
    for (int i = 0; i < of->nitems && ls_build_is_good(at->m); i++) {
        const ls_yaml_node *n = of->items[i];
        if (n->kind == LS_YAML_TEXT)
            in->of[i] = ls_names_get(at, n, n->text);
        else
            fail_at(at, n, "%s: a name is expected", e->kind);
    }
}

static void find_inputs(const ls_list_at *at, const entry *e, ls_value *x, ls_several *in) {
    const ls_layer_entry *l = e->layer;
    if (l->reads == LS_READS_ONE) in->of[0] = input_of(at, e, x);
    if (reads_several(l)) many_of(at, e, in);
    if (l->reads == LS_READS_NONE && of_option(e))
        fail_at(at, of_option(e), "%s reads no value; option 'of' is not possible", e->kind);
    ls_list_go(at, e->item);
    for (int i = 0; i < LS_SEVERAL && ls_build_is_good(at->m); i++)
        if (in->of[i] && !l->takes_bytes) in->of[i] = ls_names_numbers(at, in->of[i]);
}

/* ---- building ---- */

static ls_value *build_residual(const ls_list_at *at, const entry *e, ls_value *x) {
    const ls_yaml_node *n = e->value, *layers = n, *shortcut = NULL;
    if (n->kind == LS_YAML_MAP) {
        layers = ls_yaml_node_find(n, "layers");
        shortcut = ls_yaml_node_find(n, "shortcut");
        bool has_of = ls_yaml_node_find(n, "of") != NULL, has_name = name_of(n) != NULL;
        if (n->nitems != (layers != NULL) + (shortcut != NULL) + has_of + has_name) layers = NULL;
    }
    if (!layers || layers->kind != LS_YAML_LIST || (shortcut && shortcut->kind != LS_YAML_LIST))
        return fail_at(at, n, "%s: a list of layers, or {layers: [...], shortcut: [...]}",
                       "residual");
    x = input_of(at, e, x);
    ls_list_go(at, n);
    x = ls_names_numbers(at, x);
    ls_value *y = ls_list_build(at, layers, x);
    if (shortcut) x = ls_list_build(at, shortcut, x);
    ls_list_go(at, n);
    y = (ls_add)(at->m, x, y);
    if (name_of(n)) ls_names_add(at, name_of(n), y);
    return y;
}

static ls_value *build_repeat(const ls_list_at *at, const entry *e, ls_value *x) {
    const ls_yaml_node *n = e->value, *times = ls_yaml_node_find(n, "times"),
                       *layers = ls_yaml_node_find(n, "layers"),
                       *name = ls_yaml_node_find(n, "name"), *of = ls_yaml_node_find(n, "of");
    int64_t count = 0;
    bool good = times && layers && times->kind == LS_YAML_TEXT && layers->kind == LS_YAML_LIST &&
                n->nitems == 2 + (name != NULL) + (of != NULL) &&
                (!name || name->kind == LS_YAML_TEXT);
    if (!good || !ls_option_whole(times->text, &count) || count < 1 || count > MOST_TIMES)
        return fail_at(at, n, "%s: {times: N, layers: [...]}, with N from 1 to 1000", "repeat");
    if (of) x = input_of(at, e, x);
    for (int i = 0; i < (int)count && ls_build_is_good(at->m); i++) {
        ls_list_go(at, n);
        size_t begin = ls_names_open(at, name ? name->text : "repeat", i);
        x = ls_list_build(at, layers, x);
        ls_names_close(at, begin);
    }
    return x;
}

static ls_value *build_layer(const ls_list_at *at, const ls_yaml_node *item, ls_value *x) {
    static const char *const others[] = {"of", NULL};
    entry e = entry_of(item);
    if (!e.kind)
        return fail_at(at, item, "%s is 'NAME' or 'NAME: {option: value, ...}'", "a layer");
    if (e.value && strcmp(e.kind, "residual") == 0) return build_residual(at, &e, x);
    if (e.value && strcmp(e.kind, "repeat") == 0) return build_repeat(at, &e, x);
    if (!e.layer) return unknown_layer(at, item, e.kind);
    _Alignas(16) char options[LS_OPTIONS_NBYTES] = {0};
    ls_several in = {{0}};
    bool is_list = e.value && of_option(&e) == e.value; /* of values, without options */
    ls_options_read(at, &e.layer->options, is_list ? NULL : e.value, others, options);
    if (ls_build_is_good(at->m)) find_inputs(at, &e, x, &in);
    if (!ls_build_is_good(at->m)) return ls_build_failed(at->m);
    ls_list_go(at, item);
    ls_value *y = e.layer->add(at->m, &in, options);
    if (name_of(e.value)) ls_names_add(at, name_of(e.value), y);
    return y;
}

ls_value *ls_list_build(const ls_list_at *at, const ls_yaml_node *list, ls_value *x) {
    for (int i = 0; i < list->nitems && ls_build_is_good(at->m); i++)
        x = build_layer(at, list->items[i], x);
    return ls_build_is_good(at->m) ? x : ls_build_failed(at->m);
}

/* ---- names ---- */

static void give_names(const ls_yaml_node *n, bool is_ids, ls_list_name *f, void *arg) {
    if (n && n->kind == LS_YAML_TEXT) f(arg, n->text, is_ids);
    for (int i = 0; n && n->kind == LS_YAML_LIST && i < n->nitems; i++)
        give_names(n->items[i], is_ids, f, arg);
}

void ls_list_names(const ls_yaml_node *list, ls_list_name *f, void *arg) {
    for (int i = 0; list->kind == LS_YAML_LIST && i < list->nitems; i++) {
        entry e = entry_of(list->items[i]);
        if (!e.kind || !e.value) continue;
        give_names(of_option(&e), e.layer && e.layer->takes_ids, f, arg);
        for (int k = 0; e.layer && k < LS_MOST_OPTIONS && e.layer->options.of[k].name; k++)
            if (e.layer->options.of[k].type == LS_OPTION_VALUE)
                give_names(ls_yaml_node_find(e.value, e.layer->options.of[k].name), false, f, arg);
        if (!is_structure(e.kind)) continue;
        ls_list_names(e.value, f, arg);
        for (int k = 0; e.value->kind == LS_YAML_MAP && k < e.value->nitems; k++)
            if (e.value->items[k]->kind == LS_YAML_LIST) ls_list_names(e.value->items[k], f, arg);
    }
}

bool ls_list_has_input(const ls_yaml_node *list, bool *is_ids_p) {
    *is_ids_p = false;
    if (list->kind != LS_YAML_LIST || !list->nitems) return false;
    entry e = entry_of(list->items[0]);
    if (!e.kind || of_option(&e)) return false;
    *is_ids_p = e.layer && e.layer->takes_ids;
    if (e.layer) return e.layer->reads == LS_READS_ONE;
    bool repeats = e.value && strcmp(e.kind, "repeat") == 0;
    const ls_yaml_node *layers = repeats ? ls_yaml_node_find(e.value, "layers") : NULL;
    return !layers || ls_list_has_input(layers, is_ids_p);
}
