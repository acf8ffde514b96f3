/* expression.h - which texts are allowed, as a tree.
 *
 * Leaves are texts, sets of characters, and calls of rules, which may be recursive. The tree's
 * nodes belong to a pool, and are freed with it.
 */
#ifndef LS_GRAMMAR_EXPRESSION_H
#define LS_GRAMMAR_EXPRESSION_H

#include "grammar/char_set.h"

enum { LS_NO_LIMIT = -1, LS_DISTINCT_VALUES = 8 };

typedef enum ls_expression_kind {
    LS_EXPRESSION_TEXT,     /* bytes [nbytes]; none: the empty text */
    LS_EXPRESSION_CHARS,    /* one of chars */
    LS_EXPRESSION_QUOTED,   /* one of chars as JSON's strings have it: with \ where it needs one. No
                             * NUL */
    LS_EXPRESSION_SEQUENCE, /* a, then b */
    LS_EXPRESSION_EITHER,   /* a or b */
    LS_EXPRESSION_REPEAT,   /* a, at least `least` times, at most `most`, or LS_NO_LIMIT */
    LS_EXPRESSION_MEMBER, /* of a list: those of a, if there is one, then b: at least `least` times,
                           * which is 0 or 1, at most once, or LS_NO_LIMIT with `least` 0 */
    LS_EXPRESSION_LIST, /* the members up to a, if there is one, with commas between those that are
                           * there: at least `least`, at most `most`, or LS_NO_LIMIT */
    LS_EXPRESSION_DISTINCT, /* a list of the alternatives a, each at most once, in any order; at
                             * most LS_DISTINCT_VALUES of them; from `least` to `most` */
    LS_EXPRESSION_BOTH,     /* what a and b allow; neither has calls */
    LS_EXPRESSION_WITHOUT,  /* what a allows, and b does not; neither has calls */
    LS_EXPRESSION_MULTIPLE, /* numbers with at most `most` digits behind the point, no exponent,
                             * that are multiples of `least` units of the last of them */
    LS_EXPRESSION_CALL      /* what the rule allows */
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
/* before: the members before it, or NULL. */
const ls_expression *ls_expression_member(ls_expressions *, const ls_expression *before,
                                          const ls_expression *, int64_t least, int64_t most);
const ls_expression *ls_expression_list(ls_expressions *, const ls_expression *members,
                                        int64_t least, int64_t most);
const ls_expression *ls_expression_distinct(ls_expressions *, const ls_expression *values,
                                            int64_t least, int64_t most);
/* a NULL: b alone. */
const ls_expression *ls_expression_both(ls_expressions *, const ls_expression *a,
                                        const ls_expression *b);
const ls_expression *ls_expression_without(ls_expressions *, const ls_expression *a,
                                           const ls_expression *b);
const ls_expression *ls_expression_multiple(ls_expressions *, int64_t step, int places);
/* Allows no text. */
const ls_expression *ls_expression_never(ls_expressions *);
const ls_expression *ls_expression_call(ls_expressions *, uint32_t rule);

/* The fewest and the most characters of a text of an expression: at least *least_p, at most
 * *most_p, which is LS_NO_LIMIT where they may be many or are not known. */
void ls_expression_length(const ls_expression *, int64_t *least_p, int64_t *most_p);

#endif
