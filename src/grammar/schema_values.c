/* schema_values.c - see schema_values.h. */
#include "grammar/schema_values.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_NESTED = 16 }; /* beyond it, schemas are not told apart */

/* ---- types ---- */

unsigned ls_schema_type_named(const char *name) {
    static const char *const names[] = {"null",   "boolean", "object", "array",
                                        "string", "integer", "number"};
    for (unsigned i = 0; name && i < sizeof names / sizeof *names; i++)
        if (strcmp(names[i], name) == 0) return 1u << i;
    return 0;
}

/* 1.0 is an integer. */
static unsigned type_of(const ls_json *value) {
    double x = 0.5;
    if (ls_json_is_null(value)) return LS_TYPE_NULL;
    if (ls_json_is_bool(value)) return LS_TYPE_BOOLEAN;
    if (ls_json_is_object(value)) return LS_TYPE_OBJECT;
    if (ls_json_is_array(value)) return LS_TYPE_ARRAY;
    if (ls_json_text(value)) return LS_TYPE_STRING;
    ls_json_number(value, &x);
    return x == floor(x) ? LS_TYPE_INTEGER | LS_TYPE_NUMBER : LS_TYPE_NUMBER;
}

bool ls_schema_has_type(const ls_json *value, unsigned types) { return type_of(value) & types; }

/* ---- pointers ---- */

bool ls_schema_has_id(const ls_json *schema) {
    const char *id = ls_json_text(ls_json_get(schema, "$id"));
    return id && *id && *id != '#'; /* draft 7 has "#name" as the name of a place */
}

const ls_json *ls_schema_find(const ls_json *root, const char *pointer) {
    const ls_json *at = root;
    while (at && *pointer == '/') {
        size_t n = strcspn(++pointer, "/"), k = 0;
        char *word = ls_alloc(n + 1), *end = NULL;
        for (size_t i = 0; i < n; i++) {
            bool escape = pointer[i] == '~' && (pointer[i + 1] == '0' || pointer[i + 1] == '1');
            word[k++] = !escape ? pointer[i] : pointer[i + 1] == '0' ? '~' : '/';
            i += escape;
        }
        bool list = ls_json_is_array(at), other = at != root && ls_schema_has_id(at);
        size_t i = list ? strtoul(word, &end, 10) : 0;
        at = other                 ? NULL
             : !list               ? ls_json_get(at, word)
             : *end || end == word ? NULL
                                   : ls_json_at(at, i);
        free(word);
        pointer += n;
    }
    return *pointer ? NULL : at;
}

/* ---- what two schemas have in common ---- */

static bool is_exhausted(ls_schema_comparison *c, int nested) {
    return nested > MOST_NESTED || ++c->work > LS_SCHEMA_WORK;
}

/* What a reference, or several, lead to; NULL: that is not known here. */
static const ls_json *follow(const ls_schema_comparison *c, const ls_json *schema) {
    for (int i = 0; i < MOST_NESTED; i++) {
        const char *ref = ls_json_text(ls_json_get(schema, "$ref"));
        const ls_json *all = ls_json_get(schema, "allOf");
        bool other = schema != c->root && ls_schema_has_id(schema);
        if (!ls_json_is_object(schema) || other) return NULL;
        if (!ref && ls_json_count(all) != 1) return schema;
        schema = !ref ? ls_json_at(all, 0) : *ref == '#' ? ls_schema_find(c->root, ref + 1) : NULL;
    }
    return NULL;
}

/* The values that a schema lists. */
static size_t count_listed(const ls_json *schema) {
    return ls_json_get(schema, "const") ? 1 : ls_json_count(ls_json_get(schema, "enum"));
}

static const ls_json *listed(const ls_json *schema, size_t i) {
    const ls_json *constant = ls_json_get(schema, "const");
    return constant ? constant : ls_json_at(ls_json_get(schema, "enum"), i);
}

/* Objects and arrays are not looked into. */
static bool may_be_equal(const ls_json *a, const ls_json *b) {
    double x = 0, y = 0;
    if (ls_json_number(a, &x) && ls_json_number(b, &y)) return x == y; /* 1 is 1.0 */
    if (ls_json_is_object(a) || ls_json_is_array(a)) return type_of(a) == type_of(b);
    return ls_json_equal(a, b);
}

static bool lists_overlap(ls_schema_comparison *c, const ls_json *a, const ls_json *b) {
    for (size_t i = 0; i < count_listed(a); i++)
        for (size_t k = 0; k < count_listed(b); k++)
            if (is_exhausted(c, 0) || may_be_equal(listed(a, i), listed(b, k))) return true;
    return false;
}

