/* filters.c - filters: x | name(arguments). */
#include <stdlib.h>
#include <string.h>

#include "template/methods.h"

static ls_status trim(ls_rendering *r, const ls_datum *x, const ls_template_arguments *a,
                      ls_datum *y_p) {
    ls_datum text;
    LS_TRY(ls_datum_str(r, x, &text));
    return ls_text_strip(r, &text, a, LS_STRIP_LEFT | LS_STRIP_RIGHT, y_p);
}

static ls_status length(ls_rendering *r, const ls_datum *x, const ls_template_arguments *a,
                        ls_datum *y_p) {
    size_t n;
    LS_TRY(ls_arguments_check(r, a, 0, ""));
    LS_TRY(ls_datum_length(r, x, &n));
    *y_p = ls_datum_integer((int64_t)n);
    return LS_OK;
}

static ls_status tojson(ls_rendering *r, const ls_datum *x, const ls_template_arguments *a,
                        ls_datum *y_p) {
    const ls_datum *indent = ls_template_argument(a, LS_TEMPLATE_ARGUMENTS, "indent");
    LS_TRY(ls_arguments_check(r, a, 0, "indent ensure_ascii"));
    int width = -1;
    if (indent && indent->kind == LS_DATUM_INTEGER) {
        if (indent->integer < 0 || indent->integer > 16)
            return ls_render_fail(r, "tojson indents by 0 to 16");
        width = (int)indent->integer;
    }
    ls_buf out = {0};
    ls_status s = ls_datum_to_json(r, x, width, &out);
    if (s == LS_OK) s = ls_datum_copy_text(r, out.data, out.len, y_p);
    ls_buf_free(&out);
    return s;
}

static ls_status text_of(ls_rendering *r, const ls_datum *x, const ls_template_arguments *a,
                         ls_datum *y_p) {
    LS_TRY(ls_arguments_check(r, a, 0, ""));
    return ls_datum_str(r, x, y_p);
}

static ls_status list_of(ls_rendering *r, const ls_datum *x, const ls_template_arguments *a,
                         ls_datum *y_p) {
    LS_TRY(ls_arguments_check(r, a, 0, ""));
    return ls_datum_items(r, x, y_p);
}

static ls_status items(ls_rendering *r, const ls_datum *x, const ls_template_arguments *a,
                       ls_datum *y_p) {
    LS_TRY(ls_arguments_check(r, a, 0, ""));
    return ls_dict_items(r, x, y_p);
}

/* The first or last item. */
static ls_status end_of(ls_rendering *r, const ls_datum *x, const ls_template_arguments *a,
                        bool last, ls_datum *y_p) {
    ls_datum list;
    LS_TRY(ls_arguments_check(r, a, 0, ""));
    LS_TRY(ls_datum_items(r, x, &list));
    *y_p = list.n ? list.items[last ? list.n - 1 : 0] : ls_datum_undefined("item");
    return LS_OK;
}
static ls_status first(ls_rendering *r, const ls_datum *x, const ls_template_arguments *a,
                       ls_datum *y_p) {
    return end_of(r, x, a, false, y_p);
}
static ls_status last(ls_rendering *r, const ls_datum *x, const ls_template_arguments *a,
                      ls_datum *y_p) {
    return end_of(r, x, a, true, y_p);
}

static ls_status reverse(ls_rendering *r, const ls_datum *x, const ls_template_arguments *a,
                         ls_datum *y_p) {
    ls_datum down[3] = {ls_datum_none(), ls_datum_none(), ls_datum_integer(-1)};
    LS_TRY(ls_arguments_check(r, a, 0, ""));
    return ls_datum_slice(r, x, down, y_p);
}

static ls_status in_case(ls_rendering *r, const ls_datum *x, const ls_template_arguments *a,
                         char which, ls_datum *y_p) {
    ls_datum text;
    LS_TRY(ls_arguments_check(r, a, 0, ""));
    LS_TRY(ls_datum_str(r, x, &text));
    return ls_text_case(r, &text, which, y_p);
}
static ls_status upper(ls_rendering *r, const ls_datum *x, const ls_template_arguments *a,
                       ls_datum *y_p) {
    return in_case(r, x, a, 'u', y_p);
}
static ls_status lower(ls_rendering *r, const ls_datum *x, const ls_template_arguments *a,
                       ls_datum *y_p) {
    return in_case(r, x, a, 'l', y_p);
}
static ls_status capitalize(ls_rendering *r, const ls_datum *x, const ls_template_arguments *a,
                            ls_datum *y_p) {
    return in_case(r, x, a, 'c', y_p);
}
static ls_status title(ls_rendering *r, const ls_datum *x, const ls_template_arguments *a,
                       ls_datum *y_p) {
    return in_case(r, x, a, 't', y_p);
}

