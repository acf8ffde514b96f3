/* schema.c - see schema.h.
 *
 * Each set of schemas that is referred to, or stands where a value does, becomes a rule; so
 * schemas may be recursive, and each is read once.
 */
#include "grammar/schema.h"

#include <stdlib.h>
#include <string.h>

#include "grammar/schema_array.h"
#include "grammar/schema_keywords.h"
#include "grammar/schema_listed.h"
#include "grammar/schema_number.h"
#include "grammar/schema_object.h"
#include "grammar/schema_string.h"
#include "grammar/schema_values.h"

static ls_status read_set(ls_schema_rules *, const ls_schema_set *, int nested,
                          const ls_expression **x_p);

/* ---- choices ---- */

static ls_status fail_overlap(const ls_schema_rules *r, const ls_schema_comparison *c, size_t k,
                              size_t i) {
    if (c->work > LS_SCHEMA_WORK)
        return ls_schema_fail(r,
                              "oneOf: it is too large for its schemas to be told apart; use anyOf");
    return ls_schema_fail(
        r,
        "oneOf: schemas %zu and %zu are not told apart by their type, or by a const or "
        "enum of a required property; use anyOf",
        k, i);
}

/* The first choice of the set; *done_p 0: there is none. */
static size_t find_choice(const ls_schema_set *set, unsigned *done_p) {
    for (size_t i = 0; i < set->n; i++) {
        const ls_schema_part *p = &set->list[i];
        *done_p = LS_DONE_ANY_OF;
        if (ls_json_get(p->schema, "anyOf") && !(p->done & LS_DONE_ANY_OF)) return i;
        *done_p = LS_DONE_ONE_OF;
        if (ls_json_get(p->schema, "oneOf") && !(p->done & LS_DONE_ONE_OF)) return i;
    }
    *done_p = 0;
    return 0;
}

/* How values of a set are compared, one of whose schemas has a oneOf. */
static ls_status read_comparison(const ls_schema_rules *r, const ls_schema_set *set, size_t i,
                                 ls_schema_comparison *c) {
    unsigned types = 0, about = 0, done = 0;
    ls_schema_part rest = set->list[i];
    bool given = false, lone = true;
    LS_TRY(ls_schema_types(r, set, &types, &about));
    for (size_t k = 0; k < set->n; k++) {
        ls_schema_part p = set->list[k];
        given = given || ls_json_get(p.schema, "type");
        if (k == i) p.done |= LS_DONE_ONE_OF;
        ls_schema_set one = {.list = &p, .n = 1};
        find_choice(&one, &done);
        lone = lone && !done;
    }
    *c = (ls_schema_comparison){.root = rest.root, .types = given ? types : 0};
    c->objects = !given && lone && (about == 0 || about == LS_TYPE_OBJECT);
    return LS_OK;
}

static void exclude(ls_json *lists, size_t i, const char *name) {
    ls_json_set_bool((ls_json *)(uintptr_t)ls_json_at(lists, i), name, false);
}

static ls_status read_pair(const ls_schema_rules *r, ls_schema_comparison *c, const ls_json *list,
                           ls_json *lists, size_t k, size_t i) {
    const ls_json *a = ls_json_at(list, k), *b = ls_json_at(list, i);
    if (!ls_schemas_overlap(c, a, b)) return LS_OK;
    const char *of_b = ls_schemas_part(c, a, b), *of_a = ls_schemas_part(c, b, a);
    if (!of_b || !of_a) return fail_overlap(r, c, k, i);
    exclude(lists, k, of_b);
    exclude(lists, i, of_a);
    return LS_OK;
}

/* What is valid by one of several schemas that have no value in common is valid by one alone. So is
 * what lacks properties that others require. lists: for each schema an object of their names. */
static ls_status compare(ls_schema_rules *r, ls_schema_comparison *c, const ls_json *list,
                         ls_json *lists) {
    const size_t n = ls_json_count(list);
    bool *apart = LS_NEW_ARRAY(bool, n);
    ls_status s = LS_OK;
    ls_schemas_tell_apart(c, list, apart);
    for (size_t i = 0; i < n; i++) {
        ls_json_push(lists, ls_json_new_object());
        for (size_t k = 0; k < i && s == LS_OK; k++)
            if (!apart[i] || !apart[k]) s = read_pair(r, c, list, lists, k, i);
    }
    free(apart);
    return s;
}