/* All types that a valid value may have. */
static unsigned types_of(ls_schema_comparison *c, const ls_json *schema, int nested) {
    static const char *const lists[] = {"anyOf", "oneOf"};
    const ls_json *s = follow(c, schema), *type = ls_json_get(s, "type");
    unsigned types = 0;
    if (ls_json_is_bool(schema)) return ls_json_is_true(schema) ? LS_TYPE_ALL : 0;
    if (!s || is_exhausted(c, nested)) return LS_TYPE_ALL;
    for (int k = 0; k < 2; k++) {
        const ls_json *list = ls_json_get(s, lists[k]);
        for (size_t i = 0; i < ls_json_count(list); i++)
            types |= types_of(c, ls_json_at(list, i), nested + 1);
    }
    for (size_t i = 0; i < count_listed(s); i++) types |= type_of(listed(s, i));
    if (types) return types;
    for (size_t i = 0; i < ls_json_count(type); i++)
        types |= ls_schema_type_named(ls_json_text(ls_json_at(type, i)));
    types |= ls_schema_type_named(ls_json_text(type));
    if (types & LS_TYPE_NUMBER) types |= LS_TYPE_INTEGER;
    return types ? types : LS_TYPE_ALL;
}

static bool is_false(const ls_json *j) { return ls_json_is_bool(j) && !ls_json_is_true(j); }

static bool excludes(const ls_json *schema, const char *name) {
    const ls_json *one = ls_json_get(ls_json_get(schema, "properties"), name);
    if (!one && ls_json_get(schema, "patternProperties")) return false; /* one may match it */
    return is_false(one ? one : ls_json_get(schema, "additionalProperties"));
}

static bool overlap(ls_schema_comparison *, const ls_json *a, const ls_json *b, int nested);

/* Are there objects that are valid by both? By the properties that a requires. */
static bool objects_overlap(ls_schema_comparison *c, const ls_json *a, const ls_json *b,
                            int nested) {
    const ls_json *list = ls_json_get(a, "required");
    for (size_t i = 0; i < ls_json_count(list) && !is_exhausted(c, nested); i++) {
        const char *name = ls_json_text(ls_json_at(list, i));
        if (!name) continue;
        if (excludes(b, name)) return false;
        const ls_json *x = ls_json_get(ls_json_get(a, "properties"), name),
                      *y = ls_json_get(ls_json_get(b, "properties"), name);
        if (x && y && !overlap(c, x, y, nested + 1)) return false;
    }
    return true;
}

/* Does a schema without a type have keywords about objects alone? Then objects are written. */
static bool is_of_objects(const ls_json *s) {
    static const char *const
        objects[] = {"properties", "required", "patternProperties", "additionalProperties"},
        *const others[] = {
            "type",      "enum",    "const",        "anyOf",           "oneOf",       "allOf",
            "$ref",      "items",   "minItems",     "maxItems",        "pattern",     "minLength",
            "maxLength", "minimum", "maximum",      "format",          "prefixItems", "multipleOf",
            "not",       "if",      "dependencies", "dependentSchemas"};
    bool is = false;
    for (size_t i = 0; i < sizeof objects / sizeof *objects; i++)
        is = is || ls_json_get(s, objects[i]);
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        is = is && !ls_json_get(s, others[i]);
    return is;
}

/* The types of values that are valid by both, and written. */
static unsigned common_types(ls_schema_comparison *c, const ls_json *a, const ls_json *b,
                             int nested) {
    unsigned common = types_of(c, a, nested) & types_of(c, b, nested);
    if (nested) return common; /* what stands beside the property's schemas is not known here */
    if (c->objects && is_of_objects(follow(c, a)) && is_of_objects(follow(c, b)))
        common &= LS_TYPE_OBJECT;
    return c->types ? common & c->types : common;
}

static bool overlap(ls_schema_comparison *c, const ls_json *a, const ls_json *b, int nested) {
    const ls_json *x = follow(c, a), *y = follow(c, b);
    unsigned common = common_types(c, a, b, nested);
    if (!common) return false;
    if (!x || !y || is_exhausted(c, nested)) return true;
    if (count_listed(x) && count_listed(y)) return lists_overlap(c, x, y);
    if (common != LS_TYPE_OBJECT) return true;
    return objects_overlap(c, x, y, nested) && objects_overlap(c, y, x, nested);
}

