/* tests.c - tests: x is name(argument). */
#include <string.h>

#include "template/methods.h"

typedef const ls_template_arguments arguments;

/* A test without arguments, by the value alone. */
typedef bool simple_test(const ls_datum *);

static bool is_defined(const ls_datum *x) { return x->kind != LS_DATUM_UNDEFINED; }
static bool is_undefined(const ls_datum *x) { return x->kind == LS_DATUM_UNDEFINED; }
static bool is_none(const ls_datum *x) { return x->kind == LS_DATUM_NONE; }
static bool is_string(const ls_datum *x) { return x->kind == LS_DATUM_TEXT; }
static bool is_mapping(const ls_datum *x) { return x->kind == LS_DATUM_DICT; }
static bool is_sequence(const ls_datum *x) {
    return x->kind == LS_DATUM_TEXT || x->kind == LS_DATUM_DICT || x->kind == LS_DATUM_UNDEFINED ||
           (ls_datum_has_items(x) && x->kind != LS_DATUM_VIEW);
}
static bool is_iterable(const ls_datum *x) {
    return is_sequence(x) || x->kind == LS_DATUM_VIEW || x->kind == LS_DATUM_ITERATOR ||
           x->kind == LS_DATUM_LOOP;
}
static bool is_boolean(const ls_datum *x) { return x->kind == LS_DATUM_BOOL; }
static bool is_true(const ls_datum *x) { return x->kind == LS_DATUM_BOOL && x->truth; }
static bool is_false(const ls_datum *x) { return x->kind == LS_DATUM_BOOL && !x->truth; }
static bool is_integer(const ls_datum *x) { return x->kind == LS_DATUM_INTEGER; }
static bool is_float(const ls_datum *x) { return x->kind == LS_DATUM_REAL; }
static bool is_safe(const ls_datum *x) { return x->safe; }
static bool is_callable(const ls_datum *x) {
    return x->kind == LS_DATUM_FUNCTION || x->kind == LS_DATUM_MACRO ||
           x->kind == LS_DATUM_UNDEFINED || x->kind == LS_DATUM_LOOP;
}

#define SIMPLE(name, is)                                                                           \
    static ls_status name(ls_rendering *r, const ls_datum *x, arguments *a, ls_datum *y_p) {       \
        (void)r;                                                                                   \
        (void)a;                                                                                   \
        *y_p = ls_datum_bool(is(x));                                                               \
        return LS_OK;                                                                              \
    }
SIMPLE(test_defined, is_defined)
SIMPLE(test_undefined, is_undefined)
SIMPLE(test_none, is_none)
SIMPLE(test_string, is_string)
SIMPLE(test_mapping, is_mapping)
SIMPLE(test_iterable, is_iterable)
SIMPLE(test_sequence, is_sequence)
SIMPLE(test_boolean, is_boolean)
SIMPLE(test_true, is_true)
SIMPLE(test_false, is_false)
SIMPLE(test_integer, is_integer)
SIMPLE(test_float, is_float)
SIMPLE(test_number, ls_datum_is_number)
SIMPLE(test_callable, is_callable)
SIMPLE(test_escaped, is_safe)

/* Is the rest of x by a number equal to another one? */
static ls_status rest_is(ls_rendering *r, const ls_datum *x, const ls_datum *by, int64_t want,
                         ls_datum *y_p) {
    ls_datum rest, other = ls_datum_integer(want);
    bool equal;
    LS_TRY(ls_datum_math(r, "%", x, by, &rest));
    LS_TRY(ls_datum_equal(r, &rest, &other, &equal));
    *y_p = ls_datum_bool(equal);
    return LS_OK;
}

static ls_status test_odd(ls_rendering *r, const ls_datum *x, arguments *a, ls_datum *y_p) {
    (void)a;
    ls_datum two = ls_datum_integer(2);
    return rest_is(r, x, &two, 1, y_p);
}
static ls_status test_even(ls_rendering *r, const ls_datum *x, arguments *a, ls_datum *y_p) {
    (void)a;
    ls_datum two = ls_datum_integer(2);
    return rest_is(r, x, &two, 0, y_p);
}
static ls_status test_divisible(ls_rendering *r, const ls_datum *x, arguments *a, ls_datum *y_p) {
    return rest_is(r, x, a->given[0], 0, y_p);
}

static ls_status test_equal(ls_rendering *r, const ls_datum *x, arguments *a, ls_datum *y_p) {
    bool equal;
    LS_TRY(ls_datum_equal(r, x, a->given[0], &equal));
    *y_p = ls_datum_bool(equal);
    return LS_OK;
}
static ls_status test_unequal(ls_rendering *r, const ls_datum *x, arguments *a, ls_datum *y_p) {
    LS_TRY(test_equal(r, x, a, y_p));
    y_p->truth = !y_p->truth;
    return LS_OK;
}
static ls_status test_in(ls_rendering *r, const ls_datum *x, arguments *a, ls_datum *y_p) {
    bool found;
    LS_TRY(ls_datum_contains(r, a->given[0], x, &found));
    *y_p = ls_datum_bool(found);
    return LS_OK;
}

