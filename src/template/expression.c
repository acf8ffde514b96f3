/* expression.c - expressions, from the loosest binding to the tightest: a if b else c; or; and;
 * not; comparisons; + -; ~; * / // %; **; signs; members, items and calls; filters and tests. */
#include <string.h>

#include "template/parser.h"

typedef ls_status parse_fn(ls_template_parser *, ls_template_node **);

static ls_status parse_or(ls_template_parser *p, ls_template_node **x_p);

static ls_template_node *pair(ls_template_parser *p, ls_template_node_kind kind,
                              ls_template_node *a) {
    ls_template_node *x = ls_node_new(p, kind);
    x->a = a;
    return x;
}

static bool is_token(const ls_template_token *t, const char *operator_text) {
    return t->kind == LS_TTOKEN_OPERATOR && strcmp(t->text, operator_text) == 0;
}

/* ---- primary ---- */

/* Expressions with commas between them, up to `end`. */
static ls_status parse_list(ls_template_parser *p, const char *end, ls_template_node **list_p) {
    ls_template_nodes list = {0};
    while (!ls_parse_is(p, end)) {
        ls_template_node *x = NULL;
        LS_TRY(ls_parse_expression(p, &x));
        ls_node_append(&list, x);
        if (!ls_parse_skip(p, ",")) break;
    }
    *list_p = list.first;
    return ls_parse_expect(p, end);
}

static bool has_keyword(const ls_template_node *list, const char *name) {
    for (; list; list = list->next)
        if (list->kind == LS_NODE_KEYWORD && strcmp(list->text, name) == 0) return true;
    return false;
}

/* One argument: a value, name=value, *values or **values, in this order. `stage`: of the argument
 * before it. */
static ls_status parse_argument(ls_template_parser *p, const ls_template_node *before, int *stage,
                                ls_template_node **x_p) {
    ls_template_node *x = NULL;
    int at = ls_parse_is(p, "*")                                         ? 2
             : ls_parse_is(p, "**")                                      ? 3
             : p->at->kind == LS_TTOKEN_NAME && is_token(p->at + 1, "=") ? 1
                                                                         : 0;
    bool in_order = at == 0   ? *stage == 0
                    : at == 1 ? *stage < 3
                    : at == 2 ? *stage < 2
                              : *stage < 3;
    if (!in_order) return ls_parse_fail(p, "this argument can't stand behind the one before it");
    *stage = at > *stage ? at : *stage;
    if (at) {
        x = ls_node_new(p, at == 1 ? LS_NODE_KEYWORD : LS_NODE_SPREAD);
        if (at == 1 && has_keyword(before, p->at->text))
            return ls_parse_fail(p, "this argument is given twice");
        ls_node_name(p, x);
        if (at == 1) p->at++;
    }
    LS_TRY(ls_parse_expression(p, at ? &x->a : &x));
    *x_p = x;
    return LS_OK;
}

/* The arguments behind the next token, "(". */
static ls_status parse_arguments(ls_template_parser *p, ls_template_node **list_p) {
    ls_template_nodes list = {0};
    int stage = 0;
    LS_TRY(ls_parse_expect(p, "("));
    while (!ls_parse_is(p, ")")) {
        ls_template_node *x = NULL;
        LS_TRY(parse_argument(p, list.first, &stage, &x));
        ls_node_append(&list, x);
        if (!ls_parse_skip(p, ",")) break;
    }
    *list_p = list.first;
    return ls_parse_expect(p, ")");
}

static ls_status parse_dict(ls_template_parser *p, ls_template_node **x_p) {
    ls_template_node *dict = ls_node_new(p, LS_NODE_DICT);
    ls_template_nodes list = {0};
    p->at++;
    while (!ls_parse_is(p, "}")) {
        ls_template_node *key = NULL, *value = NULL;
        LS_TRY(ls_parse_expression(p, &key));
        LS_TRY(ls_parse_expect(p, ":"));
        LS_TRY(ls_parse_expression(p, &value));
        ls_node_append(&list, key);
        ls_node_append(&list, value);
        if (!ls_parse_skip(p, ",")) break;
    }
    dict->list = list.first;
    *x_p = dict;
    return ls_parse_expect(p, "}");
}

