/* schema.c - see schema.h.
 *
 * Each schema that is referred to, or stands where a value does, becomes a rule; so schemas may be recursive, and
 * each is read once.
 */
#include "grammar/schema.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "grammar/number_range.h"
#include "grammar/schema_rules.h"

#define FAIL(r, ...) fail(r, ls_format(__VA_ARGS__))

static ls_status read_schema(ls_schema_rules *, const ls_json *, int nested,
                             const ls_expression **x_p);

/* Takes the text. */
static ls_status fail(const ls_schema_rules *r, char *text) {
    ls_status s =
        ls_fail(r->e, LS_EINVAL, "the schema%s%s: %s", *r->path ? " at " : "", r->path, text);
    free(text);
    return s;
}

/* ---- keywords ---- */

/* Types of values. */
enum {
    TYPE_NULL = 1,
    TYPE_BOOLEAN = 2,
    TYPE_OBJECT = 4,
    TYPE_ARRAY = 8,
    TYPE_STRING = 16,
    TYPE_INTEGER = 32,
    TYPE_NUMBER = 64
};

typedef struct schema_keyword {
    const char *name;
    unsigned types; /* that it is about; 0: it only describes */
} schema_keyword;
enum { ALL = 127 };

static const schema_keyword keywords[] = {{"type", ALL},
                                          {"enum", ALL},
                                          {"const", ALL},
                                          {"anyOf", ALL},
                                          {"allOf", ALL},
                                          {"$ref", ALL},
                                          {"properties", TYPE_OBJECT},
                                          {"required", TYPE_OBJECT},
                                          {"additionalProperties", TYPE_OBJECT},
                                          {"items", TYPE_ARRAY},
                                          {"prefixItems", TYPE_ARRAY},
                                          {"minItems", TYPE_ARRAY},
                                          {"maxItems", TYPE_ARRAY},
                                          {"uniqueItems", TYPE_ARRAY},
                                          {"minLength", TYPE_STRING},
                                          {"maxLength", TYPE_STRING},
                                          {"pattern", TYPE_STRING},
                                          {"format", TYPE_STRING},
                                          {"minimum", TYPE_NUMBER},
                                          {"maximum", TYPE_NUMBER},
                                          {"exclusiveMinimum", TYPE_NUMBER},
                                          {"exclusiveMaximum", TYPE_NUMBER},
                                          {"title", 0},
                                          {"description", 0},
                                          {"default", 0},
                                          {"examples", 0},
                                          {"$schema", 0},
                                          {"$id", 0},
                                          {"$comment", 0},
                                          {"$defs", 0},
                                          {"definitions", 0},
                                          {"deprecated", 0},
                                          {"readOnly", 0},
                                          {"writeOnly", 0}};

/* The types that the schema's keywords are about, but for those of ALL; refuses unknown ones. nsaid_p: how many
 * keywords say something. */
static ls_status check_keywords(const ls_schema_rules *r, const ls_json *j, unsigned *about_p,
                                size_t *nsaid_p) {
    const char *key = NULL;
    const ls_json *value = NULL;
    unsigned about = 0;
    size_t said = 0;
    for (void *it = ls_json_next(j, NULL, &key, &value); it;
         it = ls_json_next(j, it, &key, &value)) {
        size_t i = 0, n = sizeof keywords / sizeof *keywords;
        while (i < n && strcmp(keywords[i].name, key) != 0) i++;
        if (i == n) return FAIL(r, "the keyword '%.40s' is not supported", key);
        if (keywords[i].types != ALL) about |= keywords[i].types;
        said += keywords[i].types != 0;
    }
    *about_p = about;
    *nsaid_p = said;
    return LS_OK;
}

static ls_status type_named(const ls_schema_rules *r, const char *name, unsigned *types) {
    static const char *const names[] = {"null",   "boolean", "object", "array",
                                        "string", "integer", "number"};
    for (size_t i = 0; name && i < sizeof names / sizeof *names; i++) {
        if (strcmp(names[i], name) != 0) continue;
        *types |= 1u << i;
        return LS_OK;
    }
    return FAIL(r, "type: null, boolean, object, array, string, integer or number is expected");
}

