/* schema_condition.c - see schema_condition.h.
 *
 * if I then T else E is I and T, or not I and E. What a schema excludes is a choice: for each of
 * its keywords a schema by which a value is not valid by that keyword. Keywords of which this is
 * not known are left out of the choice, so that fewer values are written than are valid.
 */
#include "grammar/schema_condition.h"

#include <string.h>

#include "grammar/schema_keywords.h"
#include "grammar/schema_values.h"

enum { MOST_NESTED = 16, MOST_WORK = 2000 };

typedef struct negator {
    const ls_schema_rules *rules;
    const ls_json *root;
    int work;
} negator;

static ls_json *negate(negator *, const ls_json *schema, int nested);

static ls_json *with(const char *key, ls_json *value) {
    ls_json *o = ls_json_new_object();
    ls_json_set(o, key, value);
    return o;
}

static ls_json *list_of(ls_json *one) {
    ls_json *list = ls_json_new_array();
    if (one) ls_json_push(list, one);
    return list;
}

static ls_json *list_of_both(ls_json *one, ls_json *other) {
    ls_json *list = list_of(one);
    ls_json_push(list, other);
    return list;
}

/* ---- what is not valid ---- */

/* Values of none of these types. There is no schema of numbers that are not whole. */
static ls_json *without_types(unsigned types) {
    static const char *const names[] = {"null",   "boolean", "object", "array",
                                        "string", "integer", "number"};
    ls_json *list = ls_json_new_array();
    if (types & (LS_TYPE_NUMBER | LS_TYPE_INTEGER)) types |= LS_TYPE_NUMBER | LS_TYPE_INTEGER;
    for (unsigned i = 0; i < sizeof names / sizeof *names; i++)
        if (!(types & 1u << i)) ls_json_push(list, ls_json_new_text(names[i]));
    if (ls_json_count(list)) return with("type", list);
    ls_json_free(list);
    return ls_json_new_bool(false);
}

static ls_json *negate_type(const ls_json *type) {
    unsigned types = ls_schema_type_named(ls_json_text(type));
    for (size_t i = 0; i < ls_json_count(type); i++) {
        unsigned one = ls_schema_type_named(ls_json_text(ls_json_at(type, i)));
        if (!one) return NULL;
        types |= one;
    }
    return types ? without_types(types) : NULL;
}

/* Other strings, and values of types that are not in the list. */
static ls_json *negate_listed(const ls_json *list) {
    ls_json *texts = ls_json_new_array();
    unsigned types = 0;
    for (size_t i = 0; i < ls_json_count(list); i++) {
        const ls_json *value = ls_json_at(list, i);
        if (ls_json_text(value))
            ls_json_push(texts, ls_json_share(value));
        else
            for (unsigned type = 1; type <= LS_TYPE_NUMBER; type *= 2)
                types |= ls_schema_has_type(value, type) ? type : 0;
    }
    ls_json *schema = without_types(types);
    if (ls_json_count(texts) && ls_json_is_object(schema))
        ls_json_set(schema, LS_SCHEMA_NOT_LISTED, texts);
    else
        ls_json_free(texts);
    return schema;
}

/* An object without the property. */
static ls_json *lacking(const char *name) {
    return with("properties", with(name, ls_json_new_bool(false)));
}

/* Objects that lack one. */
static ls_json *negate_required(const ls_json *names) {
    ls_json *list = ls_json_new_array();
    for (size_t i = 0; i < ls_json_count(names); i++) {
        const char *name = ls_json_text(ls_json_at(names, i));
        if (!name) continue;
        ls_json *one = lacking(name);
        ls_json_set_text(one, "type", "object");
        ls_json_push(list, one);
    }
    return with("anyOf", list);
}

/* Objects with one that is not valid. */
static ls_json *negate_properties(negator *n, const ls_json *properties, int nested) {
    ls_json *list = ls_json_new_array();
    const char *name = NULL;
    const ls_json *value = NULL;
    for (void *it = ls_json_next(properties, NULL, &name, &value); it;
         it = ls_json_next(properties, it, &name, &value)) {
        ls_json *other = negate(n, value, nested + 1);
        if (!other) continue;
        ls_json *one = with("properties", with(name, other));
        ls_json_set_text(one, "type", "object");
        ls_json_set(one, "required", list_of(ls_json_new_text(name)));
        ls_json_push(list, one);
    }
    return with("anyOf", list);
}

/* all: each of them must be negated, else one. */
static ls_json *negate_list(negator *n, const ls_json *schemas, bool all, int nested) {
    ls_json *list = ls_json_new_array();
    bool complete = ls_json_count(schemas) > 0;
    for (size_t i = 0; i < ls_json_count(schemas); i++) {
        ls_json *one = negate(n, ls_json_at(schemas, i), nested + 1);
        complete = complete && one;
        if (one) ls_json_push(list, one);
    }
    if (!all || complete) return with(all ? "allOf" : "anyOf", list);
    ls_json_free(list);
    return NULL;
}

static ls_json *negate_keyword(negator *n, const char *key, const ls_json *value, int nested) {
    if (strcmp(key, "type") == 0) return negate_type(value);
    if (strcmp(key, "enum") == 0) return negate_listed(value);
    if (strcmp(key, "required") == 0) return negate_required(value);
    if (strcmp(key, "properties") == 0) return negate_properties(n, value, nested);
    if (strcmp(key, "anyOf") == 0) return negate_list(n, value, true, nested);
    if (strcmp(key, "allOf") == 0) return negate_list(n, value, false, nested);
    if (strcmp(key, "not") == 0) return ls_json_share(value);
    if (strcmp(key, "const") != 0) return NULL;
    ls_json *list = list_of(ls_json_share(value)), *other = negate_listed(list);
    ls_json_free(list);
    return other;
}

