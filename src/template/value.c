/* value.c - values: made, compared, searched. */
#include "template/value.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "template/characters.h"

/* ---- limits and errors ---- */

ls_status ls_render_fail(ls_rendering *r, const char *fmt, ...) {
    char what[200];
    va_list args;
    va_start(args, fmt);
    vsnprintf(what, sizeof what, fmt, args);
    va_end(args);
    return ls_fail(r->e, LS_EINVAL, "%s:%d:%d: %s", r->t->name, r->at ? r->at->line : 1,
                   r->at ? r->at->column : 1, what);
}

ls_status ls_render_count(ls_rendering *r, size_t n) {
    if (n > LS_TEMPLATE_STEPS || (r->steps += (int64_t)n) > LS_TEMPLATE_STEPS)
        return ls_render_fail(r, "the template takes more than %d steps", LS_TEMPLATE_STEPS);
    return LS_OK;
}

ls_status ls_render_enter(ls_rendering *r) {
    if (++r->depth > LS_TEMPLATE_DEPTH)
        return ls_render_fail(r, "expressions, calls or values are nested more than %d deep",
                              LS_TEMPLATE_DEPTH);
    return LS_OK;
}

ls_status ls_render_alloc(ls_rendering *r, size_t nbytes, void **p_p) {
    if (nbytes > LS_TEMPLATE_MEMORY || r->arena.nbytes + nbytes > LS_TEMPLATE_MEMORY)
        return ls_render_fail(r, "the template needs more than %d MB of memory",
                              LS_TEMPLATE_MEMORY >> 20);
    *p_p = ls_template_alloc(&r->arena, nbytes);
    return LS_OK;
}

/* ---- values ---- */

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

ls_status ls_datum_new_list(ls_rendering *r, size_t n, ls_datum **items_p, ls_datum *list_p) {
    void *room;
    LS_TRY(ls_render_alloc(r, n * sizeof(ls_datum), &room));
    *items_p = room;
    *list_p = (ls_datum){.kind = LS_DATUM_LIST, .n = n, .items = room};
    for (size_t i = 0; i < n; i++) (*items_p)[i] = ls_datum_none();
    return LS_OK;
}

ls_status ls_datum_iterator(ls_rendering *r, const ls_datum *list, ls_datum *x_p) {
    void *taken;
    LS_TRY(ls_render_alloc(r, sizeof(size_t), &taken));
    *x_p = *list;
    x_p->kind = LS_DATUM_ITERATOR;
    x_p->taken = taken;
    return LS_OK;
}

/* ---- from JSON ---- */