static bool is_same(const ls_schema_choice *a, const ls_schema_choice *b) {
    bool same = a->root == b->root && a->types == b->types && a->objects == b->objects;
    same = same && a->n == b->n;
    for (size_t i = 0; same && i < a->n; i++)
        same = a->schemas[i] == b->schemas[i] || ls_json_equal(a->schemas[i], b->schemas[i]);
    return same;
}

/* Recursive schemas have one choice at many places: it is compared once. */
static ls_status read_exclusions(ls_schema_rules *r, const ls_schema_set *set, size_t at,
                                 const ls_json **lists_p) {
    const ls_json *list = ls_json_get(set->list[at].schema, "oneOf");
    ls_schema_comparison c;
    LS_TRY(read_comparison(r, set, at, &c));
    ls_schema_choice one = {c.root, c.types, c.objects, .n = ls_json_count(list)};
    one.schemas = LS_NEW_ARRAY(const ls_json *, one.n);
    for (size_t i = 0; i < one.n; i++) one.schemas[i] = ls_schema_meant(&c, ls_json_at(list, i));
    for (size_t i = 0; i < r->nchoices; i++) {
        if (!is_same(&r->choices[i], &one)) continue;
        free((void *)one.schemas);
        *lists_p = r->choices[i].lists;
        return LS_OK;
    }
    one.lists = ls_json_new_array();
    r->choices = ls_grow(r->choices, r->nchoices, sizeof *r->choices);
    r->choices[r->nchoices++] = one;
    *lists_p = one.lists;
    c.work = r->work > LS_SCHEMA_ALL_WORK ? LS_SCHEMA_WORK : 0;
    const int64_t before = c.work;
    ls_status s = compare(r, &c, list, one.lists);
    r->work += c.work - before;
    return s;
}

/* The i-th of the lists of names as a schema that excludes them; NULL: there are none. */
static const ls_json *exclusion_of(ls_schema_rules *r, const ls_json *lists, size_t i) {
    const ls_json *names = ls_json_at(lists, i);
    if (!ls_json_count(names)) return NULL;
    ls_json *schema = ls_json_new_object();
    ls_json_set(schema, "properties", ls_json_share(names));
    return ls_schema_keep(r, schema);
}

/* The set where its i-th schema has been chosen from: with others added. */
static const ls_schema_set *with_choice(ls_schema_rules *r, const ls_schema_set *set, size_t i,
                                        unsigned done, const ls_json *const added[2]) {
    ls_schema_set *all = ls_schema_set_new(&r->sets);
    size_t said = 0;
    for (size_t k = 0; k < set->n; k++) {
        ls_schema_part p = set->list[k];
        if (k == i) p.done |= done;
        said += ls_schema_says(&p);
        ls_schema_set_add(all, p);
    }
    if (!said) all->n = 0;
    for (int k = 0; k < 2; k++)
        if (added[k]) ls_schema_set_add(all, (ls_schema_part){added[k], set->list[i].root, 0});
    return all;
}

/* A choice alone is read where it stands; with others beside it, each of its schemas makes a rule.
 * lists: what each excludes; NULL: nothing. */
static ls_status read_schemas(ls_schema_rules *r, const ls_schema_set *set, size_t i,
                              const ls_json *lists, int nested, const ls_expression **x_p) {
    unsigned done = lists ? LS_DONE_ONE_OF : LS_DONE_ANY_OF;
    const ls_json *list = ls_json_get(set->list[i].schema, lists ? "oneOf" : "anyOf");
    const ls_expression *x = NULL, *one = NULL;
    for (size_t k = 0; k < ls_json_count(list); k++) {
        const ls_json *const added[] = {ls_json_at(list, k), exclusion_of(r, lists, k)};
        const ls_schema_set *all = with_choice(r, set, i, done, added);
        if (all->never) continue;
        if (all->n > 1 && !r->plain)
            one = ls_schema_call(r, all, r->path);
        else
            LS_TRY(read_set(r, all, nested + 1, &one));
        x = ls_expression_or(&r->pool, x, one);
    }
    *x_p = x ? x : ls_expression_never(&r->pool);
    return LS_OK;
}