static ls_json *negate_ref(negator *n, const ls_json *schema, int nested) {
    const ls_schema_part part = {schema, n->root, 0};
    ls_schema_part to;
    return ls_schema_follow(n->rules, &part, &to) == LS_OK ? negate(n, to.schema, nested + 1)
                                                           : NULL;
}

/* A value that is valid by it is not valid by the schema. NULL: that is not known. */
static ls_json *negate(negator *n, const ls_json *schema, int nested) {
    const char *key = NULL;
    const ls_json *value = NULL;
    bool is_document = schema != n->root && ls_schema_has_id(schema), says = false;
    if (ls_json_is_bool(schema)) return ls_json_new_bool(!ls_json_is_true(schema));
    if (!ls_json_is_object(schema) || is_document) return NULL;
    if (nested > MOST_NESTED || ++n->work > MOST_WORK) return NULL;
    if (ls_json_get(schema, "$ref")) return negate_ref(n, schema, nested);
    ls_json *list = ls_json_new_array();
    for (void *it = ls_json_next(schema, NULL, &key, &value); it;
         it = ls_json_next(schema, it, &key, &value)) {
        ls_json *one = negate_keyword(n, key, value, nested);
        says = says || ls_schema_is_keyword(key);
        bool is_empty = ls_json_get(one, "anyOf") && !ls_json_count(ls_json_get(one, "anyOf"));
        if (one && !is_empty)
            ls_json_push(list, one);
        else
            ls_json_free(one);
    }
    if (ls_json_count(list)) return with("anyOf", list);
    ls_json_free(list);
    return says ? NULL : ls_json_new_bool(false);
}

static ls_status negate_of(const ls_schema_rules *r, const ls_schema_part *p, const char *keyword,
                           ls_json **other_p) {
    negator n = {.rules = r, .root = p->root};
    *other_p = negate(&n, ls_json_get(p->schema, keyword), 0);
    if (*other_p) return LS_OK;
    return ls_schema_fail(r,
                          "the keyword '%s' is supported with type, enum, const, required, "
                          "properties, anyOf, allOf and not",
                          keyword);
}

/* ---- the keywords ---- */

static ls_status add_if(const ls_schema_rules *r, const ls_schema_part *p, ls_json *all) {
    const ls_json *wanted = ls_json_get(p->schema, "if"), *then = ls_json_get(p->schema, "then"),
                  *or_else = ls_json_get(p->schema, "else");
    ls_json *other = NULL;
    if (!wanted || (!then && !or_else)) return LS_OK;
    LS_TRY(negate_of(r, p, "if", &other));
    ls_json *both = list_of(ls_json_share(wanted)), *none = list_of(other);
    if (then) ls_json_push(both, ls_json_share(then));
    if (or_else) ls_json_push(none, ls_json_share(or_else));
    ls_json_push(all, with("anyOf", list_of_both(with("allOf", both), with("allOf", none))));
    return LS_OK;
}

/* An object lacks the property, or has what it depends on. */
static ls_status add_dependency(const ls_schema_rules *r, const char *name, const ls_json *on,
                                ls_json *all) {
    ls_json *names = list_of(ls_json_new_text(name)), *present = with("required", names);
    bool right = ls_json_text(on) || ls_json_is_array(on);
    if (ls_json_text(on)) ls_json_push(names, ls_json_share(on)); /* of draft 3 */
    for (size_t i = 0; ls_json_is_array(on) && i < ls_json_count(on); i++) {
        right = right && ls_json_text(ls_json_at(on, i));
        ls_json_push(names, ls_json_share(ls_json_at(on, i)));
    }
    if (ls_json_is_object(on) || ls_json_is_bool(on)) {
        ls_json_set(present, "allOf", list_of(ls_json_share(on)));
        right = true;
    }
    ls_json_push(all, with("anyOf", list_of_both(lacking(name), present)));
    return right
               ? LS_OK
               : ls_schema_fail(r, "dependencies of '%.40s': names or a schema are expected", name);
}

static ls_status add_dependencies(const ls_schema_rules *r, const ls_schema_part *p, ls_json *all) {
    static const char *const keywords[] = {"dependencies", "dependentRequired", "dependentSchemas"};
    const char *name = NULL;
    const ls_json *on = NULL;
    for (size_t i = 0; i < sizeof keywords / sizeof *keywords; i++) {
        const ls_json *list = ls_json_get(p->schema, keywords[i]);
        if (list && !ls_json_is_object(list))
            return ls_schema_fail(r, "%s: an object is expected", keywords[i]);
        for (void *it = ls_json_next(list, NULL, &name, &on); it;
             it = ls_json_next(list, it, &name, &on))
            LS_TRY(add_dependency(r, name, on, all));
    }
    return LS_OK;
}

static ls_status add_not(const ls_schema_rules *r, const ls_schema_part *p, ls_json *all) {
    ls_json *other = NULL;
    if (!ls_json_get(p->schema, "not")) return LS_OK;
    LS_TRY(negate_of(r, p, "not", &other));
    ls_json_push(all, other);
    return LS_OK;
}

ls_status ls_schema_conditions(ls_schema_rules *r, const ls_schema_part *p,
                               const ls_json **schema_p) {
    ls_json *all = ls_json_new_array();
    ls_status s = add_not(r, p, all);
    if (s == LS_OK) s = add_if(r, p, all);
    if (s == LS_OK) s = add_dependencies(r, p, all);
    *schema_p = NULL;
    if (s == LS_OK && ls_json_count(all))
        *schema_p = ls_schema_keep(r, with("allOf", all));
    else
        ls_json_free(all);
    return s;
}