/* about: what the other keywords are about. *types_p: 0 where nothing says so. */
static ls_status read_types(const ls_schema_rules *r, const ls_json *j, unsigned about,
                            unsigned *types_p) {
    const ls_json *type = ls_json_get(j, "type");
    *types_p = 0;
    if (ls_json_is_array(type) && ls_json_count(type) > 0) {
        for (size_t i = 0; i < ls_json_count(type); i++)
            LS_TRY(type_named(r, ls_json_text(ls_json_at(type, i)), types_p));
        return LS_OK;
    }
    if (type) return type_named(r, ls_json_text(type), types_p);
    if (about & (about - 1)) return FAIL(r, "a type is missing");
    *types_p = about;
    return LS_OK;
}

static ls_status read_count(const ls_schema_rules *r, const ls_json *j, const char *key,
                            int64_t *n) {
    const ls_json *value = ls_json_get(j, key);
    double number = 0;
    if (!value) return LS_OK;
    if (!ls_json_number(value, &number) || !(number >= 0 && number <= 1e9) ||
        number != floor(number))
        return FAIL(r, "%s: a whole number is expected", key);
    *n = (int64_t)number;
    return LS_OK;
}

static ls_status read_counts(const ls_schema_rules *r, const ls_json *j, const char *const keys[2],
                             int64_t *least, int64_t *most) {
    LS_TRY(read_count(r, j, keys[0], least));
    LS_TRY(read_count(r, j, keys[1], most));
    if (*most != LS_NO_LIMIT && *most < *least)
        return FAIL(r, "%s is larger than %s", keys[0], keys[1]);
    return LS_OK;
}

/* ---- parts of the schema ---- */

/* A value by the schema at path/word. */
static ls_status read_child(ls_schema_rules *r, const ls_json *j, const char *word,
                            const ls_expression **x_p) {
    if (ls_json_is_bool(j) && !ls_json_is_true(j))
        return FAIL(r, "%s: nothing is allowed there", word);
    if (ls_json_is_true(j)) {
        *x_p = ls_schema_call_kind(r, LS_SCHEMA_VALUE);
        return LS_OK;
    }
    char *path = ls_format("%s/%s", r->path, word);
    *x_p = ls_schema_call(r, j, path);
    free(path);
    return LS_OK;
}

/* The schema at a pointer, RFC 6901, within this one. */
static const ls_json *find_target(const ls_json *root, const char *pointer) {
    const ls_json *at = root;
    while (at && *pointer == '/') {
        size_t n = strcspn(++pointer, "/"), k = 0;
        char *word = ls_alloc(n + 1), *end = NULL;
        for (size_t i = 0; i < n; i++) {
            bool escape = pointer[i] == '~' && (pointer[i + 1] == '0' || pointer[i + 1] == '1');
            word[k++] = !escape ? pointer[i] : pointer[i + 1] == '0' ? '~' : '/';
            i += escape;
        }
        bool list = ls_json_is_array(at);
        size_t i = list ? strtoul(word, &end, 10) : 0;
        at = !list ? ls_json_get(at, word) : *end || end == word ? NULL : ls_json_at(at, i);
        free(word);
        pointer += n;
    }
    return *pointer ? NULL : at;
}

static ls_status read_ref(ls_schema_rules *r, const ls_json *j, const ls_expression **x_p) {
    const char *ref = ls_json_text(ls_json_get(j, "$ref"));
    const ls_json *to =
        ref && *ref == '#' && !strchr(ref, '%') ? find_target(r->root, ref + 1) : NULL;
    if (!ls_json_is_object(to))
        return FAIL(r, "$ref: '%.80s' is not in the schema, as #/$defs/NAME", ref ? ref : "");
    *x_p = ls_schema_call(r, to, ref + 1);
    return LS_OK;
}

static ls_status read_any_of(ls_schema_rules *r, const ls_json *j, int nested,
                             const ls_expression **x_p) {
    const ls_json *list = ls_json_get(j, "anyOf");
    const ls_expression *x = NULL, *one = NULL;
    size_t n = ls_json_is_array(list) ? ls_json_count(list) : 0;
    if (n == 0) return FAIL(r, "anyOf: a list of schemas is expected");
    for (size_t i = 0; i < n; i++) {
        LS_TRY(read_schema(r, ls_json_at(list, i), nested + 1, &one));
        x = ls_expression_or(&r->pool, x, one);
    }
    *x_p = x;
    return LS_OK;
}

