/* json_records.c - see json_records.h. */
#include "base/json_records.h"

#include <string.h>

#include "base/utf8.h"

static void skip_space(ls_json_records *c) {
    for (; c->at < c->end && ls_json_is_space(*c->at); c->at++) c->line += *c->at == '\n';
}

static bool skip(ls_json_records *c, char sign) {
    skip_space(c);
    if (c->at == c->end || *c->at != sign) return false;
    c->at++;
    return true;
}

ls_json_records ls_json_lines_of(const char *text, size_t n) {
    if (!n) text = ""; /* an empty file is mapped nowhere */
    ls_json_records c = {.at = text, .end = text + n, .line = 1};
    c.at += ls_utf8_mark(text, n);
    c.line_end = n && !memchr(text, '\n', n) ? '\r' : '\n';
    return c;
}

/* The bytes of the line at `at`, without its break. */
static size_t line_length(const ls_json_records *c, const char *at) {
    const char *stop = memchr(at, c->line_end, (size_t)(c->end - at));
    size_t n = (size_t)((stop ? stop : c->end) - at);
    while (n && ls_json_is_space(at[n - 1])) n--;
    return n;
}

/* The next line that is not empty. */
static bool next_line(ls_json_records *c) {
    while (c->at < c->end) {
        const char *stop = memchr(c->at, c->line_end, (size_t)(c->end - c->at));
        c->text = c->at;
        c->n = line_length(c, c->at);
        c->at = stop ? stop + 1 : c->end;
        c->line = ++c->number;
        if (c->n) return true;
    }
    return false;
}

/* The end of the value at `at`, found by its quotes and brackets; a parser then reads it. */
static const char *value_end(const char *at, const char *end) {
    size_t depth = 0;
    bool quoted = false;
    for (; at < end; at++) {
        if (quoted) {
            if (*at == '\\' && at + 1 < end)
                at++;
            else
                quoted = *at != '"';
        } else if (*at == '"') {
            quoted = true;
        } else if (*at == '{' || *at == '[') {
            depth++;
        } else if (depth && (*at == '}' || *at == ']')) {
            depth--;
        } else if (!depth && (*at == ',' || *at == ']' || *at == '}')) {
            return at;
        }
    }
    return end;
}

/* Behind the bracket that closes the object at `at`. */
static const char *object_end(const char *at, const char *end) {
    size_t depth = 0;
    bool quoted = false;
    for (; at < end; at++) {
        if (quoted && *at == '\\' && at + 1 < end)
            at++;
        else if (*at == '"')
            quoted = !quoted;
        else if (!quoted && *at == '{')
            depth++;
        else if (!quoted && *at == '}' && --depth == 0)
            return at + 1;
    }
    return end;
}

/* Does the first object go on behind its line, and end? It is not a line of a damaged file, each of
 * which is one object. */
static bool is_spread(const ls_json_records *c) {
    const char *at = c->at;
    while (at < c->end && ls_json_is_space(*at)) at++;
    if (at == c->end || *at != '{') return false;
    const char *end = object_end(at, c->end),
               *stop = memchr(at, c->line_end, (size_t)(c->end - at));
    if (!stop || end <= stop || end[-1] != '}') return false;
    ls_json *j = NULL;
    bool is = ls_json_parse(at, (size_t)(end - at), "", &j, NULL) == LS_OK;
    ls_json_free(j);
    return is;
}

ls_json_records ls_json_records_of(const char *text, size_t n) {
    ls_json_records c = ls_json_lines_of(text, n);
    const char *start = c.at;
    c.array = skip(&c, '[');
    if (!c.array) {
        c.at = start;
        c.line = 1;
        c.spread = is_spread(&c);
    }
    return c;
}

/* The next element of the array. At its end nothing may follow. */
static bool next_element(ls_json_records *c) {
    for (const char *s = c->text; c->number && s < c->at; s++) c->line += *s == '\n';
    bool more = !c->number || skip(c, ','), ends = !more || !c->number;
    if (ends && skip(c, ']')) {
        skip_space(c);
        if (c->at < c->end) c->wrong = "has more behind the end of its array";
        return false;
    }
    skip_space(c);
    if (!more || c->at == c->end) {
        c->wrong = "the array of objects has no end: a comma or ] is missing";
        return false;
    }
    c->number++;
    c->text = c->at;
    c->at = value_end(c->at, c->end);
    c->n = (size_t)(c->at - c->text);
    return true;
}

/* The next of objects over several lines. */
static bool next_spread(ls_json_records *c) {
    skip_space(c);
    if (c->at == c->end) return false;
    c->number++;
    if (*c->at != '{') {
        c->wrong = "is not valid JSON: an object begins with {";
        return false;
    }
    c->text = c->at;
    c->at = object_end(c->at, c->end);
    c->n = (size_t)(c->at - c->text);
    return true;
}

bool ls_json_records_next(ls_json_records *c) {
    for (const char *s = c->text; c->spread && c->number && s < c->at; s++) c->line += *s == '\n';
    return c->array ? next_element(c) : c->spread ? next_spread(c) : next_line(c);
}

size_t ls_json_record_length(const ls_json_records *c, const char *at) {
    if (c->array) return (size_t)(value_end(at, c->end) - at);
    return c->spread ? (size_t)(object_end(at, c->end) - at) : line_length(c, at);
}

/* A text, as the element of an array: the parser reads arrays and objects. */
static ls_status parse_text(const ls_json_records *c, ls_json **j_p, ls_error *e) {
    ls_buf array = {0};
    ls_json *j = NULL;
    ls_buf_append(&array, "[", 1);
    ls_buf_append(&array, c->text, c->n);
    ls_buf_append(&array, "]", 1);
    ls_status s = ls_json_parse(array.data, array.len, "", &j, e);
    if (s == LS_OK && ls_json_count(j) != 1)
        s = ls_fail(e, LS_EINVAL, "is not valid JSON: it has several values");
    if (s == LS_OK) *j_p = ls_json_share(ls_json_at(j, 0));
    ls_json_free(j);
    ls_buf_free(&array);
    return s;
}

ls_status ls_json_records_parse(const ls_json_records *c, ls_json **j_p, ls_error *e) {
    if (c->n && *c->text == '"') return parse_text(c, j_p, e);
    return ls_json_parse(c->text, c->n, "", j_p, e);
}

ls_status ls_json_records_fail(const ls_json_records *c, const char *name, const char *why,
                               ls_error *e) {
    unsigned long long line = c->line, number = c->number;
    if (!c->array || c->wrong) return ls_fail(e, LS_EINVAL, "%s:%llu: %s", name, line, why);
    return ls_fail(e, LS_EINVAL, "%s:%llu: element %llu %s", name, line, number, why);
}

ls_json *ls_json_of_line(const ls_line *line) {
    ls_json *j = NULL;
    bool whole = line->whole && !line->too_long;
    if (whole && ls_json_parse(line->text, line->nbytes, "a line", &j, NULL) != LS_OK) return NULL;
    return j;
}