/* Is it the same object? Decided for those of which Python has one each. */
static ls_status test_same(ls_rendering *r, const ls_datum *x, arguments *a, ls_datum *y_p) {
    const ls_datum *y = a->given[0];
    bool single = (x->kind == LS_DATUM_NONE || x->kind == LS_DATUM_BOOL) ||
                  (y->kind == LS_DATUM_NONE || y->kind == LS_DATUM_BOOL);
    if (!single) return ls_render_fail(r, "sameas is supported for none, true and false");
    *y_p = ls_datum_bool(x->kind == y->kind && (x->kind == LS_DATUM_NONE || x->truth == y->truth));
    return LS_OK;
}

#define ORDER(name, condition)                                                                     \
    static ls_status name(ls_rendering *r, const ls_datum *x, arguments *a, ls_datum *y_p) {       \
        int order;                                                                                 \
        LS_TRY(ls_datum_compare(r, x, a->given[0], &order));                                       \
        *y_p = ls_datum_bool(order condition 0);                                                   \
        return LS_OK;                                                                              \
    }
ORDER(test_less, <)
ORDER(test_up_to, <=)
ORDER(test_greater, >)
ORDER(test_from, >=)

/* Are all letters of the text of this case? */
static ls_status test_case(ls_rendering *r, const ls_datum *x, const char *method, ls_datum *y_p) {
    ls_datum text;
    LS_TRY(ls_datum_str(r, x, &text));
    return ls_template_apply(r, ls_text_method(method), &text, &(ls_template_arguments){0}, y_p);
}
static ls_status test_upper(ls_rendering *r, const ls_datum *x, arguments *a, ls_datum *y_p) {
    (void)a;
    return test_case(r, x, "isupper", y_p);
}
static ls_status test_lower(ls_rendering *r, const ls_datum *x, arguments *a, ls_datum *y_p) {
    (void)a;
    return test_case(r, x, "islower", y_p);
}

/* Is there a filter, or a test, of this name? What Jinja has and we lack is not decided. */
static ls_status exists(ls_rendering *r, const ls_datum *x, bool test, ls_datum *y_p) {
    ls_datum name;
    if (x->kind != LS_DATUM_TEXT) return ls_render_fail(r, "the argument must be text");
    LS_TRY(ls_datum_copy_text(r, x->text, x->n, &name));
    if (!(test ? ls_template_test(name.text) : ls_template_filter(name.text)))
        return ls_render_fail(r, "\"%s\" is not supported", name.text);
    *y_p = ls_datum_bool(true);
    return LS_OK;
}
static ls_status test_filter(ls_rendering *r, const ls_datum *x, arguments *a, ls_datum *y_p) {
    (void)a;
    return exists(r, x, false, y_p);
}
static ls_status test_test(ls_rendering *r, const ls_datum *x, arguments *a, ls_datum *y_p) {
    (void)a;
    return exists(r, x, true, y_p);
}

const ls_template_entry *ls_template_test(const char *name) {
    static const ls_template_entry tests[] = {{"defined", test_defined, ""},
                                              {"undefined", test_undefined, ""},
                                              {"none", test_none, ""},
                                              {"string", test_string, ""},
                                              {"mapping", test_mapping, ""},
                                              {"iterable", test_iterable, ""},
                                              {"sequence", test_sequence, ""},
                                              {"boolean", test_boolean, ""},
                                              {"true", test_true, ""},
                                              {"false", test_false, ""},
                                              {"integer", test_integer, ""},
                                              {"float", test_float, ""},
                                              {"number", test_number, ""},
                                              {"callable", test_callable, ""},
                                              {"escaped", test_escaped, ""},
                                              {"odd", test_odd, ""},
                                              {"even", test_even, ""},
                                              {"divisibleby", test_divisible, "num"},
                                              {"sameas", test_same, "other"},
                                              {"upper", test_upper, ""},
                                              {"lower", test_lower, ""},
                                              {"filter", test_filter, ""},
                                              {"test", test_test, ""},
                                              {"in", test_in, "seq"},
                                              {"equalto", test_equal, "/other"},
                                              {"eq", test_equal, "/other"},
                                              {"==", test_equal, "/other"},
                                              {"ne", test_unequal, "/other"},
                                              {"!=", test_unequal, "/other"},
                                              {"gt", test_greater, "/other"},
                                              {"greaterthan", test_greater, "/other"},
                                              {">", test_greater, "/other"},
                                              {"ge", test_from, "/other"},
                                              {">=", test_from, "/other"},
                                              {"lt", test_less, "/other"},
                                              {"lessthan", test_less, "/other"},
                                              {"<", test_less, "/other"},
                                              {"le", test_up_to, "/other"},
                                              {"<=", test_up_to, "/other"},
                                              {NULL, NULL, NULL}};
    return ls_template_entry_find(tests, name);
}
