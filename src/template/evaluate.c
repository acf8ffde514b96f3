/* evaluate.c - expressions of a template, evaluated. */
#include <string.h>

#include "template/value.h"

static ls_status evaluate_list(ls_rendering *r, const ls_template_node *x, ls_datum *y_p) {
    size_t n = 0;
    void *room;
    for (const ls_template_node *i = x->list; i; i = i->next) n++;
    LS_TRY(ls_render_alloc(r, n * sizeof(ls_datum), &room));
    ls_datum *item = room;
    for (const ls_template_node *i = x->list; i; i = i->next)
        LS_TRY(ls_template_evaluate(r, i, item++));
    bool dict = x->kind == LS_NODE_DICT;
    *y_p = (ls_datum){
        .kind = dict ? LS_DATUM_DICT : LS_DATUM_LIST, .n = dict ? n / 2 : n, .items = room};
    for (size_t i = 0; dict && i < n; i += 2)
        if (y_p->items[i].kind != LS_DATUM_TEXT && !ls_datum_is_number(&y_p->items[i]))
            return ls_render_fail(r, "%s can't be the key of a dict",
                                  ls_datum_kind_name(&y_p->items[i]));
    return LS_OK;
}

static ls_status evaluate_name(ls_rendering *r, const ls_template_node *x, ls_datum *y_p) {
    const ls_datum *found = ls_scope_find(r->scope, x->text);
    ls_template_function *function = ls_template_global(x->text);
    *y_p = ls_datum_undefined(x->text);
    if (found)
        *y_p = *found;
    else if (function && (r->now || strcmp(x->text, "strftime_now") != 0))
        *y_p = (ls_datum){.kind = LS_DATUM_FUNCTION, .function = function};
    return LS_OK;
}

/* ---- calls ---- */

static ls_status evaluate_arguments(ls_rendering *r, const ls_template_node *list,
                                    ls_template_arguments *a) {
    a->n = a->nkeywords = 0;
    for (const ls_template_node *x = list; x; x = x->next) {
        bool keyword = x->kind == LS_NODE_KEYWORD;
        if (a->n == LS_TEMPLATE_ARGUMENTS || a->nkeywords == LS_TEMPLATE_ARGUMENTS)
            return ls_render_fail(r, "a call has at most %d arguments", LS_TEMPLATE_ARGUMENTS);
        if (keyword) a->keywords[a->nkeywords] = x->text;
        LS_TRY(ls_template_evaluate(r, keyword ? x->a : x,
                                    keyword ? &a->values[a->nkeywords++] : &a->list[a->n++]));
    }
    return LS_OK;
}

static ls_status evaluate_call(ls_rendering *r, const ls_template_node *x, ls_datum *y_p) {
    ls_datum f;
    void *room;
    LS_TRY(ls_template_evaluate(r, x->a, &f));
    LS_TRY(ls_render_alloc(r, sizeof(ls_template_arguments), &room));
    ls_template_arguments *a = room;
    LS_TRY(evaluate_arguments(r, x->list, a));
    r->at = x;
    if (f.kind == LS_DATUM_FUNCTION) return f.function(r, f.self, a, y_p);
    if (f.kind == LS_DATUM_MACRO) return ls_template_call_macro(r, f.macro, a, y_p);
    if (f.kind == LS_DATUM_UNDEFINED)
        return ls_render_fail(r,
                              "the function or method \"%.*s\" does not exist, or is not supported",
                              (int)f.n, f.text);
    return ls_render_fail(r, "%s can't be called", ls_datum_kind_name(&f));
}

/* A filter or a test. */
static ls_status evaluate_filter(ls_rendering *r, const ls_template_node *x, ls_datum *y_p) {
    bool test = x->kind == LS_NODE_TEST;
    ls_template_function *f = test ? ls_template_test(x->text) : ls_template_filter(x->text);
    if (!f)
        return ls_render_fail(r, "the %s \"%s\" is not supported", test ? "test" : "filter",
                              x->text);
    ls_datum self;
    void *room;
    LS_TRY(ls_template_evaluate(r, x->a, &self));
    LS_TRY(ls_render_alloc(r, sizeof(ls_template_arguments), &room));
    LS_TRY(evaluate_arguments(r, x->list, room));
    r->at = x;
    return f(r, &self, room, y_p);
}

/* ---- operators ---- */

static ls_status evaluate_item(ls_rendering *r, const ls_template_node *x, ls_datum *y_p) {
    ls_datum a, bounds[3];
    LS_TRY(ls_template_evaluate(r, x->a, &a));
    if (x->kind == LS_NODE_ITEM) {
        LS_TRY(ls_template_evaluate(r, x->b, &bounds[0]));
        r->at = x;
        return ls_datum_item(r, &a, &bounds[0], y_p);
    }
    const ls_template_node *b = x->list;
    for (int i = 0; i < 3; i++, b = b->next) LS_TRY(ls_template_evaluate(r, b, &bounds[i]));
    r->at = x;
    return ls_datum_slice(r, &a, bounds, y_p);
}

