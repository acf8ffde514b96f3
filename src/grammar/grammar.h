/* grammar.h - which texts are allowed: rules that call each other, each a deterministic automaton
 * on bytes.
 *
 * A rule is made from an expression. Its nodes have edges for bytes, and edges that are calls of
 * rules. What a node can't complete is left out: from each node the end of its rule can be reached
 * with the bytes that there are, and `depth` says how deeply nested calls must at least be for it.
 * So a text that stays within LS_GRAMMAR_DEPTH at each step can always be completed.
 *
 * What a stranger can ask for is bounded: LS_GRAMMAR_NODES, and LS_NFA_PARTS and
 * LS_NFA_WORK (nfa.h). A larger grammar is
 * refused.
 */
#ifndef LS_GRAMMAR_GRAMMAR_H
#define LS_GRAMMAR_GRAMMAR_H

#include "base/error.h"
#include "grammar/expression.h"

enum {
    LS_GRAMMAR_DEPTH = 64,       /* of calls within calls */
    LS_GRAMMAR_NODES = 200000,   /* of all rules */
    LS_GRAMMAR_NEVER = UINT8_MAX /* the depth of what can't be completed */
};

typedef struct ls_grammar_edge {
    uint8_t first, last; /* bytes */
    uint32_t to;
} ls_grammar_edge;

typedef struct ls_grammar_call {
    uint32_t rule, to; /* the node after it */
} ls_grammar_call;

typedef struct ls_grammar_node {
    uint32_t edges, calls; /* of the grammar, the first */
    uint32_t nedges, ncalls;
    bool ends;     /* the rule may end here */
    uint8_t depth; /* of calls that are needed until the rule ends */
} ls_grammar_node;

typedef struct ls_grammar_rule {
    uint32_t start; /* node */
    uint32_t rank;  /* larger than that of rules whose first step may be a call of this one */
} ls_grammar_rule;

/* Constant once it is made: any threads may use it. Rule 0 is that of the text. */
typedef struct ls_grammar {
    ls_grammar_node *nodes; /* [nnodes] */
    ls_grammar_edge *edges; /* [nedges], ascending in each node */
    ls_grammar_call *calls; /* [ncalls] */
    ls_grammar_rule *rules; /* [nrules] */
    uint32_t nnodes, nedges, ncalls, nrules;
} ls_grammar;

/* The bytes that there are. */
typedef struct ls_byte_set {
    bool has[256];
} ls_byte_set;

/* rules [nrules]. Only bytes of the set are in it; NULL: all. LS_EINVAL: it is too large, a called
 * rule may be empty or begins with a call of itself, or no text is allowed. */
ls_status ls_grammar_make(const ls_expression *const *rules, uint32_t nrules, const ls_byte_set *,
                          ls_grammar **g_p, ls_error *);
void ls_grammar_free(ls_grammar *); /* NULL is allowed */

/* The grammar of one regular expression, all of the text. */
ls_status ls_grammar_of_regex(const char *text, size_t n, const ls_byte_set *, ls_grammar **g_p,
                              ls_error *);

#endif
