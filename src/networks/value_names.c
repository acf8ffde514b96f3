/* value_names.c - see value_names.h. */
#include "networks/value_names.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/plural.h"
#include "layers/layers.h"

void ls_list_go(const ls_list_at *at, const ls_yaml_node *n) {
    (ls_model_at)(at->m, at->file, n->line);
}

void ls_names_free(ls_names *s) {
    free(s->list);
    ls_scales_free(&s->scales);
    *s = (ls_names){0};
}

/* ---- scopes ---- */

size_t ls_names_open(const ls_list_at *at, const char *name, int turn) {
    ls_names *s = at->names;
    size_t begin = strlen(s->scope);
    (ls_scope)(at->m, "%s.%d", name, turn);
    snprintf(s->scope + begin, sizeof s->scope - begin, "%s.%d.", name, turn);
    return begin;
}

void ls_names_close(const ls_list_at *at, size_t begin) {
    at->names->scope[begin] = 0;
    ls_scope_end(at->m);
}

/* ---- names ---- */

static ls_named *find_whole(const ls_names *s, const char *name) {
    for (int i = 0; i < s->n; i++)
        if (strcmp(s->list[i].name, name) == 0) return &s->list[i];
    return NULL;
}

void ls_names_add(const ls_list_at *at, const char *name, ls_value *v) {
    ls_names *s = at->names;
    ls_named named = {.value = v};
    if (!ls_build_is_good(at->m)) return;
    snprintf(named.name, sizeof named.name, "%s%s", s->scope, name);
    if (find_whole(s, named.name)) {
        ls_build_fail(at->m, "another value has the name '%.60s'", named.name);
        return;
    }
    s->list = ls_grow(s->list, (size_t)s->n, sizeof *s->list);
    s->list[s->n++] = named;
}

/* In the scope, then in those around it. */
static ls_named *find(const ls_names *s, const char *name) {
    char whole[LS_NAME + LS_FIELD_NAME];
    for (size_t n = strlen(s->scope);; n--) {
        if (n && s->scope[n - 1] != '.') continue;
        snprintf(whole, sizeof whole, "%.*s%s", (int)n, s->scope, name);
        ls_named *found = find_whole(s, whole);
        if (found || !n) return found;
    }
}

ls_value *ls_names_find(const ls_list_at *at, const char *name) {
    ls_named *found = find(at->names, name);
    if (found) found->is_used = true;
    return found ? found->value : NULL;
}

ls_value *ls_names_get(const ls_list_at *at, const ls_yaml_node *n, const char *name) {
    ls_value *v = ls_names_find(at, name);
    if (v) return v;
    ls_buf all = {0};
    for (int i = 0; i < at->names->n; i++)
        ls_buf_printf(&all, "%s%s", i ? ", " : "", at->names->list[i].name);
    ls_list_go(at, n);
    v = ls_build_fail(at->m, "there is no value '%.60s' here; the values are %.250s", name,
                      all.len ? all.data : "without names");
    ls_buf_free(&all);
    return v;
}

/* ---- data.normalize ---- */

/* The bytes of an image as numbers. */
static ls_value *scale_pixels(const ls_list_at *at, ls_value *x) {
    const ls_pixel_scale *s = &at->names->pixels;
    at->names->reads_pixels = true;
    if (!s->channels) return (ls_affine)(at->m, x, 1 / 127.5f, -1);
    if (s->channels == ls_value_last(x)) return (ls_normalize)(at->m, x, s->numbers);
    return ls_build_fail(at->m, "data.normalize has %d mean%s, and the image has %lld channel%s",
                         s->channels, ls_plural(s->channels), (long long)ls_value_last(x),
                         ls_plural(ls_value_last(x)));
}

static ls_value *scale_numbers(const ls_list_at *at, ls_value *x, const ls_field_scale *s) {
    if (s->n == 1 || s->n == ls_value_last(x))
        return ls_layers_standardize(at->m, x, s->n, s->mean, s->deviation);
    return ls_build_fail(at->m,
                         "data.normalize: '%s' has %lld means, and the field has %lld numbers",
                         s->field, (long long)s->n, (long long)ls_value_last(x));
}

/* A field of ids, or an image with pixels, has no such scale. */
static const ls_field_scale *scale_of(const ls_names *names, const ls_field *f) {
    if (ls_field_is_image(f) || f->ids) return NULL;
    return ls_scales_find(&names->scales, f->name);
}

ls_value *ls_names_numbers(const ls_list_at *at, ls_value *x) {
    bool is_field = ls_build_is_good(at->m) && x->field >= 0 && x->layer < 0;
    if (!is_field) return x;
    const ls_field *f = &at->m->inputs[x->field];
    const ls_field_scale *s = scale_of(at->names, f);
    if (!s && !ls_field_is_image(f)) return x;
    ls_named *named = find_whole(at->names, f->name);
    if (!named || named->value != x) return x;
    if (!named->numbers) named->numbers = s ? scale_numbers(at, x, s) : scale_pixels(at, x);
    return named->numbers;
}
