/* schema_rules.c - see schema_rules.h. */
#include "grammar/schema_rules.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void ls_schema_rules_free(ls_schema_rules *r) {
    for (uint32_t i = 0; i < r->n; i++) free(r->list[i].path);
    free(r->list);
    for (size_t i = 0; i < r->nmade; i++) ls_json_free(r->made[i]);
    free((void *)r->made);
    for (size_t i = 0; i < r->nchoices; i++) {
        ls_json_free(r->choices[i].lists);
        free((void *)r->choices[i].schemas);
    }
    free(r->choices);
    ls_schema_sets_free(&r->sets);
    ls_expressions_free(&r->pool);
}

ls_status ls_schema_fail(const ls_schema_rules *r, const char *fmt, ...) {
    char text[256];
    va_list list;
    va_start(list, fmt);
    vsnprintf(text, sizeof text, fmt, list);
    va_end(list);
    return ls_fail(r->e, LS_EINVAL, "the schema%s%s: %s", *r->path ? " at " : "", r->path, text);
}

const ls_json *ls_schema_keep(ls_schema_rules *r, ls_json *schema) {
    for (size_t i = 0; i < r->nmade; i++) {
        if (!ls_json_equal(r->made[i], schema)) continue;
        ls_json_free(schema);
        return r->made[i];
    }
    r->made = ls_grow((void *)r->made, r->nmade, sizeof(ls_json *));
    return r->made[r->nmade++] = schema;
}

static bool is_same(const ls_schema_rule *a, const ls_schema_rule *b) {
    if (a->kind != b->kind || a->least != b->least || a->most != b->most) return false;
    bool has_set = a->kind == LS_SCHEMA_OF || a->kind == LS_SCHEMA_MEMBER;
    return !has_set || ls_schema_set_equal(a->set, b->set);
}

static const ls_expression *call(ls_schema_rules *r, ls_schema_rule rule, const char *path) {
    uint32_t i = 0;
    while (i < r->n && !is_same(&r->list[i], &rule)) i++;
    if (i == r->n) {
        r->list = ls_grow(r->list, r->n, sizeof *r->list);
        r->list[r->n++] = rule;
        r->list[i].path = ls_strdup(path);
    }
    return ls_expression_call(&r->pool, i);
}

const ls_expression *ls_schema_call(ls_schema_rules *r, const ls_schema_set *set,
                                    const char *path) {
    if (set->never) return ls_expression_never(&r->pool);
    if (set->n == 0) return ls_schema_call_kind(r, LS_SCHEMA_VALUE);
    return call(r, (ls_schema_rule){.set = set}, path);
}

const ls_expression *ls_schema_call_child(ls_schema_rules *r, const ls_schema_set *set,
                                          const char *word) {
    char *path = ls_format("%s/%s", r->path, word);
    const ls_expression *x = ls_schema_call(r, set, path);
    free(path);
    return x;
}

const ls_expression *ls_schema_call_kind(ls_schema_rules *r, ls_schema_rule_kind kind) {
    return call(r, (ls_schema_rule){.kind = kind}, "");
}

const ls_expression *ls_schema_call_member(ls_schema_rules *r, const ls_schema_set *set,
                                           const char *name) {
    char *path = ls_format("/properties/%s", name);
    const ls_expression *x = call(r, (ls_schema_rule){.kind = LS_SCHEMA_MEMBER, .set = set}, path);
    free(path);
    return x;
}

const ls_expression *ls_schema_call_string(ls_schema_rules *r, int64_t least, int64_t most) {
    return call(r, (ls_schema_rule){.kind = LS_SCHEMA_STRING, .least = least, .most = most}, "");
}

const ls_expression *ls_schema_regex(ls_schema_rules *r, const char *regex) {
    const ls_expression *x = NULL;
    ls_error e = {0};
    if (ls_regex_read(&r->pool, regex, strlen(regex), &(ls_regex_options){0}, &x, &e) != LS_OK)
        abort();
    return x;
}

static const ls_expression *quoted_text(ls_schema_rules *r, const ls_json *value) {
    ls_buf text = {0};
    const char *key = NULL;
    const ls_json *one = NULL;
    const ls_expression *x = NULL;
    if (ls_json_is_object(value)) {
        x = ls_expression_text(&r->pool, "{");
        for (void *it = ls_json_next(value, NULL, &key, &one); it;) {
            ls_json *name = ls_json_new_text(key);
            x = ls_expression_then(&r->pool, x, quoted_text(r, name));
            x = ls_expression_then(&r->pool, x, ls_expression_text(&r->pool, ":"));
            x = ls_expression_then(&r->pool, x, quoted_text(r, one));
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
            x = ls_expression_then(&r->pool, x, quoted_text(r, ls_json_at(value, i)));
        }
        return ls_expression_then(&r->pool, x, ls_expression_text(&r->pool, "]"));
    }
    ls_json_write_exact(value, &text);
    x = ls_expression_bytes(&r->pool, text.data, text.len);
    ls_buf_free(&text);
    return x;
}