static ls_status read_choice(ls_schema_rules *r, const ls_schema_set *set, size_t i, unsigned done,
                             int nested, const ls_expression **x_p) {
    const char *keyword = done == LS_DONE_ANY_OF ? "anyOf" : "oneOf";
    const ls_json *list = ls_json_get(set->list[i].schema, keyword);
    if (!ls_json_is_array(list) || ls_json_count(list) == 0)
        return ls_schema_fail(r, "%s: a list of schemas is expected", keyword);
    if (done == LS_DONE_ANY_OF) return read_schemas(r, set, i, NULL, nested, x_p);
    const ls_json *lists = NULL;
    LS_TRY(read_exclusions(r, set, i, &lists));
    return read_schemas(r, set, i, lists, nested, x_p);
}

/* ---- a set ---- */

static ls_status check_size(const ls_schema_rules *r) {
    if (r->n > LS_SCHEMA_RULES || r->pool.n > LS_SCHEMA_PARTS || r->sets.n > LS_SCHEMA_SETS)
        return ls_schema_fail(r, "it is too large");
    return LS_OK;
}

/* What is in an object or a list is JSON, also where their text is a member's. */
static ls_status read_json(ls_schema_rules *r, const ls_schema_set *set, unsigned type,
                           const ls_expression **x_p) {
    bool plain = r->plain;
    r->plain = false;
    ls_status s =
        type == LS_TYPE_OBJECT ? ls_schema_object(r, set, x_p) : ls_schema_array(r, set, x_p);
    r->plain = plain;
    return s;
}

static ls_status read_type(ls_schema_rules *r, const ls_schema_set *set, unsigned type,
                           const ls_expression **x_p) {
    switch (type) {
    case LS_TYPE_NULL: *x_p = ls_expression_text(&r->pool, "null"); return LS_OK;
    case LS_TYPE_BOOLEAN: *x_p = ls_schema_regex(r, "true|false"); return LS_OK;
    case LS_TYPE_OBJECT:
    case LS_TYPE_ARRAY: return read_json(r, set, type, x_p);
    case LS_TYPE_STRING: return ls_schema_string(r, set, x_p);
    default: return ls_schema_number(r, set, type == LS_TYPE_INTEGER, x_p);
    }
}

static ls_status read_by_type(ls_schema_rules *r, const ls_schema_set *set,
                              const ls_expression **x_p) {
    const ls_expression *x = NULL, *one = NULL;
    unsigned types = 0, about = 0;
    LS_TRY(ls_schema_types(r, set, &types, &about));
    if (types == LS_TYPE_ALL && !about && r->plain) return ls_schema_string(r, set, x_p);
    if (types == LS_TYPE_ALL && !about) {
        *x_p = ls_schema_call_kind(r, LS_SCHEMA_VALUE);
        return LS_OK;
    }
    if (types & LS_TYPE_NUMBER) types &= ~(unsigned)LS_TYPE_INTEGER;
    for (unsigned type = 1; type <= LS_TYPE_NUMBER; type *= 2) {
        if (!(types & type)) continue;
        LS_TRY(read_type(r, set, type, &one));
        x = ls_expression_or(&r->pool, x, one);
    }
    *x_p = x ? x : ls_expression_never(&r->pool);
    return LS_OK;
}

static ls_status read_gathered(ls_schema_rules *r, const ls_schema_set *set, int nested,
                               const ls_expression **x_p) {
    unsigned done = 0;
    size_t n = 0, choice = find_choice(set, &done);
    bool listed = false;
    if (done) return read_choice(r, set, choice, done, nested, x_p);
    LS_TRY(ls_schema_listed(r, set, x_p, &n, &listed));
    if (!listed) return read_by_type(r, set, x_p);
    if (!*x_p) *x_p = ls_expression_never(&r->pool);
    return LS_OK;
}

static ls_status read_set(ls_schema_rules *r, const ls_schema_set *set, int nested,
                          const ls_expression **x_p) {
    ls_schema_set *all = NULL;
    ls_schema_part to;
    if (nested > LS_SCHEMA_NESTED) return ls_schema_fail(r, "it is nested too deeply");
    LS_TRY(check_size(r));
    if (set->n == 1 && ls_schema_is_ref(&set->list[0]) && !r->plain) {
        ls_schema_set *one = ls_schema_set_new(&r->sets);
        LS_TRY(ls_schema_follow(r, &set->list[0], &to));
        ls_schema_set_add(one, to);
        *x_p = ls_schema_call(r, one, ls_json_text(ls_json_get(set->list[0].schema, "$ref")) + 1);
        return LS_OK;
    }
    LS_TRY(ls_schema_gather(r, set, &all));
    if (all->never) {
        *x_p = ls_expression_never(&r->pool);
        return LS_OK;
    }
    return read_gathered(r, all, nested, x_p);
}

