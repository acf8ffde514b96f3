/* render.c - tags of a template, run; variables and limits. */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "template/value.h"

/* ---- limits and errors ---- */

ls_status ls_render_fail(ls_rendering *r, const char *fmt, ...) {
    char what[200];
    va_list args;
    va_start(args, fmt);
    vsnprintf(what, sizeof what, fmt, args);
    va_end(args);
    return ls_fail(r->e, LS_EINVAL, "%s:%d:%d: %s", r->t->name, r->at ? r->at->line : 1,
                   r->at ? r->at->column : 1, what);
}

ls_status ls_render_count(ls_rendering *r, size_t n) {
    if (n > LS_TEMPLATE_STEPS || (r->steps += (int64_t)n) > LS_TEMPLATE_STEPS)
        return ls_render_fail(r, "the template takes more than %d steps", LS_TEMPLATE_STEPS);
    return LS_OK;
}

ls_status ls_render_enter(ls_rendering *r) {
    if (++r->depth > LS_TEMPLATE_DEPTH)
        return ls_render_fail(r, "expressions, calls or values are nested more than %d deep",
                              LS_TEMPLATE_DEPTH);
    return LS_OK;
}

ls_status ls_render_alloc(ls_rendering *r, size_t nbytes, void **p_p) {
    if (nbytes > LS_TEMPLATE_MEMORY || r->arena.nbytes + nbytes > LS_TEMPLATE_MEMORY)
        return ls_render_fail(r, "the template needs more than %d MB of memory",
                              LS_TEMPLATE_MEMORY >> 20);
    *p_p = ls_template_alloc(&r->arena, nbytes);
    return LS_OK;
}

/* ---- variables ---- */

ls_datum *ls_scope_find(const ls_template_scope *s, const char *name) {
    for (; s; s = s->outer)
        for (ls_template_variable *v = s->first; v; v = v->next)
            if (strcmp(v->name, name) == 0) return v->value;
    return NULL;
}

ls_status ls_scope_set(ls_rendering *r, ls_template_scope *s, const char *name, ls_datum value) {
    void *room;
    for (ls_template_variable *v = s->first; v; v = v->next)
        if (strcmp(v->name, name) == 0) {
            *v->value = value;
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

/* Sets the variables to a value, or to its items if there are several. */
static ls_status assign(ls_rendering *r, const ls_template_node *names, ls_datum value) {
    if (!names->next) return ls_scope_set(r, r->scope, names->text, value);
    size_t n = 0;
    for (const ls_template_node *x = names; x; x = x->next) n++;
    LS_TRY(ls_datum_items(r, &value, &value));
    if (value.n != n) return ls_render_fail(r, "%zu variables can't take %zu values", n, value.n);
    for (const ls_template_node *x = names; x; x = x->next)
        LS_TRY(ls_scope_set(r, r->scope, x->text, *value.items++));
    return LS_OK;
}

/* ---- tags ---- */

static ls_status run(ls_rendering *r, const ls_template_node *body);

/* The text that a body prints. */
static ls_status capture(ls_rendering *r, const ls_template_node *body, ls_datum *text_p) {
    ls_buf text = {0}, *outer = r->out;
    r->out = &text;
    ls_status s = run(r, body);
    r->out = outer;
    if (s == LS_OK) s = ls_datum_copy_text(r, text.data, text.len, text_p);
    ls_buf_free(&text);
    return s;
}

ls_status ls_template_call_macro(ls_rendering *r, const ls_template_node *macro,
                                 const ls_template_arguments *a, ls_datum *x_p) {
    ls_template_scope scope = {.outer = &r->globals}, *outer = r->scope;
    int i = 0, loops = r->loops;
    r->scope = &scope;
    for (const ls_template_node *name = macro->list; name; name = name->next, i++) {
        const ls_datum *given = ls_template_argument(a, i, name->text);
        ls_datum value = ls_datum_undefined(name->text);
        if (given)
            value = *given;
        else if (name->a)
            LS_TRY(ls_template_evaluate(r, name->a, &value));
        LS_TRY(ls_scope_set(r, &scope, name->text, value));
    }
    r->loops = 0;
    if (a->n > i)
        return ls_render_fail(r, "the macro \"%s\" takes %d arguments, not %d", macro->text, i,
                              a->n);
    LS_TRY(capture(r, macro->body, x_p));
    r->scope = outer;
    r->loops = loops;
    return LS_OK;
}

/* The items that the loop's condition lets through. */
static ls_status filter(ls_rendering *r, const ls_template_node *x, ls_datum *list) {
    void *room;
    LS_TRY(ls_render_alloc(r, list->n * sizeof(ls_datum), &room));
    ls_datum *kept = room, is;
    size_t n = 0;
    ls_template_scope scope = {.outer = r->scope}, *outer = r->scope;
    r->scope = &scope;
    for (size_t i = 0; i < list->n; i++) {
        LS_TRY(assign(r, x->list, list->items[i]));
        LS_TRY(ls_template_evaluate(r, x->b, &is));
        if (ls_datum_is_true(&is)) kept[n++] = list->items[i];
    }
    r->scope = outer;
    list->items = kept;
    list->n = n;
    return LS_OK;
}

static ls_status run_passes(ls_rendering *r, const ls_template_node *x, const ls_datum *list) {
    ls_template_scope *outer = r->scope;
    void *room; /* a namespace may keep the loop */
    LS_TRY(ls_render_alloc(r, sizeof(ls_template_loop), &room));
    ls_template_loop *loop = room;
    *loop = (ls_template_loop){.items = list->items, .n = list->n, .depth = ++r->loops};
    for (; loop->i < loop->n && r->jump != LS_JUMP_BREAK; loop->i++) {
        ls_template_scope scope = {.outer = outer};
        r->scope = &scope;
        r->jump = LS_JUMP_NONE;
        LS_TRY(ls_scope_set(r, &scope, "loop", (ls_datum){.kind = LS_DATUM_LOOP, .loop = loop}));
        LS_TRY(assign(r, x->list, list->items[loop->i]));
        LS_TRY(run(r, x->body));
    }
    r->jump = LS_JUMP_NONE;
    r->scope = outer;
    r->loops--;
    return LS_OK;
}

static ls_status run_for(ls_rendering *r, const ls_template_node *x) {
    ls_datum list;
    LS_TRY(ls_template_evaluate(r, x->a, &list));
    r->at = x;
    LS_TRY(ls_datum_items(r, &list, &list));
    if (x->b) LS_TRY(filter(r, x, &list));
    return list.n ? run_passes(r, x, &list) : run(r, x->other);
}

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
    LS_TRY(x->a ? ls_template_evaluate(r, x->a, &value) : capture(r, x->body, &value));
    r->at = x;
    if (x->kind == LS_NODE_SET) return assign(r, x->list, value);
    const ls_datum *space = ls_scope_find(r->scope, x->list->text);
    if (!space || space->kind != LS_DATUM_SPACE)
        return ls_render_fail(r, "\"%s\" is no namespace, so its members can't be set",
                              x->list->text);
    return ls_scope_set(r, space->space, x->text, value);
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
    case LS_NODE_SET:
    case LS_NODE_SET_MEMBER: return run_set(r, x);
    case LS_NODE_GROUP: return run(r, x->body);
    case LS_NODE_MACRO:
        return ls_scope_set(r, r->scope, x->text, (ls_datum){.kind = LS_DATUM_MACRO, .macro = x});
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
    r.scope = &r.globals;
    ls_status s = set_globals(&r, globals);
    if (s == LS_OK) s = run(&r, t->body);
    ls_template_arena_free(&r.arena);
    return s;
}
