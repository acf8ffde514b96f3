/* mentioned.c - see mentioned.h. */
#include "config/mentioned.h"

#include "base/yaml.h"

static void put_texts(const ls_yaml_node *n, ls_buf *out) {
    if (n->kind == LS_YAML_TEXT) ls_buf_printf(out, "%s\n", n->text);
    for (int i = 0; i < n->nitems; i++) put_texts(n->items[i], out);
}

static void put_keys(const ls_yaml_node *n, ls_buf *out) {
    for (int i = 0; i < n->nitems; i++)
        if (n->items[i]->key) ls_buf_printf(out, "%s\n", n->items[i]->key);
}

/* A tree that can't be read has no names: who needs it says what is wrong. */
static void put_tree(const ls_config_tree *t, void (*put)(const ls_yaml_node *, ls_buf *),
                     ls_buf *out) {
    ls_yaml_node *root = NULL;
    ls_error e;
    if (!*t->text || ls_yaml_parse_tree(t->text, t->file, t->line, &root, &e) != LS_OK) return;
    put(root, out);
    ls_yaml_node_free(root);
}

void ls_config_put_mentioned(const ls_config *c, ls_buf *out) {
    put_tree(&c->model.input, put_keys, out);
    put_tree(&c->model.loss, put_texts, out);
    put_tree(&c->model.metrics, put_texts, out);
    put_tree(&c->model.list, put_texts, out);
    if (*c->model.sample_weight) ls_buf_printf(out, "%s\n", c->model.sample_weight);
}