static ls_status of_array(ls_rendering *r, const ls_json *j, ls_datum *x_p) {
    ls_datum *items;
    LS_TRY(ls_datum_new_list(r, ls_json_count(j), &items, x_p));
    for (size_t i = 0; i < x_p->n; i++) LS_TRY(ls_datum_of_json(r, ls_json_at(j, i), &items[i]));
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

bool ls_datum_has_items(const ls_datum *x) {
    return x->kind == LS_DATUM_LIST || x->kind == LS_DATUM_TUPLE || x->kind == LS_DATUM_RANGE ||
           x->kind == LS_DATUM_VIEW;
}

bool ls_datum_is_true(const ls_datum *x) {
    switch (x->kind) {
    case LS_DATUM_UNDEFINED:
    case LS_DATUM_NONE: return false;
    case LS_DATUM_BOOL: return x->truth;
    case LS_DATUM_INTEGER: return x->integer != 0;
    case LS_DATUM_REAL: return !(x->real <= 0 && x->real >= 0);
    case LS_DATUM_TEXT:
    case LS_DATUM_DICT: return x->n > 0;
    default: return !ls_datum_has_items(x) || x->n > 0;
    }
}

bool ls_datum_is_integer(const ls_datum *x) {
    return x->kind == LS_DATUM_INTEGER || x->kind == LS_DATUM_BOOL;
}

bool ls_datum_is_number(const ls_datum *x) {
    return ls_datum_is_integer(x) || x->kind == LS_DATUM_REAL;
}

int64_t ls_datum_integer_of(const ls_datum *x) {
    return x->kind == LS_DATUM_BOOL ? x->truth : x->integer;
}

double ls_datum_number(const ls_datum *x) {
    return x->kind == LS_DATUM_REAL ? x->real : (double)ls_datum_integer_of(x);
}

bool ls_datum_is_text(const ls_datum *x, const char *text) {
    return x->kind == LS_DATUM_TEXT && x->n == strlen(text) && memcmp(x->text, text, x->n) == 0;
}

const char *ls_datum_kind_name(const ls_datum *x) {
    static const char *const names[] = {"undefined",   "none",        "a bool",      "an integer",
                                        "a number",    "text",        "a list",      "a tuple",
                                        "a range",     "a dict view", "an iterator", "a dict",
                                        "a namespace", "the loop",    "a macro",     "a function"};
    return names[x->kind];
}

/* An integer and a real are compared as they are, not as two reals. */
static int compare_mixed(int64_t a, double b) {
    if (isnan(b)) return 1;
    if (b >= 9223372036854775808.0) return -1;
    if (b < -9223372036854775808.0) return 1;
    int64_t whole = (int64_t)b;
    double rest = b - (double)whole;
    return a != whole ? (a > whole) - (a < whole) : (rest < 0) - (rest > 0);
}

static int compare_numbers(const ls_datum *a, const ls_datum *b) {
    if (a->kind == LS_DATUM_REAL && b->kind == LS_DATUM_REAL)
        return (a->real > b->real) - (a->real < b->real);
    if (a->kind == LS_DATUM_REAL) return -compare_mixed(ls_datum_integer_of(b), a->real);
    int64_t x = ls_datum_integer_of(a);
    if (b->kind == LS_DATUM_REAL) return compare_mixed(x, b->real);
    int64_t y = ls_datum_integer_of(b);
    return (x > y) - (x < y);
}

static ls_status equal_items(ls_rendering *r, const ls_datum *a, const ls_datum *b, bool *is_p) {
    LS_TRY(ls_render_enter(r));
    *is_p = a->n == b->n;
    for (size_t i = 0; *is_p && i < a->n; i++) {
        size_t place = i;
        const ls_datum *one = &a->items[i];
        if (a->kind == LS_DATUM_DICT) {
            LS_TRY(ls_dict_find(r, b, &a->items[2 * i], &place));
            one = &a->items[2 * i + 1];
            *is_p = place > 0;
        }
        if (*is_p) LS_TRY(ls_datum_equal(r, one, &b->items[place], is_p));
    }
    r->depth--;
    return LS_OK;
}

ls_status ls_datum_equal(ls_rendering *r, const ls_datum *a, const ls_datum *b, bool *equal_p) {
    LS_TRY(ls_render_count(r, 1));
    if (ls_datum_is_number(a) && ls_datum_is_number(b)) {
        *equal_p = compare_numbers(a, b) == 0;
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
    case LS_DATUM_TUPLE:
    case LS_DATUM_RANGE:
    case LS_DATUM_DICT: return equal_items(r, a, b, equal_p);
    case LS_DATUM_SPACE:
    case LS_DATUM_LOOP:
    case LS_DATUM_MACRO: *equal_p = a->items == b->items; return LS_OK;
    default: return ls_render_fail(r, "two of %s can't be compared", ls_datum_kind_name(a));
    }
}

/* The first items that differ decide. */
static ls_status compare_items(ls_rendering *r, const ls_datum *a, const ls_datum *b,
                               int *order_p) {
    LS_TRY(ls_render_enter(r));
    size_t i = 0, n = a->n < b->n ? a->n : b->n;
    for (bool equal = true; i < n; i++) {
        LS_TRY(ls_datum_equal(r, &a->items[i], &b->items[i], &equal));
        if (!equal) break;
    }
    *order_p = (a->n > b->n) - (a->n < b->n);
    if (i < n) LS_TRY(ls_datum_compare(r, &a->items[i], &b->items[i], order_p));
    r->depth--;
    return LS_OK;
}

ls_status ls_datum_compare(ls_rendering *r, const ls_datum *a, const ls_datum *b, int *order_p) {
    LS_TRY(ls_render_count(r, 1));
    if (ls_datum_is_number(a) && ls_datum_is_number(b)) {
        *order_p = compare_numbers(a, b);
        return LS_OK;
    }
    if (a->kind == b->kind && (a->kind == LS_DATUM_LIST || a->kind == LS_DATUM_TUPLE))
        return compare_items(r, a, b, order_p);
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
        size_t place;
        if (one->kind == LS_DATUM_LIST || one->kind == LS_DATUM_DICT || one->kind == LS_DATUM_VIEW)
            return ls_render_fail(r, "%s can't be the key of a dict", ls_datum_kind_name(one));
        LS_TRY(ls_dict_find(r, all, one, &place));
        *found_p = place > 0;
        return LS_OK;
    }
    if (all->kind == LS_DATUM_UNDEFINED) return LS_OK;
    bool once = all->kind == LS_DATUM_ITERATOR;
    if (!once && !ls_datum_has_items(all))
        return ls_render_fail(r, "\"in\" looks into a text, list or dict, not into %s",
                              ls_datum_kind_name(all));
    for (size_t i = once ? *all->taken : 0; !*found_p && i < all->n; i++) {
        if (once) (*all->taken)++;
        LS_TRY(ls_datum_equal(r, &all->items[i], one, found_p));
    }
    return LS_OK;
}

