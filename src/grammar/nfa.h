/* nfa.h - an expression as an automaton with steps that read nothing (Thompson's construction).
 *
 * Parts are added from an expression's end to its beginning: each is given what comes after it.
 * The parts of one rule of a grammar are made at a time; a call of a rule is one part, read like a
 * byte. Source: Aho, Sethi and Ullman, "Compilers", 1986, chapter 3.
 */
#ifndef LS_GRAMMAR_NFA_H
#define LS_GRAMMAR_NFA_H

#include "grammar/expression.h"
#include "grammar/sequences.h"

enum {
    LS_NFA_PARTS = 500000,
    LS_NFA_WORK = 20000000 /* places in sets of parts, of all rules */
};

typedef enum ls_nfa_kind {
    LS_PART_END,
    LS_PART_BYTES, /* first to last */
    LS_PART_CALL,
    LS_PART_SPLIT /* reads nothing */
} ls_nfa_kind;

typedef struct ls_nfa_part {
    ls_nfa_kind kind;
    uint8_t first, last;
    uint32_t to, other; /* other: of LS_PART_SPLIT; the rule of LS_PART_CALL */
} ls_nfa_part;

/* Initially {0}. */
typedef struct ls_nfa {
    ls_nfa_part *parts; /* [n] */
    uint32_t n;
    bool full;    /* it is too large */
    int64_t work; /* that was done in sets of parts */
} ls_nfa;

/* Drops the parts; the work counts on. */
void ls_nfa_clear(ls_nfa *);

uint32_t ls_nfa_add(ls_nfa *, ls_nfa_part);
/* The part that begins x, after which comes `next`. */
uint32_t ls_nfa_add_expression(ls_nfa *, const ls_expression *x, uint32_t next);
/* Either of them. */
uint32_t ls_nfa_add_split(ls_nfa *, uint32_t a, uint32_t b);
/* Leads nowhere. */
uint32_t ls_nfa_add_never(ls_nfa *);

/* Bytes between two cuts are read alike by the parts [n]. Adds their cuts. */
void ls_nfa_cut(const ls_nfa *, const uint32_t *parts, size_t n, bool cut[257]);

/* Sets of parts that are reached without reading. */
typedef struct ls_nfa_sets {
    ls_nfa *nfa;
    ls_sequences sets; /* of parts other than splits, ascending */
    uint32_t *marks;   /* [n] the set that has the part, by number */
    uint32_t mark;
    uint32_t *set; /* [nset] the set that is being made */
    size_t nset;
    uint32_t *stack; /* [2 n + 2] */
} ls_nfa_sets;

/* Of the parts that there are now. */
void ls_nfa_sets_init(ls_nfa_sets *, ls_nfa *);
void ls_nfa_sets_free(ls_nfa_sets *);
void ls_nfa_set_begin(ls_nfa_sets *);
/* Adds the part, and what can be reached from it without reading. */
void ls_nfa_set_add(ls_nfa_sets *, uint32_t part);
/* Makes the set that the parts [n] of one lead to. */
void ls_nfa_set_step(ls_nfa_sets *, const uint32_t *parts, size_t n, uint8_t byte);
uint32_t ls_nfa_set_end(ls_nfa_sets *); /* its number */

/* Compares texts with an expression that has no calls. Full: that was more than LS_NFA_WORK, and
 * no further text matches. */
typedef struct ls_nfa_matcher ls_nfa_matcher;
ls_nfa_matcher *ls_nfa_matcher_new(const ls_expression *);
void ls_nfa_matcher_free(ls_nfa_matcher *); /* NULL is allowed */
bool ls_nfa_matches(ls_nfa_matcher *, const char *text, size_t n);
bool ls_nfa_matcher_full(const ls_nfa_matcher *);

#endif