static ls_status read_all_of(ls_schema_rules *r, const ls_json *j, int nested,
                             const ls_expression **x_p) {
    const ls_json *list = ls_json_get(j, "allOf");
    if (!ls_json_is_array(list) || ls_json_count(list) != 1)
        return FAIL(r, "allOf is supported with one schema alone");
    return read_schema(r, ls_json_at(list, 0), nested + 1, x_p);
}

/* ---- values that are listed ---- */

static bool is_of(const ls_json *value, unsigned types) {
    int64_t whole = 0;
    double number = 0;
    if (types == 0) return true;
    if (ls_json_is_null(value)) return types & TYPE_NULL;
    if (ls_json_is_bool(value)) return types & TYPE_BOOLEAN;
    if (ls_json_is_object(value)) return types & TYPE_OBJECT;
    if (ls_json_is_array(value)) return types & TYPE_ARRAY;
    if (ls_json_text(value)) return types & TYPE_STRING;
    if (ls_json_integer(value, &whole)) return types & (TYPE_INTEGER | TYPE_NUMBER);
    return ls_json_number(value, &number) && types & TYPE_NUMBER;
}

static ls_status read_listed(ls_schema_rules *r, const ls_json *j, unsigned types,
                             const ls_expression **x_p) {
    const ls_json *list = ls_json_get(j, "enum"), *constant = ls_json_get(j, "const");
    const ls_expression *x = NULL;
    size_t n = constant ? 1 : ls_json_count(list);
    if (!constant && !ls_json_is_array(list)) return FAIL(r, "enum: a list is expected");
    for (size_t i = 0; i < n; i++) {
        const ls_json *value = constant ? constant : ls_json_at(list, i);
        if (is_of(value, types)) x = ls_expression_or(&r->pool, x, ls_schema_text(r, value));
    }
    if (!x) return FAIL(r, "%s: there is no value of the type", constant ? "const" : "enum");
    *x_p = x;
    return LS_OK;
}

/* ---- strings ---- */

#define DAY                                                                                        \
    "[0-9]{4}-(?:(?:0[13578]|1[02])-(?:0[1-9]|[12][0-9]|3[01])|(?:0[469]|11)-(?:0[1-9]|[12][0-9]|" \
    "30)|02-(?:0[1-9]|1[0-9]|2[0-8]))"
#define TIME                                                                                       \
    "(?:[01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9](?:\\.[0-9]{1,9})?(?:Z|[-+](?:[01][0-9]|2[0-3]):["  \
    "0-"                                                                                           \
    "5][0-9])"
#define LABEL "[a-z0-9](?:[-a-z0-9]{0,61}[a-z0-9])?"
#define HOST  LABEL "(?:\\." LABEL "){0,4}"
#define BYTE  "(?:25[0-5]|2[0-4][0-9]|1[0-9]{2}|[1-9]?[0-9])"

/* Texts of a format; some texts of it may be missing. */
static const char *const formats[][2] = {
    {"date", DAY},
    {"time", TIME},
    {"date-time", DAY "T" TIME},
    {"uuid", "[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}"},
    {"ipv4", BYTE "(?:\\." BYTE "){3}"},
    {"hostname", HOST},
    {"email", "[a-zA-Z0-9_+-]{1,32}(?:\\.[a-zA-Z0-9_+-]{1,32}){0,3}@" HOST},
    {"uri", "https?://" HOST "(?:/[-a-zA-Z0-9._~]{0,100}){0,20}"}};

static ls_status read_format(ls_schema_rules *r, const ls_json *format, const ls_expression **x_p) {
    const char *name = ls_json_text(format);
    for (size_t i = 0; name && i < sizeof formats / sizeof *formats; i++) {
        if (strcmp(name, formats[i][0]) != 0) continue;
        *x_p = ls_schema_regex(r, formats[i][1]);
        return LS_OK;
    }
    return FAIL(r, "format: '%.40s' is not supported", name ? name : "");
}