static ls_status read_member(ls_schema_rules *r, const ls_schema_set *set,
                             const ls_expression **x_p) {
    r->plain = true;
    ls_status s = read_set(r, set, 0, x_p);
    r->plain = false;
    if (s == LS_OK) *x_p = ls_schema_between(r, "", *x_p, r->marks->value_end);
    return s;
}

/* Rules are added while rules are read. */
static ls_status read_rules(ls_schema_rules *r) {
    for (uint32_t i = 0; i < r->n; i++) {
        const ls_expression *x = NULL;
        ls_schema_rule rule = r->list[i];
        r->path = rule.path;
        if (rule.x) continue;
        if (rule.kind == LS_SCHEMA_OF)
            LS_TRY(read_set(r, rule.set, 0, &x));
        else if (rule.kind == LS_SCHEMA_MEMBER)
            LS_TRY(read_member(r, rule.set, &x));
        else
            x = ls_schema_any(r, &rule);
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

/* Of this schema, the whole. */
static const ls_schema_set *set_of(ls_schema_rules *r, const ls_json *schema) {
    ls_schema_set *set = ls_schema_set_new(&r->sets);
    ls_schema_set_add(set, (ls_schema_part){schema, schema, 0});
    return set;
}

ls_status ls_grammar_of_schema(const ls_json *schema, const ls_byte_set *bytes, ls_grammar **g_p,
                               ls_error *e) {
    ls_schema_rules r = {.e = e, .path = ""};
    r.list = ls_grow(NULL, 0, sizeof *r.list);
    r.list[r.n++] = (ls_schema_rule){.set = set_of(&r, schema), .path = ls_strdup("")};
    return make_grammar(&r, bytes, g_p);
}

/* The value of a part: an object. */
static ls_status read_part(ls_schema_rules *r, const ls_schema_text_part *p,
                           const ls_expression **x_p) {
    ls_schema_set *all = NULL;
    unsigned done = 0;
    LS_TRY(check_size(r));
    if (!r->marks) {
        *x_p = p->schema ? ls_schema_call(r, set_of(r, p->schema), "")
                         : ls_schema_call_kind(r, LS_SCHEMA_OBJECT);
        return LS_OK;
    }
    LS_TRY(ls_schema_gather(r, set_of(r, p->schema), &all));
    find_choice(all, &done);
    if (done)
        return ls_schema_fail(r, "anyOf, oneOf: arguments that are texts can't be chosen from");
    return ls_schema_members(r, all, x_p);
}

ls_status ls_grammar_of_texts(const ls_schema_texts *t, const ls_byte_set *bytes, ls_grammar **g_p,
                              ls_error *e) {
    ls_schema_rules r = {.e = e, .path = "", .marks = t->marks};
    const ls_expression *x = NULL, *more = NULL;
    ls_schema_call_kind(&r, LS_SCHEMA_TEXTS); /* rule 0 */
    for (size_t i = 0; i < t->n; i++) {
        const ls_schema_text_part *p = &t->list[i];
        const ls_expression *one = NULL;
        ls_status s = read_part(&r, p, &one);
        if (s != LS_OK) {
            ls_schema_rules_free(&r);
            return s;
        }
        x = ls_expression_or(&r.pool, x, ls_schema_between(&r, p->before, one, p->after));
    }
    more = ls_expression_then(&r.pool, ls_expression_text(&r.pool, t->between), x);
    more = ls_expression_repeat(&r.pool, more, 0, t->most - 1);
    x = ls_expression_then(&r.pool, x, more);
    r.list[0].x = ls_schema_between(&r, t->first, x, t->last);
    return make_grammar(&r, bytes, g_p);
}

ls_status ls_grammar_of_object(const ls_byte_set *bytes, ls_grammar **g_p, ls_error *e) {
    ls_schema_rules r = {.e = e, .path = ""};
    ls_schema_call_kind(&r, LS_SCHEMA_OBJECT);
    return make_grammar(&r, bytes, g_p);
}
