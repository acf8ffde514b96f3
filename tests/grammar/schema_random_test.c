/* schema_random_test.c - JSON schemas as grammars, against a plain checker of values: random
 * schemas, random texts that a grammar allows, random values. */
#include "grammar/schema.h"

#include <math.h>

#include "base/random.h"
#include "grammar/schema_texts.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

enum { LONGEST = 4000, MOST_NESTED = 4 };

static uint64_t drawn;
static uint32_t draw(uint32_t n) {
    return (uint32_t)(ls_random_uniform(11, LS_STREAM_SAMPLE, 2, drawn++) * n);
}

/* ---- random schemas ---- */

static const char *const names[] = {"a", "ab", "b", "\\\"é", "long name"};
static const char *const patterns[] = {"^a+$", "b", "^[\\\\w-]*$", "^(x|\\\\\\\"|\\n)*y", "é$"};

static void put_schema(ls_buf *b, int depth);

static void put_object(ls_buf *b, int depth) {
    static const char *const others[] = {"", ",\"additionalProperties\":false",
                                         ",\"additionalProperties\":true",
                                         ",\"additionalProperties\":{\"type\":\"integer\"}"};
    bool required[5] = {false}, any = false;
    ls_buf_printf(b, "{\"type\":\"object\",\"properties\":{");
    for (int i = 0; i < 5; i++) {
        if (draw(2)) continue;
        ls_buf_printf(b, "%s\"%s\":", any ? "," : "", names[i]);
        put_schema(b, depth + 1);
        any = true;
        required[i] = draw(2);
    }
    ls_buf_printf(b, "},\"required\":[");
    any = false;
    for (int i = 0; i < 5; i++) {
        if (!required[i]) continue;
        ls_buf_printf(b, "%s\"%s\"", any ? "," : "", names[i]);
        any = true;
    }
    ls_buf_printf(b, "]%s", others[draw(4)]);
    if (draw(4) == 0)
        ls_buf_printf(b,
                      ",\"patternProperties\":{\"^a\":{\"type\":[\"integer\",\"boolean\"]},\"b\":"
                      "{\"maximum\":50,\"type\":[\"integer\",\"string\",\"null\"]}}");
    if (draw(4) == 0) ls_buf_printf(b, ",\"minProperties\":%u", draw(3));
    if (draw(4) == 0) ls_buf_printf(b, ",\"maxProperties\":%u", 2 + draw(3));
    if (draw(6) == 0) ls_buf_printf(b, ",\"propertyNames\":{\"maxLength\":%u}", 1 + draw(6));
    ls_buf_printf(b, "}");
}

static void put_array(ls_buf *b, int depth) {
    ls_buf_printf(b, "{\"type\":\"array\"");
    if (draw(3) == 0) {
        ls_buf_printf(b, ",\"prefixItems\":[");
        put_schema(b, depth + 1);
        ls_buf_printf(b, ",{\"type\":\"boolean\"}]");
    }
    ls_buf_printf(b, ",\"items\":");
    put_schema(b, depth + 1);
    if (draw(2)) ls_buf_printf(b, ",\"minItems\":%u", draw(3));
    if (draw(2)) ls_buf_printf(b, ",\"maxItems\":%u", 2 + draw(3));
    ls_buf_printf(b, "}");
}

static void put_number(ls_buf *b) {
    static const char *const steps[] = {"1", "2", "12", "0.5", "0.25", "2.5", "0.01"};
    int low = (int)draw(240) - 120, high = low + (int)draw(150) + 30;
    double part = draw(2) ? 0.25 * draw(4) : 0;
    bool whole = draw(2), exclusive = draw(3) == 0;
    ls_buf_printf(b, "{\"type\":\"%s\"", whole ? "integer" : "number");
    if (draw(2))
        ls_buf_printf(b, ",\"%s\":%g", exclusive ? "exclusiveMinimum" : "minimum", low + part);
    if (draw(2)) ls_buf_printf(b, ",\"maximum\":%g", high - part);
    if (draw(3) == 0) ls_buf_printf(b, ",\"multipleOf\":%s", steps[whole ? draw(7) : 3 + draw(4)]);
    ls_buf_printf(b, "}");
}

