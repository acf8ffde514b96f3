/* fields.c - see fields.h. */
#include "networks/fields.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/intern.h"
#include "base/mem.h"
#include "networks/layer_options.h"

const ls_field *ls_fields_find(const ls_fields *f, const char *name) {
    for (int i = 0; i < f->n; i++)
        if (strcmp(f->list[i].name, name) == 0) return &f->list[i];
    return NULL;
}

static bool read_type(const ls_yaml_node *n, ls_dtype *type_p) {
    static const ls_dtype types[] = {LS_U8, LS_I32, LS_F32};
    for (size_t i = 0; n->kind == LS_YAML_TEXT && i < sizeof types / sizeof *types; i++)
        if (strcmp(n->text, ls_dtype_name(types[i])) == 0) {
            *type_p = types[i];
            return true;
        }
    return false;
}

static bool read_dims(const ls_yaml_node *n, ls_field *f) {
    bool good = n->kind == LS_YAML_LIST && n->nitems <= LS_FIELD_DIMS;
    f->ndims = good ? n->nitems : 0;
    for (int i = 0; good && i < f->ndims; i++)
        good = n->items[i]->kind == LS_YAML_TEXT &&
               ls_option_whole(n->items[i]->text, &f->dims[i]) && f->dims[i] >= 1;
    return good;
}

static bool read_field(const ls_yaml_node *n, ls_field *f) {
    const ls_yaml_node *dims = n, *type = NULL, *ids = NULL;
    if (n->kind == LS_YAML_MAP) {
        dims = ls_yaml_node_find(n, "dims");
        type = ls_yaml_node_find(n, "type");
        ids = ls_yaml_node_find(n, "ids");
        if (!dims || !type || n->nitems != 2 + (ids != NULL)) return false;
    }
    if (strlen(n->key) >= sizeof f->name || !read_dims(dims, f)) return false;
    snprintf(f->name, sizeof f->name, "%s", n->key);
    f->type = LS_U8;
    if (!ls_field_is_image(f)) f->type = LS_F32;
    if (type && !read_type(type, &f->type)) return false;
    if (!ids) return true;
    return f->type == LS_I32 && ids->kind == LS_YAML_TEXT && ls_option_whole(ids->text, &f->ids) &&
           f->ids >= 1 && f->ids <= INT32_MAX;
}

ls_status ls_fields_read(const ls_config_tree *t, ls_fields *f_p, ls_error *e) {
    ls_yaml_node *root = NULL;
    LS_TRY(ls_yaml_parse_tree(t->text, t->file, t->line, &root, e));
    ls_status s = LS_OK;
    *f_p = (ls_fields){0};
    if (root->kind != LS_YAML_MAP || root->nitems < 1 || root->nitems > LS_SOURCE_FIELDS)
        s = ls_fail(e, LS_EINVAL,
                    "%s:%d: model.input is a map of 1 to %d fields, {NAME: [dimensions], ...}",
                    t->file, t->line, LS_SOURCE_FIELDS);
    for (int i = 0; s == LS_OK && i < root->nitems; i++)
        if (!read_field(root->items[i], &f_p->list[f_p->n++]))
            s = ls_fail(e, LS_EINVAL,
                        "%s:%d: model.input: field '%.40s' is [at most %d dimensions], or {type: "
                        "u8|i32|f32, dims: [...]}; of i32 also ids: N",
                        t->file, root->items[i]->line, root->items[i]->key, LS_FIELD_DIMS);
    ls_yaml_node_free(root);
    return s;
}

void ls_fields_write(const ls_fields *f, ls_config_tree *t) {
    ls_buf out = {0};
    for (int i = 0; i < f->n; i++) {
        const ls_field *field = &f->list[i];
        ls_field usual = *field;
        usual.type = LS_U8;
        bool has_type = field->type != (ls_field_is_image(&usual) ? LS_U8 : LS_F32);
        ls_buf_printf(&out, "%s\"%s\": ", i ? ", " : "{", field->name);
        if (has_type)
            ls_buf_printf(&out, "{\"type\": \"%s\", \"dims\": ", ls_dtype_name(field->type));
        ls_buf_printf(&out, "[");
        for (int d = 0; d < field->ndims; d++)
            ls_buf_printf(&out, "%s\"%lld\"", d ? ", " : "", (long long)field->dims[d]);
        ls_buf_printf(&out, "]");
        if (field->ids) ls_buf_printf(&out, ", \"ids\": \"%lld\"", (long long)field->ids);
        ls_buf_printf(&out, has_type ? "}" : "");
    }
    ls_buf_printf(&out, "}");
    t->text = ls_intern(out.data);
    snprintf(t->file, sizeof t->file, "data");
    ls_buf_free(&out);
}
