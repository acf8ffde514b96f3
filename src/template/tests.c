/* tests.c - tests: x is name(argument). */
#include <string.h>

#include "template/value.h"

/* A test without arguments, by the value alone. */
typedef bool simple_test(const ls_datum *);

static bool is_defined(const ls_datum *x) { return x->kind != LS_DATUM_UNDEFINED; }
static bool is_undefined(const ls_datum *x) { return x->kind == LS_DATUM_UNDEFINED; }
static bool is_none(const ls_datum *x) { return x->kind == LS_DATUM_NONE; }
static bool is_string(const ls_datum *x) { return x->kind == LS_DATUM_TEXT; }
static bool is_mapping(const ls_datum *x) { return x->kind == LS_DATUM_DICT; }
static bool is_iterable(const ls_datum *x) {
    return x->kind == LS_DATUM_TEXT || x->kind == LS_DATUM_LIST || x->kind == LS_DATUM_DICT ||
           x->kind == LS_DATUM_UNDEFINED || x->kind == LS_DATUM_LOOP;
}
static bool is_sequence(const ls_datum *x) {
    return x->kind == LS_DATUM_TEXT || x->kind == LS_DATUM_LIST || x->kind == LS_DATUM_DICT ||
           x->kind == LS_DATUM_UNDEFINED;
}
static bool is_boolean(const ls_datum *x) { return x->kind == LS_DATUM_BOOL; }
static bool is_true(const ls_datum *x) { return x->kind == LS_DATUM_BOOL && x->truth; }
static bool is_false(const ls_datum *x) { return x->kind == LS_DATUM_BOOL && !x->truth; }
static bool is_integer(const ls_datum *x) { return x->kind == LS_DATUM_INTEGER; }
static bool is_float(const ls_datum *x) { return x->kind == LS_DATUM_REAL; }
static bool is_callable(const ls_datum *x) {
    return x->kind == LS_DATUM_FUNCTION || x->kind == LS_DATUM_MACRO;
}

#define SIMPLE(name, is)                                                                           \
    static ls_status name(ls_rendering *r, const ls_datum *x, const ls_template_arguments *a,      \
                          ls_datum *y_p) {                                                         \
        LS_TRY(ls_arguments_check(r, a, 0, ""));                                                   \
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

static ls_status rest_is(ls_rendering *r, const ls_datum *x, int64_t by, int64_t want,
                         ls_datum *y_p) {
    if (x->kind != LS_DATUM_INTEGER || !by)
        return ls_render_fail(r, "this test takes integers, and divides by one that is not 0");
    int64_t rest = by == -1 ? 0 : x->integer % by;
    *y_p = ls_datum_bool((rest < 0 ? -rest : rest) == want);
    return LS_OK;
}

static ls_status test_odd(ls_rendering *r, const ls_datum *x, const ls_template_arguments *a,
                          ls_datum *y_p) {
    LS_TRY(ls_arguments_check(r, a, 0, ""));
    return rest_is(r, x, 2, 1, y_p);
}
static ls_status test_even(ls_rendering *r, const ls_datum *x, const ls_template_arguments *a,
                           ls_datum *y_p) {
    LS_TRY(ls_arguments_check(r, a, 0, ""));
    return rest_is(r, x, 2, 0, y_p);
}

static ls_status operand(ls_rendering *r, const ls_template_arguments *a) {
    LS_TRY(ls_arguments_check(r, a, 1, ""));
    return a->n ? LS_OK : ls_render_fail(r, "an argument is missing");
}

static ls_status test_divisible(ls_rendering *r, const ls_datum *x, const ls_template_arguments *a,
                                ls_datum *y_p) {
    LS_TRY(operand(r, a));
    int64_t by = a->list[0].kind == LS_DATUM_INTEGER ? a->list[0].integer : 0;
    return rest_is(r, x, by, 0, y_p);
}

static ls_status test_equal(ls_rendering *r, const ls_datum *x, const ls_template_arguments *a,
                            ls_datum *y_p) {
    bool equal;
    LS_TRY(operand(r, a));
    LS_TRY(ls_datum_equal(r, x, &a->list[0], &equal));
    *y_p = ls_datum_bool(equal);
    return LS_OK;
}
static ls_status test_unequal(ls_rendering *r, const ls_datum *x, const ls_template_arguments *a,
                              ls_datum *y_p) {
    LS_TRY(test_equal(r, x, a, y_p));
    y_p->truth = !y_p->truth;
    return LS_OK;
}
static ls_status test_in(ls_rendering *r, const ls_datum *x, const ls_template_arguments *a,
                         ls_datum *y_p) {
    bool found;
    LS_TRY(operand(r, a));
    LS_TRY(ls_datum_contains(r, &a->list[0], x, &found));
    *y_p = ls_datum_bool(found);
    return LS_OK;
}

ls_template_function *ls_template_test(const char *name) {
    static const ls_template_entry tests[] = {{"defined", test_defined},
                                              {"undefined", test_undefined},
                                              {"none", test_none},
                                              {"string", test_string},
                                              {"mapping", test_mapping},
                                              {"iterable", test_iterable},
                                              {"sequence", test_sequence},
                                              {"boolean", test_boolean},
                                              {"true", test_true},
                                              {"false", test_false},
                                              {"integer", test_integer},
                                              {"float", test_float},
                                              {"number", test_number},
                                              {"callable", test_callable},
                                              {"odd", test_odd},
                                              {"even", test_even},
                                              {"divisibleby", test_divisible},
                                              {"equalto", test_equal},
                                              {"eq", test_equal},
                                              {"ne", test_unequal},
                                              {"in", test_in}};
    for (size_t i = 0; i < sizeof tests / sizeof *tests; i++)
        if (strcmp(tests[i].name, name) == 0) return tests[i].call;
    return NULL;
}
