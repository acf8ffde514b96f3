/* lists.c - filters of lists and dicts: they choose, map, sort and count items.
 *
 * Many of Jinja's return an iterator, which is true, has no length, and can be gone through once;
 * so do these. The items are computed at once. */
#include <string.h>

#include "template/methods.h"

typedef const ls_template_arguments arguments;

/* ---- a member of each item ---- */

/* A name, or several with dots between them, of which numbers are places. */
static ls_status member_of(ls_rendering *r, const ls_datum *attribute, const ls_datum *otherwise,
                           const ls_datum *item, ls_datum *x_p) {
    *x_p = *item;
    if (attribute->kind != LS_DATUM_TEXT) {
        if (!ls_datum_is_integer(attribute))
            return ls_render_fail(r, "an attribute is a text or an integer, not %s",
                                  ls_datum_kind_name(attribute));
        LS_TRY(ls_datum_item(r, item, attribute, x_p));
        if (x_p->kind == LS_DATUM_UNDEFINED && otherwise) *x_p = *otherwise;
        return LS_OK;
    }
    const char *s = attribute->text, *end = s + attribute->n;
    for (bool more = true; more;) {
        const char *dot = memchr(s, '.', (size_t)(end - s));
        more = dot != NULL;
        ls_datum key = ls_datum_text(s, (size_t)((dot ? dot : end) - s)), from = *x_p;
        size_t i = 0;
        int64_t number = 0;
        for (; i < key.n && key.n < 10 && s[i] >= '0' && s[i] <= '9'; i++)
            number = 10 * number + s[i] - '0';
        if (i == key.n && i) key = ls_datum_integer(number);
        LS_TRY(ls_datum_item(r, &from, &key, x_p));
        if (x_p->kind == LS_DATUM_UNDEFINED && otherwise) *x_p = *otherwise;
        s = dot ? dot + 1 : end;
    }
    return LS_OK;
}

ls_status ls_item_key_of(ls_rendering *r, const ls_item_key *key, const ls_datum *item,
                         ls_datum *x_p) {
    *x_p = *item;
    if (key->attribute && key->attribute->kind != LS_DATUM_NONE) {
        if (key->attribute->kind == LS_DATUM_TEXT && key->attribute->n &&
            memchr(key->attribute->text, ',', key->attribute->n))
            return ls_render_fail(r, "several attributes are not supported");
        LS_TRY(member_of(r, key->attribute, key->otherwise, item, x_p));
    }
    if (!key->any_case || x_p->kind != LS_DATUM_TEXT) return LS_OK;
    ls_datum text = *x_p;
    return ls_text_case(r, &text, 'l', x_p);
}

static ls_item_key key_of(arguments *a, int in_case, int attribute) {
    return (ls_item_key){.any_case = !ls_argument_is_true(a, in_case),
                         .attribute = a->given[attribute]};
}

/* ---- choose ---- */

/* The arguments from number `skip` on. */
static ls_status rest_of(ls_rendering *r, arguments *a, int skip, ls_template_arguments *rest) {
    *rest = *a;
    if (a->n < skip) return ls_render_fail(r, "an argument is missing");
    rest->n -= skip;
    if (skip) rest->list += skip;
    return LS_OK;
}

/* The filter or test that a text names. */
static ls_status named(ls_rendering *r, const ls_datum *name, bool test,
                       const ls_template_entry **entry_p) {
    ls_datum text;
    if (name->kind != LS_DATUM_TEXT)
        return ls_render_fail(r, "the name of a %s is missing", test ? "test" : "filter");
    LS_TRY(ls_datum_copy_text(r, name->text, name->n, &text));
    *entry_p = test ? ls_template_test(text.text) : ls_template_filter(text.text);
    if (*entry_p && (*entry_p)->call) return LS_OK;
    return ls_render_fail(r, "the %s \"%s\" is not supported", test ? "test" : "filter", text.text);
}

/* Items whose test (argument `at`, with those behind it) says `keep`; at 1: the test of the member
 * that argument 0 names. */
