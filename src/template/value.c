/* value.c - values: made, compared, searched. */
#include "template/value.h"

#include <string.h>

#include "template/characters.h"

ls_datum ls_datum_none(void) { return (ls_datum){.kind = LS_DATUM_NONE}; }
ls_datum ls_datum_bool(bool truth) { return (ls_datum){.kind = LS_DATUM_BOOL, .truth = truth}; }
ls_datum ls_datum_integer(int64_t v) { return (ls_datum){.kind = LS_DATUM_INTEGER, .integer = v}; }
ls_datum ls_datum_text(const char *s, size_t n) {
    return (ls_datum){.kind = LS_DATUM_TEXT, .n = n, .text = s};
}
ls_datum ls_datum_undefined(const char *name) {
    return (ls_datum){.kind = LS_DATUM_UNDEFINED, .n = strlen(name), .text = name};
}

ls_status ls_datum_copy_text(ls_rendering *r, const char *s, size_t n, ls_datum *x_p) {
    void *copy;
    LS_TRY(ls_render_alloc(r, n + 1, &copy));
    if (n) memcpy(copy, s, n);
    *x_p = ls_datum_text(copy, n);
    return LS_OK;
}

/* ---- from JSON ---- */

static ls_status of_array(ls_rendering *r, const ls_json *j, ls_datum *x_p) {
    void *items;
    size_t n = ls_json_count(j);
    LS_TRY(ls_render_alloc(r, n * sizeof(ls_datum), &items));
    for (size_t i = 0; i < n; i++)
        LS_TRY(ls_datum_of_json(r, ls_json_at(j, i), (ls_datum *)items + i));
    *x_p = (ls_datum){.kind = LS_DATUM_LIST, .n = n, .items = items};
    return LS_OK;
}

static ls_status of_object(ls_rendering *r, const ls_json *j, ls_datum *x_p) {
    void *room;
    size_t n = ls_json_count(j);
    LS_TRY(ls_render_alloc(r, 2 * n * sizeof(ls_datum), &room));
    ls_datum *items = room;
    const char *key;
    const ls_json *value;
    for (void *it = ls_json_next(j, NULL, &key, &value); it;
         it = ls_json_next(j, it, &key, &value), items += 2) {
        items[0] = ls_datum_text(key, strlen(key));
        LS_TRY(ls_datum_of_json(r, value, &items[1]));
    }
    *x_p = (ls_datum){.kind = LS_DATUM_DICT, .n = n, .items = room};
    return LS_OK;
}

ls_status ls_datum_of_json(ls_rendering *r, const ls_json *j, ls_datum *x_p) {
    const char *text = ls_json_text(j);
    *x_p = ls_datum_none();
    if (text) {
        *x_p = ls_datum_text(text, strlen(text));
    } else if (ls_json_is_bool(j)) {
        *x_p = ls_datum_bool(ls_json_is_true(j));
    } else if (ls_json_integer(j, &x_p->integer)) {
        x_p->kind = LS_DATUM_INTEGER;
    } else if (ls_json_number(j, &x_p->real)) {
        x_p->kind = LS_DATUM_REAL;
    } else if (ls_json_is_array(j) || ls_json_is_object(j)) {
        LS_TRY(ls_render_enter(r));
        LS_TRY(ls_json_is_array(j) ? of_array(r, j, x_p) : of_object(r, j, x_p));
        r->depth--;
    }
    return LS_OK;
}

/* ---- questions ---- */

bool ls_datum_is_true(const ls_datum *x) {
    switch (x->kind) {
    case LS_DATUM_UNDEFINED:
    case LS_DATUM_NONE: return false;
    case LS_DATUM_BOOL: return x->truth;
    case LS_DATUM_INTEGER: return x->integer != 0;
    case LS_DATUM_REAL: return x->real < 0 || x->real > 0;
    case LS_DATUM_TEXT:
    case LS_DATUM_LIST:
    case LS_DATUM_DICT: return x->n > 0;
    default: return true;
    }
}

