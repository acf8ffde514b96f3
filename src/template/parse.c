/* parse.c - tags of a template: for, if, set, with, macro, call, filter, generation. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/utf8.h"
#include "template/parser.h"

void ls_node_append(ls_template_nodes *l, ls_template_node *x) {
    if (l->last)
        l->last->next = x;
    else
        l->first = x;
    l->last = x;
}

ls_template_node *ls_node_new(ls_template_parser *p, ls_template_node_kind kind) {
    ls_template_node *x = ls_template_alloc(&p->t->arena, sizeof *x);
    x->kind = kind;
    x->line = p->at->line;
    x->column = p->at->column;
    return x;
}

void ls_node_name(ls_template_parser *p, ls_template_node *x) {
    x->text = p->at->text;
    x->n = p->at->n;
    p->at++;
}

ls_status ls_parse_fail(ls_template_parser *p, const char *what) {
    const ls_template_token *t = p->at;
    return ls_fail(p->e, LS_EINVAL, "%s:%d:%d: %s%s%.40s%s", p->t->name, t->line, t->column, what,
                   t->n ? ", at \"" : "", t->text, t->n ? "\"" : "");
}

ls_status ls_parse_enter(ls_template_parser *p) {
    if (++p->depth > LS_TEMPLATE_DEPTH)
        return ls_parse_fail(p, "tags or expressions are nested too deeply");
    return LS_OK;
}

bool ls_parse_is(const ls_template_parser *p, const char *text) {
    return p->at->kind == LS_TTOKEN_OPERATOR && strcmp(p->at->text, text) == 0;
}

bool ls_parse_is_name(const ls_template_parser *p, const char *name) {
    return p->at->kind == LS_TTOKEN_NAME && strcmp(p->at->text, name) == 0;
}

bool ls_parse_skip(ls_template_parser *p, const char *text) {
    bool is = ls_parse_is(p, text);
    if (is) p->at++;
    return is;
}

bool ls_parse_skip_name(ls_template_parser *p, const char *name) {
    bool is = ls_parse_is_name(p, name);
    if (is) p->at++;
    return is;
}

ls_status ls_parse_expect(ls_template_parser *p, const char *text) {
    char what[32];
    snprintf(what, sizeof what, "\"%s\" is missing", text);
    return ls_parse_skip(p, text) ? LS_OK : ls_parse_fail(p, what);
}

/* The end of a tag, before which "tag" of a body may have a colon. */
static ls_status end_tag(ls_template_parser *p) {
    if (p->at->kind != LS_TTOKEN_TAG_END) return ls_parse_fail(p, "%} is missing");
    p->at++;
    return LS_OK;
}

static ls_status begin_body(ls_template_parser *p) {
    ls_parse_skip(p, ":");
    return end_tag(p);
}

/* ---- tags ---- */

static ls_status parse_body(ls_template_parser *p, const char *const *ends,
                            ls_template_node **body_p);

/* {% NAME %} behind a body, the last of its tag. */
static ls_status parse_end(ls_template_parser *p, const char *name) {
    char what[40];
    snprintf(what, sizeof what, "{%% %s %%} is missing", name);
    if (!ls_parse_skip_name(p, name)) return ls_parse_fail(p, what);
    return end_tag(p);
}

static ls_status parse_for(ls_template_parser *p, ls_template_node *x) {
    x->kind = LS_NODE_FOR;
    LS_TRY(ls_parse_target(p, false, &x->c));
    if (!ls_parse_skip_name(p, "in")) return ls_parse_fail(p, "\"in\" is missing");
    LS_TRY(ls_parse_tuple(p, false, &x->a));
    if (ls_parse_skip_name(p, "if")) LS_TRY(ls_parse_expression(p, &x->b));
    x->integer = ls_parse_skip_name(p, "recursive");
    LS_TRY(begin_body(p));
    p->loops++;
    LS_TRY(parse_body(p, (const char *const[]){"else", "endfor", NULL}, &x->body));
    p->loops--;
    if (ls_parse_skip_name(p, "else")) {
        LS_TRY(begin_body(p));
        LS_TRY(parse_body(p, (const char *const[]){"endfor", NULL}, &x->other));
    }
    return parse_end(p, "endfor");
}

