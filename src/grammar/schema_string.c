/* schema_string.c - see schema_string.h. */
#include "grammar/schema_string.h"

#include <stdlib.h>
#include <string.h>

#include "grammar/schema.h"
#include "grammar/schema_condition.h"
#include "grammar/schema_keywords.h"
#include "grammar/schema_values.h"

/* ---- formats ---- */

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

#define EMAIL "[a-zA-Z0-9_+-]{1,16}(?:\\.[a-zA-Z0-9_+-]{1,15}){0,3}@(?:" LABEL "\\.){1,4}[a-z]{2,8}"
#define PATH  "(?:/[-a-zA-Z0-9._~]{1,80}){1,20}"
#define URI   "https?://" HOST "(?:/[-a-zA-Z0-9._~]{0,80}){0,20}"

#define BASE64 "(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?"

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
    {"email", EMAIL},
    {"idn-email", EMAIL},
    {"idn-hostname", HOST},
    {"uri", URI},
    {"url", URI},
    {"iri", URI},
    {"uri-reference", URI "|" PATH},
    {"iri-reference", URI "|" PATH},
    {"uri-template", URI},
    {"json-pointer", "(?:/[-a-zA-Z0-9._]{1,80}){0,20}"},
    {"relative-json-pointer", "(?:0|[1-9][0-9]{0,3})(?:/[-a-zA-Z0-9._]{1,80}){0,20}"},
    {"regex", "\\^?(?:(?:[-a-zA-Z0-9_ ,:@/]|\\\\\\\\[dDwWsS.]|\\.)[*+?]?){1,80}\\$?"},
    {"byte", BASE64},
    {"binary", NULL}, /* any text */
    {"password", NULL}};

static ls_status read_format(ls_schema_rules *r, const ls_json *format, const ls_expression **x_p) {
    const char *name = ls_json_text(format);
    for (size_t i = 0; name && i < sizeof formats / sizeof *formats; i++) {
        if (strcmp(name, formats[i][0]) != 0) continue;
        if (formats[i][1]) *x_p = ls_schema_regex(r, formats[i][1]);
        return LS_OK;
    }
    return ls_schema_fail(r, "format: '%.40s' is not supported", name ? name : "");
}

/* ---- expressions ---- */

ls_status ls_schema_pattern(ls_schema_rules *r, const char *keyword, const char *text,
                            const ls_expression **x_p) {
    const ls_regex_options o = {.quoted = !r->plain, .anywhere = true};
    ls_error why = {0};
    if (!text) return ls_schema_fail(r, "%s: a regular expression is expected", keyword);
    if (ls_regex_read(&r->pool, text, strlen(text), &o, x_p, &why) == LS_OK) return LS_OK;
    return ls_schema_fail(r, "%s: %s", keyword, why.msg);
}

/* ---- strings ---- */

static ls_status read_lengths(ls_schema_rules *r, const ls_schema_set *set, int64_t *least,
                              int64_t *most) {
    static const char *const lengths[] = {"minLength", "maxLength"};
    LS_TRY(ls_schema_counts(r, set, lengths, least, most));
    if (*least > LS_SCHEMA_LONGEST)
        return ls_schema_fail(r, "minLength: at most %d is supported", LS_SCHEMA_LONGEST);
    if (*most > LS_SCHEMA_LONGEST) *most = LS_SCHEMA_LONGEST;
    return LS_OK;
}

/* Those of the texts that have as many characters. */
static const ls_expression *with_length(ls_schema_rules *r, const ls_expression *x, int64_t least,
                                        int64_t most) {
    int64_t fewest = 0, largest = 0;
    ls_expression_length(x, &fewest, &largest);
    bool all =
        fewest >= least && (most == LS_NO_LIMIT || (largest != LS_NO_LIMIT && largest <= most));
    return all ? x : ls_expression_both(&r->pool, x, ls_schema_chars(r, least, most));
}

/* Those of the values that are strings, without quotes. */
static ls_status read_names(ls_schema_rules *r, const ls_json *list, const ls_expression **x_p) {
    const ls_expression *x = NULL;
    if (!ls_json_is_array(list)) return ls_schema_fail(r, "enum: a list is expected");
    for (size_t i = 0; i < ls_json_count(list); i++) {
        const char *name = ls_json_text(ls_json_at(list, i));
        if (name) x = ls_expression_or(&r->pool, x, ls_schema_unquoted(r, name));
    }
    *x_p = x ? x : ls_expression_never(&r->pool);
    return LS_OK;
}