static ls_status read_pattern(ls_schema_rules *r, const ls_json *pattern,
                              const ls_expression **x_p) {
    const char *text = ls_json_text(pattern);
    const ls_regex_options o = {.quoted = true, .anywhere = true};
    ls_error why = {0};
    if (!text) return FAIL(r, "pattern: a regular expression is expected");
    if (ls_regex_read(&r->pool, text, strlen(text), &o, x_p, &why) == LS_OK) return LS_OK;
    return FAIL(r, "pattern: %s", why.msg);
}

static ls_status read_string(ls_schema_rules *r, const ls_json *j, const ls_expression **x_p) {
    static const char *const lengths[] = {"minLength", "maxLength"};
    const ls_json *pattern = ls_json_get(j, "pattern"), *format = ls_json_get(j, "format");
    int64_t least = 0, most = LS_NO_LIMIT;
    const ls_expression *x = NULL;
    LS_TRY(read_counts(r, j, lengths, &least, &most));
    bool counted = least || most != LS_NO_LIMIT;
    if (counted + (pattern != NULL) + (format != NULL) > 1)
        return FAIL(r, "one of pattern, format and lengths is supported for a string");
    if (!counted && !pattern && !format) {
        *x_p = ls_schema_call_kind(r, LS_SCHEMA_STRING);
        return LS_OK;
    }
    if (pattern)
        LS_TRY(read_pattern(r, pattern, &x));
    else if (format)
        LS_TRY(read_format(r, format, &x));
    else
        x = ls_schema_chars(r, least, most);
    *x_p = ls_schema_between(r, "\"", x, "\"");
    return LS_OK;
}

/* ---- numbers ---- */

/* A bound, moved to the next whole number within for integers. up: it is a lower one. */
static ls_status read_bound(const ls_schema_rules *r, const ls_json *j, const char *key, bool whole,
                            bool up, double *bound_p) {
    double x = 0;
    const ls_json *value = ls_json_get(j, key);
    if (!value) return LS_OK;
    if (!ls_json_number(value, &x)) return FAIL(r, "%s: a number is expected", key);
    if (x != floor(x) && !whole)
        return FAIL(r, "%s: of type number, whole bounds are supported", key);
    *bound_p = up ? ceil(x) : floor(x);
    return LS_OK;
}

static int64_t bounded(double x) {
    if (x >= 1e18) return LS_LARGEST_NUMBER;
    return x <= -1e18 ? -LS_LARGEST_NUMBER : (int64_t)x;
}

static ls_status read_number(ls_schema_rules *r, const ls_json *j, bool whole,
                             const ls_expression **x_p) {
    double low = -INFINITY, high = INFINITY, above = -INFINITY, below = INFINITY;
    ls_buf regex = {0};
    LS_TRY(read_bound(r, j, "minimum", whole, true, &low));
    LS_TRY(read_bound(r, j, "maximum", whole, false, &high));
    LS_TRY(read_bound(r, j, "exclusiveMinimum", whole, false, &above));
    LS_TRY(read_bound(r, j, "exclusiveMaximum", whole, true, &below));
    ls_number_range range = {.low = bounded(above >= low ? above : low),
                             .high = bounded(below <= high ? below : high),
                             .above = above >= low && above > -INFINITY,
                             .below = below <= high && below < INFINITY};
    bool free_range = isinf(low) && isinf(high) && isinf(above) && isinf(below);
    if (free_range && !whole)
        ls_buf_printf(&regex, "%s%s", "-?(?:0|[1-9][0-9]{0,17})(?:\\.[0-9]{1,17})?",
                      "(?:[eE][-+]?[0-9]{1,2})?");
    bool any = free_range && !whole ? true : ls_number_range_write(&range, !whole, &regex);
    if (any) *x_p = ls_schema_regex(r, regex.data);
    ls_buf_free(&regex);
    return any ? LS_OK : FAIL(r, "no number is within its bounds");
}

/* ---- arrays ---- */