static void put_scalar(ls_buf *b) {
    static const char *const plain[] = {"{\"type\":\"string\"}",
                                        "{\"type\":\"null\"}",
                                        "{\"type\":\"boolean\"}",
                                        "{\"type\":[\"integer\",\"null\",\"string\"]}",
                                        "{\"enum\":[\"a\",\"ab\",1,null,{\"x\":[1,\"é\"]}]}",
                                        "{\"const\":\"\\u0001\\n\"}",
                                        "{\"type\":\"string\",\"enum\":[\"red\",\"\",3]}"};
    static const char *const lengths[] = {"", ",\"minLength\":2", ",\"maxLength\":1",
                                          ",\"minLength\":1,\"maxLength\":3"};
    uint32_t kind = draw(10);
    if (kind < 7)
        ls_buf_printf(b, "%s", plain[kind]);
    else if (kind == 7)
        ls_buf_printf(b, "{\"type\":\"string\",\"minLength\":%u,\"maxLength\":%u}", draw(3),
                      3 + draw(3));
    else if (kind == 8)
        ls_buf_printf(b, "{\"type\":\"string\",\"pattern\":\"%s\"%s}", patterns[draw(5)],
                      lengths[draw(4)]);
    else
        put_number(b);
}

static void put_schema(ls_buf *b, int depth) {
    uint32_t kind = draw(depth >= MOST_NESTED ? 2 : 8);
    if (kind < 2) {
        put_scalar(b);
    } else if (kind < 5) {
        put_object(b, depth);
    } else if (kind == 5) {
        put_array(b, depth);
    } else if (kind == 6) {
        ls_buf_printf(b, "{\"anyOf\":[");
        put_schema(b, depth + 1);
        ls_buf_printf(b, ",");
        put_schema(b, depth + 1);
        ls_buf_printf(b, "]}");
    } else {
        ls_buf_printf(b, "{\"$ref\":\"#/$defs/%s\"}", draw(2) ? "tree" : "value");
    }
}

/* The whole: with two definitions, one of which is recursive. */
static ls_json *random_schema(void) {
    ls_buf b = {0};
    put_object(&b, 0);
    b.len--; /* its last brace */
    ls_buf_printf(&b, ",\"$defs\":{\"tree\":{\"type\":\"object\",\"properties\":{\"v\":");
    put_scalar(&b);
    ls_buf_printf(&b, ",\"next\":{\"anyOf\":[{\"$ref\":\"#/$defs/tree\"},{\"type\":\"null\"}]}},"
                      "\"required\":[\"next\"],\"additionalProperties\":false},\"value\":");
    put_scalar(&b);
    ls_buf_printf(&b, "}}");
    ls_json *j = parsed(b.data, b.len);
    ls_buf_free(&b);
    return j;
}

/* ---- the checker ---- */

static size_t nchars(const char *text) {
    size_t n = 0;
    for (; *text; text++) n += (*text & 0xc0) != 0x80;
    return n;
}

static bool matches(const char *pattern, const char *text) {
    int code = 0;
    PCRE2_SIZE at = 0;
    pcre2_code *p = pcre2_compile((PCRE2_SPTR)pattern, PCRE2_ZERO_TERMINATED,
                                  PCRE2_UTF | PCRE2_DOLLAR_ENDONLY, &code, &at, NULL);
    assert_non_null(p);
    pcre2_match_data *m = pcre2_match_data_create_from_pattern(p, NULL);
    bool found = pcre2_match(p, (PCRE2_SPTR)text, strlen(text), 0, 0, m, NULL) > 0;
    pcre2_match_data_free(m);
    pcre2_code_free(p);
    return found;
}

static bool number_fits(const ls_json *s, const char *key, int sign, bool exclusive, double x) {
    double bound = 0;
    if (!ls_json_number(ls_json_get(s, key), &bound)) return true;
    return exclusive ? (x - bound) * sign > 0 : (x - bound) * sign >= 0;
}

/* All numbers and steps here have at most two places. */
static bool is_multiple(const ls_json *s, double x) {
    double step = 1;
    if (!ls_json_number(ls_json_get(s, "multipleOf"), &step)) return true;
    double hundreds = x * 100;
    if (x == floor(x)) return step == 0.01 || fmod(x, step) == 0; /* the others are exact */
    return fabs(hundreds - round(hundreds)) < 1e-6 * (1 + fabs(x)) &&
           fmod(round(hundreds), round(step * 100)) == 0;
}

static bool count_fits(const ls_json *s, const char *least, const char *most, size_t n) {
    return number_fits(s, least, 1, false, (double)n) && number_fits(s, most, -1, false, (double)n);
}