static ls_status choose(ls_rendering *r, const ls_datum *x, arguments *a, int at, bool keep,
                        ls_datum *y_p) {
    ls_datum list, is, *kept;
    ls_template_arguments rest;
    const ls_template_entry *test = NULL;
    size_t n = 0;
    LS_TRY(rest_of(r, a, a->n > at ? at + 1 : at, &rest));
    if (a->n > at) LS_TRY(named(r, &a->list[at], true, &test));
    if (!test && a->nkeywords) return ls_render_fail(r, "these arguments have no test");
    if (!ls_datum_is_true(x)) return ls_datum_iterator(r, &(ls_datum){.kind = LS_DATUM_LIST}, y_p);
    LS_TRY(ls_datum_items(r, x, &list));
    LS_TRY(ls_datum_new_list(r, list.n, &kept, &is));
    LS_TRY(ls_render_enter(r));
    for (size_t i = 0; i < list.n; i++) {
        ls_datum v = list.items[i];
        if (at) LS_TRY(member_of(r, &a->list[0], NULL, &list.items[i], &v));
        is = v;
        if (test) LS_TRY(ls_template_apply(r, test, &v, &rest, &is));
        if (ls_datum_is_true(&is) == keep) kept[n++] = list.items[i];
        LS_TRY(ls_render_count(r, 1));
    }
    r->depth--;
    return ls_datum_iterator(r, &(ls_datum){.kind = LS_DATUM_LIST, .n = n, .items = kept}, y_p);
}

#define CHOOSE(name, at, keep)                                                                     \
    static ls_status name(ls_rendering *r, const ls_datum *x, arguments *a, ls_datum *y_p) {       \
        return choose(r, x, a, at, keep, y_p);                                                     \
    }
CHOOSE(select_items, 0, true)
CHOOSE(reject, 0, false)
CHOOSE(selectattr, 1, true)
CHOOSE(rejectattr, 1, false)

/* map(attribute='name', default=...) or map('filter', arguments). */
static ls_status map(ls_rendering *r, const ls_datum *x, arguments *a, ls_datum *y_p) {
    const ls_datum *member = a->n ? NULL : ls_argument_keyword(a, "attribute");
    const ls_datum *otherwise = ls_argument_keyword(a, "default");
    const ls_template_entry *filter = NULL;
    ls_template_arguments rest;
    ls_datum list, *values;
    if (otherwise && otherwise->kind == LS_DATUM_NONE) otherwise = NULL;
    if (member && a->nkeywords > 1 + (ls_argument_keyword(a, "default") != NULL))
        return ls_render_fail(r, "map() takes \"attribute\" and \"default\"");
    LS_TRY(rest_of(r, a, !member, &rest));
    if (!member) LS_TRY(named(r, &a->list[0], false, &filter));
    LS_TRY(ls_datum_new_list(r, 0, &values, &list));
    if (ls_datum_is_true(x)) LS_TRY(ls_datum_items(r, x, &list));
    LS_TRY(ls_datum_new_list(r, list.n, &values, y_p));
    LS_TRY(ls_render_enter(r));
    for (size_t i = 0; i < list.n; i++) {
        LS_TRY(ls_render_count(r, 1));
        LS_TRY(member ? member_of(r, member, otherwise, &list.items[i], &values[i])
                      : ls_template_apply(r, filter, &list.items[i], &rest, &values[i]));
    }
    r->depth--;
    list = *y_p;
    return ls_datum_iterator(r, &list, y_p);
}

/* ---- sort ---- */

static ls_status sort(ls_rendering *r, const ls_datum *x, arguments *a, ls_datum *y_p) {
    ls_datum list;
    ls_item_key key = key_of(a, 1, 2);
    LS_TRY(ls_datum_items(r, x, &list));
    return ls_items_sort(r, &key, ls_argument_is_true(a, 0), &list, y_p);
}

/* Pairs of a dict by their key, or by their value. */
static ls_status dictsort(ls_rendering *r, const ls_datum *x, arguments *a, ls_datum *y_p) {
    const ls_datum *by = a->given[1];
    ls_datum list, place = ls_datum_integer(by && ls_datum_is_text(by, "value"));
    ls_item_key key = {.any_case = !ls_argument_is_true(a, 0), .attribute = &place};
    if (by && !ls_datum_is_text(by, "key") && !place.integer)
        return ls_render_fail(r, "dictsort is by \"key\" or \"value\"");
    LS_TRY(ls_dict_items(r, x, &list));
    return ls_items_sort(r, &key, ls_argument_is_true(a, 2), &list, y_p);
}