/* Each elif is an "if" in the else part of the one before it. */
static ls_status parse_if(ls_template_parser *p, ls_template_node *x) {
    static const char *const ends[] = {"elif", "else", "endif", NULL};
    x->kind = LS_NODE_IF;
    LS_TRY(ls_parse_tuple(p, false, &x->a));
    LS_TRY(begin_body(p));
    LS_TRY(parse_body(p, ends, &x->body));
    while (ls_parse_is_name(p, "elif")) {
        x->other = ls_node_new(p, LS_NODE_IF);
        x = x->other;
        p->at++;
        LS_TRY(ls_parse_tuple(p, false, &x->a));
        LS_TRY(begin_body(p));
        LS_TRY(parse_body(p, ends, &x->body));
    }
    if (ls_parse_skip_name(p, "else")) {
        LS_TRY(begin_body(p));
        LS_TRY(parse_body(p, (const char *const[]){"endif", NULL}, &x->other));
    }
    return parse_end(p, "endif");
}

/* What the body up to {% END %} prints. No break leaves it. */
static ls_status parse_capture(ls_template_parser *p, ls_template_node *x, const char *end) {
    int loops = p->loops;
    p->loops = 0;
    LS_TRY(begin_body(p));
    LS_TRY(parse_body(p, (const char *const[]){end, NULL}, &x->body));
    p->loops = loops;
    return parse_end(p, end);
}

static ls_status parse_set(ls_template_parser *p, ls_template_node *x) {
    x->kind = LS_NODE_SET;
    LS_TRY(ls_parse_target(p, true, &x->c));
    if (ls_parse_skip(p, "=")) {
        LS_TRY(ls_parse_tuple(p, true, &x->a));
        return end_tag(p);
    }
    ls_template_node *text = x->a = ls_node_new(p, LS_NODE_CAPTURE);
    LS_TRY(ls_parse_filters(p, &x->a));
    return parse_capture(p, text, "endset");
}

static ls_status parse_filter_block(ls_template_parser *p, ls_template_node *x) {
    ls_template_node *text = x->a = ls_node_new(p, LS_NODE_CAPTURE);
    x->kind = LS_NODE_PRINT;
    LS_TRY(ls_parse_filter(p, &x->a));
    LS_TRY(ls_parse_filters(p, &x->a));
    return parse_capture(p, text, "endfilter");
}

static ls_status parse_with(ls_template_parser *p, ls_template_node *x) {
    ls_template_nodes list = {0};
    x->kind = LS_NODE_WITH;
    while (p->at->kind != LS_TTOKEN_TAG_END && !ls_parse_is(p, ":")) {
        ls_template_node *target = NULL, *value = NULL;
        if (list.first) LS_TRY(ls_parse_expect(p, ","));
        LS_TRY(ls_parse_target(p, false, &target));
        LS_TRY(ls_parse_expect(p, "="));
        LS_TRY(ls_parse_expression(p, &value));
        ls_node_append(&list, target);
        ls_node_append(&list, value);
    }
    x->list = list.first;
    LS_TRY(begin_body(p));
    LS_TRY(parse_body(p, (const char *const[]){"endwith", NULL}, &x->body));
    return parse_end(p, "endwith");
}

/* ---- macros ---- */

/* The parameters of a macro, in parentheses. */
static ls_status parse_parameters(ls_template_parser *p, ls_template_node **list_p) {
    ls_template_nodes names = {0};
    LS_TRY(ls_parse_expect(p, "("));
    while (!ls_parse_is(p, ")")) {
        ls_template_node *name = ls_node_new(p, LS_NODE_NAME);
        if (names.first) LS_TRY(ls_parse_expect(p, ","));
        if (p->at->kind != LS_TTOKEN_NAME) return ls_parse_fail(p, "a parameter's name is missing");
        for (const ls_template_node *x = names.first; x; x = x->next)
            if (ls_parse_is_name(p, x->text)) return ls_parse_fail(p, "a parameter has this name");
        if (ls_parse_is_name(p, "caller") || ls_parse_is_name(p, "kwargs") ||
            ls_parse_is_name(p, "varargs"))
            return ls_parse_fail(p, "a parameter can't have this name");
        ls_node_name(p, name);
        if (ls_parse_skip(p, "="))
            LS_TRY(ls_parse_expression(p, &name->a));
        else if (names.last && names.last->a)
            return ls_parse_fail(p, "a parameter without a default can't follow one that has it");
        ls_node_append(&names, name);
    }
    *list_p = names.first;
    return ls_parse_expect(p, ")");
}

