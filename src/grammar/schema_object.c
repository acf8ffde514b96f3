/* schema_object.c - see schema_object.h.
 *
 * Properties that the schemas name come in their order, each at most once. Behind them come
 * others, any number, where the schemas describe some: a class of names for each set of the
 * expressions of patternProperties that match a name.
 */
#include "grammar/schema_object.h"

#include <stdlib.h>
#include <string.h>

#include "grammar/nfa.h"
#include "grammar/schema.h"
#include "grammar/schema_keywords.h"
#include "grammar/schema_string.h"

enum { MOST_PATTERNS = 4, MOST_NAMES = LS_SCHEMA_RULES };

/* One of patternProperties. */
typedef struct name_pattern {
    const ls_schema_part *part;
    const ls_json *schema;
    const ls_expression *x;
    ls_nfa_matcher *matcher;
} name_pattern;

typedef struct object_reader {
    ls_schema_rules *rules;
    const ls_schema_set *set;
    const ls_expression *members;
    const ls_expression *allowed; /* propertyNames; NULL: any */
    ls_nfa_matcher *matcher;      /* of these */
    const char **names;           /* [n] */
    size_t n;
    name_pattern patterns[MOST_PATTERNS]; /* [npatterns] */
    unsigned npatterns;
    int64_t least, most;
} object_reader;

/* ---- what the schemas have ---- */

static ls_status read_patterns(object_reader *o, const ls_schema_part *part) {
    const ls_json *list = ls_json_get(part->schema, "patternProperties"), *schema = NULL;
    const char *text = NULL;
    if (list && !ls_json_is_object(list))
        return ls_schema_fail(o->rules, "patternProperties: an object is expected");
    for (void *it = ls_json_next(list, NULL, &text, &schema); it;
         it = ls_json_next(list, it, &text, &schema)) {
        if (o->npatterns == MOST_PATTERNS)
            return ls_schema_fail(o->rules, "patternProperties: at most %d are supported",
                                  MOST_PATTERNS);
        name_pattern *p = &o->patterns[o->npatterns++];
        *p = (name_pattern){.part = part, .schema = schema};
        LS_TRY(ls_schema_pattern(o->rules, "patternProperties", text, &p->x));
        p->matcher = ls_nfa_matcher_new(p->x);
    }
    return LS_OK;
}

/* All of propertyNames, as schemas of strings. */
static ls_status read_name_schemas(object_reader *o) {
    ls_schema_set *names = ls_schema_set_new(&o->rules->sets), *all = NULL;
    for (size_t i = 0; i < o->set->n; i++) {
        const ls_schema_part *p = &o->set->list[i];
        const ls_json *one = ls_json_get(p->schema, "propertyNames");
        if (one) ls_schema_set_add(names, (ls_schema_part){one, p->root, 0});
    }
    if (names->n == 0 && !names->never) return LS_OK;
    LS_TRY(ls_schema_gather(o->rules, names, &all));
    LS_TRY(ls_schema_names(o->rules, all, &o->allowed));
    o->matcher = ls_nfa_matcher_new(o->allowed);
    return LS_OK;
}

static ls_status add_name(object_reader *o, const char *name) {
    for (size_t i = 0; i < o->n; i++)
        if (strcmp(o->names[i], name) == 0) return LS_OK;
    if (o->n == MOST_NAMES) return ls_schema_fail(o->rules, "it is too large");
    o->names = ls_grow((void *)o->names, o->n, sizeof(char *));
    o->names[o->n++] = name;
    return LS_OK;
}

static ls_status add_properties(object_reader *o, const ls_json *schema) {
    const ls_json *properties = ls_json_get(schema, "properties"), *value = NULL;
    const char *name = NULL;
    if (properties && !ls_json_is_object(properties))
        return ls_schema_fail(o->rules, "properties: an object is expected");
    for (void *it = ls_json_next(properties, NULL, &name, &value); it;
         it = ls_json_next(properties, it, &name, &value))
        LS_TRY(add_name(o, name));
    return LS_OK;
}

static ls_status add_required(object_reader *o, const ls_json *schema) {
    const ls_json *required = ls_json_get(schema, "required");
    bool none = ls_json_is_bool(required) && !ls_json_is_true(required); /* of draft 3 */
    if (required && !none && !ls_json_is_array(required))
        return ls_schema_fail(o->rules, "required: a list of names is expected");
    for (size_t i = 0; i < ls_json_count(required); i++) {
        const char *name = ls_json_text(ls_json_at(required, i));
        if (!name) return ls_schema_fail(o->rules, "required: a list of names is expected");
        LS_TRY(add_name(o, name));
    }
    return LS_OK;
}