static ls_status compare(ls_rendering *r, const char *op, const ls_datum *a, const ls_datum *b,
                         bool *is_p) {
    int order;
    bool in = strcmp(op, "in") == 0;
    if (in || strcmp(op, "not in") == 0) {
        LS_TRY(ls_datum_contains(r, b, a, is_p));
        *is_p = *is_p == in;
        return LS_OK;
    }
    if (op[1] == '=' && (op[0] == '=' || op[0] == '!')) {
        LS_TRY(ls_datum_equal(r, a, b, is_p));
        *is_p = *is_p == (op[0] == '=');
        return LS_OK;
    }
    LS_TRY(ls_datum_compare(r, a, b, &order));
    *is_p =
        (order < 0 && op[0] == '<') || (order > 0 && op[0] == '>') || (order == 0 && op[1] == '=');
    return LS_OK;
}

static ls_status evaluate_comparison(ls_rendering *r, const ls_template_node *x, ls_datum *y_p) {
    ls_datum a, b;
    bool is = true;
    LS_TRY(ls_template_evaluate(r, x->a, &a));
    for (const ls_template_node *c = x; c && is; c = c == x ? x->list : c->next) {
        LS_TRY(ls_template_evaluate(r, c->b, &b));
        r->at = c;
        LS_TRY(compare(r, c->text, &a, &b, &is));
        a = b;
    }
    *y_p = ls_datum_bool(is);
    return LS_OK;
}

static ls_status evaluate_math(ls_rendering *r, const ls_template_node *x, ls_datum *y_p) {
    ls_datum a, b;
    LS_TRY(ls_template_evaluate(r, x->a, &a));
    if (x->kind == LS_NODE_NEGATE) {
        b = a;
        a = ls_datum_integer(0);
        r->at = x;
        return ls_datum_math(r, "-", &a, &b, y_p);
    }
    LS_TRY(ls_template_evaluate(r, x->b, &b));
    r->at = x;
    return ls_datum_math(r, x->text, &a, &b, y_p);
}

/* and, or: the value of the side that decides. */
static ls_status evaluate_logic(ls_rendering *r, const ls_template_node *x, ls_datum *y_p) {
    LS_TRY(ls_template_evaluate(r, x->a, y_p));
    if (ls_datum_is_true(y_p) == (x->kind == LS_NODE_OR)) return LS_OK;
    return ls_template_evaluate(r, x->b, y_p);
}

static ls_status evaluate_choice(ls_rendering *r, const ls_template_node *x, ls_datum *y_p) {
    ls_datum is;
    LS_TRY(ls_template_evaluate(r, x->a, &is));
    if (ls_datum_is_true(&is)) return ls_template_evaluate(r, x->b, y_p);
    *y_p = ls_datum_undefined("if without else");
    return x->c ? ls_template_evaluate(r, x->c, y_p) : LS_OK;
}

static ls_status evaluate(ls_rendering *r, const ls_template_node *x, ls_datum *y_p) {
    *y_p = ls_datum_none();
    switch (x->kind) {
    case LS_NODE_NONE: return LS_OK;
    case LS_NODE_TRUE:
    case LS_NODE_FALSE: *y_p = ls_datum_bool(x->kind == LS_NODE_TRUE); return LS_OK;
    case LS_NODE_INTEGER: *y_p = ls_datum_integer(x->integer); return LS_OK;
    case LS_NODE_REAL: *y_p = (ls_datum){.kind = LS_DATUM_REAL, .real = x->real}; return LS_OK;
    case LS_NODE_STRING: *y_p = ls_datum_text(x->text, x->n); return LS_OK;
    case LS_NODE_NAME: return evaluate_name(r, x, y_p);
    case LS_NODE_LIST:
    case LS_NODE_DICT: return evaluate_list(r, x, y_p);
    case LS_NODE_ITEM:
    case LS_NODE_SLICE: return evaluate_item(r, x, y_p);
    case LS_NODE_CALL: return evaluate_call(r, x, y_p);
    case LS_NODE_FILTER:
    case LS_NODE_TEST: return evaluate_filter(r, x, y_p);
    case LS_NODE_NEGATE:
    case LS_NODE_MATH: return evaluate_math(r, x, y_p);
    case LS_NODE_AND:
    case LS_NODE_OR: return evaluate_logic(r, x, y_p);
    case LS_NODE_COMPARE: return evaluate_comparison(r, x, y_p);
    case LS_NODE_CHOICE: return evaluate_choice(r, x, y_p);
    default: break;
    }
    ls_datum a;
    LS_TRY(ls_template_evaluate(r, x->a, &a));
    r->at = x;
    if (x->kind == LS_NODE_MEMBER) return ls_datum_member(r, &a, x->text, y_p);
    *y_p = ls_datum_bool(!ls_datum_is_true(&a)); /* LS_NODE_NOT */
    return LS_OK;
}

ls_status ls_template_evaluate(ls_rendering *r, const ls_template_node *x, ls_datum *y_p) {
    r->at = x;
    LS_TRY(ls_render_enter(r));
    LS_TRY(ls_render_count(r, 1));
    LS_TRY(evaluate(r, x, y_p));
    r->depth--;
    return LS_OK;
}