static bool has_type(const char *type, const ls_json *v) {
    int64_t whole = 0;
    double number = 0;
    if (strcmp(type, "null") == 0) return ls_json_is_null(v);
    if (strcmp(type, "boolean") == 0) return ls_json_is_bool(v);
    if (strcmp(type, "object") == 0) return ls_json_is_object(v);
    if (strcmp(type, "array") == 0) return ls_json_is_array(v);
    if (strcmp(type, "string") == 0) return ls_json_text(v);
    if (strcmp(type, "integer") == 0) return ls_json_integer(v, &whole);
    return ls_json_number(v, &number);
}

static bool is_valid(const ls_json *root, const ls_json *s, const ls_json *v);

/* Of the properties; their number: it is none of them. */
static size_t place_of(const ls_json *properties, const char *name) {
    const char *key = NULL;
    const ls_json *one = NULL;
    size_t i = 0;
    for (void *it = ls_json_next(properties, NULL, &key, &one); it && strcmp(key, name) != 0;
         it = ls_json_next(properties, it, &key, &one))
        i++;
    return i;
}

/* The schemas of a property; false: one of them is not kept. */
static bool is_valid_member(const ls_json *root, const ls_json *s, const char *name,
                            const ls_json *v) {
    const ls_json *own = ls_json_get(ls_json_get(s, "properties"), name), *one = NULL;
    const ls_json *by_name = ls_json_get(s, "patternProperties"),
                  *others = ls_json_get(s, "additionalProperties");
    const ls_json *allowed = ls_json_get(s, "propertyNames");
    const char *pattern = NULL;
    bool described = own, valid = !own || is_valid(root, own, v);
    if (allowed && !count_fits(allowed, "minLength", "maxLength", nchars(name))) return false;
    for (void *it = ls_json_next(by_name, NULL, &pattern, &one); it;
         it = ls_json_next(by_name, it, &pattern, &one)) {
        if (!matches(pattern, name)) continue;
        described = true;
        valid = valid && is_valid(root, one, v);
    }
    if (described) return valid;
    double least = 0;
    if (!others && ls_json_number(ls_json_get(s, "minProperties"), &least) &&
        least > (double)ls_json_count(ls_json_get(s, "properties")))
        return true;
    return others &&
           (ls_json_is_object(others) ? is_valid(root, others, v) : ls_json_is_true(others));
}

/* What no property describes is allowed only where additionalProperties says so, behind the
 * properties, which come in their order. */
static bool is_valid_object(const ls_json *root, const ls_json *s, const ls_json *v) {
    const ls_json *properties = ls_json_get(s, "properties"), *one = NULL;
    const ls_json *required = ls_json_get(s, "required");
    const char *key = NULL;
    bool valid = count_fits(s, "minProperties", "maxProperties", ls_json_count(v));
    size_t before = 0;
    for (void *it = ls_json_next(v, NULL, &key, &one); it && valid;
         it = ls_json_next(v, it, &key, &one)) {
        size_t place = place_of(properties, key);
        if (place < before) return false;
        before = place;
        valid = is_valid_member(root, s, key, one);
    }
    for (size_t i = 0; i < ls_json_count(required) && valid; i++)
        valid = ls_json_get(v, ls_json_text(ls_json_at(required, i))) != NULL;
    return valid;
}

static bool is_valid_array(const ls_json *root, const ls_json *s, const ls_json *v) {
    const ls_json *prefix = ls_json_get(s, "prefixItems");
    size_t n = ls_json_count(v), first = ls_json_count(prefix);
    bool valid = count_fits(s, "minItems", "maxItems", n) && n >= first;
    for (size_t i = 0; i < n && valid; i++)
        valid = is_valid(root, i < first ? ls_json_at(prefix, i) : ls_json_get(s, "items"),
                         ls_json_at(v, i));
    return valid;
}

static bool is_valid_scalar(const ls_json *s, const ls_json *v) {
    const char *text = ls_json_text(v), *pattern = ls_json_text(ls_json_get(s, "pattern"));
    double x = 0;
    if (text) {
        if (!count_fits(s, "minLength", "maxLength", nchars(text))) return false;
        return !pattern || matches(pattern, text);
    }
    return !ls_json_number(v, &x) || (is_multiple(s, x) && number_fits(s, "minimum", 1, false, x) &&
                                      number_fits(s, "maximum", -1, false, x) &&
                                      number_fits(s, "exclusiveMinimum", 1, true, x) &&
                                      number_fits(s, "exclusiveMaximum", -1, true, x));
}