static ls_status read_parts(object_reader *o) {
    static const char *const counts[] = {"minProperties", "maxProperties"};
    const ls_schema_set *set = o->set;
    LS_TRY(ls_schema_counts(o->rules, set, counts, &o->least, &o->most));
    for (size_t i = 0; i < set->n; i++) LS_TRY(add_properties(o, set->list[i].schema));
    for (size_t i = 0; i < set->n; i++) LS_TRY(add_required(o, set->list[i].schema));
    for (size_t i = 0; i < set->n; i++) LS_TRY(read_patterns(o, &set->list[i]));
    return read_name_schemas(o);
}

/* ---- the schemas of a property ---- */

static bool is_false(const ls_json *j) { return ls_json_is_bool(j) && !ls_json_is_true(j); }

/* Those of a name that the patterns match whose bits are 1; name NULL: no schema names it. */
static const ls_schema_set *value_of(const object_reader *o, const char *name, unsigned matching) {
    ls_schema_set *set = ls_schema_set_new(&o->rules->sets);
    for (size_t i = 0; i < o->set->n; i++) {
        const ls_schema_part *p = &o->set->list[i];
        const ls_json *others = ls_json_get(p->schema, "additionalProperties");
        const ls_json *own = name ? ls_json_get(ls_json_get(p->schema, "properties"), name) : NULL;
        if (own) ls_schema_set_add(set, (ls_schema_part){own, p->root, 0});
        for (unsigned k = 0; k < o->npatterns; k++) {
            if (!(matching >> k & 1) || o->patterns[k].part != p) continue;
            own = o->patterns[k].schema;
            ls_schema_set_add(set, (ls_schema_part){own, p->root, 0});
        }
        if (!own && others) ls_schema_set_add(set, (ls_schema_part){others, p->root, 0});
    }
    return set;
}

/* ---- properties that are named ---- */

static bool is_required(const object_reader *o, const char *name) {
    for (size_t i = 0; i < o->set->n; i++) {
        const ls_json *list = ls_json_get(o->set->list[i].schema, "required");
        for (size_t k = 0; k < ls_json_count(list); k++)
            if (strcmp(ls_json_text(ls_json_at(list, k)), name) == 0) return true;
    }
    return false;
}

static ls_status match(const object_reader *o, ls_nfa_matcher *m, const ls_expression *text,
                       bool *matches_p) {
    *matches_p = ls_nfa_matches(m, text->bytes, text->nbytes);
    return ls_nfa_matcher_full(m) ? ls_schema_fail(o->rules, "it is too large") : LS_OK;
}

static ls_status add_member(object_reader *o, const char *name) {
    ls_schema_rules *r = o->rules;
    const ls_expression *text = ls_schema_unquoted(r, name), *x = NULL;
    bool required = is_required(o, name), allowed = true;
    unsigned matching = 0;
    if (o->matcher) LS_TRY(match(o, o->matcher, text, &allowed));
    for (unsigned k = 0; k < o->npatterns; k++) {
        bool matches = false;
        LS_TRY(match(o, o->patterns[k].matcher, text, &matches));
        matching |= (unsigned)matches << k;
    }
    const ls_schema_set *value = value_of(o, name, matching);
    bool never = value->never || !allowed;
    if (never && !required) return LS_OK;
    if (never && o->set->n == 1)
        return ls_schema_fail(r, "required: '%.40s' is not one of its properties", name);
    char *word = ls_format("properties/%s", name);
    x = ls_schema_between(r, "\"", text, "\":");
    x = ls_expression_then(
        &r->pool, x, never ? ls_expression_never(&r->pool) : ls_schema_call_child(r, value, word));
    o->members = ls_expression_member(&r->pool, o->members, x, required, 1);
    free(word);
    return LS_OK;
}

/* ---- others ---- */

/* Is there a property that may be there, or an empty list? */
static bool lists_some(const ls_json *properties) {
    const char *name = NULL;
    const ls_json *value = NULL;
    bool some = properties && ls_json_count(properties) == 0;
    for (void *it = ls_json_next(properties, NULL, &name, &value); it && !some;
         it = ls_json_next(properties, it, &name, &value))
        some = !is_false(value);
    return some;
}

/* Does no schema list properties? Then any are meant; an empty list means none. */
static bool lists_none(const object_reader *o) {
    for (size_t i = 0; i < o->set->n; i++) {
        const ls_json *schema = o->set->list[i].schema;
        if (lists_some(ls_json_get(schema, "properties"))) return false;
        if (ls_json_count(ls_json_get(schema, "required"))) return false;
    }
    return o->npatterns == 0;
}

/* Does a schema say that there may be others whose names these patterns match? */
static bool describes_others(const object_reader *o, unsigned matching) {
    if (matching) return true;
    for (size_t i = 0; i < o->set->n; i++) {
        const ls_json *others = ls_json_get(o->set->list[i].schema, "additionalProperties");
        if (others && !is_false(others)) return true;
    }
    return lists_none(o) || o->least > (int64_t)o->n;
}