/* The smallest or largest item; the first of equal ones. */
static ls_status extreme(ls_rendering *r, const ls_datum *x, arguments *a, int sign,
                         ls_datum *y_p) {
    ls_datum list, best, key;
    ls_item_key by = key_of(a, 0, 1);
    LS_TRY(ls_datum_items(r, x, &list));
    *y_p = ls_datum_undefined("item of an empty list");
    for (size_t i = 0; i < list.n; i++) {
        int order = 1;
        LS_TRY(ls_item_key_of(r, &by, &list.items[i], &key));
        if (i) LS_TRY(ls_datum_compare(r, &key, &best, &order));
        if (i && order * sign <= 0) continue;
        best = key;
        *y_p = list.items[i];
    }
    return LS_OK;
}
static ls_status least(ls_rendering *r, const ls_datum *x, arguments *a, ls_datum *y_p) {
    return extreme(r, x, a, -1, y_p);
}
static ls_status most(ls_rendering *r, const ls_datum *x, arguments *a, ls_datum *y_p) {
    return extreme(r, x, a, 1, y_p);
}

/* The first item of each key. */
static ls_status unique(ls_rendering *r, const ls_datum *x, arguments *a, ls_datum *y_p) {
    ls_datum list, *keys, *kept, all;
    ls_item_key by = key_of(a, 0, 1);
    size_t n = 0;
    LS_TRY(ls_datum_items(r, x, &list));
    LS_TRY(ls_datum_new_list(r, list.n, &keys, &all));
    LS_TRY(ls_datum_new_list(r, list.n, &kept, &all));
    for (size_t i = 0; i < list.n; i++) {
        bool known = false;
        LS_TRY(ls_item_key_of(r, &by, &list.items[i], &keys[n]));
        if (keys[n].kind == LS_DATUM_LIST || keys[n].kind == LS_DATUM_DICT)
            return ls_render_fail(r, "unique does not take %s", ls_datum_kind_name(&keys[n]));
        for (size_t k = 0; !known && k < n; k++)
            LS_TRY(ls_datum_equal(r, &keys[k], &keys[n], &known));
        if (!known) kept[n++] = list.items[i];
    }
    all.n = n;
    return ls_datum_iterator(r, &all, y_p);
}

static ls_status sum(ls_rendering *r, const ls_datum *x, arguments *a, ls_datum *y_p) {
    ls_datum list, value, so_far = a->given[1] ? *a->given[1] : ls_datum_integer(0);
    ls_item_key by = {.attribute = a->given[0]};
    if (so_far.kind == LS_DATUM_TEXT) return ls_render_fail(r, "sum does not join texts");
    LS_TRY(ls_datum_items(r, x, &list));
    for (size_t i = 0; i < list.n; i++) {
        LS_TRY(ls_render_count(r, 1));
        LS_TRY(ls_item_key_of(r, &by, &list.items[i], &value));
        ls_datum before = so_far;
        LS_TRY(ls_datum_math(r, "+", &before, &value, &so_far));
    }
    *y_p = so_far;
    return LS_OK;
}

/* ---- other ---- */

static ls_status list_of(ls_rendering *r, const ls_datum *x, arguments *a, ls_datum *y_p) {
    (void)a;
    return ls_datum_items(r, x, y_p);
}

static ls_status items(ls_rendering *r, const ls_datum *x, arguments *a, ls_datum *y_p) {
    (void)a;
    ls_datum list = {.kind = LS_DATUM_LIST};
    if (x->kind != LS_DATUM_UNDEFINED) LS_TRY(ls_dict_items(r, x, &list));
    return ls_datum_iterator(r, &list, y_p);
}

static ls_status first(ls_rendering *r, const ls_datum *x, arguments *a, ls_datum *y_p) {
    (void)a;
    ls_datum list;
    size_t taken = x->kind == LS_DATUM_ITERATOR ? *x->taken : 0;
    LS_TRY(ls_datum_items(r, x, &list));
    *y_p = list.n ? list.items[0] : ls_datum_undefined("item");
    if (x->kind == LS_DATUM_ITERATOR && list.n) *x->taken = taken + 1;
    return LS_OK;
}