static ls_status replace(ls_rendering *r, const ls_datum *x, const ls_template_arguments *a,
                         ls_datum *y_p) {
    ls_datum text;
    LS_TRY(ls_datum_str(r, x, &text));
    return ls_text_replace(r, &text, a, y_p);
}

static ls_status otherwise(ls_rendering *r, const ls_datum *x, const ls_template_arguments *a,
                           ls_datum *y_p) {
    LS_TRY(ls_arguments_check(r, a, 2, "default_value boolean"));
    const ls_datum *value = ls_template_argument(a, 0, "default_value");
    const ls_datum *also_false = ls_template_argument(a, 1, "boolean");
    bool lacks = x->kind == LS_DATUM_UNDEFINED ||
                 (also_false && ls_datum_is_true(also_false) && !ls_datum_is_true(x));
    *y_p = !lacks ? *x : value ? *value : ls_datum_text("", 0);
    return LS_OK;
}

static ls_status integer_of(ls_rendering *r, const ls_datum *x, const ls_template_arguments *a,
                            ls_datum *y_p) {
    LS_TRY(ls_arguments_check(r, a, 0, ""));
    if (x->kind == LS_DATUM_TEXT) {
        char s[24] = {0}, *end;
        memcpy(s, x->text, x->n < sizeof s ? x->n : sizeof s - 1);
        long long v = strtoll(s, &end, 10);
        *y_p = ls_datum_integer(x->n && x->n < 19 && !*end ? v : 0);
        return LS_OK;
    }
    if (!ls_datum_is_number(x)) return ls_render_fail(r, "%s is no integer", ls_datum_kind_name(x));
    double v = ls_datum_number(x);
    if (!(v > -9e15 && v < 9e15)) return ls_render_fail(r, "the number is too large");
    *y_p = ls_datum_integer(x->kind == LS_DATUM_INTEGER ? x->integer : (int64_t)v);
    return LS_OK;
}

static ls_status join(ls_rendering *r, const ls_datum *x, const ls_template_arguments *a,
                      ls_datum *y_p) {
    LS_TRY(ls_arguments_check(r, a, 1, "d attribute"));
    const ls_datum *by = ls_template_argument(a, 0, "d"),
                   *name = ls_template_argument(a, 1, "attribute");
    ls_datum between = ls_datum_text("", 0), list;
    if (by) LS_TRY(ls_datum_str(r, by, &between));
    LS_TRY(ls_datum_items(r, x, &list));
    void *room;
    LS_TRY(ls_render_alloc(r, list.n * sizeof(ls_datum), &room));
    ls_datum *values = room;
    for (size_t i = 0; name && i < list.n; i++)
        LS_TRY(ls_datum_item(r, &list.items[i], name, &values[i]));
    if (name) list.items = values;
    return ls_text_join(r, &list, &between, y_p);
}

/* ---- choosing and mapping items ---- */

/* The arguments from number `skip` on. */
static void rest_of(const ls_template_arguments *a, int skip, ls_template_arguments *rest) {
    *rest = *a;
    rest->n = 0;
    for (int i = skip; i < a->n; i++) rest->list[rest->n++] = a->list[i];
}

/* Items whose test (argument `at`, with those behind it) says `keep`; at 1: the test of the member
 * that argument 0 names. */
