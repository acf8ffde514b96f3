/* schema.c - see schema.h.
 *
 * Each schema that is referred to, or stands where a value does, becomes a rule; so schemas may be
 * recursive, and each is read once.
 */
#include "grammar/schema.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "grammar/number_range.h"
#include "grammar/schema_rules.h"
#include "grammar/schema_values.h"

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

typedef struct schema_keyword {
    const char *name;
    unsigned types; /* that it is about; 0: it only describes */
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
                                          {"required", LS_TYPE_OBJECT},
                                          {"additionalProperties", LS_TYPE_OBJECT},
                                          {"items", LS_TYPE_ARRAY},
                                          {"prefixItems", LS_TYPE_ARRAY},
                                          {"minItems", LS_TYPE_ARRAY},
                                          {"maxItems", LS_TYPE_ARRAY},
                                          {"uniqueItems", LS_TYPE_ARRAY},
                                          {"minLength", LS_TYPE_STRING},
                                          {"maxLength", LS_TYPE_STRING},
                                          {"pattern", LS_TYPE_STRING},
                                          {"format", LS_TYPE_STRING},
                                          {"minimum", LS_TYPE_NUMBER},
                                          {"maximum", LS_TYPE_NUMBER},
                                          {"exclusiveMinimum", LS_TYPE_NUMBER},
                                          {"exclusiveMaximum", LS_TYPE_NUMBER},
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
                                          {"discriminator", 0},
                                          {"readOnly", 0},
                                          {"writeOnly", 0}};

/* The types that the schema's keywords are about, but for those of ALL; refuses unknown ones.
 * nsaid_p: how many keywords say something. */
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

static ls_status add_type(const ls_schema_rules *r, const char *name, unsigned *types) {
    unsigned type = ls_schema_type_named(name);
    *types |= type;
    if (type) return LS_OK;
    return FAIL(r, "type: null, boolean, object, array, string, integer or number is expected");
}

