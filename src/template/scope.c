/* scope.c - which variables the scopes of a template set, and whether its filters and tests exist.
 *
 * A scope is the whole template, or the body of a loop, its else part, a macro, a captured text or
 * a "with". While the template runs, a name is that of the nearest scope which has set it. Jinja
 * decides it before, from the text: a scope that sets a name before it reads it (in the order of
 * the text, outside of "if") has it from the scope's beginning, without a value, unless a scope
 * around it mentions the name. So a variable of the conversation is hidden from a loop that stands
 * before the tag that sets it. These names become the lists `unset` of the tree.
 *
 * Two passes over a scope: the first notes what it mentions itself, the second enters the scopes
 * inside it. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "template/parser.h"
#include "template/value.h"

enum { MOST_DEPTH = 1000 }; /* of the tree, which this file walks by recursion */

typedef struct mention {
    const char *name;
    int scope; /* the number of the innermost open scope that mentions it, 0: none does */
} mention;

/* What a scope has changed in the table, to be taken back at its end. */
typedef struct change {
    mention *of;
    int before;
} change;

typedef struct finder {
    ls_template *t;
    mention *table; /* [size], by hash */
    size_t size, nnames;
    change *changes; /* [nchanges] */
    size_t nchanges;
    int scope, nscopes;    /* the open one, and the last number */
    int depth, ifs, loops; /* ifs: within the open scope */
    bool soft;             /* in an if or a choice: what is unknown is refused when it is reached */
    ls_template_nodes unset;
    ls_error *e;
} finder;

static ls_status fail_at(finder *f, const ls_template_node *x, const char *what) {
    return ls_fail(f->e, LS_EINVAL, "%s:%d:%d: %s", f->t->name, x->line, x->column, what);
}

/* One level deeper, which `f->depth--` leaves. */
static ls_status go_down(finder *f, const ls_template_node *list) {
    if (++f->depth > MOST_DEPTH && list)
        return fail_at(f, list, "tags or expressions are nested too deeply");
    return LS_OK;
}

static size_t place_of(const mention *table, size_t size, const char *name) {
    size_t i = (size_t)ls_hash_bytes(name, strlen(name)).lo % size;
    while (table[i].name && strcmp(table[i].name, name) != 0) i = (i + 1) % size;
    return i;
}

/* Makes the table larger before it is half full. */
static void make_room(finder *f) {
    if (2 * f->nnames < f->size) return;
    size_t size = f->size ? 2 * f->size : 256;
    mention *table = LS_NEW_ARRAY(mention, size);
    for (size_t i = 0; i < f->size; i++)
        if (f->table[i].name) table[place_of(table, size, f->table[i].name)] = f->table[i];
    /* The changes point into the table. */
    for (size_t i = 0; i < f->nchanges; i++)
        f->changes[i].of = &table[place_of(table, size, f->changes[i].of->name)];
    free(f->table);
    f->table = table;
    f->size = size;
}

/* The open scope mentions a name; `sets`: outside of any "if" it gets a value there. */
static void mention_name(finder *f, const char *name, bool sets) {
    make_room(f);
    mention *m = &f->table[place_of(f->table, f->size, name)];
    if (!m->name) {
        m->name = name;
        f->nnames++;
    }
    if (m->scope == f->scope) return;
    if (sets && !m->scope && !f->ifs) {
        ls_template_node *x = ls_template_alloc(&f->t->arena, sizeof *x);
        x->kind = LS_NODE_NAME;
        x->text = name;
        ls_node_append(&f->unset, x);
    }
    f->changes = ls_grow(f->changes, f->nchanges, sizeof *f->changes);
    f->changes[f->nchanges++] = (change){m, m->scope};
    m->scope = f->scope;
}

/* ---- what a scope mentions itself ---- */

static ls_status mention_all(finder *f, const ls_template_node *list);

static ls_status mention_target(finder *f, const ls_template_node *x, bool sets) {
    if (x->kind == LS_NODE_MEMBER) {
        mention_name(f, x->a->text, false);
        return LS_OK;
    }
    if (x->kind == LS_NODE_TUPLE) {
        for (const ls_template_node *i = x->list; i; i = i->next)
            LS_TRY(mention_target(f, i, sets));
        return LS_OK;
    }
    if (f->loops && strcmp(x->text, "loop") == 0)
        return fail_at(f, x, "\"loop\" can't be set in a loop");
    mention_name(f, x->text, sets);
    return LS_OK;
}

/* A filter of a block stands in that block's scope. */
static bool is_of_block(const ls_template_node *x) {
    while (x->kind == LS_NODE_FILTER) x = x->a;
    return x->kind == LS_NODE_CAPTURE;
}

static ls_status check_name(finder *f, const ls_template_node *x) {
    char what[120];
    bool test = x->kind == LS_NODE_TEST;
    if ((f->soft && !is_of_block(x)) ||
        (test ? ls_template_test(x->text) : ls_template_filter(x->text)))
        return LS_OK;
    snprintf(what, sizeof what, "the %s \"%.60s\" is not supported", test ? "test" : "filter",
             x->text);
    return fail_at(f, x, what);
}

/* Mentions the names that a tag uses in the scope around its body, or those of an expression
 * without its captured texts. */
