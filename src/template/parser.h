/* parser.h - what the parts of the parser share: tags (parse.c), expressions (expression.c), scopes
 * (scope.c). */
#ifndef LS_TEMPLATE_PARSER_H
#define LS_TEMPLATE_PARSER_H

#include "template/node.h"
#include "template/token.h"

typedef struct ls_template_parser {
    ls_template *t;
    const ls_template_token *at; /* the next token */
    int depth, loops;
    unsigned uses; /* LS_MACRO_...: names used since the macro's beginning */
    ls_error *e;
} ls_template_parser;

/* A list that grows at its end. */
typedef struct ls_template_nodes {
    ls_template_node *first, *last;
} ls_template_nodes;
void ls_node_append(ls_template_nodes *, ls_template_node *);

/* A node at the next token. */
ls_template_node *ls_node_new(ls_template_parser *, ls_template_node_kind);
/* Gives the node the next token's text, and steps over it. */
void ls_node_name(ls_template_parser *, ls_template_node *);
ls_status ls_parse_fail(ls_template_parser *, const char *what);
/* Enters one level of nesting, which `p->depth--` leaves. */
ls_status ls_parse_enter(ls_template_parser *);

/* Is the next token this operator, or this name? `skip` steps over it, too. */
bool ls_parse_is(const ls_template_parser *, const char *operator_text);
bool ls_parse_is_name(const ls_template_parser *, const char *name);
bool ls_parse_skip(ls_template_parser *, const char *operator_text);
bool ls_parse_skip_name(ls_template_parser *, const char *name);
ls_status ls_parse_expect(ls_template_parser *, const char *operator_text);

ls_status ls_parse_expression(ls_template_parser *, ls_template_node **x_p);
/* An expression, or several with commas, which are a tuple; `choices`: with "a if b else c". */
ls_status ls_parse_tuple(ls_template_parser *, bool choices, ls_template_node **x_p);
/* The filters of x: | name(arguments) ... */
ls_status ls_parse_filters(ls_template_parser *, ls_template_node **x_p);
/* The filter whose name is the next token. */
ls_status ls_parse_filter(ls_template_parser *, ls_template_node **x_p);
/* What a value is assigned to; `members`: of a namespace, too. */
ls_status ls_parse_target(ls_template_parser *, bool members, ls_template_node **x_p);

/* Which variables each scope sets, and whether filters and tests exist. */
ls_status ls_template_find_scopes(ls_template *, ls_error *);

#endif
