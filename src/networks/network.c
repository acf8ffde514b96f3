/* network.c - see network.h. */
#include "networks/network.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "model/shape.h"
#include "networks/fields.h"
#include "networks/layer_table.h"
#include "networks/list.h"
#include "networks/program.h"
#include "networks/usual.h"

/* ---- the loss ---- */

/* model.loss: KIND, or {KIND: {target: NAME, option: value}}. */
typedef struct loss {
    ls_yaml_node *root; /* the caller frees it; NULL: the key is empty */
    const ls_loss_entry *entry;
    const char *target;          /* in root, or static */
    const ls_yaml_node *options; /* NULL: none */
} loss;

static ls_status no_loss(const ls_config_tree *t, const char *kind, ls_error *e) {
    ls_buf all = {0};
    const char *name = NULL;
    for (int i = 0; (name = ls_loss_entry_name(i)); i++)
        ls_buf_printf(&all, "%s%s", i ? ", " : "", name);
    ls_status s = ls_fail(e, LS_EINVAL, "%s:%d: model.loss: there is no '%.60s'; choose among %s",
                          t->file, t->line, kind, all.data);
    ls_buf_free(&all);
    return s;
}

static ls_status read_loss(const ls_config_tree *t, loss *l, ls_error *e) {
    const char *kind = "cross_entropy";
    *l = (loss){.target = "label"};
    if (*t->text) LS_TRY(ls_yaml_parse_tree(t->text, t->file, t->line, &l->root, e));
    if (l->root && l->root->kind == LS_YAML_TEXT) kind = l->root->text;
    if (l->root && l->root->kind == LS_YAML_MAP && l->root->nitems == 1) {
        l->options = l->root->items[0];
        kind = l->options->key;
        const ls_yaml_node *target = ls_yaml_node_find(l->options, "target");
        if (target && target->kind == LS_YAML_TEXT) l->target = target->text;
    } else if (l->root && l->root->kind != LS_YAML_TEXT) {
        return ls_fail(e, LS_EINVAL, "%s:%d: model.loss is KIND or {KIND: {target: FIELD, ...}}",
                       t->file, t->line);
    }
    l->entry = ls_loss_entry_find(kind);
    return l->entry ? LS_OK : no_loss(t, kind, e);
}

/* ---- building ---- */

typedef struct network {
    const ls_config *c;
    ls_model *m;
    ls_fields fields; /* of model.input */
    loss loss;
    ls_value *x, *target;
    int64_t out; /* numbers that the loss compares with the target */
} network;

/* Bytes of an image become numbers from -1 to 1, unless the first layer of a list scales them. */
static ls_value *as_numbers(const network *n, const ls_field *f, ls_value *x) {
    const char *list = n->c->model.list.text;
    bool scales =
        strncmp(list, "[{\"normalize\"", 13) == 0 || strncmp(list, "[{\"affine\"", 10) == 0;
    return ls_field_is_image(f) && !scales ? (ls_affine)(n->m, x, 1 / 127.5f, -1) : x;
}

static ls_value *declare(network *n, const ls_field *f) {
    ls_dims dims = {0};
    for (int i = 0; i < f->ndims; i++) dims.of[i] = f->dims[i];
    return (ls_input)(n->m, f->name, f->type, dims);
}

/* The input is the only field that is not the target. */
static void declare_fields(network *n) {
    const ls_config_tree *t = &n->c->model.input;
    const ls_field *target = ls_fields_find(&n->fields, n->loss.target);
    (ls_model_at)(n->m, t->file, t->line);
    for (int i = 0; i < n->fields.n; i++) {
        const ls_field *f = &n->fields.list[i];
        if (f == target) continue;
        if (n->x)
            ls_build_fail(n->m,
                          "model.input has the fields '%s' and '%s'; one is possible, beside "
                          "the target of the loss ('%s')",
                          n->m->inputs[0].name, f->name, n->loss.target);
        else
            n->x = as_numbers(n, f, declare(n, f));
    }
    if (!n->x) ls_build_fail(n->m, "model.input has no field beside the target of the loss");
    ls_field usual = {.type = n->loss.entry->of_classes ? LS_I32 : LS_F32};
    snprintf(usual.name, sizeof usual.name, "%s", n->loss.target);
    n->target = declare(n, target ? target : &usual);
    n->out = n->loss.entry->of_classes ? n->c->model.classes : 1;
    for (int i = 0; target && !n->loss.entry->of_classes && i < target->ndims; i++)
        n->out *= target->dims[i];
}

static ls_value *build_list(network *n) {
    const ls_config_tree *t = &n->c->model.list;
    ls_yaml_node *root = NULL;
    ls_error e = {0};
    ls_value *x = NULL;
    if (ls_yaml_parse_tree(t->text, t->file, t->line, &root, &e) != LS_OK)
        return ls_build_fail(n->m, "%s", e.msg);
    if (root->kind != LS_YAML_LIST)
        x = ls_build_fail(n->m, "model.layers: a list of layers is expected");
    else
        x = ls_list_build(&(ls_list_at){n->m, t->file}, root, n->x);
    ls_yaml_node_free(root);
    return x;
}

static ls_value *build_kind(network *n) {
    switch ((ls_model_kind)n->c->model.kind) {
    case LS_MODEL_MLP: return ls_mlp_build(n->c, n->m, n->x, n->out);
    case LS_MODEL_CNN: return ls_cnn_build(n->c, n->m, n->x, n->out);
    case LS_MODEL_RESNET: return ls_resnet_build(n->c, n->m, n->x, n->out);
    case LS_MODEL_VIT: return ls_vit_build(n->c, n->m, n->x, n->out);
    case LS_MODEL_GPT2:
    case LS_MODEL_PROGRAM:
    case LS_MODEL_LAYERS: break;
    }
    return build_list(n);
}

