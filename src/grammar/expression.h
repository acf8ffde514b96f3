/* expression.h - which texts are allowed, as a tree.
 *
 * Leaves are texts, sets of characters, and calls of rules, which may be recursive. The tree's
 * nodes belong to a pool, and are freed with it.
 */
#ifndef LS_GRAMMAR_EXPRESSION_H
#define LS_GRAMMAR_EXPRESSION_H

#include "grammar/char_set.h"

enum { LS_NO_LIMIT = -1 };

typedef enum ls_expression_kind {
    LS_EXPRESSION_TEXT,     /* bytes [nbytes]; none: the empty text */
    LS_EXPRESSION_CHARS,    /* one of chars */
    LS_EXPRESSION_QUOTED,   /* one of chars as JSON's strings have it: with \ where it needs one. No
                             * NUL */
    LS_EXPRESSION_SEQUENCE, /* a, then b */
    LS_EXPRESSION_EITHER,   /* a or b */
    LS_EXPRESSION_REPEAT,   /* a, at least `least` times, at most `most`, or LS_NO_LIMIT */
    LS_EXPRESSION_LIST, /* the list a, if there is one, then b, which may be missing if `least` is
                         * 0; with commas between those that are there */
    LS_EXPRESSION_COUNTED, /* what a allows with at least `least` characters, at most `most` or
                            * LS_NO_LIMIT; a has neither calls nor lists, nor texts but the empty
                            * one */
    LS_EXPRESSION_CALL     /* what the rule allows */
} ls_expression_kind;

typedef struct ls_expression ls_expression;
struct ls_expression {
    ls_expression_kind kind;
    const ls_expression *a, *b;
    char *bytes;
    size_t nbytes;
    ls_char_set chars;
    int64_t least, most;
    uint32_t rule;
    ls_expression *next; /* of the pool */
};

/* Initially {0}. */
typedef struct ls_expressions {
    ls_expression *first;
    size_t n;
} ls_expressions;

void ls_expressions_free(ls_expressions *);

const ls_expression *ls_expression_bytes(ls_expressions *, const char *bytes, size_t n);
const ls_expression *ls_expression_text(ls_expressions *, const char *text);
/* Takes the set's memory. */
const ls_expression *ls_expression_chars(ls_expressions *, ls_char_set *, bool quoted);
/* Each of the characters `first` to `last`. */
const ls_expression *ls_expression_range(ls_expressions *, uint32_t first, uint32_t last,
                                         bool quoted);
/* a NULL: b alone. Long ones grow at their end: the depth of the tree is that of their nesting. */
const ls_expression *ls_expression_then(ls_expressions *, const ls_expression *a,
                                        const ls_expression *b);
const ls_expression *ls_expression_or(ls_expressions *, const ls_expression *a,
                                      const ls_expression *b);
const ls_expression *ls_expression_repeat(ls_expressions *, const ls_expression *, int64_t least,
                                          int64_t most);
const ls_expression *ls_expression_list(ls_expressions *, const ls_expression *before,
                                        const ls_expression *, bool required);
const ls_expression *ls_expression_counted(ls_expressions *, const ls_expression *, int64_t least,
                                           int64_t most);
const ls_expression *ls_expression_call(ls_expressions *, uint32_t rule);

/* The fewest and the most characters of a text of an expression that may be counted. Large numbers
 * are LS_NO_LIMIT in *most_p. */
void ls_expression_length(const ls_expression *, int64_t *least_p, int64_t *most_p);

#endif
