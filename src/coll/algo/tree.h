/* tree.h - the one order of summation: a fixed binary tree over virtual workers 0 .. V-1.
 *
 * A node [lo, hi) of more than one leaf is split at lo + the largest power of two below hi - lo, so
 * that for V = 5: ((0+1)+(2+3))+4. The tree depends on V alone. A worker that runs a contiguous
 * range of virtual workers adds up the largest whole subtrees inside it (its cover); what is left
 * of the tree is finished over the covers of all workers. The bits are the same however the range
 * is cut.
 *
 * While a worker runs its range, sums wait on a stack of slots: a finished virtual worker is
 * pushed, and while the two topmost nodes are siblings they are added into the lower slot (a fold).
 * In the end the stack is the cover.
 */
#ifndef LS_COLL_ALGO_TREE_H
#define LS_COLL_ALGO_TREE_H

#include <stddef.h>

#include "tensor/kernels.h"

enum { LS_TREE_MAX_CHUNKS = 8 };
enum { LS_TREE_MAX_COVER = 64 * LS_TREE_MAX_CHUNKS }; /* 2 log2 V at most for each, V < 2^31 */

typedef struct ls_node {
    int lo, hi;
} ls_node;

/* Where node [lo, hi), hi - lo >= 2, is split. */
int ls_tree_split(int lo, int hi);

/* The cover of [a, b), from left to right; returns the number of nodes. 0 <= a <= b <= V. */
int ls_tree_cover(int V, int a, int b, ls_node nodes[LS_TREE_MAX_COVER]);

/* Virtual workers of worker r of n: [*a_p, *b_p). first [n + 1]: from first[r] to first[r + 1];
 * NULL: from r V / n to (r + 1) V / n. */
void ls_tree_range(int V, const int *first, int r, int n, int *a_p, int *b_p);

/* The stack, for a range that begins at a: the sum of virtual worker v goes into slot *slot_p;
 * after it the top slot is added into the one below as often as the function returns. */
int ls_tree_fold(int V, int a, int v, int *slot_p);

/* Slots that the stack of [a, b) needs. */
int ls_tree_slots(int V, int a, int b);

/* How the leaves are divided among workers. Where sequences are cut into chunks, each virtual
 * worker has a leaf for each chunk: V counts all leaves, and leaf chunk * V / chunks + v belongs to
 * virtual worker v. So the tree first sums a chunk over virtual workers (V / chunks is a power of
 * two, so that these are subtrees). Worker r of n is number r % context of the workers that divide
 * the chunks of the same virtual workers. */
typedef struct ls_tree_parts {
    int V;               /* 0: each worker has one leaf, as in collectives among plain workers */
    const int *first;    /* [n / context + 1] ranges of virtual workers; NULL: even ones */
    int chunks, context; /* 0, 1: none; context <= chunks */
} ls_tree_parts;

/* The chunks [*first_p, *end_p) of worker i of the `context` workers that divide them. */
void ls_tree_chunks(int chunks, int context, int i, int *first_p, int *end_p);
/* A worker's leaves: the largest whole subtrees, from left to right; returns their number. */
int ls_tree_parts_cover(const ls_tree_parts *, int worker, int nworkers,
                        ls_node nodes[LS_TREE_MAX_COVER]);

/* The leaves from which n workers finish a sum: all their covers, from left to right. */
typedef struct ls_leaves {
    int V, n;
    ls_node *nodes; /* [n] */
    int *worker;    /* [n] the worker that holds it */
    int *slot;      /* [n] its number among that worker's leaves */
    int most;       /* the largest number of leaves that a worker has */
} ls_leaves;

void ls_leaves_make(const ls_tree_parts *, int nworkers, ls_leaves *l_p);
void ls_leaves_free(ls_leaves *);
/* The number of leaves that a worker holds. */
int ls_leaves_of(const ls_leaves *, int worker);

/* One sum to be finished: the covers of all workers, from left to right. */
typedef struct ls_tree_sum {
    ls_dtype dtype; /* halves are rounded at every node */
    ls_op op;
    int V, nleaves;
    const ls_node *nodes;    /* [nleaves] */
    const void *const *data; /* [nleaves][count] */
    const ls_reduction *by;  /* in place of op; NULL: none */
} ls_tree_sum;

/* out [count] = the leaves' sum in tree order, elements [first, first + count) of each. out may be
 * one of the leaves at the same place. */
void ls_tree_sum_run(const ls_tree_sum *, const ls_kernels *, size_t first, size_t count,
                     void *out);

#endif