static void add_loss(network *n, ls_value *x) {
    const ls_config_tree *t = &n->c->model.loss;
    _Alignas(16) char options[LS_OPTIONS_NBYTES] = {0};
    (ls_model_at)(n->m, t->file, t->line);
    ls_options_read(&(ls_list_at){n->m, t->file}, &n->loss.entry->options, n->loss.options,
                    "target", options);
    if (!ls_build_is_good(n->m)) return;
    if (ls_value_count(x) != n->out && !(n->loss.entry->of_classes && n->out == 0))
        ls_build_fail(n->m, "the last layer has %lld numbers; the loss needs %lld",
                      (long long)ls_value_count(x), (long long)n->out);
    else
        n->loss.entry->add(n->m, x, n->target, options);
}

static ls_status build(network *n, ls_error *e) {
    const ls_config *c = n->c;
    LS_TRY(read_loss(&c->model.loss, &n->loss, e));
    LS_TRY(ls_fields_read(&c->model.input, &n->fields, e));
    declare_fields(n);
    ls_value *x = ls_build_is_good(n->m) ? build_kind(n) : NULL;
    if (ls_build_is_good(n->m)) add_loss(n, x);
    return ls_build_finish(n->m, e);
}

ls_status ls_network_create(const ls_config *c, ls_model *m_p, ls_error *e) {
    ls_gpt_config shape = ls_config_shape(c);
    if (c->model.kind == LS_MODEL_GPT2) return ls_gpt_create(&shape, m_p, e);
    if (c->model.kind == LS_MODEL_PROGRAM) return ls_program_create(c, m_p, e);
    if (ls_network_is_open(c))
        return ls_fail(e, LS_EINVAL,
                       "model.input or model.classes is missing: set them, or "
                       "data.path to data that have them");
    ls_model m = {0};
    network n = {.c = c, .m = &m};
    ls_status s = build(&n, e);
    ls_yaml_node_free(n.loss.root);
    if (s == LS_OK)
        *m_p = m;
    else
        ls_model_free(&m);
    return s;
}

/* ---- what the data decide ---- */

static bool is_of_classes(const ls_config *c) {
    loss l;
    bool of_classes = read_loss(&c->model.loss, &l, NULL) == LS_OK && l.entry->of_classes;
    ls_yaml_node_free(l.root);
    return of_classes;
}

bool ls_network_is_open(const ls_config *c) {
    if (c->model.kind == LS_MODEL_GPT2 || c->model.kind == LS_MODEL_PROGRAM) return false;
    bool needs_classes = c->model.kind != LS_MODEL_LAYERS && c->model.classes == 0;
    return !*c->model.input.text || (needs_classes && is_of_classes(c));
}

/* The type that a model has for a field: bytes stay bytes, and other numbers become floats. */
static ls_field model_field(const ls_field *f, bool is_class) {
    ls_field g = *f;
    if (is_class)
        g.type = LS_I32;
    else if (g.type != LS_U8)
        g.type = LS_F32;
    return g;
}

static ls_status choose_fields(ls_config *c, const ls_source *s, const loss *l, ls_error *e) {
    ls_fields f = {0};
    const ls_field *target = ls_source_field(s, l->target);
    if (!target)
        return ls_fail(e, LS_EINVAL,
                       "data.path: no field '%s', which the loss needs; the fields "
                       "are %s%s%s: set model.loss to {KIND: {target: FIELD}}",
                       l->target, s->fields[0].name, s->nfields > 1 ? ", " : "",
                       s->nfields > 1 ? s->fields[1].name : "");
    for (int i = 0; i < s->nfields; i++) {
        bool is_target = &s->fields[i] == target;
        if (!is_target && strcmp(s->fields[i].name, "label") == 0) continue;
        f.list[f.n++] = model_field(&s->fields[i], is_target && l->entry->of_classes);
    }
    ls_fields_write(&f, &c->model.input);
    return LS_OK;
}

/* One more than the largest class of a label without names. */
static ls_status count_classes(ls_config *c, const ls_source *s, const char *target, ls_error *e) {
    const ls_field *f = ls_source_field(s, target);
    int32_t most = -1, x = 0;
    if (!f || f->type != LS_I32 || f->ndims > 1)
        return ls_fail(e, LS_EINVAL,
                       "data.path: field '%s' is no class; set model.classes, or "
                       "another loss",
                       target);
    char *sample = ls_alloc(s->nbytes);
    ls_status status = LS_OK;
    for (uint64_t i = 0; status == LS_OK && i < s->count; i++) {
        status = s->read(s, i, sample, e);
        memcpy(&x, sample + f->offset, sizeof x);
        if (status == LS_OK && x > most) most = x;
    }
    free(sample);
    LS_TRY(status);
    if (most < 0) return ls_fail(e, LS_EINVAL, "data.path: field '%s' has no classes", target);
    c->model.classes = (int64_t)most + 1;
    return LS_OK;
}

ls_status ls_network_resolve(ls_config *c, const ls_source *s, ls_error *e) {
    loss l;
    ls_status status = read_loss(&c->model.loss, &l, e);
    if (status == LS_OK && !*c->model.input.text) status = choose_fields(c, s, &l, e);
    bool counts = status == LS_OK && l.entry->of_classes && c->model.classes == 0;
    if (counts && s->classes && strcmp(l.target, "label") == 0)
        c->model.classes = s->nclasses;
    else if (counts)
        status = count_classes(c, s, l.target, e);
    ls_yaml_node_free(l.root);
    return status;
}