/* about: what the other keywords are about. *types_p: 0 where nothing says so. */
static ls_status read_types(const ls_schema_rules *r, const ls_json *j, unsigned about,
                            unsigned *types_p) {
    const ls_json *type = ls_json_get(j, "type");
    *types_p = 0;
    if (ls_json_is_array(type) && ls_json_count(type) > 0) {
        for (size_t i = 0; i < ls_json_count(type); i++)
            LS_TRY(add_type(r, ls_json_text(ls_json_at(type, i)), types_p));
        return LS_OK;
    }
    if (type) return add_type(r, ls_json_text(type), types_p);
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

static ls_status read_ref(ls_schema_rules *r, const ls_json *j, const ls_expression **x_p) {
    const char *ref = ls_json_text(ls_json_get(j, "$ref"));
    const ls_json *to =
        ref && *ref == '#' && !strchr(ref, '%') ? ls_schema_find(r->root, ref + 1) : NULL;
    if (ls_json_is_bool(to)) return read_child(r, to, "$ref", x_p);
    if (!ls_json_is_object(to))
        return FAIL(r, "$ref: '%.80s' is not in the schema, as #/$defs/NAME", ref ? ref : "");
    *x_p = ls_schema_call(r, to, ref + 1);
    return LS_OK;
}

/* One of the schemas of a list; false allows nothing. */
static ls_status read_either(ls_schema_rules *r, const ls_json *j, const char *keyword, int nested,
                             const ls_expression **x_p) {
    const ls_json *list = ls_json_get(j, keyword);
    const ls_expression *x = NULL, *one = NULL;
    size_t n = ls_json_is_array(list) ? ls_json_count(list) : 0;
    if (n == 0) return FAIL(r, "%s: a list of schemas is expected", keyword);
    for (size_t i = 0; i < n; i++) {
        const ls_json *schema = ls_json_at(list, i);
        if (ls_json_is_bool(schema) && !ls_json_is_true(schema)) continue;
        LS_TRY(read_schema(r, schema, nested + 1, &one));
        x = ls_expression_or(&r->pool, x, one);
    }
    *x_p = x;
    return x ? LS_OK : FAIL(r, "%s: nothing is allowed there", keyword);
}

static ls_status read_any_of(ls_schema_rules *r, const ls_json *j, int nested,
                             const ls_expression **x_p) {
    return read_either(r, j, "anyOf", nested, x_p);
}

static ls_status fail_overlap(const ls_schema_rules *r, const ls_schema_comparison *c, size_t k,
                              size_t i) {
    if (c->work > LS_SCHEMA_WORK)
        return FAIL(r, "oneOf: it is too large for its schemas to be told apart; use anyOf");
    return FAIL(r,
                "oneOf: schemas %zu and %zu are not told apart by their type, or by a const or "
                "enum of a required property; use anyOf",
                k, i);
}

/* What is valid by one of several schemas that have no value in common is valid by one alone. */
static ls_status read_one_of(ls_schema_rules *r, const ls_json *j, int nested,
                             const ls_expression **x_p) {
    const ls_json *list = ls_json_get(j, "oneOf");
    ls_schema_comparison c = {.root = r->root};
    for (size_t i = 0; i < ls_json_count(list); i++)
        for (size_t k = 0; k < i; k++)
            if (ls_schemas_overlap(&c, ls_json_at(list, k), ls_json_at(list, i)))
                return fail_overlap(r, &c, k, i);
    return read_either(r, j, "oneOf", nested, x_p);
}

static ls_status read_all_of(ls_schema_rules *r, const ls_json *j, int nested,
                             const ls_expression **x_p) {
    const ls_json *list = ls_json_get(j, "allOf");
    if (!ls_json_is_array(list) || ls_json_count(list) != 1)
        return FAIL(r, "allOf is supported with one schema alone");
    return read_schema(r, ls_json_at(list, 0), nested + 1, x_p);
}

/* ---- values that are listed ---- */

static ls_status read_listed(ls_schema_rules *r, const ls_json *j, unsigned types,
                             const ls_expression **x_p) {
    const ls_json *list = ls_json_get(j, "enum"), *constant = ls_json_get(j, "const");
    const ls_expression *x = NULL;
    size_t n = constant ? 1 : ls_json_count(list);
    if (!constant && !ls_json_is_array(list)) return FAIL(r, "enum: a list is expected");
    for (size_t i = 0; i < n; i++) {
        const ls_json *value = constant ? constant : ls_json_at(list, i);
        if (!types || ls_schema_has_type(value, types))
            x = ls_expression_or(&r->pool, x, ls_schema_text(r, value));
    }
    if (!x) return FAIL(r, "%s: there is no value of the type", constant ? "const" : "enum");
    *x_p = x;
    return LS_OK;
}

/* ---- strings ---- */

#define DAY                                                                                        \
    "[0-9]{4}-(?:(?:0[13578]|1[02])-(?:0[1-9]|[12][0-9]|3[01])|(?:0[469]|11)-(?:0[1-9]|[12][0-9]|" \
    "30)|02-(?:0[1-9]|1[0-9]|2[0-8]))|(?:[0-9]{2}(?:0[48]|[2468][048]|[13579][26])|(?:[02468][04"  \
    "8]|[13579][26])00)-02-29"
#define TIME                                                                                       \
    "(?:[01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9](?:\\.[0-9]{1,9})?(?:Z|[-+](?:[01][0-9]|2[0-3]):["  \
    "0-"                                                                                           \
    "5][0-9])"
/* No two hyphens in a row, which names of other alphabets have; five labels are below 253
 * characters. */
#define LABEL "[a-z0-9](?:-?[a-z0-9]){0,24}"
#define HOST  LABEL "(?:\\." LABEL "){0,4}"
#define BYTE  "(?:25[0-5]|2[0-4][0-9]|1[0-9]{2}|[1-9]?[0-9])"

#define DAYS   "[0-9]{1,6}D"
#define MONTHS "[0-9]{1,6}M(?:" DAYS ")?"
#define SPAN   "[0-9]{1,6}(?:S|M(?:[0-9]{1,6}S)?|H(?:[0-9]{1,6}M(?:[0-9]{1,6}S)?)?)"
#define DURATION                                                                                   \
    "P(?:[0-9]{1,6}W|T" SPAN "|(?:" DAYS "|" MONTHS "|[0-9]{1,6}Y(?:" MONTHS ")?)(?:T" SPAN ")?)"
#define WORD "[0-9a-f]{1,4}"
#define IPV6                                                                                       \
    "(?:" WORD ":){7}" WORD "|(?:" WORD ":){1,7}:|(?:" WORD ":){1,6}:" WORD "|(?:" WORD            \
    ":){1,5}(?::" WORD "){1,2}|(?:" WORD ":){1,4}(?::" WORD "){1,3}|(?:" WORD ":){1,3}(?::" WORD   \
    "){1,4}|(?:" WORD ":){1,2}(?::" WORD "){1,5}|" WORD ":(?::" WORD "){1,6}|:(?::" WORD           \
    "){1,7}|::"

/* Texts of a format; some texts of it may be missing. */
static const char *const formats[][2] = {
    {"date", DAY},
    {"time", TIME},
    {"date-time", "(?:" DAY ")T" TIME},
    {"uuid", "[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}"},
    {"duration", DURATION},
    {"ipv4", BYTE "(?:\\." BYTE "){3}"},
    {"ipv6", IPV6},
    {"hostname", HOST},
    {"email",
     "[a-zA-Z0-9_+-]{1,16}(?:\\.[a-zA-Z0-9_+-]{1,15}){0,3}@(?:" LABEL "\\.){1,4}[a-z]{2,8}"},
    {"uri", "https?://" HOST "(?:/[-a-zA-Z0-9._~]{0,80}){0,20}"}};

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

/* Those of the texts that have as many characters. */
static const ls_expression *with_length(ls_schema_rules *r, const ls_expression *x, int64_t least,
                                        int64_t most) {
    int64_t fewest = 0, largest = 0;
    ls_expression_length(x, &fewest, &largest);
    bool all =
        fewest >= least && (most == LS_NO_LIMIT || (largest != LS_NO_LIMIT && largest <= most));
    return all ? x : ls_expression_counted(&r->pool, x, least, most);
}

static ls_status read_string(ls_schema_rules *r, const ls_json *j, const ls_expression **x_p) {
    static const char *const lengths[] = {"minLength", "maxLength"};
    const ls_json *pattern = ls_json_get(j, "pattern"), *format = ls_json_get(j, "format");
    int64_t least = 0, most = LS_NO_LIMIT;
    const ls_expression *x = NULL;
    LS_TRY(read_counts(r, j, lengths, &least, &most));
    bool counted = least || most != LS_NO_LIMIT;
    if (pattern && format) return FAIL(r, "one of pattern and format is supported for a string");
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
    if (counted && (pattern || format)) x = with_length(r, x, least, most);
    *x_p = ls_schema_between(r, "\"", x, "\"");
    return LS_OK;
}

/* ---- numbers ---- */

/* How a bound that is no whole number moves to one, for integers. */
typedef enum bound_step { STEP_UP, STEP_DOWN } bound_step;

typedef struct number_bound {
    bool given, exclusive;
    int64_t at; /* at most LS_LARGEST_NUMBER + 1, at least its negative */
} number_bound;

static int64_t within_digits(double x) {
    if (x > (double)LS_LARGEST_NUMBER) return LS_LARGEST_NUMBER + 1;
    return x < -(double)LS_LARGEST_NUMBER ? -LS_LARGEST_NUMBER - 1 : (int64_t)x;
}

static ls_status read_bound(const ls_schema_rules *r, const ls_json *j, const char *key, bool whole,
                            bound_step step, number_bound *b) {
    const ls_json *value = ls_json_get(j, key);
    double x = 0;
    int64_t exact = 0;
    if (!value) return LS_OK;
    if (!ls_json_number(value, &x)) return FAIL(r, "%s: a number is expected", key);
    if (x != floor(x) && !whole)
        return FAIL(r, "%s: of type number, whole bounds are supported", key);
    bool integer = ls_json_integer(value, &exact); /* a double has not all of its digits */
    b->at = within_digits(step == STEP_UP ? ceil(x) : floor(x));
    if (integer && exact >= -LS_LARGEST_NUMBER && exact <= LS_LARGEST_NUMBER) b->at = exact;
    b->given = true;
    return LS_OK;
}

/* Of two bounds the narrower one. sign: 1: both are lower ones, -1: upper ones. */
static number_bound narrower(number_bound inclusive, number_bound exclusive, int sign) {
    exclusive.exclusive = true;
    if (!exclusive.given) return inclusive;
    if (!inclusive.given) return exclusive;
    return exclusive.at * sign >= inclusive.at * sign ? exclusive : inclusive;
}

static ls_status read_range(const ls_schema_rules *r, const ls_json *j, bool whole,
                            number_bound *low_p, number_bound *high_p) {
    number_bound low = {0}, high = {0}, above = {0}, below = {0};
    LS_TRY(read_bound(r, j, "minimum", whole, STEP_UP, &low));
    LS_TRY(read_bound(r, j, "maximum", whole, STEP_DOWN, &high));
    LS_TRY(read_bound(r, j, "exclusiveMinimum", whole, STEP_DOWN, &above));
    LS_TRY(read_bound(r, j, "exclusiveMaximum", whole, STEP_UP, &below));
    *low_p = narrower(low, above, 1);
    *high_p = narrower(high, below, -1);
    return LS_OK;
}

static bool put_range(number_bound low, number_bound high, bool whole, ls_buf *regex) {
    ls_number_range range = {-LS_LARGEST_NUMBER, LS_LARGEST_NUMBER, false, false};
    if (low.given && low.at >= -LS_LARGEST_NUMBER) range.low = low.at, range.above = low.exclusive;
    if (high.given && high.at <= LS_LARGEST_NUMBER)
        range.high = high.at, range.below = high.exclusive;
    if (range.low > LS_LARGEST_NUMBER || range.high < -LS_LARGEST_NUMBER) return false;
    return ls_number_range_write(&range, !whole, regex);
}

static ls_status read_number(ls_schema_rules *r, const ls_json *j, bool whole,
                             const ls_expression **x_p) {
    number_bound low, high;
    ls_buf regex = {0};
    LS_TRY(read_range(r, j, whole, &low, &high));
    bool any = true;
    if (!low.given && !high.given && !whole)
        ls_buf_printf(&regex, "%s%s", "-?(?:0|[1-9][0-9]{0,17})(?:\\.[0-9]{1,17})?",
                      "(?:[eE][-+]?[0-9]{1,2})?");
    else
        any = put_range(low, high, whole, &regex);
    if (any) *x_p = ls_schema_regex(r, regex.data);
    ls_buf_free(&regex);
    return any ? LS_OK : FAIL(r, "no number of at most 18 digits is within its bounds");
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
    const char **names; /* [n] that the others must not have */
    size_t n;
} object_reader;

static bool is_required(const object_reader *o, const char *name) {
    for (size_t i = 0; i < ls_json_count(o->required); i++) {
        const char *one = ls_json_text(ls_json_at(o->required, i));
        if (one && strcmp(one, name) == 0) return true;
    }
    return false;
}

static void add_name(object_reader *o, const char *name) {
    o->names = ls_grow((void *)o->names, o->n, sizeof(char *));
    o->names[o->n++] = name;
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
        add_name(o, name);
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
        if (never && !is_required(o, name)) {
            add_name(o, name); /* nor is it one of the others */
            continue;
        }
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
    case LS_TYPE_NULL: *x_p = ls_expression_text(&r->pool, "null"); return LS_OK;
    case LS_TYPE_BOOLEAN: *x_p = ls_schema_regex(r, "true|false"); return LS_OK;
    case LS_TYPE_OBJECT: return read_object(r, j, x_p);
    case LS_TYPE_ARRAY: return read_array(r, j, x_p);
    case LS_TYPE_STRING: return read_string(r, j, x_p);
    default: return read_number(r, j, type == LS_TYPE_INTEGER, x_p);
    }
}

