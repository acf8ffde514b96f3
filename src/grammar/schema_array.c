/* schema_array.c - see schema_array.h. */
#include "grammar/schema_array.h"

#include <stdio.h>
#include <stdlib.h>

#include "grammar/schema_keywords.h"
#include "grammar/schema_listed.h"
#include "grammar/schema_values.h"

typedef struct array_reader {
    ls_schema_rules *rules;
    const ls_schema_set *set;
    int64_t least, most;
    size_t first; /* items that have schemas of their own */
} array_reader;

/* The schemas of the first items; until draft 2019 `items` has them. */
static const ls_json *first_items(const ls_json *schema) {
    const ls_json *items = ls_json_get(schema, "items");
    return ls_json_is_array(items) ? items : ls_json_get(schema, "prefixItems");
}

/* That of the others; NULL: there is none. */
static const ls_json *other_items(const ls_json *schema) {
    const ls_json *items = ls_json_get(schema, "items");
    return ls_json_is_array(items) ? ls_json_get(schema, "additionalItems") : items;
}

static const ls_schema_set *item_at(const array_reader *a, size_t at) {
    ls_schema_set *set = ls_schema_set_new(&a->rules->sets);
    for (size_t i = 0; i < a->set->n; i++) {
        const ls_schema_part *p = &a->set->list[i];
        const ls_json *first = first_items(p->schema), *one = other_items(p->schema);
        if (at < ls_json_count(first)) one = ls_json_at(first, at);
        if (one) ls_schema_set_add(set, (ls_schema_part){one, p->root, 0});
    }
    return set;
}

static const ls_expression *call_item(const array_reader *a, size_t at) {
    char word[40] = "items";
    if (at < a->first) snprintf(word, sizeof word, "prefixItems/%zu", at);
    return ls_schema_call_child(a->rules, item_at(a, at), word);
}

/* How many items there may be. */
static ls_status read_counts(array_reader *a) {
    static const char *const counts[] = {"minItems", "maxItems"};
    LS_TRY(ls_schema_counts(a->rules, a->set, counts, &a->least, &a->most));
    for (size_t i = 0; i < a->set->n; i++) {
        const ls_json *schema = a->set->list[i].schema;
        const ls_json *first = first_items(schema), *others = other_items(schema);
        size_t n = ls_json_count(first);
        if (first && !ls_json_is_array(first))
            return ls_schema_fail(a->rules, "prefixItems: a list is expected");
        if (n > a->first) a->first = n;
        bool none = ls_json_is_bool(others) ? !ls_json_is_true(others) : first && !others;
        if (none && (a->most == LS_NO_LIMIT || a->most > (int64_t)n)) a->most = (int64_t)n;
    }
    if (a->most != LS_NO_LIMIT && (int64_t)a->first > a->most) a->first = (size_t)a->most;
    return LS_OK;
}

/* The first items, then any number of others. */
static const ls_expression *items_of(const array_reader *a) {
    ls_expressions *p = &a->rules->pool;
    const ls_expression *first = NULL, *comma = ls_expression_text(p, ",");
    for (size_t i = 0; i < a->first; i++) {
        const ls_expression *item = call_item(a, i);
        if (i) item = ls_expression_then(p, comma, item);
        first = ls_expression_then(p, first, item);
    }
    if (a->most == (int64_t)a->first) return first ? first : ls_expression_text(p, "");
    const ls_expression *item = call_item(a, a->first);
    int64_t done = first ? (int64_t)a->first : 1;
    const ls_expression *more = ls_expression_repeat(
        p, ls_expression_then(p, comma, item), a->least > done ? a->least - done : 0,
        a->most == LS_NO_LIMIT ? LS_NO_LIMIT : a->most - done);
    const ls_expression *all = ls_expression_then(p, first ? first : item, more);
    return !first && a->least == 0 ? ls_expression_repeat(p, all, 0, 1) : all;
}

/* ---- items that differ ---- */

static bool must_differ(const array_reader *a) {
    for (size_t i = 0; i < a->set->n; i++)
        if (ls_json_is_true(ls_json_get(a->set->list[i].schema, "uniqueItems"))) return true;
    return false;
}

/* Few values come in any order; more of them in that in which they are listed. */
static ls_status read_distinct(const array_reader *a, const ls_expression **x_p) {
    ls_expressions *p = &a->rules->pool;
    const ls_expression *values = NULL, *list = NULL;
    ls_schema_set *all = NULL;
    size_t n = 0;
    unsigned types = 0, about = 0;
    bool listed = false;
    LS_TRY(ls_schema_gather(a->rules, item_at(a, 0), &all));
    LS_TRY(ls_schema_types(a->rules, all, &types, &about));
    LS_TRY(ls_schema_listed(a->rules, all, &values, &n, &listed));
    for (size_t i = 0; i < all->n; i++) {
        const ls_json *schema = all->list[i].schema;
        if (ls_json_get(schema, "anyOf") || ls_json_get(schema, "oneOf")) listed = false;
    }
    if (!listed && types == LS_TYPE_BOOLEAN) {
        values = ls_schema_regex(a->rules, "true|false");
        n = 2;
    } else if (!listed || a->first) {
        return ls_schema_fail(a->rules,
                              "uniqueItems is supported for items of one enum, or of type boolean");
    }
    if (n <= LS_DISTINCT_VALUES) {
        *x_p =
            values ? ls_expression_distinct(p, values, a->least, a->most) : ls_expression_never(p);
        return LS_OK;
    }
    const ls_expression **order = LS_NEW_ARRAY(const ls_expression *, n);
    for (size_t i = n; i-- > 0; values = values->a) order[i] = i ? values->b : values;
    for (size_t i = 0; i < n; i++) list = ls_expression_member(p, list, order[i], 0, 1);
    free((void *)order);
    *x_p = ls_expression_list(p, list, a->least, a->most);
    return LS_OK;
}

ls_status ls_schema_array(ls_schema_rules *r, const ls_schema_set *set, const ls_expression **x_p) {
    array_reader a = {.rules = r, .set = set, .most = LS_NO_LIMIT};
    const ls_expression *x = NULL;
    LS_TRY(read_counts(&a));
    if (a.most != LS_NO_LIMIT && a.least > a.most) {
        if (set->n == 1) return ls_schema_fail(r, "minItems: there may not be so many items");
        *x_p = ls_expression_never(&r->pool);
        return LS_OK;
    }
    if (must_differ(&a) && a.most != 0 && a.most != 1)
        LS_TRY(read_distinct(&a, &x));
    else
        x = items_of(&a);
    *x_p = ls_schema_between(r, "[", x, "]");
    return LS_OK;
}
