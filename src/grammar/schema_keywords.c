/* schema_keywords.c - see schema_keywords.h.
 *
 * A keyword that JSON Schema does not know says nothing, as the standard has it; but one that is
 * almost a known one is taken for a mistake, and refused.
 */
#include "grammar/schema_keywords.h"

#include <ctype.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "grammar/schema_condition.h"
#include "grammar/schema_values.h"

typedef struct schema_keyword {
    const char *name;
    unsigned types; /* that it is about; 0: it is not supported */
} schema_keyword;
enum { ALL = LS_TYPE_ALL };

static const schema_keyword keywords[] = {{"type", ALL},
                                          {"enum", ALL},
                                          {"const", ALL},
                                          {"anyOf", ALL},
                                          {"oneOf", ALL},
                                          {"allOf", ALL},
                                          {"$ref", ALL},
                                          {"properties", LS_TYPE_OBJECT},
                                          {"patternProperties", LS_TYPE_OBJECT},
                                          {"additionalProperties", LS_TYPE_OBJECT},
                                          {"propertyNames", LS_TYPE_OBJECT},
                                          {"required", LS_TYPE_OBJECT},
                                          {"minProperties", LS_TYPE_OBJECT},
                                          {"maxProperties", LS_TYPE_OBJECT},
                                          {"items", LS_TYPE_ARRAY},
                                          {"prefixItems", LS_TYPE_ARRAY},
                                          {"additionalItems", LS_TYPE_ARRAY},
                                          {"minItems", LS_TYPE_ARRAY},
                                          {"maxItems", LS_TYPE_ARRAY},
                                          {"uniqueItems", LS_TYPE_ARRAY},
                                          {"minLength", LS_TYPE_STRING},
                                          {"maxLength", LS_TYPE_STRING},
                                          {"pattern", LS_TYPE_STRING},
                                          {"format", LS_TYPE_STRING},
                                          {"contentEncoding", LS_TYPE_STRING},
                                          {"minimum", LS_TYPE_NUMBER},
                                          {"maximum", LS_TYPE_NUMBER},
                                          {"exclusiveMinimum", LS_TYPE_NUMBER},
                                          {"exclusiveMaximum", LS_TYPE_NUMBER},
                                          {"multipleOf", LS_TYPE_NUMBER},
                                          {LS_SCHEMA_NOT_LISTED, LS_TYPE_STRING},
                                          {"not", ALL},
                                          {"if", ALL},
                                          {"dependencies", ALL},
                                          {"dependentRequired", ALL},
                                          {"dependentSchemas", ALL},
                                          {"contains", 0},
                                          {"unevaluatedItems", 0},
                                          {"unevaluatedProperties", 0},
                                          {"$dynamicRef", 0},
                                          {"$recursiveRef", 0},
                                          {"divisibleBy", 0},
                                          {"disallow", 0},
                                          {"extends", 0}};
enum { NKEYWORDS = sizeof keywords / sizeof *keywords };

static const schema_keyword *find_keyword(const char *name) {
    for (int i = 0; i < NKEYWORDS; i++)
        if (strcmp(keywords[i].name, name) == 0) return &keywords[i];
    return NULL;
}

/* Do the names differ by capital letters, and one letter, or two that are exchanged? Those that do
 * not begin with a letter are meant. */
static bool is_near(const char *a, const char *b) {
    size_t n = strlen(a), m = strlen(b), first = 0, last = 0;
    if (!isalpha((unsigned char)*a) || n < 4 || m < 4) return false;
    while (first < n && first < m && tolower(a[first]) == tolower(b[first])) first++;
    while (last < n - first && last < m - first &&
           tolower(a[n - 1 - last]) == tolower(b[m - 1 - last]))
        last++;
    n -= first + last, m -= first + last;
    bool exchanged = n == 2 && m == 2 && a[first] == b[first + 1] && a[first + 1] == b[first];
    return (n <= 1 && m <= 1) || exchanged;
}

bool ls_schema_is_keyword(const char *name) { return find_keyword(name); }

static ls_status check_unknown(const ls_schema_rules *r, const char *name) {
    for (int i = 0; i < NKEYWORDS; i++)
        if (is_near(name, keywords[i].name))
            return ls_schema_fail(r, "the keyword '%.40s' is not supported; is '%s' meant?", name,
                                  keywords[i].name);
    return LS_OK;
}

