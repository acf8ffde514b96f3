/* render.c - tags of a template, run; variables. */
#include <stdio.h>
#include <string.h>

#include "template/value.h"

/* ---- variables ---- */

/* What is looked at counts as work: a template may have many variables. */
ls_datum *ls_scope_find(ls_rendering *r, const ls_template_scope *s, const char *name) {
    for (int64_t looked = 0; s; s = s->outer)
        for (ls_template_variable *v = s->first; v; v = v->next) {
            if (strcmp(v->name, name) == 0) return v->value;
            if (++looked % 4 == 0) r->steps++;
        }
    return NULL;
}

ls_status ls_scope_set(ls_rendering *r, ls_template_scope *s, const char *name, ls_datum value) {
    void *room;
    ls_template_scope own = {.first = s->first};
    ls_datum *before = ls_scope_find(r, &own, name);
    if (before) {
        *before = value;
        return LS_OK;
    }
    LS_TRY(ls_render_alloc(r, sizeof(ls_template_variable) + sizeof(ls_datum), &room));
    ls_template_variable *v = room;
    *v = (ls_template_variable){
        .name = name, .value = (ls_datum *)(void *)(v + 1), .next = s->first};
    *v->value = value;
    s->first = v;
    return LS_OK;
}

static ls_status set_member(ls_rendering *r, const ls_template_node *x, ls_datum value) {
    const ls_datum *space = ls_scope_find(r, r->scope, x->a->text);
    if (!space || space->kind != LS_DATUM_SPACE)
        return ls_render_fail(r, "\"%s\" is no namespace, so its members can't be set", x->a->text);
    if (x->text[0] == '_')
        return ls_render_fail(r, "a namespace's member can't begin with an underscore");
    return ls_scope_set(r, space->space, x->text, value);
}

/* Sets a target to a value: a tuple of targets to its items. */
static ls_status assign(ls_rendering *r, const ls_template_node *target, ls_datum value) {
    if (target->kind == LS_NODE_NAME) return ls_scope_set(r, r->scope, target->text, value);
    if (target->kind == LS_NODE_MEMBER) return set_member(r, target, value);
    size_t n = 0;
    for (const ls_template_node *x = target->list; x; x = x->next) n++;
    LS_TRY(ls_datum_items(r, &value, &value));
    if (value.n != n) return ls_render_fail(r, "%zu variables can't take %zu values", n, value.n);
    LS_TRY(ls_render_enter(r));
    for (const ls_template_node *x = target->list; x; x = x->next)
        LS_TRY(assign(r, x, *value.items++));
    r->depth--;
    return LS_OK;
}

/* Opens a scope, with its names that have no value yet. */
static ls_status open_scope(ls_rendering *r, ls_template_scope *outer,
                            const ls_template_node *unset) {
    void *room; /* macros may keep it */
    LS_TRY(ls_render_alloc(r, sizeof(ls_template_scope), &room));
    r->scope = room;
    r->scope->outer = outer;
    for (const ls_template_node *x = unset; x; x = x->next)
        LS_TRY(ls_scope_set(r, r->scope, x->text, ls_datum_undefined(x->text)));
    return LS_OK;
}

/* ---- tags ---- */

static ls_status run(ls_rendering *r, const ls_template_node *body);

/* The text that a body prints, in the open scope. */
static ls_status capture(ls_rendering *r, const ls_template_node *body, ls_datum *text_p) {
    ls_buf text = {0}, *outer = r->out;
    r->out = &text;
    ls_status s = run(r, body);
    r->out = outer;
    return ls_datum_take(r, s, &text, text_p);
}

ls_status ls_template_capture(ls_rendering *r, const ls_template_node *x, ls_datum *text_p) {
    ls_template_scope *outer = r->scope;
    LS_TRY(open_scope(r, outer, x->unset));
    LS_TRY(capture(r, x->body, text_p));
    r->scope = outer;
    return LS_OK;
}

/* ---- macros ---- */

static bool is_parameter(const ls_template_node *macro, const char *name) {
    for (const ls_template_node *x = macro->list; x; x = x->next)
        if (strcmp(x->text, name) == 0) return true;
    return false;
}