const ls_expression *ls_schema_text(ls_schema_rules *r, const ls_json *value) {
    if (r->plain && ls_json_text(value)) return ls_expression_text(&r->pool, ls_json_text(value));
    return quoted_text(r, value);
}

const ls_expression *ls_schema_unquoted(ls_schema_rules *r, const char *text) {
    if (r->plain) return ls_expression_text(&r->pool, text);
    ls_buf quoted = {0};
    ls_json *value = ls_json_new_text(text);
    ls_json_write_exact(value, &quoted);
    const ls_expression *x = ls_expression_bytes(&r->pool, quoted.data + 1, quoted.len - 2);
    ls_json_free(value);
    ls_buf_free(&quoted);
    return x;
}

/* Sorted texts [n], which are equal before byte `at`. As far as the tree goes, each of their bytes
 * is there once. */
static const ls_expression *text_tree(ls_schema_rules *r, const char *const *texts, size_t n,
                                      size_t at) {
    enum { DEEPEST = 250 };
    const ls_expression *x = NULL;
    for (size_t i = 0, k; i < n; i = k) {
        const ls_expression *one = NULL;
        for (k = i + 1; at < DEEPEST && k < n && texts[k][at] == texts[i][at]; k++) continue;
        if (k == i + 1) {
            one = ls_expression_text(&r->pool, texts[i] + at);
        } else {
            one = ls_expression_bytes(&r->pool, texts[i] + at, 1);
            one = ls_expression_then(&r->pool, one, text_tree(r, texts + i, k - i, at + 1));
        }
        x = ls_expression_or(&r->pool, x, one);
    }
    return x;
}

const ls_expression *ls_schema_any_text(ls_schema_rules *r, const char *const *texts, size_t n) {
    const char **quoted = LS_NEW_ARRAY(const char *, n);
    for (size_t i = 0; i < n; i++) quoted[i] = ls_schema_unquoted(r, texts[i])->bytes;
    qsort((void *)quoted, n, sizeof *quoted, ls_compare_texts);
    const ls_expression *x = text_tree(r, quoted, n, 0);
    free((void *)quoted);
    return x;
}

const ls_expression *ls_schema_chars(ls_schema_rules *r, int64_t least, int64_t most) {
    return ls_expression_repeat(&r->pool, ls_expression_range(&r->pool, 1, LS_LAST_CHAR, !r->plain),
                                least, most);
}

const ls_expression *ls_schema_between(ls_schema_rules *r, const char *a, const ls_expression *x,
                                       const char *b) {
    x = ls_expression_then(&r->pool, ls_expression_text(&r->pool, a), x);
    return ls_expression_then(&r->pool, x, ls_expression_text(&r->pool, b));
}

/* ---- values of any kind ---- */

static const ls_expression *any_string(ls_schema_rules *r, int64_t least, int64_t most) {
    return ls_schema_between(r, "\"", ls_schema_chars(r, least, most), "\"");
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
    const ls_expression *member =
        ls_expression_then(&r->pool,
                           ls_expression_then(&r->pool, any_string(r, 0, LS_NO_LIMIT),
                                              ls_expression_text(&r->pool, ":")),
                           ls_schema_call_kind(r, LS_SCHEMA_VALUE));
    return any_list(r, "{", "}", member);
}

const ls_expression *ls_schema_any(ls_schema_rules *r, const ls_schema_rule *rule) {
    if (rule->kind == LS_SCHEMA_STRING) return any_string(r, rule->least, rule->most);
    if (rule->kind == LS_SCHEMA_OBJECT) return any_object(r);
    const ls_expression *x =
        ls_expression_or(&r->pool, ls_schema_regex(r, LS_SCHEMA_NUMBER "|true|false|null"),
                         any_string(r, 0, LS_NO_LIMIT));
    x = ls_expression_or(&r->pool, x, any_object(r));
    return ls_expression_or(&r->pool, x,
                            any_list(r, "[", "]", ls_schema_call_kind(r, LS_SCHEMA_VALUE)));
}
