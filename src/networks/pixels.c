/* pixels.c - see pixels.h. */
#include "networks/pixels.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/intern.h"
#include "base/mem.h"
#include "base/yaml.h"
#include "networks/scales.h"

bool ls_pixels_are_open(const ls_config *c) { return strcmp(c->data.normalize.text, "auto") == 0; }

/* Returns how many numbers the item has; -1: it is no list of 1 to LS_NORMALIZE_CHANNELS
 * numbers. */
static int read_numbers(const ls_yaml_node *n, float *to) {
    if (!n || n->kind != LS_YAML_LIST || n->nitems < 1 || n->nitems > LS_NORMALIZE_CHANNELS)
        return -1;
    for (int i = 0; i < n->nitems; i++) {
        const char *text = n->items[i]->kind == LS_YAML_TEXT ? n->items[i]->text : "";
        char *end = NULL;
        to[i] = strtof(text, &end);
        bool good = *text && !*end && strspn(text, "+-.0123456789eE") == strlen(text);
        if (!good || !(to[i] > -1e30F && to[i] < 1e30F)) return -1;
    }
    return n->nitems;
}

static bool read_map(const ls_yaml_node *root, ls_pixel_scale *s) {
    if (root->kind != LS_YAML_MAP || root->nitems != 2) return false;
    s->channels = read_numbers(ls_yaml_node_find(root, "mean"), s->numbers.mean);
    int n = read_numbers(ls_yaml_node_find(root, "deviation"), s->numbers.deviation);
    bool good = s->channels > 0 && n == s->channels;
    for (int i = 0; good && i < n; i++) good = s->numbers.deviation[i] > 1e-30F;
    return good;
}

ls_status ls_pixels_read(const ls_config *c, ls_pixel_scale *s_p, ls_error *e) {
    const ls_config_tree *t = &c->data.normalize;
    ls_yaml_node *root = NULL;
    ls_pixel_scale s = {0};
    *s_p = s;
    if (!*t->text || ls_pixels_are_open(c) || strcmp(t->text, "off") == 0) return LS_OK;
    ls_status status = ls_yaml_parse_tree(t->text, t->file, t->line, &root, e);
    if (status == LS_OK && !ls_scales_are_of_fields(root) && !read_map(root, &s))
        status =
            ls_fail(e, LS_EINVAL,
                    "%s:%d: data.normalize is auto, off, or a mean and a deviation above 0 for "
                    "each channel: {mean: [0.28], deviation: [0.35]}, of pixels from 0 to 1; of "
                    "fields of numbers: {age: {mean: 38.2, deviation: 13.6}}",
                    t->file, t->line);
    ls_yaml_node_free(root);
    if (status == LS_OK) *s_p = s;
    return status;
}

static void put_numbers(const char *name, const float *x, int n, ls_buf *out) {
    ls_buf_printf(out, "\"%s\": [", name);
    for (int i = 0; i < n; i++) ls_buf_printf(out, "%s\"%.6g\"", i ? ", " : "", (double)x[i]);
    ls_buf_printf(out, "]");
}

void ls_pixels_write(const ls_pixel_scale *s, ls_config_tree *t) {
    ls_buf out = {0};
    ls_buf_printf(&out, "{");
    put_numbers("mean", s->numbers.mean, s->channels, &out);
    ls_buf_printf(&out, ", ");
    put_numbers("deviation", s->numbers.deviation, s->channels, &out);
    ls_buf_printf(&out, "}");
    t->text = ls_intern(out.data);
    snprintf(t->file, sizeof t->file, "data");
    ls_buf_free(&out);
}
