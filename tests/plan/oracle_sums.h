/* oracle_sums.h - gradients as the oracle's symbols: chains of virtual workers, what their codes
 * hold, and sums of them. */
#ifndef LS_TEST_ORACLE_SUMS_H
#define LS_TEST_ORACLE_SUMS_H

#include "plan/oracle_state.h"

/* The chain `chain`, continued by a virtual worker for a parameter: micro-batch after micro-batch,
 * each from the last layer down; then the layers that take all micro-batches at once. */
int oracle_chain(oracle *, int chain, int param, int vw);
/* What the code of a virtual worker's chain holds: a last link, of no layer. */
int oracle_encoded(oracle *, int chain, int vw);
/* The sum over the virtual workers of node [lo, hi). */
int oracle_expected(oracle *, int param, int lo, int hi);

/* The sums in a worker's memory, of an atom: of its own virtual workers, and of all. */
int *oracle_grad_at(const oracle *, int w, int slot, int atom);
int *oracle_sum_at(const oracle *, int w, int slot, int atom);

/* One of the sums that a collective adds: the sum over the leaves [lo, hi) of its tree. */
typedef struct leaf {
    int lo, hi, worker, slot;
} leaf;

typedef struct leaves {
    leaf list[RULES_MAX_COVER];
    int n, size; /* size: leaves of the whole tree */
} leaves;

/* The parts of a sum that `count` workers have, from `first` on, `step` apart. */
leaves oracle_leaves(const oracle *, int first, int count, int step);

/* Node [lo, hi) of a collective over sums of gradients, at one atom. partial: of the workers' own
 * sums; else (replicas) of what their groups have summed, in `slot`. */
typedef struct summing {
    const leaves *l;
    bool partial;
    int slot, atom;
} summing;

int oracle_sum_node(oracle *, const summing *, int lo, int hi);

#endif