bool ls_datum_is_number(const ls_datum *x) {
    return x->kind == LS_DATUM_INTEGER || x->kind == LS_DATUM_REAL || x->kind == LS_DATUM_BOOL;
}

double ls_datum_number(const ls_datum *x) {
    if (x->kind == LS_DATUM_REAL) return x->real;
    return x->kind == LS_DATUM_BOOL ? (double)x->truth : (double)x->integer;
}

static int64_t integer_of(const ls_datum *x) {
    return x->kind == LS_DATUM_BOOL ? x->truth : x->integer;
}

const char *ls_datum_kind_name(const ls_datum *x) {
    static const char *const names[] = {"undefined",   "none",     "a bool",  "an integer",
                                        "a number",    "text",     "a list",  "a dict",
                                        "a namespace", "the loop", "a macro", "a function"};
    return names[x->kind];
}

static ls_status equal_items(ls_rendering *r, const ls_datum *a, const ls_datum *b, bool *is_p) {
    LS_TRY(ls_render_enter(r));
    *is_p = a->n == b->n;
    for (size_t i = 0; *is_p && i < a->n; i++) {
        const ls_datum *other = &b->items[i];
        const ls_datum *one = &a->items[i];
        if (a->kind == LS_DATUM_DICT) {
            const ls_datum *key = &a->items[2 * i];
            other = key->kind == LS_DATUM_TEXT ? ls_dict_find(b, key->text, key->n) : NULL;
            one = key + 1;
            LS_TRY(ls_render_count(r, b->n));
        }
        *is_p = other != NULL;
        if (other) LS_TRY(ls_datum_equal(r, one, other, is_p));
    }
    r->depth--;
    return LS_OK;
}

ls_status ls_datum_equal(ls_rendering *r, const ls_datum *a, const ls_datum *b, bool *equal_p) {
    LS_TRY(ls_render_count(r, 1));
    if (ls_datum_is_number(a) && ls_datum_is_number(b)) {
        int order;
        LS_TRY(ls_datum_compare(r, a, b, &order));
        *equal_p = order == 0;
        return LS_OK;
    }
    *equal_p = false;
    if (a->kind != b->kind) return LS_OK;
    switch (a->kind) {
    case LS_DATUM_UNDEFINED:
    case LS_DATUM_NONE: *equal_p = true; return LS_OK;
    case LS_DATUM_TEXT:
        LS_TRY(ls_render_count(r, a->n / 64));
        *equal_p = a->n == b->n && (a->n == 0 || memcmp(a->text, b->text, a->n) == 0);
        return LS_OK;
    case LS_DATUM_LIST:
    case LS_DATUM_DICT: return equal_items(r, a, b, equal_p);
    default: *equal_p = a->items == b->items; return LS_OK;
    }
}

ls_status ls_datum_compare(ls_rendering *r, const ls_datum *a, const ls_datum *b, int *order_p) {
    if (ls_datum_is_number(a) && ls_datum_is_number(b)) {
        if (a->kind != LS_DATUM_REAL && b->kind != LS_DATUM_REAL) {
            int64_t x = integer_of(a), y = integer_of(b);
            *order_p = (x > y) - (x < y);
        } else {
            double x = ls_datum_number(a), y = ls_datum_number(b);
            *order_p = (x > y) - (x < y);
        }
        return LS_OK;
    }
    if (a->kind != LS_DATUM_TEXT || b->kind != LS_DATUM_TEXT)
        return ls_render_fail(r, "%s and %s can't be compared", ls_datum_kind_name(a),
                              ls_datum_kind_name(b));
    size_t n = a->n < b->n ? a->n : b->n;
    LS_TRY(ls_render_count(r, n / 64));
    int order = n ? memcmp(a->text, b->text, n) : 0;
    *order_p = order ? order : (a->n > b->n) - (a->n < b->n);
    return LS_OK;
}