static ls_status read_array(ls_schema_rules *r, const ls_json *j, const ls_expression **x_p) {
    static const char *const counts[] = {"minItems", "maxItems"};
    const ls_json *prefix = ls_json_get(j, "prefixItems"), *items = ls_json_get(j, "items");
    int64_t least = 0, most = LS_NO_LIMIT, n = (int64_t)ls_json_count(prefix);
    const ls_expression *first = NULL, *item = NULL, *comma = ls_expression_text(&r->pool, ",");
    LS_TRY(read_counts(r, j, counts, &least, &most));
    if (ls_json_is_true(ls_json_get(j, "uniqueItems")))
        return FAIL(r, "the keyword 'uniqueItems' is not supported");
    if (prefix && !ls_json_is_array(prefix)) return FAIL(r, "prefixItems: a list is expected");
    if (most != LS_NO_LIMIT && n > most) n = most;
    for (int64_t i = 0; i < n; i++) {
        char word[40];
        snprintf(word, sizeof word, "prefixItems/%lld", (long long)i);
        LS_TRY(read_child(r, ls_json_at(prefix, (size_t)i), word, &item));
        if (i) item = ls_expression_then(&r->pool, comma, item);
        first = ls_expression_then(&r->pool, first, item);
    }
    bool none = (ls_json_is_bool(items) && !ls_json_is_true(items)) || (prefix && !items);
    if (none && least > n) return FAIL(r, "minItems: there are no schemas for so many items");
    if (none || most == n) {
        *x_p = ls_schema_between(r, "[", first ? first : ls_expression_text(&r->pool, ""), "]");
        return LS_OK;
    }
    if (items)
        LS_TRY(read_child(r, items, "items", &item));
    else
        item = ls_schema_call_kind(r, LS_SCHEMA_VALUE);
    const ls_expression *more = ls_expression_then(&r->pool, comma, item);
    int64_t done = first ? n : 1;
    more = ls_expression_repeat(&r->pool, more, least > done ? least - done : 0,
                                most == LS_NO_LIMIT ? most : most - done);
    const ls_expression *all = ls_expression_then(&r->pool, first ? first : item, more);
    if (!first && least == 0) all = ls_expression_repeat(&r->pool, all, 0, 1);
    *x_p = ls_schema_between(r, "[", all, "]");
    return LS_OK;
}

/* ---- objects ---- */

typedef struct object_reader {
    ls_schema_rules *rules;
    const ls_json *schema, *required; /* required: NULL: none */
    const ls_json *others;            /* additionalProperties; NULL: none are allowed */
    const ls_expression *members;
    const char **names; /* [n] */
    size_t n;
} object_reader;

static bool is_required(const object_reader *o, const char *name) {
    for (size_t i = 0; i < ls_json_count(o->required); i++) {
        const char *one = ls_json_text(ls_json_at(o->required, i));
        if (one && strcmp(one, name) == 0) return true;
    }
    return false;
}

static ls_status add_member(object_reader *o, const char *name, const ls_json *schema,
                            const char *path) {
    ls_schema_rules *r = o->rules;
    ls_json *key = ls_json_new_text(name);
    const ls_expression *x = NULL, *value = NULL;
    ls_status s = read_child(r, schema, path, &value);
    if (s == LS_OK) {
        x = ls_schema_between(r, "", ls_schema_text(r, key), ":");
        x = ls_expression_then(&r->pool, x, value);
        o->members = ls_expression_list(&r->pool, o->members, x, is_required(o, name));
        o->names = ls_grow((void *)o->names, o->n, sizeof(char *));
        o->names[o->n++] = name;
    }
    ls_json_free(key);
    return s;
}

static ls_status add_properties(object_reader *o) {
    const ls_json *properties = ls_json_get(o->schema, "properties"), *value = NULL;
    const char *name = NULL;
    if (properties && !ls_json_is_object(properties))
        return FAIL(o->rules, "properties: an object is expected");
    for (void *it = ls_json_next(properties, NULL, &name, &value); it;
         it = ls_json_next(properties, it, &name, &value)) {
        bool never = ls_json_is_bool(value) && !ls_json_is_true(value);
        if (never && !is_required(o, name)) continue;
        char *path = ls_format("properties/%s", name);
        ls_status s = add_member(o, name, value, path);
        free(path);
        LS_TRY(s);
    }
    return LS_OK;
}

