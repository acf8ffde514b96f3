/* schema_listed.c - see schema_listed.h. */
#include "grammar/schema_listed.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

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
    ls_json *names;                  /* for each schema an object: of what it lists */
    ls_json *seen;                   /* of the values that were taken */
} listed_reader;

/* The i-th value of a schema; NULL: there are no more. */
static const ls_json *value_of(const ls_json *schema, size_t i) {
    const ls_json *constant = ls_json_get(schema, "const");
    return !constant ? ls_json_at(ls_json_get(schema, "enum"), i) : i == 0 ? constant : NULL;
}

static bool lists(const ls_json *schema) {
    return ls_json_get(schema, "const") || ls_json_get(schema, "enum");
}

static void put_name(const ls_json *value, ls_buf *name);

/* In the order of their names. */
static void put_members(const ls_json *object, ls_buf *name) {
    size_t n = 0;
    const char **words = LS_NEW_ARRAY(const char *, ls_json_count(object) + 1);
    const ls_json *value = NULL;
    for (void *it = ls_json_next(object, NULL, &words[n], &value); it;
         it = ls_json_next(object, it, &words[n], &value))
        n++;
    qsort((void *)words, n, sizeof *words, ls_compare_texts);
    for (size_t i = 0; i < n; i++) {
        ls_buf_printf(name, "%zu:%s", strlen(words[i]), words[i]);
        put_name(ls_json_get(object, words[i]), name);
        ls_buf_printf(name, ",");
    }
    free((void *)words);
}

/* Equal values have one name, as 1 and 1.0. */
static void put_name(const ls_json *value, ls_buf *name) {
    double x = 0;
    if (ls_json_number(value, &x) && x == floor(x) && fabs(x) < 1e15) {
        ls_buf_printf(name, "%.0f", x + 0.0); /* -0 is 0 */
    } else if (ls_json_is_object(value) || ls_json_is_array(value)) {
        ls_buf_printf(name, ls_json_is_array(value) ? "[" : "{");
        if (ls_json_is_object(value)) put_members(value, name);
        for (size_t i = 0; ls_json_is_array(value) && i < ls_json_count(value); i++) {
            put_name(ls_json_at(value, i), name);
            ls_buf_printf(name, ",");
        }
        ls_buf_printf(name, "}");
    } else {
        ls_json_write_exact(value, name);
    }
}

/* Adds the value's name to the members of an object; false: it is there. */
static bool add_value(ls_json *names, const ls_json *value) {
    ls_buf name = {0};
    put_name(value, &name);
    bool is_new = !ls_json_get(names, name.data);
    if (is_new) ls_json_set(names, name.data, ls_json_new_null());
    ls_buf_free(&name);
    return is_new;
}

/* The names of the values that a schema lists; none, if it does not. */
static ls_json *names_of(const ls_json *schema) {
    const ls_json *list = ls_json_get(schema, "enum"), *constant = ls_json_get(schema, "const");
    ls_json *names = ls_json_new_object();
    for (size_t i = 0; i < ls_json_count(list); i++) add_value(names, ls_json_at(list, i));
    if (!constant) return names;
    bool lacks = list && add_value(names, constant);
    ls_json_free(names);
    names = ls_json_new_object();
    if (!lacks) add_value(names, constant);
    return names;
}

/* Has each schema of the set that lists values this one? */
static bool all_have(const listed_reader *l, const ls_json *value) {
    ls_buf name = {0};
    bool all = true;
    put_name(value, &name);
    for (size_t i = 0; i < l->set->n && all; i++)
        all = !lists(l->set->list[i].schema) || ls_json_get(ls_json_at(l->names, i), name.data);
    ls_buf_free(&name);
    return all;
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
    if (text && l->rules->plain)
        s = match(l, l->string, ls_json_text(value), strlen(ls_json_text(value)), valid_p);
    else if (text)
        s = match(l, l->string, b.data + 1, b.len - 2, valid_p);
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
    for (size_t i = 0; i < l->set->n; i++) {
        if (ls_json_count(ls_json_get(l->set->list[i].schema, "enum")) > LS_SCHEMA_RULES)
            return ls_schema_fail(l->rules, "enum: it has more than %d values", LS_SCHEMA_RULES);
        ls_json_push(l->names, names_of(l->set->list[i].schema));
    }
    LS_TRY(read_checks(l));
    for (size_t i = 0; (value = value_of(schema, i)); i++) {
        bool valid = false;
        LS_TRY(check_value(l, value, &valid));
        if (!valid || !add_value(l->seen, value)) continue;
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
    l.names = ls_json_new_array();
    l.seen = ls_json_new_object();
    ls_status s = read_values(&l, schema, x_p, n_p);
    ls_json_free(l.names);
    ls_json_free(l.seen);
    ls_nfa_matcher_free(l.string);
    ls_nfa_matcher_free(l.number);
    return s;
}