/* Keyword arguments that are no parameters: "caller", and those of "kwargs". */
static ls_status set_further(ls_rendering *r, const ls_template_node *macro, int nparameters,
                             const ls_template_arguments *a) {
    ls_datum *items, kwargs, rest = {.kind = LS_DATUM_TUPLE}, caller = ls_datum_undefined("caller");
    LS_TRY(ls_datum_new_list(r, 2 * (size_t)a->nkeywords, &items, &kwargs));
    kwargs = (ls_datum){.kind = LS_DATUM_DICT, .items = items};
    for (int k = 0; k < a->nkeywords; k++) {
        const char *name = a->keywords[k].name;
        ls_datum key = ls_datum_text(name, strlen(name));
        if (is_parameter(macro, name)) continue;
        if ((macro->integer & LS_MACRO_CALLER) && strcmp(name, "caller") == 0)
            caller = a->keywords[k].value;
        else if (macro->integer & LS_MACRO_KWARGS)
            LS_TRY(ls_dict_put(r, &kwargs, &key, &a->keywords[k].value));
        else
            return ls_render_fail(r, "the macro \"%s\" has no argument \"%s\"", macro->text, name);
    }
    if (a->n > nparameters) {
        if (!(macro->integer & LS_MACRO_VARARGS))
            return ls_render_fail(r, "the macro \"%s\" takes %d arguments, not %d", macro->text,
                                  nparameters, a->n);
        rest.n = (size_t)(a->n - nparameters);
        rest.items = a->list + nparameters;
    }
    if (macro->integer & LS_MACRO_CALLER) LS_TRY(ls_scope_set(r, r->scope, "caller", caller));
    if (macro->integer & LS_MACRO_KWARGS) LS_TRY(ls_scope_set(r, r->scope, "kwargs", kwargs));
    if (macro->integer & LS_MACRO_VARARGS) LS_TRY(ls_scope_set(r, r->scope, "varargs", rest));
    return LS_OK;
}

ls_status ls_template_call_macro(ls_rendering *r, const ls_template_macro *macro,
                                 const ls_template_arguments *a, ls_datum *x_p) {
    ls_template_scope *outer = r->scope;
    int i = 0;
    LS_TRY(open_scope(r, macro->scope, macro->node->unset));
    for (const ls_template_node *name = macro->node->list; name; name = name->next, i++) {
        const ls_datum *given = ls_argument_keyword(a, name->text);
        ls_datum value = ls_datum_undefined(name->text);
        if (given && i < a->n)
            return ls_render_fail(r, "the macro \"%s\" gets its argument \"%s\" twice",
                                  macro->node->text, name->text);
        if (given || i < a->n)
            value = given ? *given : a->list[i];
        else if (name->a)
            LS_TRY(ls_template_evaluate(r, name->a, &value));
        LS_TRY(ls_scope_set(r, r->scope, name->text, value));
    }
    LS_TRY(set_further(r, macro->node, i, a));
    LS_TRY(capture(r, macro->node->body, x_p));
    r->scope = outer;
    return LS_OK;
}

/* ---- loops ---- */

/* The items that the loop's condition lets through. */
static ls_status filter(ls_rendering *r, const ls_template_loop *loop, ls_datum *list) {
    ls_datum *kept, is, all = *list;
    size_t n = 0;
    LS_TRY(ls_datum_new_list(r, list->n, &kept, list));
    for (size_t i = 0; i < all.n; i++) {
        LS_TRY(open_scope(r, loop->outer, NULL));
        LS_TRY(assign(r, loop->node->c, all.items[i]));
        LS_TRY(ls_template_evaluate(r, loop->node->b, &is));
        if (ls_datum_is_true(&is)) kept[n++] = all.items[i];
    }
    list->n = n;
    return LS_OK;
}

static ls_status run_passes(ls_rendering *r, ls_template_loop *loop) {
    for (; loop->i < loop->n && r->jump != LS_JUMP_BREAK; loop->i++) {
        r->jump = LS_JUMP_NONE;
        LS_TRY(open_scope(r, loop->outer, loop->node->unset));
        LS_TRY(ls_scope_set(r, r->scope, "loop", (ls_datum){.kind = LS_DATUM_LOOP, .loop = loop}));
        LS_TRY(assign(r, loop->node->c, loop->items[loop->i]));
        LS_TRY(run(r, loop->node->body));
    }
    r->jump = LS_JUMP_NONE;
    return LS_OK;
}

/* Runs a loop over items, in the scope `outer`. */
static ls_status run_loop(ls_rendering *r, const ls_template_loop *of, ls_datum items) {
    ls_template_scope *scope = r->scope;
    void *room; /* a namespace may keep the loop */
    LS_TRY(ls_datum_items(r, &items, &items));
    if (of->node->b) LS_TRY(filter(r, of, &items));
    LS_TRY(ls_render_alloc(r, sizeof *of, &room));
    ls_template_loop *loop = room;
    *loop = *of;
    loop->items = items.items;
    loop->n = items.n;
    if (items.n) {
        LS_TRY(run_passes(r, loop));
    } else if (loop->node->other) {
        LS_TRY(open_scope(r, loop->outer, loop->node->unset_other));
        LS_TRY(run(r, loop->node->other));
    }
    r->scope = scope;
    return LS_OK;
}

static ls_status run_for(ls_rendering *r, const ls_template_node *x) {
    ls_datum items;
    LS_TRY(ls_template_evaluate(r, x->a, &items));
    r->at = x;
    return run_loop(r, &(ls_template_loop){.node = x, .outer = r->scope, .depth = 1}, items);
}

