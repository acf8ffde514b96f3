/* operate.c - members, items and slices of values. */
#include <math.h>
#include <string.h>

#include "template/characters.h"
#include "template/value.h"

/* ---- members and items ---- */

static ls_datum loop_member(const ls_template_loop *l, const char *name) {
    int64_t i = (int64_t)l->i, n = (int64_t)l->n;
    if (strcmp(name, "index") == 0) return ls_datum_integer(i + 1);
    if (strcmp(name, "index0") == 0) return ls_datum_integer(i);
    if (strcmp(name, "revindex") == 0) return ls_datum_integer(n - i);
    if (strcmp(name, "revindex0") == 0) return ls_datum_integer(n - i - 1);
    if (strcmp(name, "first") == 0) return ls_datum_bool(i == 0);
    if (strcmp(name, "last") == 0) return ls_datum_bool(i == n - 1);
    if (strcmp(name, "length") == 0) return ls_datum_integer(n);
    if (strcmp(name, "depth") == 0) return ls_datum_integer(l->depth);
    if (strcmp(name, "depth0") == 0) return ls_datum_integer(l->depth - 1);
    if (strcmp(name, "previtem") == 0 && i > 0) return l->items[i - 1];
    if (strcmp(name, "nextitem") == 0 && i < n - 1) return l->items[i + 1];
    return ls_datum_undefined(name);
}

static ls_status new_method(ls_rendering *r, const ls_datum *x, const ls_template_entry *method,
                            ls_datum *y_p) {
    void *self;
    LS_TRY(ls_render_alloc(r, sizeof *x, &self));
    memcpy(self, x, sizeof *x);
    *y_p = (ls_datum){.kind = LS_DATUM_FUNCTION, .function = method, .self = self};
    return LS_OK;
}

ls_status ls_datum_member(ls_rendering *r, const ls_datum *x, const char *name, ls_datum *y_p) {
    const ls_template_entry *method;
    *y_p = ls_datum_undefined(name);
    if (x->kind == LS_DATUM_UNDEFINED)
        return ls_render_fail(r, "\"%.*s\" is not defined, so it has no \"%s\"", (int)x->n, x->text,
                              name);
    LS_TRY(ls_template_method(r, x, name, &method));
    if (method) return method->call ? new_method(r, x, method, y_p) : LS_OK;
    if (x->kind == LS_DATUM_DICT) {
        ls_datum key = ls_datum_text(name, strlen(name));
        size_t place;
        LS_TRY(ls_dict_find(r, x, &key, &place));
        if (place) *y_p = x->items[place];
    } else if (x->kind == LS_DATUM_SPACE) {
        const ls_datum *found = ls_scope_find(r, x->space, name);
        if (found) *y_p = *found;
    } else if (x->kind == LS_DATUM_LOOP) {
        *y_p = loop_member(x->loop, name);
    } else if (x->kind == LS_DATUM_MACRO && strcmp(name, "name") == 0) {
        *y_p = ls_datum_text(x->macro->node->text, x->macro->node->n);
    }
    return LS_OK;
}

/* Item i of n, where a negative i counts from the end; false: there is none. */
static bool place_of(int64_t i, size_t n, size_t *place_p) {
    if (i < 0) i += (int64_t)n;
    *place_p = (size_t)i;
    return i >= 0 && i < (int64_t)n;
}