bool ls_schemas_overlap(ls_schema_comparison *c, const ls_json *a, const ls_json *b) {
    return overlap(c, a, b, 0);
}

static bool requires(const ls_json *schema, const char *name) {
    const ls_json *list = ls_json_get(schema, "required");
    for (size_t i = 0; i < ls_json_count(list); i++) {
        const char *one = ls_json_text(ls_json_at(list, i));
        if (one && strcmp(one, name) == 0) return true;
    }
    return false;
}

const char *ls_schemas_part(ls_schema_comparison *c, const ls_json *a, const ls_json *b) {
    const ls_json *x = follow(c, a), *y = follow(c, b), *list = ls_json_get(y, "required");
    if (!x || !y || common_types(c, a, b, 0) != LS_TYPE_OBJECT) return NULL;
    for (size_t i = 0; i < ls_json_count(list) && !is_exhausted(c, 0); i++) {
        const char *name = ls_json_text(ls_json_at(list, i));
        if (name && !requires(x, name)) return name;
    }
    return NULL;
}

/* ---- a property that tells many apart ---- */

/* Adds the name of a value to the members of an object. False: it is there, or has no one name. */
static bool add_name(ls_json *names, const ls_json *value) {
    double x = 0;
    bool number = ls_json_number(value, &x);
    if (ls_json_is_object(value) || ls_json_is_array(value)) return false;
    if (number && (x != floor(x) || fabs(x) >= 1e15)) return false;
    ls_buf name = {0};
    if (number)
        ls_buf_printf(&name, "%.0f", x + 0.0); /* 1 is 1.0 */
    else
        ls_json_write_exact(value, &name);
    bool is_new = !ls_json_get(names, name.data);
    if (is_new) ls_json_set(names, name.data, ls_json_new_null());
    ls_buf_free(&name);
    return is_new;
}

/* Adds the values that a schema has for a property that it requires. */
static bool add_values(ls_schema_comparison *c, const ls_json *schema, const char *name,
                       ls_json *names) {
    const ls_json *s = follow(c, schema);
    const ls_json *value = follow(c, ls_json_get(ls_json_get(s, "properties"), name));
    bool all = requires(s, name) && count_listed(value) > 0;
    for (size_t i = 0; all && i < count_listed(value); i++)
        all = !is_exhausted(c, 0) && add_name(names, listed(value, i));
    return all;
}

/* Does the property tell all marked ones apart? */
static bool tells_apart(ls_schema_comparison *c, const ls_json *list, const char *name,
                        const bool *marked) {
    ls_json *names = ls_json_new_object();
    bool all = true;
    for (size_t i = 0; all && i < ls_json_count(list); i++)
        all = !marked[i] || add_values(c, ls_json_at(list, i), name, names);
    ls_json_free(names);
    return all;
}

/* Does a required property tell all marked objects apart? */
static bool objects_apart(ls_schema_comparison *c, const ls_json *list, const bool *marked) {
    const ls_json *first = NULL;
    for (size_t i = 0; i < ls_json_count(list) && !first; i++)
        if (marked[i]) first = follow(c, ls_json_at(list, i));
    const ls_json *names = ls_json_get(first, "required");
    for (size_t i = 0; i < ls_json_count(names); i++) {
        const char *name = ls_json_text(ls_json_at(names, i));
        if (name && tells_apart(c, list, name, marked)) return true;
    }
    return false;
}

void ls_schemas_tell_apart(ls_schema_comparison *c, const ls_json *list, bool *apart) {
    ls_json *values = ls_json_new_object();
    bool *objects = LS_NEW_ARRAY(bool, ls_json_count(list));
    bool distinct = true;
    for (size_t i = 0; i < ls_json_count(list); i++) {
        const ls_json *one = ls_json_at(list, i), *s = follow(c, one);
        apart[i] = count_listed(s) > 0;
        objects[i] = s && !apart[i] && common_types(c, one, one, 0) == LS_TYPE_OBJECT;
        for (size_t k = 0; k < count_listed(s); k++)
            distinct = distinct && !is_exhausted(c, 0) && add_name(values, listed(s, k));
    }
    const bool told = objects_apart(c, list, objects);
    for (size_t i = 0; i < ls_json_count(list); i++)
        apart[i] = (apart[i] && distinct) || (objects[i] && told);
    free(objects);
    ls_json_free(values);
}

const ls_json *ls_schema_meant(const ls_schema_comparison *c, const ls_json *schema) {
    const ls_json *s = follow(c, schema);
    return s ? s : schema;
}
