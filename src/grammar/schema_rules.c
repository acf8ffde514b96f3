/* schema_rules.c - see schema_rules.h. */
#include "grammar/schema_rules.h"

#include <stdlib.h>
#include <string.h>

#include "base/utf8.h"

static const char NUMBER[] =
    "-?(?:0|[1-9][0-9]{0,17})(?:\\.[0-9]{1,17})?(?:[eE][-+]?[0-9]{1,2})?|true|false|null";

void ls_schema_rules_free(ls_schema_rules *r) {
    for (uint32_t i = 0; i < r->n; i++) free(r->list[i].path);
    free(r->list);
    ls_expressions_free(&r->pool);
}

static const ls_expression *call(ls_schema_rules *r, ls_schema_rule rule) {
    uint32_t i = 0;
    while (i < r->n && (r->list[i].kind != rule.kind || r->list[i].schema != rule.schema)) i++;
    if (i == r->n) {
        r->list = ls_grow(r->list, r->n, sizeof *r->list);
        r->list[r->n++] = rule;
        r->list[i].path = ls_strdup(rule.path);
    }
    return ls_expression_call(&r->pool, i);
}

const ls_expression *ls_schema_call(ls_schema_rules *r, const ls_json *schema, const char *path) {
    return call(
        r, (ls_schema_rule){.schema = schema, .root = r->root, .path = (char *)(uintptr_t)path});
}

const ls_expression *ls_schema_call_kind(ls_schema_rules *r, ls_schema_rule_kind kind) {
    char none[] = "";
    return call(r, (ls_schema_rule){.kind = kind, .path = none});
}

const ls_expression *ls_schema_regex(ls_schema_rules *r, const char *regex) {
    const ls_expression *x = NULL;
    ls_error e = {0};
    if (ls_regex_read(&r->pool, regex, strlen(regex), &(ls_regex_options){0}, &x, &e) != LS_OK)
        abort();
    return x;
}

const ls_expression *ls_schema_text(ls_schema_rules *r, const ls_json *value) {
    ls_buf text = {0};
    const char *key = NULL;
    const ls_json *one = NULL;
    const ls_expression *x = NULL;
    if (ls_json_is_object(value)) {
        x = ls_expression_text(&r->pool, "{");
        for (void *it = ls_json_next(value, NULL, &key, &one); it;) {
            ls_json *name = ls_json_new_text(key);
            x = ls_expression_then(&r->pool, x, ls_schema_text(r, name));
            x = ls_expression_then(&r->pool, x, ls_expression_text(&r->pool, ":"));
            x = ls_expression_then(&r->pool, x, ls_schema_text(r, one));
            ls_json_free(name);
            it = ls_json_next(value, it, &key, &one);
            x = ls_expression_then(&r->pool, x, ls_expression_text(&r->pool, it ? "," : ""));
        }
        return ls_expression_then(&r->pool, x, ls_expression_text(&r->pool, "}"));
    }
    if (ls_json_is_array(value)) {
        x = ls_expression_text(&r->pool, "[");
        for (size_t i = 0; i < ls_json_count(value); i++) {
            x = ls_expression_then(&r->pool, x, ls_expression_text(&r->pool, i ? "," : ""));
            x = ls_expression_then(&r->pool, x, ls_schema_text(r, ls_json_at(value, i)));
        }
        return ls_expression_then(&r->pool, x, ls_expression_text(&r->pool, "]"));
    }
    ls_json_write_exact(value, &text);
    x = ls_expression_bytes(&r->pool, text.data, text.len);
    ls_buf_free(&text);
    return x;
}

const ls_expression *ls_schema_chars(ls_schema_rules *r, int64_t least, int64_t most) {
    return ls_expression_repeat(&r->pool, ls_expression_range(&r->pool, 1, LS_LAST_CHAR, true),
                                least, most);
}