ls_status ls_datum_contains(ls_rendering *r, const ls_datum *all, const ls_datum *one,
                            bool *found_p) {
    *found_p = false;
    LS_TRY(ls_render_count(r, all->n / 16));
    if (all->kind == LS_DATUM_TEXT && one->kind == LS_DATUM_TEXT) {
        *found_p = one->n == 0 || memmem(all->text, all->n, one->text, one->n) != NULL;
        return LS_OK;
    }
    if (all->kind == LS_DATUM_DICT) {
        *found_p = one->kind == LS_DATUM_TEXT && ls_dict_find(all, one->text, one->n) != NULL;
        return LS_OK;
    }
    if (all->kind != LS_DATUM_LIST && all->kind != LS_DATUM_UNDEFINED)
        return ls_render_fail(r, "\"in\" looks into a text, list or dict, not into %s",
                              ls_datum_kind_name(all));
    for (size_t i = 0; all->kind == LS_DATUM_LIST && !*found_p && i < all->n; i++)
        LS_TRY(ls_datum_equal(r, &all->items[i], one, found_p));
    return LS_OK;
}

const ls_datum *ls_dict_find(const ls_datum *dict, const char *key, size_t n) {
    for (size_t i = 0; i < dict->n; i++) {
        const ls_datum *k = &dict->items[2 * i];
        if (k->kind == LS_DATUM_TEXT && k->n == n && (n == 0 || memcmp(k->text, key, n) == 0))
            return k + 1;
    }
    return NULL;
}

/* ---- items ---- */

static ls_status characters_of(ls_rendering *r, const ls_datum *x, ls_datum *list_p) {
    void *room;
    size_t n = ls_characters(x->text, x->n), at = 0;
    LS_TRY(ls_render_alloc(r, n * sizeof(ls_datum), &room));
    ls_datum *items = room;
    for (size_t i = 0; i < n; i++) {
        uint32_t point;
        size_t k = ls_character(x->text + at, x->n - at, &point);
        items[i] = ls_datum_text(x->text + at, k);
        at += k;
    }
    *list_p = (ls_datum){.kind = LS_DATUM_LIST, .n = n, .items = items};
    return LS_OK;
}

static ls_status keys_of(ls_rendering *r, const ls_datum *x, ls_datum *list_p) {
    void *room;
    LS_TRY(ls_render_alloc(r, x->n * sizeof(ls_datum), &room));
    for (size_t i = 0; i < x->n; i++) ((ls_datum *)room)[i] = x->items[2 * i];
    *list_p = (ls_datum){.kind = LS_DATUM_LIST, .n = x->n, .items = room};
    return LS_OK;
}

ls_status ls_datum_items(ls_rendering *r, const ls_datum *x, ls_datum *list_p) {
    switch (x->kind) {
    case LS_DATUM_UNDEFINED: *list_p = (ls_datum){.kind = LS_DATUM_LIST}; return LS_OK;
    case LS_DATUM_LIST: *list_p = *x; return LS_OK;
    case LS_DATUM_TEXT: return characters_of(r, x, list_p);
    case LS_DATUM_DICT: return keys_of(r, x, list_p);
    default: return ls_render_fail(r, "%s has no items to go through", ls_datum_kind_name(x));
    }
}

ls_status ls_datum_length(ls_rendering *r, const ls_datum *x, size_t *n_p) {
    switch (x->kind) {
    case LS_DATUM_UNDEFINED: *n_p = 0; return LS_OK;
    case LS_DATUM_TEXT: *n_p = ls_characters(x->text, x->n); return LS_OK;
    case LS_DATUM_LIST:
    case LS_DATUM_DICT: *n_p = x->n; return LS_OK;
    default: return ls_render_fail(r, "%s has no length", ls_datum_kind_name(x));
    }
}