ls_status ls_datum_item(ls_rendering *r, const ls_datum *x, const ls_datum *key, ls_datum *y_p) {
    size_t i;
    *y_p = ls_datum_undefined("item");
    if (x->kind == LS_DATUM_UNDEFINED)
        return ls_render_fail(r, "\"%.*s\" is not defined, so it has no items", (int)x->n, x->text);
    LS_TRY(ls_render_count(r, x->n / 16));
    if (x->kind == LS_DATUM_DICT) {
        LS_TRY(ls_dict_find(r, x, key, &i));
        if (i) *y_p = x->items[i];
        if (i) return LS_OK;
    }
    if (key->kind == LS_DATUM_TEXT) {
        ls_datum name = *key; /* a 0 must follow a member's name */
        LS_TRY(ls_datum_copy_text(r, key->text, key->n, &name));
        return ls_datum_member(r, x, name.text, y_p);
    }
    if (!ls_datum_is_integer(key)) return LS_OK;
    int64_t at = ls_datum_integer_of(key);
    if (x->kind != LS_DATUM_VIEW && ls_datum_has_items(x) && place_of(at, x->n, &i))
        *y_p = x->items[i];
    if (x->kind == LS_DATUM_TEXT && place_of(at, ls_characters(x->text, x->n), &i)) {
        uint32_t point;
        size_t begin = ls_characters_bytes(x->text, x->n, i);
        *y_p = ls_datum_text(x->text + begin, ls_character(x->text + begin, x->n - begin, &point));
        y_p->safe = x->safe;
    }
    return LS_OK;
}

/* ---- slices ---- */

/* A bound of a slice within [low, high], as Python clips it. */
static ls_status bound(ls_rendering *r, const ls_datum *x, int64_t n, int64_t otherwise,
                       int64_t *value_p) {
    *value_p = otherwise;
    if (x->kind == LS_DATUM_NONE) return LS_OK;
    if (!ls_datum_is_integer(x))
        return ls_render_fail(r, "a slice's bounds are integers, not %s", ls_datum_kind_name(x));
    int64_t v = ls_datum_integer_of(x);
    if (v < 0) v = v < -n ? -1 : v + n; /* before the beginning: -1, as a step down has it */
    *value_p = v > n ? n : v;
    return LS_OK;
}

static ls_status slice_items(ls_rendering *r, const ls_datum *x, const ls_datum bounds[3],
                             ls_datum *y_p) {
    int64_t n = (int64_t)x->n, step = 1, begin, end;
    if (ls_datum_is_integer(&bounds[2])) step = ls_datum_integer_of(&bounds[2]);
    if (!step || (!ls_datum_is_integer(&bounds[2]) && bounds[2].kind != LS_DATUM_NONE))
        return ls_render_fail(r, "a slice's step is an integer that is not 0");
    if (step > n + 1) step = n + 1;
    if (step < -n - 1) step = -n - 1;
    LS_TRY(bound(r, &bounds[0], n, step > 0 ? 0 : n - 1, &begin));
    LS_TRY(bound(r, &bounds[1], n, step > 0 ? n : -1, &end));
    if (step > 0 && begin < 0) begin = 0;
    if (step < 0 && begin > n - 1) begin = n - 1;
    void *room;
    LS_TRY(ls_render_alloc(r, x->n * sizeof(ls_datum), &room));
    ls_datum *items = room;
    size_t k = 0;
    for (int64_t i = begin; step > 0 ? i < end : i > end; i += step) items[k++] = x->items[i];
    *y_p = (ls_datum){.kind = LS_DATUM_LIST, .n = k, .items = items};
    return LS_OK;
}

ls_status ls_datum_slice(ls_rendering *r, const ls_datum *x, const ls_datum bounds[3],
                         ls_datum *y_p) {
    ls_datum list;
    bool text = x->kind == LS_DATUM_TEXT;
    if (!text && (!ls_datum_has_items(x) || x->kind == LS_DATUM_VIEW))
        return ls_render_fail(r, "%s has no slices", ls_datum_kind_name(x));
    LS_TRY(ls_render_count(r, x->n));
    LS_TRY(ls_datum_items(r, x, &list));
    LS_TRY(slice_items(r, &list, bounds, &list));
    *y_p = list;
    y_p->kind = x->kind;
    if (!text) return LS_OK;
    void *room;
    LS_TRY(ls_render_alloc(r, x->n + 1, &room));
    size_t n = 0;
    for (size_t i = 0; i < list.n; n += list.items[i].n, i++)
        memcpy((char *)room + n, list.items[i].text, list.items[i].n);
    *y_p = ls_datum_text(room, n);
    y_p->safe = x->safe;
    return LS_OK;
}