/* ---- dicts ---- */

ls_status ls_dict_find(ls_rendering *r, const ls_datum *dict, const ls_datum *key,
                       size_t *place_p) {
    *place_p = 0;
    LS_TRY(ls_render_count(r, dict->n / 16));
    for (size_t i = 0; i < dict->n; i++) {
        const ls_datum *k = &dict->items[2 * i];
        bool is = false;
        if (k->kind != key->kind && !(ls_datum_is_number(k) && ls_datum_is_number(key))) continue;
        if (k->kind == LS_DATUM_TEXT)
            is = k->n == key->n && (k->n == 0 || memcmp(k->text, key->text, k->n) == 0);
        else
            LS_TRY(ls_datum_equal(r, k, key, &is));
        if (!is) continue;
        *place_p = 2 * i + 1;
        return LS_OK;
    }
    return LS_OK;
}

ls_status ls_dict_put(ls_rendering *r, ls_datum *dict, const ls_datum *key, const ls_datum *value) {
    size_t place;
    if (key->kind != LS_DATUM_TEXT && key->kind != LS_DATUM_NONE && !ls_datum_is_number(key))
        return ls_render_fail(r, "%s can't be the key of a dict", ls_datum_kind_name(key));
    LS_TRY(ls_dict_find(r, dict, key, &place));
    ls_datum *items = (ls_datum *)(uintptr_t)dict->items;
    if (!place) {
        place = 2 * dict->n++ + 1;
        items[place - 1] = *key;
    }
    items[place] = *value;
    return LS_OK;
}

/* ---- items ---- */

static ls_status characters_of(ls_rendering *r, const ls_datum *x, ls_datum *list_p) {
    ls_datum *items;
    size_t n = ls_characters(x->text, x->n), at = 0;
    LS_TRY(ls_datum_new_list(r, n, &items, list_p));
    for (size_t i = 0; i < n; i++) {
        uint32_t point;
        size_t k = ls_character(x->text + at, x->n - at, &point);
        items[i] = ls_datum_text(x->text + at, k);
        at += k;
    }
    return LS_OK;
}

static ls_status keys_of(ls_rendering *r, const ls_datum *x, ls_datum *list_p) {
    ls_datum *items;
    LS_TRY(ls_datum_new_list(r, x->n, &items, list_p));
    for (size_t i = 0; i < x->n; i++) items[i] = x->items[2 * i];
    return LS_OK;
}

ls_status ls_datum_items(ls_rendering *r, const ls_datum *of, ls_datum *list_p) {
    const ls_datum copy = *of, *x = &copy; /* both may be the same */
    size_t taken = 0;
    switch (x->kind) {
    case LS_DATUM_UNDEFINED: *list_p = (ls_datum){.kind = LS_DATUM_LIST}; return LS_OK;
    case LS_DATUM_LIST:
    case LS_DATUM_TUPLE:
    case LS_DATUM_RANGE:
    case LS_DATUM_VIEW: break;
    case LS_DATUM_ITERATOR:
        taken = *x->taken;
        *x->taken = x->n;
        break;
    case LS_DATUM_TEXT: return characters_of(r, x, list_p);
    case LS_DATUM_DICT: return keys_of(r, x, list_p);
    default: return ls_render_fail(r, "%s has no items to go through", ls_datum_kind_name(x));
    }
    *list_p = (ls_datum){
        .kind = LS_DATUM_LIST, .n = x->n - taken, .items = x->items ? x->items + taken : NULL};
    return LS_OK;
}

ls_status ls_datum_length(ls_rendering *r, const ls_datum *x, size_t *n_p) {
    *n_p = x->n;
    if (x->kind == LS_DATUM_TEXT) *n_p = ls_characters(x->text, x->n);
    if (x->kind == LS_DATUM_UNDEFINED) *n_p = 0;
    if (x->kind == LS_DATUM_LOOP) *n_p = x->loop->n;
    if (x->kind == LS_DATUM_TEXT || x->kind == LS_DATUM_UNDEFINED || x->kind == LS_DATUM_DICT ||
        x->kind == LS_DATUM_LOOP || ls_datum_has_items(x))
        return LS_OK;
    return ls_render_fail(r, "%s has no length", ls_datum_kind_name(x));
}