static ls_status parse_name(ls_template_parser *p, ls_template_node **x_p) {
    static const struct {
        const char *name;
        ls_template_node_kind kind;
    } constants[] = {{"true", LS_NODE_TRUE},   {"True", LS_NODE_TRUE}, {"false", LS_NODE_FALSE},
                     {"False", LS_NODE_FALSE}, {"none", LS_NODE_NONE}, {"None", LS_NODE_NONE}};
    ls_template_node *x = ls_node_new(p, LS_NODE_NAME);
    for (size_t i = 0; i < sizeof constants / sizeof *constants; i++)
        if (ls_parse_is_name(p, constants[i].name)) x->kind = constants[i].kind;
    if (ls_parse_is_name(p, "caller")) p->uses |= LS_MACRO_CALLER;
    if (ls_parse_is_name(p, "kwargs")) p->uses |= LS_MACRO_KWARGS;
    if (ls_parse_is_name(p, "varargs")) p->uses |= LS_MACRO_VARARGS;
    ls_node_name(p, x);
    *x_p = x;
    return LS_OK;
}

/* Strings after each other are one. */
static ls_status parse_string(ls_template_parser *p, ls_template_node **x_p) {
    ls_template_node *x = ls_node_new(p, LS_NODE_STRING);
    for (ls_node_name(p, x); p->at->kind == LS_TTOKEN_STRING; p->at++) {
        char *both = ls_template_alloc(&p->t->arena, x->n + p->at->n + 1);
        if (x->n) memcpy(both, x->text, x->n);
        if (p->at->n) memcpy(both + x->n, p->at->text, p->at->n);
        x->text = both;
        x->n += p->at->n;
        if (p->t->arena.nbytes > LS_TEMPLATE_MEMORY) return ls_parse_fail(p, "too long a string");
    }
    *x_p = x;
    return LS_OK;
}

static bool ends_tuple(const ls_template_parser *p) {
    return p->at->kind == LS_TTOKEN_TAG_END || p->at->kind == LS_TTOKEN_PRINT_END ||
           ls_parse_is(p, ")");
}

ls_status ls_parse_tuple(ls_template_parser *p, bool choices, ls_template_node **x_p) {
    ls_template_node *tuple = ls_node_new(p, LS_NODE_TUPLE);
    ls_template_nodes list = {0};
    bool comma = false;
    do {
        ls_template_node *x = NULL;
        if (comma && ends_tuple(p)) break;
        LS_TRY(choices ? ls_parse_expression(p, &x) : parse_or(p, &x));
        ls_node_append(&list, x);
        comma = comma || ls_parse_is(p, ",");
    } while (ls_parse_skip(p, ","));
    tuple->list = list.first;
    *x_p = comma ? tuple : list.first;
    return LS_OK;
}

static ls_status parse_primary(ls_template_parser *p, ls_template_node **x_p) {
    ls_template_node *x = NULL;
    switch (p->at->kind) {
    case LS_TTOKEN_NAME: return parse_name(p, x_p);
    case LS_TTOKEN_STRING: return parse_string(p, x_p);
    case LS_TTOKEN_INTEGER:
    case LS_TTOKEN_REAL:
        x = ls_node_new(p, p->at->kind == LS_TTOKEN_REAL ? LS_NODE_REAL : LS_NODE_INTEGER);
        x->integer = p->at->integer;
        x->real = p->at->real;
        p->at++;
        *x_p = x;
        return LS_OK;
    default: break;
    }
    if (ls_parse_is(p, "{")) return parse_dict(p, x_p);
    bool tuple = ls_parse_is(p, "(");
    if (!tuple && !ls_parse_is(p, "[")) return ls_parse_fail(p, "an expression is missing");
    x = ls_node_new(p, tuple ? LS_NODE_TUPLE : LS_NODE_LIST);
    p->at++;
    if (!tuple) LS_TRY(parse_list(p, "]", &x->list));
    *x_p = x;
    if (!tuple || ls_parse_skip(p, ")")) return LS_OK;
    LS_TRY(ls_parse_tuple(p, true, x_p));
    return ls_parse_expect(p, ")");
}

/* ---- targets ---- */