static bool is_valid(const ls_json *root, const ls_json *s, const ls_json *v) {
    const char *ref = ls_json_text(ls_json_get(s, "$ref"));
    const ls_json *any = ls_json_get(s, "anyOf"), *list = ls_json_get(s, "enum");
    const ls_json *constant = ls_json_get(s, "const"), *type = ls_json_get(s, "type");
    bool found = !any && !list && !type;
    if (ref) return is_valid(root, ls_json_get(ls_json_get(root, "$defs"), ref + 8), v);
    if (any) {
        for (size_t i = 0; i < ls_json_count(any); i++)
            found = found || is_valid(root, ls_json_at(any, i), v);
        return found;
    }
    if (constant) return ls_json_equal(constant, v);
    for (size_t i = 0; i < ls_json_count(type); i++)
        found = found || has_type(ls_json_text(ls_json_at(type, i)), v);
    if (ls_json_text(type)) found = has_type(ls_json_text(type), v);
    if (list) {
        bool right = found || !type;
        found = false;
        for (size_t i = 0; i < ls_json_count(list); i++)
            found = found || (right && ls_json_equal(ls_json_at(list, i), v));
        return found;
    }
    if (!found) return false;
    if (ls_json_is_object(v)) return is_valid_object(root, s, v);
    return ls_json_is_array(v) ? is_valid_array(root, s, v) : is_valid_scalar(s, v);
}

/* ---- texts ---- */

/* A random text that the grammar allows. It is never without a next byte, unless it is complete;
 * and since bytes that close something are likely, it ends. */
static size_t random_text(ls_walker *w, char *text) {
    size_t n = 0;
    uint32_t state = LS_WALKER_START;
    while (n < LONGEST) {
        uint8_t allowed[256 * 2];
        uint32_t count = 0;
        static const char likely[] = "\"}]nabxy-1\xc3\xa9";
        bool closes = draw(n > 60 ? 8 : 2), closed = false;
        for (int b = 0; b < 256; b++)
            if (ls_walker_step(w, state, (uint8_t)b) != LS_WALKER_DEAD)
                allowed[count++] = (uint8_t)b;
        if (count == 0) assert_true(ls_walker_is_end(w, state));
        if (ls_walker_is_end(w, state) && (count == 0 || draw(2))) return n;
        for (int i = 0; i < 20 && closes && !closed; i++) {
            text[n] = likely[draw(sizeof likely - 1)];
            closed = ls_walker_step(w, state, (uint8_t)text[n]) != LS_WALKER_DEAD;
        }
        if (!closed) text[n] = (char)allowed[draw(count)];
        state = ls_walker_step(w, state, (uint8_t)text[n++]);
    }
    fail_msg("a text does not end: %.*s", 200, text);
    return 0;
}

static void put_compact(const ls_json *v, ls_buf *b) {
    const char *key = NULL, *comma = "";
    const ls_json *one = NULL;
    if (!ls_json_is_object(v) && !ls_json_is_array(v)) {
        ls_json_write(v, 0, b);
        return;
    }
    ls_buf_printf(b, "%c", ls_json_is_object(v) ? '{' : '[');
    for (size_t i = 0; i < ls_json_count(v) && ls_json_is_array(v); i++, comma = ",") {
        ls_buf_printf(b, "%s", comma);
        put_compact(ls_json_at(v, i), b);
    }
    for (void *it = ls_json_next(v, NULL, &key, &one); it; it = ls_json_next(v, it, &key, &one)) {
        ls_json *name = ls_json_new_text(key);
        ls_buf_printf(b, "%s", comma);
        ls_json_write(name, 0, b);
        ls_buf_printf(b, ":");
        put_compact(one, b);
        ls_json_free(name);
        comma = ",";
    }
    ls_buf_printf(b, "%c", ls_json_is_object(v) ? '}' : ']');
}

/* ---- random values, most of which fit the schema ---- */

static ls_json *random_value(const ls_json *root, const ls_json *s, int depth);

static ls_json *random_object(const ls_json *root, const ls_json *s, int depth) {
    const ls_json *one = NULL, *required = ls_json_get(s, "required");
    const char *key = NULL;
    ls_json *v = ls_json_new_object();
    const ls_json *properties = ls_json_get(s, "properties");
    for (void *it = ls_json_next(properties, NULL, &key, &one); it;
         it = ls_json_next(properties, it, &key, &one)) {
        bool must = false;
        for (size_t i = 0; i < ls_json_count(required); i++)
            must = must || strcmp(ls_json_text(ls_json_at(required, i)), key) == 0;
        if ((must && draw(20)) || draw(2)) ls_json_set(v, key, random_value(root, one, depth + 1));
    }
    if (draw(4) == 0) ls_json_set_integer(v, "abc", 3);
    if (draw(4) == 0) ls_json_set_integer(v, "é", -3);
    return v;
}