/* Those that are required, and that no property describes. */
static ls_status add_required(object_reader *o) {
    const ls_json *properties = ls_json_get(o->schema, "properties");
    if (o->required && !ls_json_is_array(o->required))
        return FAIL(o->rules, "required: a list of names is expected");
    for (size_t i = 0; i < ls_json_count(o->required); i++) {
        const char *name = ls_json_text(ls_json_at(o->required, i));
        bool there = false;
        if (!name) return FAIL(o->rules, "required: a list of names is expected");
        for (size_t k = 0; k < o->n; k++) there = there || strcmp(o->names[k], name) == 0;
        if (there) continue;
        if (!o->others || ls_json_get(properties, name))
            return FAIL(o->rules, "required: '%.40s' is not one of its properties", name);
        LS_TRY(add_member(o, name, o->others, "additionalProperties"));
    }
    return LS_OK;
}

/* Members of other names, any number. */
static ls_status add_others(object_reader *o) {
    ls_schema_rules *r = o->rules;
    const ls_expression *value = NULL, *comma = ls_expression_text(&r->pool, ",");
    if (!o->others) return LS_OK;
    for (size_t i = 0; i < o->n; i++)
        if (strlen(o->names[i]) > 250)
            return FAIL(r, "with additionalProperties, names of at most 250 bytes are supported");
    LS_TRY(read_child(r, o->others, "additionalProperties", &value));
    const ls_expression *x =
        ls_schema_between(r, "\"", ls_schema_other_name(r, o->names, o->n), ":");
    x = ls_expression_then(&r->pool, x, value);
    const ls_expression *more =
        ls_expression_repeat(&r->pool, ls_expression_then(&r->pool, comma, x), 0, LS_NO_LIMIT);
    x = ls_expression_then(&r->pool, x, more);
    o->members = ls_expression_list(&r->pool, o->members, x, false);
    return LS_OK;
}

static ls_status read_object(ls_schema_rules *r, const ls_json *j, const ls_expression **x_p) {
    const ls_json *others = ls_json_get(j, "additionalProperties");
    bool no_others = ls_json_is_bool(others) && !ls_json_is_true(others);
    object_reader o = {.rules = r, .schema = j, .required = ls_json_get(j, "required")};
    if (others && !no_others) o.others = others;
    if (!ls_json_get(j, "properties") && (!others || ls_json_is_true(others)) &&
        !ls_json_count(o.required)) {
        *x_p = ls_schema_call_kind(r, LS_SCHEMA_OBJECT);
        return LS_OK;
    }
    ls_status s = add_properties(&o);
    if (s == LS_OK) s = add_required(&o);
    if (s == LS_OK) s = add_others(&o);
    if (s == LS_OK)
        *x_p = ls_schema_between(r, "{", o.members ? o.members : ls_expression_text(&r->pool, ""),
                                 "}");
    free((void *)o.names);
    return s;
}

/* ---- a schema ---- */

static ls_status read_type(ls_schema_rules *r, const ls_json *j, unsigned type,
                           const ls_expression **x_p) {
    switch (type) {
    case TYPE_NULL: *x_p = ls_expression_text(&r->pool, "null"); return LS_OK;
    case TYPE_BOOLEAN: *x_p = ls_schema_regex(r, "true|false"); return LS_OK;
    case TYPE_OBJECT: return read_object(r, j, x_p);
    case TYPE_ARRAY: return read_array(r, j, x_p);
    case TYPE_STRING: return read_string(r, j, x_p);
    default: return read_number(r, j, type == TYPE_INTEGER, x_p);
    }
}

static ls_status read_by_type(ls_schema_rules *r, const ls_json *j, unsigned types,
                              const ls_expression **x_p) {
    const ls_expression *x = NULL, *one = NULL;
    if (types & TYPE_NUMBER) types &= ~(unsigned)TYPE_INTEGER;
    for (unsigned type = 1; type <= TYPE_NUMBER; type *= 2) {
        if (!(types & type)) continue;
        LS_TRY(read_type(r, j, type, &one));
        x = ls_expression_or(&r->pool, x, one);
    }
    *x_p = x ? x : ls_schema_call_kind(r, LS_SCHEMA_VALUE);
    return LS_OK;
}

