/* methods.c - methods of lists, dicts and loops, as Python has them. Those that would change a
 * value do not exist, as in Jinja's sandbox. */
#include "template/methods.h"

#include <string.h>

typedef const ls_template_arguments arguments;

/* ---- dicts ---- */

ls_status ls_dict_items(ls_rendering *r, const ls_datum *x, ls_datum *list_p) {
    ls_datum *pairs;
    if (x->kind != LS_DATUM_DICT) return ls_render_fail(r, "%s has no keys", ls_datum_kind_name(x));
    LS_TRY(ls_datum_new_list(r, x->n, &pairs, list_p));
    for (size_t i = 0; i < x->n; i++)
        pairs[i] = (ls_datum){.kind = LS_DATUM_TUPLE, .n = 2, .items = &x->items[2 * i]};
    return LS_OK;
}

static ls_status items(ls_rendering *r, const ls_datum *x, arguments *a, ls_datum *y_p) {
    (void)a;
    LS_TRY(ls_dict_items(r, x, y_p));
    y_p->kind = LS_DATUM_VIEW;
    return LS_OK;
}

/* A list of the keys of a dict (which 0), or of its values (1). */
static ls_status half_of(ls_rendering *r, const ls_datum *x, size_t which, ls_datum *y_p) {
    ls_datum *list;
    LS_TRY(ls_datum_new_list(r, x->n, &list, y_p));
    y_p->kind = LS_DATUM_VIEW;
    for (size_t i = 0; i < x->n; i++) list[i] = x->items[2 * i + which];
    return LS_OK;
}

static ls_status keys(ls_rendering *r, const ls_datum *x, arguments *a, ls_datum *y_p) {
    (void)a;
    return half_of(r, x, 0, y_p);
}

static ls_status values(ls_rendering *r, const ls_datum *x, arguments *a, ls_datum *y_p) {
    (void)a;
    return half_of(r, x, 1, y_p);
}

static ls_status get(ls_rendering *r, const ls_datum *x, arguments *a, ls_datum *y_p) {
    size_t place;
    const ls_datum *key = a->given[0], *otherwise = a->given[1];
    if (key->kind == LS_DATUM_LIST || key->kind == LS_DATUM_DICT || key->kind == LS_DATUM_VIEW)
        return ls_render_fail(r, "%s can't be the key of a dict", ls_datum_kind_name(key));
    LS_TRY(ls_dict_find(r, x, key, &place));
    *y_p = place ? x->items[place] : otherwise ? *otherwise : ls_datum_none();
    return LS_OK;
}

static ls_status copy(ls_rendering *r, const ls_datum *x, arguments *a, ls_datum *y_p) {
    (void)r;
    (void)a;
    *y_p = *x;
    return LS_OK;
}

/* ---- lists and tuples ---- */

static ls_status count(ls_rendering *r, const ls_datum *x, arguments *a, ls_datum *y_p) {
    int64_t n = 0;
    for (size_t i = 0; i < x->n; i++) {
        bool equal;
        LS_TRY(ls_datum_equal(r, &x->items[i], a->given[0], &equal));
        n += equal;
    }
    *y_p = ls_datum_integer(n);
    return LS_OK;
}

static ls_status index_of(ls_rendering *r, const ls_datum *x, arguments *a, ls_datum *y_p) {
    for (size_t i = 0; i < x->n; i++) {
        bool equal;
        LS_TRY(ls_datum_equal(r, &x->items[i], a->given[0], &equal));
        *y_p = ls_datum_integer((int64_t)i);
        if (equal) return LS_OK;
    }
    return ls_render_fail(r, "the value is not among the items");
}

/* ---- a loop ---- */

static ls_status cycle(ls_rendering *r, const ls_datum *x, arguments *a, ls_datum *y_p) {
    if (!a->n || a->nkeywords) return ls_render_fail(r, "loop.cycle() takes one value or more");
    *y_p = a->list[x->loop->i % (size_t)a->n];
    return LS_OK;
}