static ls_status read_by_type(ls_schema_rules *r, const ls_json *j, unsigned types,
                              const ls_expression **x_p) {
    const ls_expression *x = NULL, *one = NULL;
    if (types & LS_TYPE_NUMBER) types &= ~(unsigned)LS_TYPE_INTEGER;
    for (unsigned type = 1; type <= LS_TYPE_NUMBER; type *= 2) {
        if (!(types & type)) continue;
        LS_TRY(read_type(r, j, type, &one));
        x = ls_expression_or(&r->pool, x, one);
    }
    *x_p = x ? x : ls_schema_call_kind(r, LS_SCHEMA_VALUE);
    return LS_OK;
}

static ls_status read_keywords(ls_schema_rules *r, const ls_json *j, int nested,
                               const ls_expression **x_p) {
    unsigned about = 0, types = 0;
    size_t said = 0;
    if (nested > LS_SCHEMA_NESTED) return FAIL(r, "it is nested too deeply");
    if (r->n > LS_SCHEMA_RULES || r->pool.n > LS_SCHEMA_PARTS) return FAIL(r, "it is too large");
    if (ls_json_is_true(j)) return read_by_type(r, j, 0, x_p);
    if (!ls_json_is_object(j)) return FAIL(r, "an object is expected");
    LS_TRY(check_keywords(r, j, &about, &said));
    static const char *const alone[] = {"$ref", "anyOf", "oneOf", "allOf"};
    static ls_status (*const readers[])(ls_schema_rules *, const ls_json *, int,
                                        const ls_expression **) = {NULL, read_any_of, read_one_of,
                                                                   read_all_of};
    for (int i = 0; i < 4; i++) {
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

/* An $id begins a document of its own, to which the pointers in it refer. */
static ls_status read_schema(ls_schema_rules *r, const ls_json *j, int nested,
                             const ls_expression **x_p) {
    const ls_json *root = r->root;
    if (ls_schema_has_id(j)) r->root = j;
    ls_status s = read_keywords(r, j, nested, x_p);
    r->root = root;
    return s;
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