const ls_expression *ls_schema_between(ls_schema_rules *r, const char *a, const ls_expression *x,
                                       const char *b) {
    x = ls_expression_then(&r->pool, ls_expression_text(&r->pool, a), x);
    return ls_expression_then(&r->pool, x, ls_expression_text(&r->pool, b));
}

/* ---- values of any kind ---- */

static const ls_expression *any_string(ls_schema_rules *r) {
    return ls_schema_between(r, "\"", ls_schema_chars(r, 0, LS_NO_LIMIT), "\"");
}

/* open, items with commas, close. */
static const ls_expression *any_list(ls_schema_rules *r, const char *open, const char *close,
                                     const ls_expression *item) {
    const ls_expression *more = ls_expression_repeat(
        &r->pool, ls_expression_then(&r->pool, ls_expression_text(&r->pool, ","), item), 0,
        LS_NO_LIMIT);
    const ls_expression *items =
        ls_expression_repeat(&r->pool, ls_expression_then(&r->pool, item, more), 0, 1);
    return ls_schema_between(r, open, items, close);
}

static const ls_expression *any_object(ls_schema_rules *r) {
    const ls_expression *member = ls_expression_then(
        &r->pool, ls_expression_then(&r->pool, any_string(r), ls_expression_text(&r->pool, ":")),
        ls_schema_call_kind(r, LS_SCHEMA_VALUE));
    return any_list(r, "{", "}", member);
}

const ls_expression *ls_schema_any(ls_schema_rules *r, ls_schema_rule_kind kind) {
    if (kind == LS_SCHEMA_STRING) return any_string(r);
    if (kind == LS_SCHEMA_OBJECT) return any_object(r);
    const ls_expression *x = ls_expression_or(&r->pool, ls_schema_regex(r, NUMBER), any_string(r));
    x = ls_expression_or(&r->pool, x, any_object(r));
    return ls_expression_or(&r->pool, x,
                            any_list(r, "[", "]", ls_schema_call_kind(r, LS_SCHEMA_VALUE)));
}

/* ---- names that are not in use ---- */

/* names [n], from byte `at` on: they are equal before it. */
static const ls_expression *other_name(ls_schema_rules *r, const char *const *names, size_t n,
                                       size_t at) {
    ls_expressions *p = &r->pool;
    const ls_expression *x = NULL;
    ls_char_set others = {0}, done = {0};
    const char **below = LS_NEW_ARRAY(const char *, n + 1);
    bool ends = false;
    for (size_t i = 0; i < n; i++) ends = ends || !names[i][at];
    if (!ends) x = ls_expression_text(p, "\"");
    for (size_t i = 0; i < n; i++) {
        uint32_t c = 0, other = 0;
        size_t nbytes = ls_utf8_decode(names[i] + at, strlen(names[i] + at), &c), nbelow = 0;
        if (nbytes == 0 || ls_char_set_has(&done, c)) continue;
        ls_char_set_add(&done, c, c);
        for (size_t k = i; k < n; k++)
            if (ls_utf8_decode(names[k] + at, strlen(names[k] + at), &other) && other == c)
                below[nbelow++] = names[k];
        x = ls_expression_or(p, x,
                             ls_expression_then(p, ls_expression_range(p, c, c, true),
                                                other_name(r, below, nbelow, at + nbytes)));
    }
    free((void *)below);
    ls_char_set_add(&done, 0, 0);
    ls_char_set_add_all(&others, &done);
    ls_char_set_invert(&others);
    ls_char_set_free(&done);
    const ls_expression *rest = ls_expression_then(p, ls_expression_chars(p, &others, true),
                                                   ls_schema_chars(r, 0, LS_NO_LIMIT));
    return ls_expression_or(p, x, ls_expression_then(p, rest, ls_expression_text(p, "\"")));
}

const ls_expression *ls_schema_other_name(ls_schema_rules *r, const char *const *names, size_t n) {
    return other_name(r, names, n, 0);
}
