/* evaluate.c - expressions of a template, evaluated. */
#include <string.h>

#include "template/value.h"

static ls_status evaluate_list(ls_rendering *r, const ls_template_node *x, ls_datum *y_p) {
    size_t n = 0;
    ls_datum *items;
    for (const ls_template_node *i = x->list; i; i = i->next) n++;
    LS_TRY(ls_datum_new_list(r, n, &items, y_p));
    if (x->kind == LS_NODE_TUPLE) y_p->kind = LS_DATUM_TUPLE;
    for (const ls_template_node *i = x->list; i; i = i->next)
        LS_TRY(ls_template_evaluate(r, i, items++));
    return LS_OK;
}

static ls_status evaluate_dict(ls_rendering *r, const ls_template_node *x, ls_datum *y_p) {
    size_t n = 0;
    ls_datum *items, key, value;
    for (const ls_template_node *i = x->list; i; i = i->next) n++;
    LS_TRY(ls_datum_new_list(r, n, &items, y_p));
    *y_p = (ls_datum){.kind = LS_DATUM_DICT, .items = items};
    for (const ls_template_node *i = x->list; i; i = i->next->next) {
        LS_TRY(ls_template_evaluate(r, i, &key));
        LS_TRY(ls_template_evaluate(r, i->next, &value));
        r->at = x;
        LS_TRY(ls_dict_put(r, y_p, &key, &value));
    }
    return LS_OK;
}

static ls_status evaluate_name(ls_rendering *r, const ls_template_node *x, ls_datum *y_p) {
    const ls_datum *found = ls_scope_find(r, r->scope, x->text);
    const ls_template_entry *function = ls_template_global(x->text);
    *y_p = ls_datum_undefined(x->text);
    if (found) {
        *y_p = *found;
    } else if (function && (r->now || strcmp(x->text, "strftime_now") != 0)) {
        if (!function->call) return ls_render_fail(r, "\"%s\" is not supported", x->text);
        *y_p = (ls_datum){.kind = LS_DATUM_FUNCTION, .function = function};
    }
    return LS_OK;
}

static ls_status evaluate_macro(ls_rendering *r, const ls_template_node *x, ls_datum *y_p) {
    void *room;
    LS_TRY(ls_render_alloc(r, sizeof(ls_template_macro), &room));
    ls_template_macro *macro = room;
    *macro = (ls_template_macro){.node = x, .scope = r->scope};
    *y_p = (ls_datum){.kind = LS_DATUM_MACRO, .macro = macro};
    return LS_OK;
}

/* ---- calls ---- */

/* Arguments as they grow; there is room for one more in both lists. */
static ls_status argument_room(ls_rendering *r, const ls_template_arguments *a, size_t more) {
    if (more > LS_TEMPLATE_ARGUMENTS ||
        (size_t)(a->n + a->nkeywords) + more > LS_TEMPLATE_ARGUMENTS)
        return ls_render_fail(r, "a call has at most %d arguments", LS_TEMPLATE_ARGUMENTS);
    return LS_OK;
}

static ls_status add_keyword(ls_rendering *r, ls_template_arguments *a, const char *name,
                             ls_datum value) {
    if (ls_argument_keyword(a, name))
        return ls_render_fail(r, "the argument \"%s\" is given twice", name);
    a->keywords[a->nkeywords++] = (ls_template_keyword){name, value};
    return LS_OK;
}

/* *values or **values. */
static ls_status spread(ls_rendering *r, const ls_template_node *x, const ls_datum *values,
                        ls_template_arguments *a) {
    ls_datum list, name;
    bool pairs = strcmp(x->text, "**") == 0;
    if (pairs && values->kind != LS_DATUM_DICT)
        return ls_render_fail(r, "behind ** stands a dict, not %s", ls_datum_kind_name(values));
    LS_TRY(ls_datum_items(r, values, &list));
    LS_TRY(argument_room(r, a, list.n));
    for (size_t i = 0; i < list.n; i++) {
        if (!pairs) {
            a->list[a->n++] = list.items[i];
            continue;
        }
        if (list.items[i].kind != LS_DATUM_TEXT)
            return ls_render_fail(r, "behind ** stands a dict whose keys are texts");
        LS_TRY(ls_datum_copy_text(r, list.items[i].text, list.items[i].n, &name));
        LS_TRY(add_keyword(r, a, name.text, values->items[2 * i + 1]));
    }
    return LS_OK;
}