static ls_status read_schema(ls_schema_rules *r, const ls_json *j, int nested,
                             const ls_expression **x_p) {
    unsigned about = 0, types = 0;
    size_t said = 0;
    if (nested > LS_SCHEMA_NESTED) return FAIL(r, "it is nested too deeply");
    if (r->n > LS_SCHEMA_RULES || r->pool.n > LS_SCHEMA_PARTS) return FAIL(r, "it is too large");
    if (ls_json_is_true(j)) return read_by_type(r, j, 0, x_p);
    if (!ls_json_is_object(j)) return FAIL(r, "an object is expected");
    LS_TRY(check_keywords(r, j, &about, &said));
    static const char *const alone[] = {"$ref", "anyOf", "allOf"};
    static ls_status (*const readers[])(ls_schema_rules *, const ls_json *, int,
                                        const ls_expression **) = {NULL, read_any_of, read_all_of};
    for (int i = 0; i < 3; i++) {
        if (!ls_json_get(j, alone[i])) continue;
        if (said > 1) return FAIL(r, "other keywords beside %s are not supported", alone[i]);
        return readers[i] ? readers[i](r, j, nested, x_p) : read_ref(r, j, x_p);
    }
    LS_TRY(read_types(r, j, about, &types));
    if (!ls_json_get(j, "enum") && !ls_json_get(j, "const")) return read_by_type(r, j, types, x_p);
    if (said > 1 + (ls_json_get(j, "type") != NULL))
        return FAIL(r, "other keywords than type beside enum or const are not supported");
    return read_listed(r, j, types, x_p);
}

/* Rules are added while rules are read. */
static ls_status read_rules(ls_schema_rules *r) {
    for (uint32_t i = 0; i < r->n; i++) {
        const ls_expression *x = NULL;
        ls_schema_rule rule = r->list[i];
        r->path = rule.path;
        r->root = rule.root;
        if (rule.x) continue;
        if (rule.kind == LS_SCHEMA_OF)
            LS_TRY(read_schema(r, rule.schema, 0, &x));
        else
            x = ls_schema_any(r, rule.kind);
        r->list[i].x = x;
    }
    return LS_OK;
}

static ls_status make_grammar(ls_schema_rules *r, const ls_byte_set *bytes, ls_grammar **g_p) {
    ls_status s = read_rules(r);
    if (s == LS_OK) {
        const ls_expression **list = LS_NEW_ARRAY(const ls_expression *, r->n);
        ls_error why = {0};
        for (uint32_t i = 0; i < r->n; i++) list[i] = r->list[i].x;
        s = ls_grammar_make(list, r->n, bytes, g_p, &why);
        free((void *)list);
        if (s != LS_OK) s = ls_fail(r->e, s, "the schema: %s", why.msg);
    }
    ls_schema_rules_free(r);
    return s;
}

ls_status ls_grammar_of_schema(const ls_json *schema, const ls_byte_set *bytes, ls_grammar **g_p,
                               ls_error *e) {
    ls_schema_rules r = {.e = e, .root = schema};
    ls_schema_call(&r, schema, "");
    return make_grammar(&r, bytes, g_p);
}

ls_status ls_grammar_of_texts(const ls_schema_texts *t, const ls_byte_set *bytes, ls_grammar **g_p,
                              ls_error *e) {
    ls_schema_rules r = {.e = e};
    const ls_expression *x = NULL, *more = NULL;
    ls_schema_call_kind(&r, LS_SCHEMA_TEXTS); /* rule 0 */
    for (size_t i = 0; i < t->n; i++) {
        const ls_schema_text_part *p = &t->list[i];
        r.root = p->schema;
        x = ls_expression_or(&r.pool, x,
                             ls_schema_between(&r, p->before,
                                               p->schema
                                                   ? ls_schema_call(&r, p->schema, "")
                                                   : ls_schema_call_kind(&r, LS_SCHEMA_OBJECT),
                                               p->after));
    }
    more = ls_expression_then(&r.pool, ls_expression_text(&r.pool, t->between), x);
    more = ls_expression_repeat(&r.pool, more, 0, t->most - 1);
    r.list[0].x = ls_expression_then(&r.pool, x, more);
    return make_grammar(&r, bytes, g_p);
}

ls_status ls_grammar_of_object(const ls_byte_set *bytes, ls_grammar **g_p, ls_error *e) {
    ls_schema_rules r = {.e = e};
    ls_schema_call_kind(&r, LS_SCHEMA_OBJECT);
    return make_grammar(&r, bytes, g_p);
}
