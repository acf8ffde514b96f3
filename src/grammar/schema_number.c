/* schema_number.c - see schema_number.h. */
#include "grammar/schema_number.h"

#include "grammar/number_range.h"

enum {
    MOST_STEP = 2000,  /* the remainders of an automaton */
    DOUBLE_DIGITS = 15 /* that a double keeps */
};

/* ---- bounds ---- */

/* sign 1: a lower bound, -1: an upper one. Of two bounds the narrower one counts. */
static void narrow(ls_number_bound *bound, const ls_number_bound *other, int sign) {
    int order = bound->given ? ls_decimal_compare(&other->at, &bound->at) * sign : 1;
    if (order > 0) *bound = *other;
    if (order == 0) bound->exclusive = bound->exclusive || other->exclusive;
}

static ls_status read_bound(const ls_schema_rules *r, const ls_json *j, const char *key,
                            ls_number_bound *b) {
    const ls_json *value = ls_json_get(j, key);
    if (!value) return LS_OK;
    b->given = true;
    return ls_decimal_read(value, &b->at) ? LS_OK
                                          : ls_schema_fail(r, "%s: a number is expected", key);
}

/* keys: the bound that is included, and the other; in draft 4 that says whether the first is. */
static ls_status read_bounds(const ls_schema_rules *r, const ls_json *j, const char *const keys[2],
                             int sign, ls_number_bound *bound) {
    const ls_json *exclusive = ls_json_get(j, keys[1]);
    ls_number_bound one = {.exclusive = ls_json_is_true(exclusive)}, other = {.exclusive = true};
    LS_TRY(read_bound(r, j, keys[0], &one));
    if (!ls_json_is_bool(exclusive)) LS_TRY(read_bound(r, j, keys[1], &other));
    if (one.given) narrow(bound, &one, sign);
    if (other.given) narrow(bound, &other, sign);
    return LS_OK;
}

static ls_status read_range(const ls_schema_rules *r, const ls_schema_set *set,
                            ls_number_range *range) {
    static const char *const low[] = {"minimum", "exclusiveMinimum"}, *const high[] = {
                                                                          "maximum",
                                                                          "exclusiveMaximum"};
    for (size_t i = 0; i < set->n; i++) {
        LS_TRY(read_bounds(r, set->list[i].schema, low, 1, &range->low));
        LS_TRY(read_bounds(r, set->list[i].schema, high, -1, &range->high));
    }
    return LS_OK;
}

/* ---- multiples ---- */

/* A step as a number of units of its last place. */
static bool read_step(const ls_decimal *d, int64_t *step, int *places) {
    int last = LS_WHOLE_DIGITS + LS_FRACTION_DIGITS;
    while (last > LS_WHOLE_DIGITS && d->digits[last - 1] == '0') last--;
    *places = last - LS_WHOLE_DIGITS;
    *step = 0;
    for (int i = 0; i < last && *step <= MOST_STEP; i++) *step = *step * 10 + (d->digits[i] - '0');
    return *step > 0 && !d->negative && !d->cut && *step * (*places + 1) <= MOST_STEP;
}

static ls_status read_multiples(ls_schema_rules *r, const ls_schema_set *set,
                                const ls_expression **x_p, int *places_p) {
    for (size_t i = 0; i < set->n; i++) {
        const ls_json *value = ls_json_get(set->list[i].schema, "multipleOf");
        ls_decimal d;
        int64_t step = 0;
        int places = 0;
        double number = 0;
        if (!value) continue;
        if (!ls_json_number(value, &number) || number <= 0 || !ls_decimal_read(value, &d))
            return ls_schema_fail(r, "multipleOf: a number above 0 is expected");
        if (!read_step(&d, &step, &places))
            return ls_schema_fail(r, "multipleOf: %g has too many digits to be supported", number);
        *x_p = ls_expression_both(&r->pool, *x_p, ls_expression_multiple(&r->pool, step, places));
        if (places > *places_p) *places_p = places;
    }
    return LS_OK;
}

/* ---- numbers ---- */

ls_status ls_schema_number(ls_schema_rules *r, const ls_schema_set *set, bool whole,
                           const ls_expression **x_p) {
    ls_number_range range = {.whole = LS_WHOLE_DIGITS, .places = whole ? 0 : LS_FRACTION_DIGITS};
    const ls_expression *multiples = NULL, *x = NULL;
    ls_buf regex = {0};
    int places = 0;
    bool any = true;
    LS_TRY(read_range(r, set, &range));
    LS_TRY(read_multiples(r, set, &multiples, &places));
    if (multiples) {
        range.whole = DOUBLE_DIGITS - places > 0 ? DOUBLE_DIGITS - places : 1;
        if (!whole) range.places = places;
    }
    if (!range.low.given && !range.high.given && !whole && !multiples)
        ls_buf_printf(&regex, "%s", LS_SCHEMA_NUMBER);
    else
        any = ls_number_range_write(&range, &regex);
    if (any) x = ls_schema_regex(r, regex.data);
    ls_buf_free(&regex);
    if (!any && set->n == 1)
        return ls_schema_fail(r, "no number of at most %d digits is within its bounds",
                              range.whole);
    if (!x) x = ls_expression_never(&r->pool);
    *x_p = multiples ? ls_expression_both(&r->pool, x, multiples) : x;
    return LS_OK;
}