/* What the expressions and formats of all schemas allow; NULL: there are none. */
static ls_status read_texts(ls_schema_rules *r, const ls_schema_set *set,
                            const ls_expression **x_p) {
    const ls_expression *x = NULL;
    for (size_t i = 0; i < set->n; i++) {
        const ls_json *pattern = ls_json_get(set->list[i].schema, "pattern");
        const ls_json *format = ls_json_get(set->list[i].schema, "format");
        const char *encoding = ls_json_text(ls_json_get(set->list[i].schema, "contentEncoding"));
        const ls_json *not = ls_json_get(set->list[i].schema, LS_SCHEMA_NOT_LISTED);
        const ls_expression *one = NULL;
        if (pattern) {
            LS_TRY(ls_schema_pattern(r, "pattern", ls_json_text(pattern), &one));
            x = ls_expression_both(&r->pool, x, one);
        }
        one = NULL;
        if (format) LS_TRY(read_format(r, format, &one));
        if (one) x = ls_expression_both(&r->pool, x, one);
        if (encoding && strcmp(encoding, "base64") == 0)
            x = ls_expression_both(&r->pool, x, ls_schema_regex(r, BASE64));
        if (!ls_json_count(not )) continue;
        LS_TRY(read_names(r, not, &one));
        if (!x) x = ls_schema_chars(r, 0, LS_NO_LIMIT);
        x = ls_expression_without(&r->pool, x, one);
    }
    *x_p = x;
    return LS_OK;
}

/* x: what the texts may be, if something says so; else NULL. */
static const ls_expression *chars_of(ls_schema_rules *r, const ls_expression *x, int64_t least,
                                     int64_t most) {
    if (most != LS_NO_LIMIT && most < least) return ls_expression_never(&r->pool);
    return x ? with_length(r, x, least, most) : ls_schema_chars(r, least, most);
}

ls_status ls_schema_string_chars(ls_schema_rules *r, const ls_schema_set *set,
                                 const ls_expression **x_p) {
    int64_t least = 0, most = LS_NO_LIMIT;
    const ls_expression *x = NULL;
    LS_TRY(read_lengths(r, set, &least, &most));
    LS_TRY(read_texts(r, set, &x));
    *x_p = chars_of(r, x, least, most);
    return LS_OK;
}

/* Texts in which the mark behind them is not. */
static ls_status read_plain(ls_schema_rules *r, const ls_schema_set *set,
                            const ls_expression **x_p) {
    const char *mark = r->marks->value_end;
    const ls_expression *any = ls_schema_chars(r, 0, LS_NO_LIMIT);
    LS_TRY(ls_schema_string_chars(r, set, x_p));
    while (*mark == '\n') mark++;
    char *word = ls_format("%.*s", (int)strcspn(mark, "\n"), mark);
    const ls_expression *not = ls_expression_then(
        &r->pool, ls_expression_then(&r->pool, any, ls_expression_text(&r->pool, word)), any);
    free(word);
    *x_p = ls_expression_without(&r->pool, *x_p, not );
    return LS_OK;
}

ls_status ls_schema_string(ls_schema_rules *r, const ls_schema_set *set,
                           const ls_expression **x_p) {
    int64_t least = 0, most = LS_NO_LIMIT;
    const ls_expression *x = NULL;
    if (r->plain) return read_plain(r, set, x_p);
    LS_TRY(read_lengths(r, set, &least, &most));
    LS_TRY(read_texts(r, set, &x));
    if (most != LS_NO_LIMIT && most < least && set->n == 1)
        return ls_schema_fail(r, "minLength is larger than maxLength");
    if (!x && (most == LS_NO_LIMIT || least <= most)) { /* one rule for all of these */
        *x_p = ls_schema_call_string(r, least, most);
        return LS_OK;
    }
    x = chars_of(r, x, least, most);
    *x_p = ls_schema_between(r, "\"", x, "\"");
    return LS_OK;
}

ls_status ls_schema_names(ls_schema_rules *r, const ls_schema_set *set, const ls_expression **x_p) {
    const ls_expression *x = NULL;
    unsigned types = 0, about = 0;
    LS_TRY(ls_schema_types(r, set, &types, &about));
    if (set->never || !(types & LS_TYPE_STRING)) {
        *x_p = ls_expression_never(&r->pool);
        return LS_OK;
    }
    LS_TRY(ls_schema_string_chars(r, set, x_p));
    for (size_t i = 0; i < set->n; i++) {
        const ls_json *schema = set->list[i].schema, *list = ls_json_get(schema, "enum");
        const char *name = ls_json_text(ls_json_get(schema, "const"));
        if (ls_json_get(schema, "anyOf") || ls_json_get(schema, "oneOf"))
            return ls_schema_fail(r, "propertyNames: anyOf and oneOf are not supported in it");
        if (ls_json_get(schema, "const"))
            x = name ? ls_schema_unquoted(r, name) : ls_expression_never(&r->pool);
        else if (list)
            LS_TRY(read_names(r, list, &x));
        else
            continue;
        *x_p = ls_expression_both(&r->pool, *x_p, x);
    }
    return LS_OK;
}