static ls_status choose(ls_rendering *r, const ls_datum *x, const ls_template_arguments *a, int at,
                        bool keep, ls_datum *y_p) {
    ls_datum list, name, is;
    ls_template_arguments rest;
    ls_template_function *test = NULL;
    if (a->n < at) return ls_render_fail(r, "an argument is missing");
    if (a->n > at) {
        LS_TRY(ls_template_argument_text(r, a, at, &name));
        LS_TRY(ls_datum_copy_text(r, name.text, name.n, &name));
        test = ls_template_test(name.text);
        if (!test) return ls_render_fail(r, "the test \"%s\" is not supported", name.text);
    }
    rest_of(a, at + 1, &rest);
    LS_TRY(ls_datum_items(r, x, &list));
    void *room;
    LS_TRY(ls_render_alloc(r, list.n * sizeof(ls_datum), &room));
    ls_datum *kept = room;
    size_t n = 0;
    for (size_t i = 0; i < list.n; i++) {
        ls_datum v = list.items[i];
        if (at) LS_TRY(ls_datum_item(r, &list.items[i], &a->list[0], &v));
        is = v;
        if (test) LS_TRY(test(r, &v, &rest, &is));
        if (ls_datum_is_true(&is) == keep) kept[n++] = list.items[i];
        LS_TRY(ls_render_count(r, 1));
    }
    *y_p = (ls_datum){.kind = LS_DATUM_LIST, .n = n, .items = kept};
    return LS_OK;
}

static ls_status select_items(ls_rendering *r, const ls_datum *x, const ls_template_arguments *a,
                              ls_datum *y_p) {
    return choose(r, x, a, 0, true, y_p);
}
static ls_status reject(ls_rendering *r, const ls_datum *x, const ls_template_arguments *a,
                        ls_datum *y_p) {
    return choose(r, x, a, 0, false, y_p);
}
static ls_status selectattr(ls_rendering *r, const ls_datum *x, const ls_template_arguments *a,
                            ls_datum *y_p) {
    return choose(r, x, a, 1, true, y_p);
}
static ls_status rejectattr(ls_rendering *r, const ls_datum *x, const ls_template_arguments *a,
                            ls_datum *y_p) {
    return choose(r, x, a, 1, false, y_p);
}

/* map(attribute='name') or map('filter', arguments). */
static ls_status map(ls_rendering *r, const ls_datum *x, const ls_template_arguments *a,
                     ls_datum *y_p) {
    const ls_datum *member = ls_template_argument(a, LS_TEMPLATE_ARGUMENTS, "attribute");
    ls_template_function *filter = NULL;
    ls_datum list, name;
    ls_template_arguments rest;
    if (!member) {
        LS_TRY(ls_template_argument_text(r, a, 0, &name));
        LS_TRY(ls_datum_copy_text(r, name.text, name.n, &name));
        filter = ls_template_filter(name.text);
        if (!filter) return ls_render_fail(r, "the filter \"%s\" is not supported", name.text);
    }
    rest_of(a, 1, &rest);
    LS_TRY(ls_datum_items(r, x, &list));
    void *room;
    LS_TRY(ls_render_alloc(r, list.n * sizeof(ls_datum), &room));
    ls_datum *values = room;
    LS_TRY(ls_render_enter(r));
    for (size_t i = 0; i < list.n; i++) {
        LS_TRY(ls_render_count(r, 1));
        LS_TRY(member ? ls_datum_item(r, &list.items[i], member, &values[i])
                      : filter(r, &list.items[i], &rest, &values[i]));
    }
    r->depth--;
    *y_p = (ls_datum){.kind = LS_DATUM_LIST, .n = list.n, .items = values};
    return LS_OK;
}

ls_template_function *ls_template_filter(const char *name) {
    static const ls_template_entry filters[] = {{"trim", trim},
                                                {"length", length},
                                                {"count", length},
                                                {"tojson", tojson},
                                                {"string", text_of},
                                                {"safe", text_of},
                                                {"list", list_of},
                                                {"items", items},
                                                {"dictsort", ls_dict_sort},
                                                {"first", first},
                                                {"last", last},
                                                {"reverse", reverse},
                                                {"upper", upper},
                                                {"lower", lower},
                                                {"capitalize", capitalize},
                                                {"title", title},
                                                {"replace", replace},
                                                {"default", otherwise},
                                                {"d", otherwise},
                                                {"int", integer_of},
                                                {"join", join},
                                                {"select", select_items},
                                                {"reject", reject},
                                                {"selectattr", selectattr},
                                                {"rejectattr", rejectattr},
                                                {"map", map}};
    for (size_t i = 0; i < sizeof filters / sizeof *filters; i++)
        if (strcmp(filters[i].name, name) == 0) return filters[i].call;
    return NULL;
}