/* The names that these patterns match, and no others; without quotes. */
static const ls_expression *other_names(const object_reader *o, unsigned matching) {
    ls_expressions *p = &o->rules->pool;
    const ls_expression *x = NULL,
                        *not = ls_schema_any_text(o->rules, (const char *const *)o->names, o->n);
    for (unsigned k = 0; k < o->npatterns; k++)
        if (matching >> k & 1)
            x = ls_expression_both(p, x, o->patterns[k].x);
        else
            not = ls_expression_or(p, not, o->patterns[k].x);
    if (o->allowed) x = ls_expression_both(p, x, o->allowed);
    if (!x) x = ls_schema_chars(o->rules, 0, LS_NO_LIMIT);
    return not ? ls_expression_without(p, x, not ) : x;
}

static void add_others(object_reader *o) {
    ls_schema_rules *r = o->rules;
    const ls_expression *all = NULL;
    for (unsigned matching = 0; matching < 1u << o->npatterns; matching++) {
        if (!describes_others(o, matching)) continue;
        const ls_schema_set *value = value_of(o, NULL, matching);
        if (value->never) continue;
        const ls_expression *x = ls_schema_between(r, "\"", other_names(o, matching), "\":");
        x = ls_expression_then(
            &r->pool, x,
            ls_schema_call_child(r, value,
                                 matching ? "patternProperties" : "additionalProperties"));
        all = ls_expression_or(&r->pool, all, x);
    }
    if (all) o->members = ls_expression_member(&r->pool, o->members, all, 0, LS_NO_LIMIT);
}

/* ---- an object ---- */

static bool is_any(const object_reader *o) {
    if (o->n || o->npatterns || o->allowed || o->least || o->most != LS_NO_LIMIT) return false;
    const ls_schema_set *value = value_of(o, NULL, 0);
    return describes_others(o, 0) && value->n == 0 && !value->never;
}

static ls_status read_object(object_reader *o, const ls_expression **x_p) {
    ls_schema_rules *r = o->rules;
    LS_TRY(read_parts(o));
    if (is_any(o)) {
        *x_p = ls_schema_call_kind(r, LS_SCHEMA_OBJECT);
        return LS_OK;
    }
    for (size_t i = 0; i < o->n; i++) LS_TRY(add_member(o, o->names[i]));
    add_others(o);
    bool contradict = o->most != LS_NO_LIMIT && o->most < o->least;
    *x_p = contradict
               ? ls_expression_never(&r->pool)
               : ls_schema_between(
                     r, "{", ls_expression_list(&r->pool, o->members, o->least, o->most), "}");
    return LS_OK;
}

/* ---- members that are texts ---- */

static ls_status read_members(object_reader *o, const ls_expression **x_p) {
    ls_schema_rules *r = o->rules;
    int64_t n = 0;
    *x_p = ls_expression_text(&r->pool, "");
    LS_TRY(read_parts(o));
    for (size_t i = 0; i < o->n; i++) {
        const char *name = o->names[i];
        const ls_schema_set *value = value_of(o, name, 0);
        bool required = is_required(o, name);
        if (strpbrk(name, LS_SCHEMA_NOT_IN_KEYS) || !*name)
            return ls_schema_fail(r, "the name '%.40s' can't be written in calls of this form",
                                  name);
        if (value->never && required)
            return ls_schema_fail(r, "required: '%.40s' is not one of its properties", name);
        if (value->never) continue;
        const ls_expression *x = ls_schema_call_member(r, value, name);
        char *before = ls_format("%s%s%s", r->marks->key, name, r->marks->key_end);
        x = ls_schema_between(r, before, x, "");
        free(before);
        *x_p = ls_expression_then(&r->pool, *x_p, ls_expression_repeat(&r->pool, x, required, 1));
        n += required;
    }
    if (o->npatterns || o->allowed || o->least > n || o->most != LS_NO_LIMIT)
        return ls_schema_fail(r, "patternProperties, propertyNames, minProperties and "
                                 "maxProperties are not supported in calls of this form");
    return LS_OK;
}

/* ---- the schemas of an object ---- */

typedef ls_status object_reading(object_reader *, const ls_expression **x_p);

static ls_status read(ls_schema_rules *r, const ls_schema_set *set, object_reading *reading,
                      const ls_expression **x_p) {
    object_reader o = {.rules = r, .set = set, .most = LS_NO_LIMIT};
    ls_status s = reading(&o, x_p);
    for (unsigned k = 0; k < o.npatterns; k++) ls_nfa_matcher_free(o.patterns[k].matcher);
    ls_nfa_matcher_free(o.matcher);
    free((void *)o.names);
    return s;
}

ls_status ls_schema_object(ls_schema_rules *r, const ls_schema_set *set,
                           const ls_expression **x_p) {
    return read(r, set, read_object, x_p);
}

ls_status ls_schema_members(ls_schema_rules *r, const ls_schema_set *set,
                            const ls_expression **x_p) {
    return read(r, set, read_members, x_p);
}
