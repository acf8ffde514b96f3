/* wants.c - see wants.h. */
#include "networks/wants.h"

#include <string.h>

#include "networks/layer_options.h"

static const ls_option_list *nth(const ls_want_kinds *k, int i) {
    return (const ls_option_list *)(const void *)((const char *)k->list + (size_t)i * k->size);
}

const void *ls_wants_find(const ls_want_kinds *k, const char *kind) {
    for (int i = 0; i < k->n; i++)
        if (strcmp(nth(k, i)->kind, kind) == 0) return nth(k, i);
    return NULL;
}

void ls_wants_put_kinds(const ls_want_kinds *k, ls_buf *out) {
    for (int i = 0; i < k->n; i++) ls_buf_printf(out, "%s%s", i ? ", " : "", nth(k, i)->kind);
}

static ls_status read_item(const ls_config_tree *t, const char *key, const ls_yaml_node *n,
                           ls_want *item, ls_error *e) {
    *item = (ls_want){.kind = n->text, .node = n};
    if (n->kind == LS_YAML_TEXT) return LS_OK;
    if (n->kind != LS_YAML_MAP || n->nitems != 1)
        return ls_fail(e, LS_EINVAL,
                       "%s:%d: %s is KIND or {KIND: {target: FIELD, ...}}, or a list of these",
                       t->file, n->line, key);
    item->options = n->items[0];
    item->kind = item->options->key;
    const ls_yaml_node *target = ls_yaml_node_find(item->options, "target"),
                       *of = ls_yaml_node_find(item->options, "of");
    const ls_yaml_node *wrong = target && target->kind != LS_YAML_TEXT ? target
                                : of && of->kind != LS_YAML_TEXT       ? of
                                                                       : NULL;
    if (wrong)
        return ls_fail(e, LS_EINVAL, "%s:%d: %s: option '%s' is one name", t->file, wrong->line,
                       key, wrong->key);
    if (target) item->target = target->text;
    if (of) item->of = of->text;
    return LS_OK;
}

static ls_status find_entry(const ls_config_tree *t, const ls_want_kinds *k, ls_want *item,
                            ls_error *e) {
    ls_buf all = {0};
    item->entry = ls_wants_find(k, item->kind);
    if (item->entry) return LS_OK;
    ls_wants_put_kinds(k, &all);
    ls_status s = ls_fail(e, LS_EINVAL, "%s:%d: %s: there is no '%.60s'; choose among %s", t->file,
                          item->node->line, k->key, item->kind, all.data);
    ls_buf_free(&all);
    return s;
}

static ls_status read_items(const ls_config_tree *t, const ls_want_kinds *k, ls_wants *a,
                            ls_error *e) {
    const ls_yaml_node *root = a->root;
    bool is_list = root->kind == LS_YAML_LIST;
    int n = is_list ? root->nitems : 1;
    if (n < 1 || n > LS_MOST_WANTS)
        return ls_fail(e, LS_EINVAL, "%s:%d: %s has %d entries; 1 to %d are possible", t->file,
                       t->line, k->key, n, LS_MOST_WANTS);
    for (; a->n < n; a->n++)
        LS_TRY(read_item(t, k->key, is_list ? root->items[a->n] : root, &a->list[a->n], e));
    for (int i = 0; i < n; i++) LS_TRY(find_entry(t, k, &a->list[i], e));
    return LS_OK;
}

ls_status ls_wants_read(const ls_config_tree *t, const ls_want_kinds *k, ls_wants *a, ls_error *e) {
    *a = (ls_wants){0};
    if (!*t->text) return LS_OK;
    LS_TRY(ls_yaml_parse_tree(t->text, t->file, t->line, &a->root, e));
    ls_status s = read_items(t, k, a, e);
    if (s != LS_OK) ls_wants_free(a);
    return s;
}

void ls_wants_free(ls_wants *a) {
    ls_yaml_node_free(a->root);
    *a = (ls_wants){0};
}