/* The body of a macro; its uses count for a macro around it, too. */
static ls_status parse_macro_body(ls_template_parser *p, ls_template_node *x, const char *end) {
    unsigned uses = p->uses;
    p->uses = 0;
    LS_TRY(parse_capture(p, x, end));
    x->integer = p->uses;
    p->uses |= uses;
    return LS_OK;
}

static ls_status parse_macro(ls_template_parser *p, ls_template_node *x) {
    x->kind = LS_NODE_MACRO;
    if (p->at->kind != LS_TTOKEN_NAME) return ls_parse_fail(p, "the macro's name is missing");
    ls_node_name(p, x);
    LS_TRY(parse_parameters(p, &x->list));
    return parse_macro_body(p, x, "endmacro");
}

/* {% call(parameters) m(arguments) %}: a call with a further argument, the macro "caller". */
static ls_status parse_call_block(ls_template_parser *p, ls_template_node *x) {
    ls_template_node *caller = ls_node_new(p, LS_NODE_CALLER), *last = NULL;
    x->kind = LS_NODE_PRINT;
    caller->text = "caller";
    caller->n = strlen(caller->text);
    if (ls_parse_is(p, "(")) LS_TRY(parse_parameters(p, &caller->list));
    LS_TRY(ls_parse_expression(p, &x->a));
    if (x->a->kind != LS_NODE_CALL) return ls_parse_fail(p, "a call is missing");
    ls_template_node *keyword = ls_node_new(p, LS_NODE_KEYWORD);
    keyword->text = caller->text;
    keyword->a = caller;
    for (ls_template_node *a = x->a->list; a; a = a->next) {
        if (a->kind == LS_NODE_KEYWORD && strcmp(a->text, caller->text) == 0)
            return ls_parse_fail(p, "a call block has no argument \"caller\"");
        last = a;
    }
    *(last ? &last->next : &x->a->list) = keyword;
    return parse_macro_body(p, caller, "endcall");
}

/* {% generation %} is the call of a macro, too. */
static ls_status parse_generation(ls_template_parser *p, ls_template_node *x) {
    ls_template_node *body = ls_node_new(p, LS_NODE_CALLER);
    x->kind = LS_NODE_PRINT;
    x->a = ls_node_new(p, LS_NODE_CALL);
    x->a->a = body;
    body->text = "generation";
    body->n = strlen(body->text);
    return parse_macro_body(p, body, "endgeneration");
}

/* A tag behind its {%. */
static ls_status parse_tag(ls_template_parser *p, ls_template_node **x_p) {
    static const struct {
        const char *name;
        ls_status (*parse)(ls_template_parser *, ls_template_node *);
    } tags[] = {{"for", parse_for},
                {"if", parse_if},
                {"set", parse_set},
                {"with", parse_with},
                {"macro", parse_macro},
                {"call", parse_call_block},
                {"filter", parse_filter_block},
                {"generation", parse_generation}};
    ls_template_node *x = ls_node_new(p, LS_NODE_BREAK);
    *x_p = x;
    for (size_t i = 0; i < sizeof tags / sizeof *tags; i++)
        if (ls_parse_skip_name(p, tags[i].name)) return tags[i].parse(p, x);
    bool goes_on = ls_parse_is_name(p, "continue");
    if (!goes_on && !ls_parse_is_name(p, "break"))
        return ls_parse_fail(p, "this tag is not supported, or not expected here");
    if (!p->loops) return ls_parse_fail(p, "there is no loop around this tag");
    x->kind = goes_on ? LS_NODE_CONTINUE : LS_NODE_BREAK;
    p->at++;
    return end_tag(p);
}

