/* constraint.h - which tokens may follow, where a grammar says which texts are allowed.
 *
 * A mask of the tokens is computed when a state is first reached, by a walk through the vocabulary
 * that leaves out what begins with a byte that is not allowed; then it is found by the state's
 * number. Tokens may end within a character. Source: Willard and Louf, "Efficient Guided
 * Generation", arXiv 2307.09702, with the walk of llguidance.
 */
#ifndef LS_GRAMMAR_CONSTRAINT_H
#define LS_GRAMMAR_CONSTRAINT_H

#include "grammar/token_tree.h"

enum {
    LS_CONSTRAINT_NBYTES = 64 << 20, /* of states and masks; then they are made anew */
    LS_ALLOWED_ENDS = 64
};

/* One thread at a time; any number of texts. */
typedef struct ls_constraint ls_constraint;

/* Owns the grammar from now on, which must have been made with the vocabulary's bytes. The
 * vocabulary must outlive it. */
ls_constraint *ls_constraint_new(const ls_token_tree *, ls_grammar *);
void ls_constraint_free(ls_constraint *); /* NULL is allowed */

/* Where a text stands. Initially {0}. */
typedef struct ls_constrained {
    int64_t n; /* tokens that were read */
    uint32_t state, epoch;
} ls_constrained;

typedef struct ls_allowed {
    const uint64_t *mask; /* [V] bits; valid until the next call */
    uint32_t n;           /* tokens whose bit is 1 */
    bool end;             /* the text may end here */
} ls_allowed;

/* What may follow tokens [n], of which those up to *at were read before. If a token was not
 * allowed, then nothing may. */
ls_allowed ls_constraint_after(ls_constraint *, ls_constrained *at, const uint32_t *tokens,
                               int64_t n);
size_t ls_constraint_nbytes(const ls_constraint *);
/* Logits [V] of tokens that may not follow become -INFINITY. ends [nends], of which the first
 * LS_ALLOWED_ENDS count: tokens that end a text: they may follow where the text may end, and
 * nowhere else. */
void ls_allowed_forbid(const ls_allowed *, const uint32_t *ends, int nends, float *logits,
                       size_t V);

#endif