static ls_status parse_one_target(ls_template_parser *p, bool members, ls_template_node **x_p) {
    ls_template_node *x = NULL;
    if (ls_parse_skip(p, "(")) {
        LS_TRY(ls_parse_enter(p));
        LS_TRY(ls_parse_target(p, false, x_p));
        p->depth--;
        return ls_parse_expect(p, ")");
    }
    if (p->at->kind != LS_TTOKEN_NAME) return ls_parse_fail(p, "a variable's name is missing");
    unsigned uses = p->uses;
    const ls_template_token *name = p->at;
    LS_TRY(parse_name(p, &x));
    if (x->kind != LS_NODE_NAME || p->uses != uses) {
        p->at = name;
        return ls_parse_fail(p, "this name can't be set");
    }
    *x_p = x;
    if (!members || !ls_parse_skip(p, ".")) return LS_OK;
    *x_p = pair(p, LS_NODE_MEMBER, x);
    if (p->at->kind != LS_TTOKEN_NAME) return ls_parse_fail(p, "a name is missing");
    ls_node_name(p, *x_p);
    return LS_OK;
}

ls_status ls_parse_target(ls_template_parser *p, bool members, ls_template_node **x_p) {
    ls_template_node *tuple = ls_node_new(p, LS_NODE_TUPLE);
    ls_template_nodes list = {0};
    bool comma = false;
    do {
        ls_template_node *x = NULL;
        if (comma && ends_tuple(p)) break;
        LS_TRY(parse_one_target(p, members, &x));
        ls_node_append(&list, x);
        comma = comma || ls_parse_is(p, ",");
    } while (ls_parse_skip(p, ","));
    tuple->list = list.first;
    *x_p = comma ? tuple : list.first;
    return LS_OK;
}

/* ---- behind it ---- */

/* One part of a[b:c:d], or LS_NODE_NONE. */
static ls_status parse_bound(ls_template_parser *p, ls_template_nodes *list) {
    ls_template_node *x = ls_node_new(p, LS_NODE_NONE);
    if (!ls_parse_is(p, ":") && !ls_parse_is(p, "]")) LS_TRY(ls_parse_expression(p, &x));
    ls_node_append(list, x);
    return LS_OK;
}

static ls_status parse_subscript(ls_template_parser *p, ls_template_node *a,
                                 ls_template_node **x_p) {
    ls_template_node *x = pair(p, LS_NODE_ITEM, a);
    ls_template_nodes bounds = {0};
    p->at++;
    *x_p = x;
    if (ls_parse_is(p, "]")) return ls_parse_fail(p, "an expression is missing between [ and ]");
    LS_TRY(parse_bound(p, &bounds));
    if (!ls_parse_is(p, ":")) {
        x->b = bounds.first;
        return ls_parse_expect(p, "]");
    }
    x->kind = LS_NODE_SLICE;
    while (ls_parse_skip(p, ":")) LS_TRY(parse_bound(p, &bounds));
    int n = 0;
    for (ls_template_node *b = bounds.first; b; b = b->next) n++;
    if (n > 3) return ls_parse_fail(p, "a slice has at most begin, end and step");
    for (; n < 3; n++) ls_node_append(&bounds, ls_node_new(p, LS_NODE_NONE));
    x->list = bounds.first;
    return ls_parse_expect(p, "]");
}

static ls_status parse_member(ls_template_parser *p, ls_template_node *a, ls_template_node **x_p) {
    ls_template_node *x = pair(p, LS_NODE_MEMBER, a);
    p->at++;
    if (p->at->kind == LS_TTOKEN_INTEGER) {
        x->kind = LS_NODE_ITEM;
        LS_TRY(parse_primary(p, &x->b));
    } else if (p->at->kind == LS_TTOKEN_NAME) {
        ls_node_name(p, x);
    } else {
        return ls_parse_fail(p, "a name is missing behind the dot");
    }
    *x_p = x;
    return LS_OK;
}

static ls_status parse_call(ls_template_parser *p, ls_template_node *a, ls_template_node **x_p) {
    ls_template_node *x = pair(p, LS_NODE_CALL, a);
    *x_p = x;
    return parse_arguments(p, &x->list);
}

static ls_status parse_postfix(ls_template_parser *p, ls_template_node **x_p) {
    for (;;) {
        ls_template_node *a = *x_p;
        if (ls_parse_is(p, "."))
            LS_TRY(parse_member(p, a, x_p));
        else if (ls_parse_is(p, "["))
            LS_TRY(parse_subscript(p, a, x_p));
        else if (ls_parse_is(p, "("))
            LS_TRY(parse_call(p, a, x_p));
        else
            return LS_OK;
    }
}

