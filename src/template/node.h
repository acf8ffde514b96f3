/* node.h - a parsed template: a tree of tags and expressions.
 *
 * A target, which a value is assigned to, is an LS_NODE_NAME, an LS_NODE_TUPLE of targets, or an
 * LS_NODE_MEMBER of a name (of a namespace). */
#ifndef LS_TEMPLATE_NODE_H
#define LS_TEMPLATE_NODE_H

#include "template/arena.h"
#include "template/template.h"

typedef enum ls_template_node_kind {
    /* expressions: what they use of a node */
    LS_NODE_NONE,
    LS_NODE_TRUE,
    LS_NODE_FALSE,
    LS_NODE_INTEGER,  /* integer */
    LS_NODE_REAL,     /* real */
    LS_NODE_STRING,   /* text */
    LS_NODE_NAME,     /* text */
    LS_NODE_LIST,     /* list */
    LS_NODE_TUPLE,    /* list */
    LS_NODE_DICT,     /* list: keys and values in turns */
    LS_NODE_MEMBER,   /* a.text */
    LS_NODE_ITEM,     /* a[b] */
    LS_NODE_SLICE,    /* a[list of three: begin, end, step; LS_NODE_NONE where there is none] */
    LS_NODE_CALL,     /* a(list) */
    LS_NODE_KEYWORD,  /* text=a, in a list of arguments */
    LS_NODE_SPREAD,   /* *a, in a list of arguments; text "**": **a */
    LS_NODE_FILTER,   /* a | text(list) */
    LS_NODE_TEST,     /* a is text(list) */
    LS_NODE_NEGATE,   /* -a */
    LS_NODE_POSITIVE, /* +a */
    LS_NODE_NOT,
    LS_NODE_AND,
    LS_NODE_OR,
    LS_NODE_MATH,    /* a text b: + - * / // % ** ~ */
    LS_NODE_COMPARE, /* a text b: == != < <= > >= in; list: further comparisons with b as their a */
    LS_NODE_CHOICE,  /* b if a else c; c NULL: undefined */
    LS_NODE_CAPTURE, /* what body prints */
    LS_NODE_CALLER,  /* the macro of a call block; fields as of LS_NODE_MACRO */
    /* tags */
    LS_NODE_TEXT,  /* text */
    LS_NODE_PRINT, /* a */
    LS_NODE_FOR,   /* for c (target) in a if b: body, other; integer 1: recursive */
    LS_NODE_IF,    /* if a: body, other */
    LS_NODE_SET,   /* c (target) = a */
    LS_NODE_WITH,  /* list (targets and values in turns): body */
    LS_NODE_MACRO, /* text(list: names, with a default in a or NULL): body; integer: uses */
    LS_NODE_BREAK,
    LS_NODE_CONTINUE
} ls_template_node_kind;

/* Names that a macro's body uses, which say what it can be called with. */
enum { LS_MACRO_CALLER = 1, LS_MACRO_KWARGS = 2, LS_MACRO_VARARGS = 4 };

typedef struct ls_template_node ls_template_node;
struct ls_template_node {
    ls_template_node_kind kind;
    int line, column;
    ls_template_node *next; /* in a list */
    ls_template_node *a, *b, *c;
    ls_template_node *list, *body, *other;
    /* Variables that a scope's body (of a loop, else part, macro ...) has from its beginning, with
     * no value, because it sets them later. */
    ls_template_node *unset, *unset_other;
    const char *text; /* [n] */
    size_t n;
    int64_t integer;
    double real;
};

struct ls_template {
    char *name;
    ls_template_arena arena; /* of the nodes and their texts */
    ls_template_node *body, *unset;
};

#endif
