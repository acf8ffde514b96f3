/* parser.h - what the two halves of the parser share: tags (parse.c), expressions
 * (expression.c). */
#ifndef LS_TEMPLATE_PARSER_H
#define LS_TEMPLATE_PARSER_H

#include "template/node.h"
#include "template/token.h"

typedef struct ls_template_parser {
    ls_template *t;
    const ls_template_token *at; /* the next token */
    int depth, loops;
    ls_error *e;
} ls_template_parser;

/* A list that grows at its end. */
typedef struct ls_template_nodes {
    ls_template_node *first, *last;
} ls_template_nodes;
void ls_node_append(ls_template_nodes *, ls_template_node *);

/* A node at the next token. */
ls_template_node *ls_node_new(ls_template_parser *, ls_template_node_kind);
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
/* The same without "a if b else c": what "for" loops over. */
ls_status ls_parse_or(ls_template_parser *, ls_template_node **x_p);
/* Names with commas between them: targets of "for" and "set". */
ls_status ls_parse_targets(ls_template_parser *, ls_template_node **names_p);

#endif