ls_status ls_parse_filter(ls_template_parser *p, ls_template_node **x_p) {
    if (p->at->kind != LS_TTOKEN_NAME) return ls_parse_fail(p, "a filter's name is missing");
    ls_template_node *x = pair(p, LS_NODE_FILTER, *x_p);
    ls_node_name(p, x);
    *x_p = x;
    if (ls_parse_is(p, ".")) return ls_parse_fail(p, "a filter's name has no dot");
    return ls_parse_is(p, "(") ? parse_arguments(p, &x->list) : LS_OK;
}

ls_status ls_parse_filters(ls_template_parser *p, ls_template_node **x_p) {
    while (ls_parse_skip(p, "|")) LS_TRY(ls_parse_filter(p, x_p));
    return LS_OK;
}

/* Does an argument of a test without parentheses follow? As in Jinja, "if" and "in" are taken for
 * one; these are refused. */
static ls_status parse_operand(ls_template_parser *p, ls_template_node **x_p) {
    static const char *const words[] = {"is", "if", "in", "not"};
    bool name = p->at->kind == LS_TTOKEN_NAME;
    if (name &&
        (ls_parse_is_name(p, "else") || ls_parse_is_name(p, "or") || ls_parse_is_name(p, "and")))
        return LS_OK;
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (ls_parse_is_name(p, words[i]))
            return ls_parse_fail(p, "a test can't stand before this word; put it in parentheses");
    if (!name && p->at->kind != LS_TTOKEN_STRING && p->at->kind != LS_TTOKEN_INTEGER &&
        p->at->kind != LS_TTOKEN_REAL && !ls_parse_is(p, "[") && !ls_parse_is(p, "{"))
        return LS_OK;
    LS_TRY(parse_primary(p, x_p));
    return parse_postfix(p, x_p);
}

static ls_status parse_test(ls_template_parser *p, ls_template_node **x_p) {
    p->at++;
    bool negated = ls_parse_skip_name(p, "not");
    if (p->at->kind != LS_TTOKEN_NAME) return ls_parse_fail(p, "a test's name is missing");
    ls_template_node *x = pair(p, LS_NODE_TEST, *x_p);
    ls_node_name(p, x);
    *x_p = negated ? pair(p, LS_NODE_NOT, x) : x;
    if (ls_parse_is(p, ".")) return ls_parse_fail(p, "a test's name has no dot");
    return ls_parse_is(p, "(") ? parse_arguments(p, &x->list) : parse_operand(p, &x->list);
}

/* ---- operators ---- */

static ls_status parse_signed(ls_template_parser *p, bool filters, ls_template_node **x_p) {
    bool minus = ls_parse_is(p, "-");
    if (minus || ls_parse_is(p, "+")) {
        ls_template_node *x = ls_node_new(p, minus ? LS_NODE_NEGATE : LS_NODE_POSITIVE);
        p->at++;
        LS_TRY(ls_parse_enter(p));
        LS_TRY(parse_signed(p, false, &x->a));
        p->depth--;
        *x_p = x;
    } else {
        LS_TRY(parse_primary(p, x_p));
    }
    LS_TRY(parse_postfix(p, x_p));
    while (filters) {
        if (ls_parse_skip(p, "|"))
            LS_TRY(ls_parse_filter(p, x_p));
        else if (ls_parse_is_name(p, "is"))
            LS_TRY(parse_test(p, x_p));
        else if (ls_parse_is(p, "("))
            LS_TRY(parse_call(p, *x_p, x_p));
        else
            break;
    }
    return LS_OK;
}

static ls_status parse_unary(ls_template_parser *p, ls_template_node **x_p) {
    return parse_signed(p, true, x_p);
}

/* a op b op c ..., from the left; operators: texts with blanks between them. */
static ls_status parse_left(ls_template_parser *p, const char *const *operators, parse_fn *inner,
                            ls_template_node **x_p) {
    LS_TRY(inner(p, x_p));
    for (size_t i = 0; operators[i]; i++) {
        if (!ls_parse_is(p, operators[i])) continue;
        ls_template_node *x = pair(p, LS_NODE_MATH, *x_p);
        ls_node_name(p, x);
        LS_TRY(inner(p, &x->b));
        *x_p = x;
        i = (size_t)-1; /* look for all operators again */
    }
    return LS_OK;
}

