/* schema_listed.c - see schema_listed.h. */
#include "grammar/schema_listed.h"

#include "grammar/nfa.h"
#include "grammar/schema_keywords.h"
#include "grammar/schema_number.h"
#include "grammar/schema_string.h"
#include "grammar/schema_values.h"

/* What all listed values are checked by. */
typedef struct listed_reader {
    ls_schema_rules *rules;
    const ls_schema_set *set;
    unsigned types, about;
    ls_nfa_matcher *string, *number; /* NULL: no keyword is about them */
} listed_reader;

/* The i-th value of a schema; NULL: there are no more. */
static const ls_json *value_of(const ls_json *schema, size_t i) {
    const ls_json *constant = ls_json_get(schema, "const");
    return !constant ? ls_json_at(ls_json_get(schema, "enum"), i) : i == 0 ? constant : NULL;
}

static bool lists(const ls_json *schema) {
    return ls_json_get(schema, "const") || ls_json_get(schema, "enum");
}

static bool has_value(const ls_json *schema, const ls_json *value, size_t n) {
    const ls_json *other = NULL;
    for (size_t i = 0; i < n && (other = value_of(schema, i)); i++)
        if (ls_json_equal(other, value)) return true;
    return false;
}

/* Other schemas of the set that list values have it, too. */
static bool all_have(const listed_reader *l, const ls_json *value) {
    for (size_t i = 0; i < l->set->n; i++) {
        const ls_json *schema = l->set->list[i].schema, *constant = ls_json_get(schema, "const");
        const ls_json *list = ls_json_get(schema, "enum");
        if (constant && !ls_json_equal(constant, value)) return false;
        bool found = !list;
        for (size_t k = 0; k < ls_json_count(list) && !found; k++)
            found = ls_json_equal(ls_json_at(list, k), value);
        if (!found) return false;
    }
    return true;
}

static ls_status match(const listed_reader *l, ls_nfa_matcher *m, const char *text, size_t n,
                       bool *valid_p) {
    if (!m) return LS_OK;
    *valid_p = ls_nfa_matches(m, text, n);
    return ls_nfa_matcher_full(m) ? ls_schema_fail(l->rules, "it is too large") : LS_OK;
}

/* By the keywords about its type. */
static ls_status check_value(const listed_reader *l, const ls_json *value, bool *valid_p) {
    bool text = ls_json_text(value), list = ls_json_is_array(value);
    double number = 0;
    ls_buf b = {0};
    *valid_p = ls_schema_has_type(value, l->types) && all_have(l, value);
    if (!*valid_p) return LS_OK;
    if ((ls_json_is_object(value) && l->about & LS_TYPE_OBJECT) ||
        (list && l->about & LS_TYPE_ARRAY))
        return ls_schema_fail(l->rules, "enum, const: beside keywords about %s none may be listed",
                              list ? "arrays" : "objects");
    ls_status s = LS_OK;
    ls_json_write_exact(value, &b);
    if (text) s = match(l, l->string, b.data + 1, b.len - 2, valid_p);
    if (ls_json_number(value, &number)) s = match(l, l->number, b.data, b.len, valid_p);
    ls_buf_free(&b);
    return s;
}

static ls_status read_checks(listed_reader *l) {
    LS_TRY(ls_schema_types(l->rules, l->set, &l->types, &l->about));
    bool whole = !(l->types & LS_TYPE_NUMBER);
    const ls_expression *x = NULL;
    if (l->about & LS_TYPE_STRING) {
        LS_TRY(ls_schema_string_chars(l->rules, l->set, &x));
        l->string = ls_nfa_matcher_new(x);
    }
    if (l->about & LS_TYPE_NUMBER) {
        LS_TRY(ls_schema_number(l->rules, l->set, whole, &x));
        l->number = ls_nfa_matcher_new(x);
    }
    return LS_OK;
}

/* The values of one of the schemas that the others allow, too. */
static ls_status read_values(listed_reader *l, const ls_json *schema, const ls_expression **x_p,
                             size_t *n_p) {
    const ls_json *value = NULL;
    LS_TRY(read_checks(l));
    for (size_t i = 0; (value = value_of(schema, i)); i++) {
        bool valid = false;
        if (i > LS_SCHEMA_RULES)
            return ls_schema_fail(l->rules, "enum: it has more than %d values", LS_SCHEMA_RULES);
        LS_TRY(check_value(l, value, &valid));
        if (!valid || has_value(schema, value, i)) continue;
        *x_p = ls_expression_or(&l->rules->pool, *x_p, ls_schema_text(l->rules, value));
        ++*n_p;
    }
    if (*x_p || l->set->n > 1) return LS_OK;
    return ls_schema_fail(l->rules, "enum, const: there is no value of the type");
}

ls_status ls_schema_listed(ls_schema_rules *r, const ls_schema_set *set, const ls_expression **x_p,
                           size_t *n_p, bool *listed_p) {
    listed_reader l = {.rules = r, .set = set};
    const ls_json *schema = NULL;
    *x_p = NULL;
    *n_p = 0;
    for (size_t i = 0; i < set->n && !schema; i++)
        if (lists(set->list[i].schema)) schema = set->list[i].schema;
    *listed_p = schema;
    if (!schema) return LS_OK;
    if (!ls_json_get(schema, "const") && !ls_json_is_array(ls_json_get(schema, "enum")))
        return ls_schema_fail(r, "enum: a list is expected");
    ls_status s = read_values(&l, schema, x_p, n_p);
    ls_nfa_matcher_free(l.string);
    ls_nfa_matcher_free(l.number);
    return s;
}