static ls_status last(ls_rendering *r, const ls_datum *x, arguments *a, ls_datum *y_p) {
    (void)a;
    ls_datum list;
    if (x->kind == LS_DATUM_ITERATOR) return ls_render_fail(r, "an iterator has no last item");
    LS_TRY(ls_datum_items(r, x, &list));
    *y_p = list.n ? list.items[list.n - 1] : ls_datum_undefined("item");
    return LS_OK;
}

static ls_status reverse(ls_rendering *r, const ls_datum *x, arguments *a, ls_datum *y_p) {
    (void)a;
    ls_datum down[3] = {ls_datum_none(), ls_datum_none(), ls_datum_integer(-1)}, list = *x;
    if (x->kind == LS_DATUM_TEXT) return ls_datum_slice(r, x, down, y_p);
    LS_TRY(ls_datum_items(r, x, &list));
    LS_TRY(ls_datum_slice(r, &list, down, y_p));
    list = *y_p;
    return x->kind == LS_DATUM_ITERATOR ? LS_OK : ls_datum_iterator(r, &list, y_p);
}

static ls_status join(ls_rendering *r, const ls_datum *x, arguments *a, ls_datum *y_p) {
    ls_datum between = ls_datum_text("", 0), list, *values, all;
    if (a->given[0]) LS_TRY(ls_datum_str(r, a->given[0], &between));
    LS_TRY(ls_datum_items(r, x, &list));
    LS_TRY(ls_datum_new_list(r, list.n, &values, &all));
    ls_item_key by = {.attribute = a->given[1]};
    for (size_t i = 0; i < list.n; i++) LS_TRY(ls_item_key_of(r, &by, &list.items[i], &values[i]));
    LS_TRY(ls_text_join(r, &all, &between, y_p));
    y_p->safe = false;
    return LS_OK;
}

/* Lists of `size` items each; the last one is filled up. */
static ls_status batch(ls_rendering *r, const ls_datum *x, arguments *a, ls_datum *y_p) {
    int64_t size;
    ls_datum list, *lists, *items, all;
    LS_TRY(ls_argument_integer(r, a, 0, 0, &size));
    LS_TRY(ls_datum_items(r, x, &list));
    if (size < 1 || size > LS_TEMPLATE_OUTPUT)
        return ls_render_fail(r, "batch takes 1 item or more");
    size_t k = (size_t)size, n = (list.n + k - 1) / k;
    LS_TRY(ls_datum_new_list(r, n, &lists, &all));
    for (size_t i = 0; i < n; i++) {
        size_t left = list.n - i * k, m = left < k ? left : k;
        bool fill = m < k && a->given[1] && a->given[1]->kind != LS_DATUM_NONE;
        LS_TRY(ls_datum_new_list(r, fill ? k : m, &items, &lists[i]));
        for (size_t j = 0; j < lists[i].n; j++)
            items[j] = j < m ? list.items[i * k + j] : *a->given[1];
    }
    return ls_datum_iterator(r, &all, y_p);
}

const ls_template_entry ls_list_filters[] = {{"batch", batch, "linecount | fill_with"},
                                             {"dictsort", dictsort, "| case_sensitive by reverse"},
                                             {"first", first, ""},
                                             {"items", items, ""},
                                             {"join", join, "| d attribute"},
                                             {"last", last, ""},
                                             {"list", list_of, ""},
                                             {"map", map, "*"},
                                             {"max", most, "| case_sensitive attribute"},
                                             {"min", least, "| case_sensitive attribute"},
                                             {"reject", reject, "*"},
                                             {"rejectattr", rejectattr, "*"},
                                             {"reverse", reverse, ""},
                                             {"select", select_items, "*"},
                                             {"selectattr", selectattr, "*"},
                                             {"sort", sort, "| reverse case_sensitive attribute"},
                                             {"sum", sum, "| attribute start"},
                                             {"unique", unique, "| case_sensitive attribute"},
                                             {NULL, NULL, NULL}};