static ls_status parse_power(ls_template_parser *p, ls_template_node **x_p) {
    return parse_left(p, (const char *const[]){"**", NULL}, parse_unary, x_p);
}

static ls_status parse_product(ls_template_parser *p, ls_template_node **x_p) {
    return parse_left(p, (const char *const[]){"*", "/", "//", "%", NULL}, parse_power, x_p);
}

static ls_status parse_concat(ls_template_parser *p, ls_template_node **x_p) {
    return parse_left(p, (const char *const[]){"~", NULL}, parse_product, x_p);
}

static ls_status parse_sum(ls_template_parser *p, ls_template_node **x_p) {
    return parse_left(p, (const char *const[]){"+", "-", NULL}, parse_concat, x_p);
}

/* Steps over a comparison's operator and returns it; NULL: there is none. */
static const char *skip_comparison(ls_template_parser *p) {
    static const char *const operators[] = {"==", "!=", "<", "<=", ">", ">="};
    for (size_t i = 0; i < sizeof operators / sizeof *operators; i++)
        if (ls_parse_skip(p, operators[i])) return operators[i];
    if (ls_parse_skip_name(p, "in")) return "in";
    if (!ls_parse_is_name(p, "not") || p->at[1].kind != LS_TTOKEN_NAME ||
        strcmp(p->at[1].text, "in") != 0)
        return NULL;
    p->at += 2;
    return "not in";
}

static ls_status parse_comparison(ls_template_parser *p, ls_template_node **x_p) {
    LS_TRY(parse_sum(p, x_p));
    ls_template_node *first = NULL;
    ls_template_nodes more = {0};
    for (;;) {
        ls_template_node *x = ls_node_new(p, LS_NODE_COMPARE);
        x->text = skip_comparison(p);
        if (!x->text) break;
        LS_TRY(parse_sum(p, &x->b));
        if (first)
            ls_node_append(&more, x);
        else
            first = x;
    }
    if (!first) return LS_OK;
    first->a = *x_p;
    first->list = more.first;
    *x_p = first;
    return LS_OK;
}

static ls_status parse_not(ls_template_parser *p, ls_template_node **x_p) {
    if (!ls_parse_is_name(p, "not")) return parse_comparison(p, x_p);
    ls_template_node *x = ls_node_new(p, LS_NODE_NOT);
    p->at++;
    LS_TRY(ls_parse_enter(p));
    LS_TRY(parse_not(p, &x->a));
    p->depth--;
    *x_p = x;
    return LS_OK;
}

static ls_status parse_and(ls_template_parser *p, ls_template_node **x_p) {
    LS_TRY(parse_not(p, x_p));
    while (ls_parse_is_name(p, "and")) {
        ls_template_node *x = pair(p, LS_NODE_AND, *x_p);
        p->at++;
        LS_TRY(parse_not(p, &x->b));
        *x_p = x;
    }
    return LS_OK;
}

static ls_status parse_or(ls_template_parser *p, ls_template_node **x_p) {
    LS_TRY(ls_parse_enter(p));
    LS_TRY(parse_and(p, x_p));
    while (ls_parse_is_name(p, "or")) {
        ls_template_node *x = pair(p, LS_NODE_OR, *x_p);
        p->at++;
        LS_TRY(parse_and(p, &x->b));
        *x_p = x;
    }
    p->depth--;
    return LS_OK;
}

ls_status ls_parse_expression(ls_template_parser *p, ls_template_node **x_p) {
    LS_TRY(ls_parse_enter(p));
    LS_TRY(parse_or(p, x_p));
    while (ls_parse_is_name(p, "if")) {
        ls_template_node *x = ls_node_new(p, LS_NODE_CHOICE);
        p->at++;
        x->b = *x_p;
        LS_TRY(parse_or(p, &x->a));
        if (ls_parse_skip_name(p, "else")) LS_TRY(ls_parse_expression(p, &x->c));
        *x_p = x;
    }
    p->depth--;
    return LS_OK;
}