static ls_json *random_scalar(void) {
    static const char *const texts[] = {"",   "a",     "aa", "ab",  "red",
                                        "xy", "\"\ny", "é",  "a-b", "1\xe2\x82\xac"};
    switch (draw(6)) {
    case 0: return ls_json_new_integer((int64_t)draw(300) - 150);
    case 1: return ls_json_new_number(((double)draw(1200) - 600) / 4);
    case 2: return ls_json_new_bool(draw(2));
    case 3: return ls_json_new_null();
    default: return ls_json_new_text(texts[draw(10)]);
    }
}

static ls_json *random_value(const ls_json *root, const ls_json *s, int depth) {
    const char *ref = ls_json_text(ls_json_get(s, "$ref"));
    const char *type = ls_json_text(ls_json_get(s, "type"));
    const ls_json *any = ls_json_get(s, "anyOf"), *list = ls_json_get(s, "enum");
    if (depth > 12 || draw(40) == 0) return random_scalar();
    if (ref) return random_value(root, ls_json_get(ls_json_get(root, "$defs"), ref + 8), depth + 1);
    if (any) return random_value(root, ls_json_at(any, draw(2)), depth + 1);
    if (list) return ls_json_share(ls_json_at(list, draw((uint32_t)ls_json_count(list))));
    if (ls_json_get(s, "const")) return ls_json_share(ls_json_get(s, "const"));
    if (type && strcmp(type, "object") == 0) return random_object(root, s, depth);
    if (!type || strcmp(type, "array") != 0) {
        ls_json *v = random_scalar();
        for (int i = 0; i < 30 && !is_valid(root, s, v); i++) {
            ls_json_free(v);
            v = random_scalar();
        }
        return v;
    }
    ls_json *v = ls_json_new_array();
    size_t first = ls_json_count(ls_json_get(s, "prefixItems"));
    for (size_t n = first + draw(4), i = 0; i < n; i++)
        ls_json_push(v, random_value(root,
                                     i < first ? ls_json_at(ls_json_get(s, "prefixItems"), i)
                                               : ls_json_get(s, "items"),
                                     depth + 1));
    return v;
}

/* ---- tests ---- */

static void compare(const ls_json *s, ls_walker *w, size_t *nvalid) {
    static char text[LONGEST];
    for (int i = 0; i < 10; i++) {
        size_t n = random_text(w, text);
        ls_json *v = NULL;
        ls_error e = {0};
        if (ls_json_parse(text, n, "it", &v, &e) != LS_OK) { /* additional names may repeat */
            if (!strstr(e.msg, "duplicate")) fail_msg("%s: %.*s", e.msg, (int)n, text);
            continue;
        }
        if (!is_valid(s, s, v)) {
            ls_buf b = {0};
            put_compact(s, &b);
            fail_msg("not valid: %.*s by %s", (int)n, text, b.data);
        }
        ls_json_free(v);
    }
    for (int i = 0; i < 30; i++) {
        ls_json *v = random_value(s, s, 0);
        ls_buf b = {0};
        put_compact(v, &b);
        bool valid = is_valid(s, s, v);
        *nvalid += valid;
        if (valid != ls_walker_is_end(w, read_all(w, b.data, b.len)))
            fail_msg("%s: %.*s", valid ? "is refused" : "is allowed", (int)b.len, b.data);
        ls_buf_free(&b);
        ls_json_free(v);
    }
}

static void test_random(void **state) {
    size_t nvalid = 0;
    int n = ncases(150, 5000), made = 0;
    (void)state;
    for (int i = 0; i < n; i++) {
        ls_json *s = random_schema();
        ls_grammar *g = NULL;
        ls_error e = {0};
        if (ls_grammar_of_schema(s, NULL, &g, &e) == LS_OK) {
            ls_walker *w = ls_walker_new(g);
            compare(s, w, &nvalid);
            ls_walker_free(w);
            ls_grammar_free(g);
            made++;
        } else if (!strstr(e.msg, "required") && !strstr(e.msg, "minItems") &&
                   !strstr(e.msg, "no number") && !strstr(e.msg, "no text")) {
            fail_msg("%s", e.msg);
        }
        ls_json_free(s);
    }
    assert_true(made > n / 2 && nvalid > (size_t)n);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_random)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