ls_status ls_template_call_loop(ls_rendering *r, const ls_template_loop *loop,
                                const ls_template_arguments *a, ls_datum *text_p) {
    if (!loop->node->integer)
        return ls_render_fail(r, "only a loop that is recursive can be called");
    if (a->n != 1 || a->nkeywords) return ls_render_fail(r, "loop() takes one argument");
    ls_template_loop inner = {.node = loop->node, .outer = loop->outer, .depth = loop->depth + 1};
    ls_buf text = {0}, *outer = r->out;
    r->out = &text;
    ls_status s = run_loop(r, &inner, a->list[0]);
    r->out = outer;
    return ls_datum_take(r, s, &text, text_p);
}

/* ---- other tags ---- */

static ls_status run_if(ls_rendering *r, const ls_template_node *x) {
    for (;; x = x->other) {
        ls_datum is;
        LS_TRY(ls_template_evaluate(r, x->a, &is));
        if (ls_datum_is_true(&is)) return run(r, x->body);
        if (!x->other || x->other->kind != LS_NODE_IF || x->other->next) return run(r, x->other);
    }
}

static ls_status run_set(ls_rendering *r, const ls_template_node *x) {
    ls_datum value;
    LS_TRY(ls_template_evaluate(r, x->a, &value));
    r->at = x;
    return assign(r, x->c, value);
}

/* The values are those of the scope around the tag. */
static ls_status run_with(ls_rendering *r, const ls_template_node *x) {
    ls_template_scope *outer = r->scope, *inner;
    LS_TRY(open_scope(r, outer, x->unset));
    inner = r->scope;
    for (const ls_template_node *target = x->list; target; target = target->next->next) {
        ls_datum value;
        r->scope = outer;
        LS_TRY(ls_template_evaluate(r, target->next, &value));
        r->scope = inner;
        LS_TRY(assign(r, target, value));
    }
    LS_TRY(run(r, x->body));
    r->scope = outer;
    return LS_OK;
}

static ls_status print(ls_rendering *r, const ls_template_node *x) {
    size_t before = r->out->len;
    ls_datum value = ls_datum_text(x->text, x->n);
    if (x->kind == LS_NODE_PRINT) LS_TRY(ls_template_evaluate(r, x->a, &value));
    r->at = x;
    LS_TRY(ls_datum_print(r, &value, r->out));
    r->printed += r->out->len - before;
    if (r->printed > LS_TEMPLATE_OUTPUT)
        return ls_render_fail(r, "the text exceeds %d MB", LS_TEMPLATE_OUTPUT >> 20);
    return LS_OK;
}

static ls_status run_one(ls_rendering *r, const ls_template_node *x) {
    switch (x->kind) {
    case LS_NODE_FOR: return run_for(r, x);
    case LS_NODE_IF: return run_if(r, x);
    case LS_NODE_SET: return run_set(r, x);
    case LS_NODE_WITH: return run_with(r, x);
    case LS_NODE_MACRO: {
        ls_datum macro;
        LS_TRY(ls_template_evaluate(r, x, &macro));
        return ls_scope_set(r, r->scope, x->text, macro);
    }
    case LS_NODE_BREAK:
    case LS_NODE_CONTINUE:
        r->jump = x->kind == LS_NODE_BREAK ? LS_JUMP_BREAK : LS_JUMP_CONTINUE;
        return LS_OK;
    default: return print(r, x);
    }
}

static ls_status run(ls_rendering *r, const ls_template_node *body) {
    LS_TRY(ls_render_enter(r));
    for (const ls_template_node *x = body; x && r->jump == LS_JUMP_NONE; x = x->next) {
        r->at = x;
        LS_TRY(ls_render_count(r, 1));
        LS_TRY(run_one(r, x));
    }
    r->depth--;
    return LS_OK;
}

/* The members of an object are the variables. */
static ls_status set_globals(ls_rendering *r, const ls_json *globals) {
    const char *key;
    const ls_json *value;
    for (void *it = ls_json_next(globals, NULL, &key, &value); it;
         it = ls_json_next(globals, it, &key, &value)) {
        ls_datum v;
        LS_TRY(ls_datum_of_json(r, value, &v));
        LS_TRY(ls_scope_set(r, &r->globals, key, v));
    }
    return LS_OK;
}

ls_status ls_template_render(const ls_template *t, const ls_json *globals, const struct tm *now,
                             ls_buf *out, ls_error *e) {
    ls_rendering r = {.t = t, .now = now, .out = out, .e = e};
    ls_status s = set_globals(&r, globals);
    if (s == LS_OK) s = open_scope(&r, &r.globals, t->unset);
    if (s == LS_OK) s = run(&r, t->body);
    ls_template_arena_free(&r.arena);
    return s;
}