/* Those that say nothing in this schema. */
static bool is_empty(const char *name, const ls_json *value) {
    if (strcmp(name, "required") == 0) return ls_json_is_bool(value) && !ls_json_is_true(value);
    return (strcmp(name, "dependencies") == 0 || strncmp(name, "dependent", 9) == 0) &&
           ls_json_count(value) == 0;
}

static ls_status check_keywords(const ls_schema_rules *r, const ls_json *j) {
    const char *key = NULL;
    const ls_json *value = NULL;
    for (void *it = ls_json_next(j, NULL, &key, &value); it;
         it = ls_json_next(j, it, &key, &value)) {
        const schema_keyword *k = find_keyword(key);
        if (!k) LS_TRY(check_unknown(r, key));
        if (k && !k->types && !is_empty(key, value))
            return ls_schema_fail(r, "the keyword '%s' is not supported", key);
    }
    return LS_OK;
}

/* ---- what the schemas of a set say ---- */

static unsigned done_by(const char *name) {
    if (strcmp(name, "anyOf") == 0) return LS_DONE_ANY_OF;
    if (strcmp(name, "oneOf") == 0) return LS_DONE_ONE_OF;
    static const char *const others[] = {
        "$ref", "allOf", "not", "if", "dependencies", "dependentRequired", "dependentSchemas"};
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        if (strcmp(name, others[i]) == 0) return LS_DONE_OTHERS;
    return 0;
}

static size_t count_said(const ls_schema_part *p) {
    const char *key = NULL;
    const ls_json *value = NULL;
    size_t n = 0;
    for (void *it = ls_json_next(p->schema, NULL, &key, &value); it;
         it = ls_json_next(p->schema, it, &key, &value))
        n += find_keyword(key) && !(done_by(key) & p->done) && !is_empty(key, value);
    return n;
}

bool ls_schema_says(const ls_schema_part *p) { return count_said(p) > 0; }

bool ls_schema_is_ref(const ls_schema_part *p) {
    return ls_json_get(p->schema, "$ref") && !(p->done & LS_DONE_OTHERS) && count_said(p) == 1;
}

/* Replaces %XX by the byte. */
static void unescape(char *text) {
    char *to = text;
    for (; *text; text++, to++) {
        unsigned byte = 0;
        *to = *text;
        if (*text != '%' || !isxdigit((unsigned char)text[1]) || !isxdigit((unsigned char)text[2]))
            continue;
        for (int i = 1; i <= 2; i++) {
            int c = tolower((unsigned char)text[i]);
            byte = byte * 16 + (unsigned)(c <= '9' ? c - '0' : c - 'a' + 10);
        }
        *to = (char)byte;
        text += 2;
    }
    *to = 0;
}

ls_status ls_schema_follow(const ls_schema_rules *r, const ls_schema_part *p,
                           ls_schema_part *to_p) {
    const char *ref = ls_json_text(ls_json_get(p->schema, "$ref"));
    const ls_json *to = NULL;
    if (ref && *ref == '#') {
        char *pointer = ls_strdup(ref + 1);
        unescape(pointer);
        to = ls_schema_find(p->root, pointer);
        free(pointer);
    }
    if (!ls_json_is_object(to) && !ls_json_is_bool(to))
        return ls_schema_fail(r, "$ref: '%.80s' is not in the schema, as #/$defs/NAME",
                              ref ? ref : "");
    *to_p = (ls_schema_part){to, p->root, 0};
    return LS_OK;
}

/* ---- gathering ---- */

/* Schemas that are being gathered: each is in the one before. */
typedef struct schema_trail {
    const ls_json *schema;
    const struct schema_trail *before;
} schema_trail;