static ls_status evaluate_arguments(ls_rendering *r, const ls_template_node *list,
                                    ls_template_arguments *a) {
    bool spreads = false;
    size_t n = 0, nkeywords = 0;
    void *values, *keywords;
    *a = (ls_template_arguments){0};
    for (const ls_template_node *x = list; x; x = x->next) {
        spreads = spreads || x->kind == LS_NODE_SPREAD;
        n++;
        nkeywords += x->kind == LS_NODE_KEYWORD;
    }
    if (spreads) n = nkeywords = LS_TEMPLATE_ARGUMENTS;
    LS_TRY(ls_render_alloc(r, n * sizeof(ls_datum), &values));
    LS_TRY(ls_render_alloc(r, nkeywords * sizeof(ls_template_keyword), &keywords));
    a->list = values;
    a->keywords = keywords;
    for (const ls_template_node *x = list; x; x = x->next) {
        ls_datum value;
        bool inner = x->kind == LS_NODE_KEYWORD || x->kind == LS_NODE_SPREAD;
        LS_TRY(argument_room(r, a, 1));
        LS_TRY(ls_template_evaluate(r, inner ? x->a : x, &value));
        if (x->kind == LS_NODE_KEYWORD)
            LS_TRY(add_keyword(r, a, x->text, value));
        else if (inner)
            LS_TRY(spread(r, x, &value, a));
        else
            a->list[a->n++] = value;
    }
    return LS_OK;
}

static ls_status evaluate_call(ls_rendering *r, const ls_template_node *x, ls_datum *y_p) {
    ls_datum f;
    ls_template_arguments a;
    LS_TRY(ls_template_evaluate(r, x->a, &f));
    LS_TRY(evaluate_arguments(r, x->list, &a));
    r->at = x;
    if (f.kind == LS_DATUM_FUNCTION) return ls_template_apply(r, f.function, f.self, &a, y_p);
    if (f.kind == LS_DATUM_MACRO) return ls_template_call_macro(r, f.macro, &a, y_p);
    if (f.kind == LS_DATUM_LOOP) return ls_template_call_loop(r, f.loop, &a, y_p);
    if (f.kind == LS_DATUM_UNDEFINED)
        return ls_render_fail(r,
                              "the function or method \"%.*s\" does not exist, or is not supported",
                              (int)f.n, f.text);
    return ls_render_fail(r, "%s can't be called", ls_datum_kind_name(&f));
}

/* A filter or a test. */
static ls_status evaluate_filter(ls_rendering *r, const ls_template_node *x, ls_datum *y_p) {
    bool test = x->kind == LS_NODE_TEST;
    const ls_template_entry *f = test ? ls_template_test(x->text) : ls_template_filter(x->text);
    if (!f || !f->call)
        return ls_render_fail(r, "the %s \"%s\" is not supported", test ? "test" : "filter",
                              x->text);
    ls_datum self;
    ls_template_arguments a;
    LS_TRY(ls_template_evaluate(r, x->a, &self));
    LS_TRY(evaluate_arguments(r, x->list, &a));
    r->at = x;
    return ls_template_apply(r, f, &self, &a, y_p);
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
    if (x->kind != LS_NODE_MATH) {
        r->at = x;
        return ls_datum_sign(r, x->kind == LS_NODE_NEGATE, &a, y_p);
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
    case LS_NODE_TUPLE: return evaluate_list(r, x, y_p);
    case LS_NODE_DICT: return evaluate_dict(r, x, y_p);
    case LS_NODE_MACRO:
    case LS_NODE_CALLER: return evaluate_macro(r, x, y_p);
    case LS_NODE_CAPTURE: return ls_template_capture(r, x, y_p);
    case LS_NODE_ITEM:
    case LS_NODE_SLICE: return evaluate_item(r, x, y_p);
    case LS_NODE_CALL: return evaluate_call(r, x, y_p);
    case LS_NODE_FILTER:
    case LS_NODE_TEST: return evaluate_filter(r, x, y_p);
    case LS_NODE_NEGATE:
    case LS_NODE_POSITIVE:
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