/* Are these other values than those of the call before? */
static ls_status changed(ls_rendering *r, const ls_datum *x, arguments *a, ls_datum *y_p) {
    ls_datum now = {.kind = LS_DATUM_TUPLE, .n = (size_t)a->n, .items = a->list};
    bool same = false;
    void *room;
    if (a->nkeywords) return ls_render_fail(r, "loop.changed() takes no names");
    if (x->loop->changed) LS_TRY(ls_datum_equal(r, x->loop->changed, &now, &same));
    *y_p = ls_datum_bool(!same);
    if (same) return LS_OK;
    LS_TRY(ls_render_alloc(r, sizeof now, &room));
    memcpy(room, &now, sizeof now);
    x->loop->changed = room;
    return LS_OK;
}

/* ---- which there are ---- */

/* Methods without a function change the value: they count as undefined names. */
static const ls_template_entry of_list[] = {
    {"count", count, "/value"}, {"index", index_of, "/value"},
    {"copy", copy, ""},         {"append", NULL, ""},
    {"clear", NULL, ""},        {"extend", NULL, ""},
    {"insert", NULL, ""},       {"pop", NULL, ""},
    {"remove", NULL, ""},       {"reverse", NULL, ""},
    {"sort", NULL, ""},         {NULL, NULL, NULL}};
static const ls_template_entry of_tuple[] = {
    {"count", count, "/value"}, {"index", index_of, "/value"}, {NULL, NULL, NULL}};
static const ls_template_entry of_dict[] = {
    {"items", items, ""},     {"keys", keys, ""},
    {"values", values, ""},   {"get", get, "/key | default"},
    {"copy", copy, ""},       {"clear", NULL, ""},
    {"pop", NULL, ""},        {"popitem", NULL, ""},
    {"setdefault", NULL, ""}, {"update", NULL, ""},
    {NULL, NULL, NULL}};
static const ls_template_entry of_loop[] = {
    {"cycle", cycle, "*"}, {"changed", changed, "*"}, {NULL, NULL, NULL}};
static const ls_template_entry of_none[] = {{NULL, NULL, NULL}};

/* Members that values have in Python, and not here. */
static const char *const missing[] = {
    [LS_DATUM_TEXT] = " casefold encode expandtabs format_map isidentifier isprintable istitle "
                      "maketrans translate ",
    [LS_DATUM_DICT] = " fromkeys ",
    [LS_DATUM_BOOL] =
        " as_integer_ratio bit_count bit_length conjugate denominator from_bytes imag "
        "is_integer numerator real to_bytes ",
    [LS_DATUM_INTEGER] = " as_integer_ratio bit_count bit_length conjugate denominator from_bytes "
                         "imag is_integer numerator real to_bytes ",
    [LS_DATUM_REAL] = " as_integer_ratio conjugate fromhex hex imag is_integer real ",
    [LS_DATUM_RANGE] = " count index start step stop ",
    [LS_DATUM_VIEW] = " isdisjoint mapping ",
    [LS_DATUM_ITERATOR] =
        " close gi_code gi_frame gi_running gi_suspended gi_yieldfrom send throw ",
    [LS_DATUM_MACRO] = " arguments caller catch_kwargs catch_varargs explicit_caller ",
    [LS_DATUM_FUNCTION] = NULL};

static bool is_missing(const ls_datum *self, const char *name) {
    const char *names = self->kind < sizeof missing / sizeof *missing ? missing[self->kind] : NULL;
    size_t n = strlen(name);
    for (const char *at = names; n && at && (at = strstr(at, name)); at += n)
        if (at[-1] == ' ' && at[n] == ' ') return true;
    return false;
}

ls_status ls_template_method(ls_rendering *r, const ls_datum *self, const char *name,
                             const ls_template_entry **method_p) {
    if (self->kind == LS_DATUM_TEXT)
        *method_p = ls_text_method(name);
    else
        *method_p = ls_template_entry_find(self->kind == LS_DATUM_LIST    ? of_list
                                           : self->kind == LS_DATUM_TUPLE ? of_tuple
                                           : self->kind == LS_DATUM_DICT  ? of_dict
                                           : self->kind == LS_DATUM_LOOP  ? of_loop
                                                                          : of_none,
                                           name);
    if (!*method_p && is_missing(self, name))
        return ls_render_fail(r, "the method or member \"%s\" of %s is not supported", name,
                              ls_datum_kind_name(self));
    if (*method_p && self->safe)
        return ls_render_fail(r, "methods of a text marked as safe are not supported");
    return LS_OK;
}