static ls_status mention_one(finder *f, const ls_template_node *x) {
    bool soft = f->soft;
    switch (x->kind) {
    case LS_NODE_NAME: mention_name(f, x->text, false); return LS_OK;
    case LS_NODE_CAPTURE:
    case LS_NODE_CALLER: return LS_OK;
    case LS_NODE_MACRO: mention_name(f, x->text, true); return LS_OK;
    case LS_NODE_FOR: return mention_all(f, x->a);
    case LS_NODE_WITH:
        for (const ls_template_node *i = x->list; i; i = i->next->next)
            LS_TRY(mention_one(f, i->next));
        return LS_OK;
    case LS_NODE_SET: LS_TRY(mention_all(f, x->a)); return mention_target(f, x->c, true);
    case LS_NODE_IF:
    case LS_NODE_CHOICE: f->soft = true; break;
    case LS_NODE_FILTER:
    case LS_NODE_TEST: LS_TRY(check_name(f, x)); break;
    default: break;
    }
    LS_TRY(mention_all(f, x->a));
    f->ifs += x->kind == LS_NODE_IF;
    LS_TRY(mention_all(f, x->b));
    LS_TRY(mention_all(f, x->c));
    LS_TRY(mention_all(f, x->list));
    LS_TRY(mention_all(f, x->body));
    LS_TRY(mention_all(f, x->other));
    f->ifs -= x->kind == LS_NODE_IF;
    f->soft = soft;
    return LS_OK;
}

/* The expressions or tags of a list. */
static ls_status mention_all(finder *f, const ls_template_node *list) {
    LS_TRY(go_down(f, list));
    for (const ls_template_node *x = list; x; x = x->next) LS_TRY(mention_one(f, x));
    f->depth--;
    return LS_OK;
}

/* ---- scopes ---- */

static ls_status enter_all(finder *f, ls_template_node *list);

/* Takes back what was mentioned since there were n changes. */
static void take_back(finder *f, size_t n) {
    while (f->nchanges > n) {
        change *c = &f->changes[--f->nchanges];
        c->of->scope = c->before;
    }
}

/* A scope, its names, and the scopes inside it. `x`: the tag, NULL for the whole template. */
static ls_status enter_scope(finder *f, ls_template_node *x, ls_template_node *body,
                             ls_template_node **unset_p) {
    finder outer = *f;
    f->scope = ++f->nscopes;
    f->ifs = 0;
    f->soft = false;
    f->unset = (ls_template_nodes){0};
    if (x && x->kind == LS_NODE_FOR && body == x->body) {
        f->loops++;
        LS_TRY(mention_target(f, x->c, false));
        mention_name(f, "loop", false);
    }
    bool macro = x && (x->kind == LS_NODE_MACRO || x->kind == LS_NODE_CALLER);
    for (const ls_template_node *i = macro ? x->list : NULL; i; i = i->next)
        mention_name(f, i->text, false);
    for (const ls_template_node *i = macro ? x->list : NULL; i; i = i->next)
        LS_TRY(mention_all(f, i->a));
    for (const ls_template_node *i = x && x->kind == LS_NODE_WITH ? x->list : NULL; i;
         i = i->next->next)
        LS_TRY(mention_target(f, i, false));
    LS_TRY(mention_all(f, body));
    *unset_p = f->unset.first;
    LS_TRY(enter_all(f, body));
    take_back(f, outer.nchanges);
    f->scope = outer.scope;
    f->ifs = outer.ifs;
    f->soft = outer.soft;
    f->loops = outer.loops;
    f->unset = outer.unset;
    return LS_OK;
}

/* The condition of a loop has a scope of its own, with the loop's variables. */
static ls_status enter_for(finder *f, ls_template_node *x) {
    ls_template_node condition = {.kind = LS_NODE_PRINT, .a = x->b}, *none;
    if (x->b) {
        int scope = f->scope;
        size_t nchanges = f->nchanges;
        f->scope = ++f->nscopes;
        LS_TRY(mention_target(f, x->c, false));
        LS_TRY(enter_scope(f, NULL, &condition, &none));
        take_back(f, nchanges);
        f->scope = scope;
    }
    LS_TRY(enter_scope(f, x, x->body, &x->unset));
    return x->other ? enter_scope(f, x, x->other, &x->unset_other) : LS_OK;
}

static ls_status enter_one(finder *f, ls_template_node *x) {
    switch (x->kind) {
    case LS_NODE_FOR: LS_TRY(enter_all(f, x->a)); return enter_for(f, x);
    case LS_NODE_MACRO:
    case LS_NODE_CALLER:
    case LS_NODE_CAPTURE: return enter_scope(f, x, x->body, &x->unset);
    case LS_NODE_WITH: LS_TRY(enter_all(f, x->list)); return enter_scope(f, x, x->body, &x->unset);
    default: break;
    }
    LS_TRY(enter_all(f, x->a));
    LS_TRY(enter_all(f, x->b));
    LS_TRY(enter_all(f, x->c));
    LS_TRY(enter_all(f, x->list));
    LS_TRY(enter_all(f, x->body));
    return enter_all(f, x->other);
}

static ls_status enter_all(finder *f, ls_template_node *list) {
    LS_TRY(go_down(f, list));
    for (ls_template_node *x = list; x; x = x->next) LS_TRY(enter_one(f, x));
    f->depth--;
    return LS_OK;
}

ls_status ls_template_find_scopes(ls_template *t, ls_error *e) {
    finder f = {.t = t, .e = e};
    ls_status s = enter_scope(&f, NULL, t->body, &t->unset);
    free(f.table);
    free(f.changes);
    return s;
}