static ls_status gather(ls_schema_rules *r, ls_schema_part part, const schema_trail *before,
                        ls_schema_set *all) {
    const ls_json *list = ls_json_get(part.schema, "allOf"), *more = NULL;
    schema_trail trail = {part.schema, before};
    ls_schema_part to;
    int nested = 0;
    for (const schema_trail *t = before; t; t = t->before, nested++)
        if (t->schema == part.schema)
            return ls_schema_fail(r, "it refers to itself before it says anything");
    if (nested > LS_SCHEMA_NESTED) return ls_schema_fail(r, "it is nested too deeply");
    if (!ls_json_is_object(part.schema) && !ls_json_is_bool(part.schema))
        return ls_schema_fail(r, "an object is expected");
    size_t n = all->n;
    bool done = part.done & LS_DONE_OTHERS;
    part.done |= LS_DONE_OTHERS;
    ls_schema_set_add(all, part);
    if (done || all->n == n) return LS_OK;
    part = all->list[n];
    LS_TRY(check_keywords(r, part.schema));
    if (ls_json_get(part.schema, "$ref")) {
        LS_TRY(ls_schema_follow(r, &part, &to));
        LS_TRY(gather(r, to, &trail, all));
    }
    if (list && ls_json_count(list) == 0)
        return ls_schema_fail(r, "allOf: a list of schemas is expected");
    for (size_t i = 0; i < ls_json_count(list); i++)
        LS_TRY(gather(r, (ls_schema_part){ls_json_at(list, i), part.root, 0}, &trail, all));
    LS_TRY(ls_schema_conditions(r, &part, &more));
    return more ? gather(r, (ls_schema_part){more, part.root, 0}, &trail, all) : LS_OK;
}

ls_status ls_schema_gather(ls_schema_rules *r, const ls_schema_set *set, ls_schema_set **all_p) {
    ls_schema_set *all = ls_schema_set_new(&r->sets);
    all->never = set->never;
    for (size_t i = 0; i < set->n; i++) LS_TRY(gather(r, set->list[i], NULL, all));
    *all_p = all;
    return LS_OK;
}

/* ---- types ---- */

static ls_status add_type(const ls_schema_rules *r, const ls_json *name, unsigned *types) {
    unsigned type = ls_schema_type_named(ls_json_text(name));
    *types |= type == LS_TYPE_NUMBER ? LS_TYPE_NUMBER | LS_TYPE_INTEGER : type;
    if (type) return LS_OK;
    return ls_schema_fail(
        r, "type: null, boolean, object, array, string, integer or number is expected");
}

static ls_status read_types(const ls_schema_rules *r, const ls_json *type, unsigned *types_p) {
    unsigned types = 0;
    for (size_t i = 0; i < ls_json_count(type); i++)
        LS_TRY(add_type(r, ls_json_at(type, i), &types));
    if (types == 0) LS_TRY(add_type(r, type, &types));
    *types_p = types;
    return LS_OK;
}

static unsigned types_about(const ls_schema_part *p) {
    const char *key = NULL;
    const ls_json *value = NULL;
    unsigned about = 0;
    for (void *it = ls_json_next(p->schema, NULL, &key, &value); it;
         it = ls_json_next(p->schema, it, &key, &value)) {
        const schema_keyword *k = find_keyword(key);
        if (k && k->types != ALL && !is_empty(key, value)) about |= k->types;
    }
    return about;
}

ls_status ls_schema_types(const ls_schema_rules *r, const ls_schema_set *set, unsigned *types_p,
                          unsigned *about_p) {
    unsigned types = ALL, about = 0;
    bool given = false;
    for (size_t i = 0; i < set->n; i++) {
        const ls_json *type = ls_json_get(set->list[i].schema, "type");
        unsigned own = ALL;
        if (type) LS_TRY(read_types(r, type, &own));
        types &= own;
        given = given || type;
        about |= types_about(&set->list[i]);
    }
    if (about & LS_TYPE_NUMBER) about |= LS_TYPE_INTEGER;
    *types_p = given ? types : about ? about : ALL;
    *about_p = about;
    return LS_OK;
}

/* ---- counts ---- */

static ls_status read_count(const ls_schema_rules *r, const ls_json *j, const char *key,
                            int64_t *n) {
    const ls_json *value = ls_json_get(j, key);
    double number = 0;
    *n = LS_NO_LIMIT;
    if (!value) return LS_OK;
    if (!ls_json_number(value, &number) || !(number >= 0) || number != floor(number))
        return ls_schema_fail(r, "%s: a whole number is expected", key);
    *n = number <= 1e9 ? (int64_t)number : 1000000000;
    return LS_OK;
}

ls_status ls_schema_counts(const ls_schema_rules *r, const ls_schema_set *set,
                           const char *const keys[2], int64_t *least, int64_t *most) {
    for (size_t i = 0; i < set->n; i++) {
        int64_t low = 0, high = 0;
        LS_TRY(read_count(r, set->list[i].schema, keys[0], &low));
        LS_TRY(read_count(r, set->list[i].schema, keys[1], &high));
        if (low > *least) *least = low;
        if (high != LS_NO_LIMIT && (*most == LS_NO_LIMIT || high < *most)) *most = high;
    }
    return LS_OK;
}