static ls_status parse_print(ls_template_parser *p, ls_template_node **x_p) {
    ls_template_node *x = ls_node_new(p, LS_NODE_PRINT);
    *x_p = x;
    LS_TRY(ls_parse_tuple(p, true, &x->a));
    if (p->at->kind != LS_TTOKEN_PRINT_END) return ls_parse_fail(p, "}} is missing");
    p->at++;
    return LS_OK;
}

/* Is the tag behind the next {% one of these names? */
static bool ends_body(const ls_template_parser *p, const char *const *ends) {
    for (; p->at[1].kind == LS_TTOKEN_NAME && *ends; ends++)
        if (strcmp(p->at[1].text, *ends) == 0) return true;
    return false;
}

/* Text and tags up to a tag of one of the names `ends`, behind whose {% the parser then is; with no
 * names, up to the template's end. */
static ls_status parse_body(ls_template_parser *p, const char *const *ends,
                            ls_template_node **body_p) {
    ls_template_nodes body = {0};
    LS_TRY(ls_parse_enter(p));
    for (;;) {
        ls_template_node *x = NULL;
        if (p->at->kind == LS_TTOKEN_END && !*ends) break;
        if (p->at->kind == LS_TTOKEN_END) {
            char what[48];
            while (ends[1]) ends++;
            snprintf(what, sizeof what, "{%% %s %%} is missing", *ends);
            return ls_parse_fail(p, what);
        }
        if (p->at->kind == LS_TTOKEN_TAG && ends_body(p, ends)) {
            p->at++;
            break;
        }
        ls_template_token_kind kind = p->at->kind;
        if (kind == LS_TTOKEN_TEXT) {
            x = ls_node_new(p, LS_NODE_TEXT);
            x->text = p->at->text;
            x->n = p->at->n;
        }
        p->at++;
        if (kind == LS_TTOKEN_TAG) LS_TRY(parse_tag(p, &x));
        if (kind == LS_TTOKEN_PRINT) LS_TRY(parse_print(p, &x));
        ls_node_append(&body, x);
    }
    p->depth--;
    *body_p = body.first;
    return LS_OK;
}

ls_status ls_template_parse(const char *text, size_t n, const char *name, ls_template **t_p,
                            ls_error *e) {
    if (n > LS_TEMPLATE_BYTES)
        return ls_fail(e, LS_EINVAL, "%s: the template has %zu bytes; at most %d are read", name, n,
                       LS_TEMPLATE_BYTES);
    if (!ls_utf8_is_valid(text, n) || (n && memchr(text, 0, n)))
        return ls_fail(e, LS_EINVAL, "%s: the template is not UTF-8 text", name);
    ls_template_token_list tokens = {0};
    ls_template *t = LS_NEW(ls_template);
    t->name = ls_strdup(name);
    ls_status s = ls_template_tokens(text, n, name, &t->arena, &tokens, e);
    ls_template_parser p = {.t = t, .at = tokens.list, .e = e};
    if (s == LS_OK) s = parse_body(&p, (const char *const[]){NULL}, &t->body);
    free(tokens.list);
    if (s == LS_OK) s = ls_template_find_scopes(t, e);
    if (s == LS_OK)
        *t_p = t;
    else
        ls_template_free(t);
    return s;
}

void ls_template_free(ls_template *t) {
    if (!t) return;
    ls_template_arena_free(&t->arena);
    free(t->name);
    free(t);
}

/* ---- names ---- */

static bool is_name(const ls_template_node *x, const char *word) {
    bool names = x->kind == LS_NODE_STRING || x->kind == LS_NODE_NAME || x->kind == LS_NODE_MEMBER;
    return names && x->n == strlen(word) && memcmp(x->text, word, x->n) == 0;
}

static bool mentions(const ls_template_node *x, const char *word) {
    for (; x; x = x->next) {
        const ls_template_node *const parts[] = {x->a, x->b, x->c, x->list, x->body, x->other};
        if (is_name(x, word)) return true;
        for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
            if (mentions(parts[i], word)) return true;
    }
    return false;
}

bool ls_template_mentions(const ls_template *t, const char *word) {
    return mentions(t->body, word);
}
