/* terms.h - symbols for sums of gradients.
 *
 * A term is NOTHING (not written, or freed), EMPTY (a chain without links), a chain
 * with one link more, or the sum of two terms. Terms of the same shape have the same number, so two
 * sums are the same, link by link and in the same order, if their numbers are.
 */
#ifndef LS_TEST_TERMS_H
#define LS_TEST_TERMS_H

#include <stdbool.h>
#include <stdint.h>

enum { TERM_NOTHING, TERM_EMPTY, TERM_NFIXED };

/* What a layer's Backward adds for a micro-batch (-1: all of them) of a virtual worker. */
typedef struct link_term {
    int layer, vw, micro;
} link_term;

typedef struct term {
    int left, right; /* the sum of two; right -1: the chain `left` and a link */
    link_term link;
} term;

typedef struct terms {
    term *list;
    int n, capacity;
    int *index; /* [2 capacity] hash table of numbers; 0: free */
} terms;

void terms_open(terms *);
void terms_close(terms *);

int term_link(terms *, int chain, link_term);
int term_sum(terms *, int left, int right);

/* Calls fn for each link of a term. */
typedef void term_fn(link_term, void *arg);
void term_visit(const terms *, int number, term_fn *fn, void *arg);

#endif
