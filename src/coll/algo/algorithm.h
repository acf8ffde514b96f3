/* algorithm.h - the collectives, and the algorithms that carry them out.
 *
 * An algorithm turns a call into one worker's program. It is pure: the same call, rank and size
 * give the same steps, and the programs of all workers fit together. docs/design/collectives.md has
 * the algorithms in one table: messages, bytes, and the order in which each sums.
 *
 * Buffers of a call, in elements (n workers):
 *
 *     all-reduce      IN [count]           OUT [count]
 *     reduce-scatter  IN [all counts]      OUT [counts[rank]]
 *     all-gather      IN [counts[rank]]    OUT [all counts]
 *     broadcast                            OUT [count], the root's is sent
 *     reduce          IN [count]           OUT [count] at the root
 *     gather          IN [count]           OUT [n count] at the root
 *     scatter         IN [n count] at root OUT [count]
 *     all-to-all      IN [n count]         OUT [n count]
 *     all-to-all-v    IN [all sends]       OUT [all receives]
 *     gather-v        IN [own]             OUT [all receives] at the root
 *     scatter-v       IN [all sends] at root OUT [own]
 *     scan            IN [count]           OUT [count]
 *     exscan          IN [count]           OUT [count], but for worker 0
 *     barrier         nothing
 *
 * With virtual workers (V > 0) IN of an all-reduce or a reduce-scatter holds one vector for each
 * leaf of the worker (tree.h), `stride` elements apart, and the sum is that of the tree over 0 ..
 * V-1.
 *
 * Sums of 16-bit floats are computed in f32 and rounded once. With virtual workers every node of
 * the tree is rounded, like the nodes that a worker has added up before the call: else the bits
 * would depend on how many virtual workers it runs.
 */
#ifndef LS_COLL_ALGO_ALGORITHM_H
#define LS_COLL_ALGO_ALGORITHM_H

#include "base/error.h"
#include "coll/algo/cost.h"
#include "coll/algo/mark.h"
#include "coll/algo/program.h"
#include "coll/algo/tree.h"
#include "tensor/dtype.h"

typedef enum ls_collective {
    LS_CALL_ALL_REDUCE,
    LS_CALL_REDUCE_SCATTER,
    LS_CALL_ALL_GATHER,
    LS_CALL_BROADCAST,
    LS_CALL_REDUCE,
    LS_CALL_GATHER,
    LS_CALL_SCATTER,
    LS_CALL_ALL_TO_ALL,
    LS_CALL_ALL_TO_ALL_V,
    LS_CALL_GATHER_V,
    LS_CALL_SCATTER_V,
    LS_CALL_SCAN,
    LS_CALL_EXSCAN,
    LS_CALL_BARRIER,
    LS_NCALLS
} ls_collective;

/* What the user called: the collective itself (plain), or a function that makes collectives. */
typedef enum ls_call_form {
    LS_FORM_PLAIN,
    LS_FORM_SPLIT,
    LS_FORM_DUP,
    LS_FORM_COMPRESSED,
    LS_FORM_VIRTUAL
} ls_call_form;

/* The buffers of a call at one worker. */
typedef struct ls_operands {
    const void *in;
    void *out;
    size_t nin, nout; /* bytes */
    ls_in_place place;
} ls_operands;

typedef struct ls_call {
    ls_collective what;
    ls_call_form form;
    ls_dtype dtype;
    ls_op op;
    const ls_reduction *by; /* in place of op: the caller's own, of elements of ls_dtype_own() */
    int root;
    size_t count;         /* as above; in the even forms: elements of one worker's block */
    int V;                /* virtual workers; 0: none, each worker has one input */
    const int *first;     /* [n + 1] the ranges of the workers (tree.h); NULL: even ones */
    int chunks, context;  /* of virtual workers (ls_tree_parts); 0: none */
    size_t stride;        /* elements from one input of a worker to the next */
    const size_t *counts; /* [n] blocks of reduce-scatter and all-gather; NULL: all are `count` */
    /* Only in pairwise collectives, else 0. Every worker has its own, so they are no part of the
     * fingerprint. ls_call_sends() and ls_call_receives() read them. */
    const size_t *sends, *receives; /* [n] to and from each; NULL where the root alone has them */
    size_t own;                     /* gather-v and scatter-v: to, or from, the root */
    const int *hosts;               /* [n] a number for each worker's host; NULL: all on one */
    size_t piece; /* elements of a long message's pieces, so that its parts overlap; 0: whole */
    ls_call_mark mark; /* of this worker */
} ls_call;

/* All that the library knows about an algorithm. */
typedef struct ls_algorithm ls_algorithm;
struct ls_algorithm {
    const char *name;
    uint32_t collectives; /* bit 1 << ls_collective */
    bool virtual_workers; /* it also supports sums over virtual workers (V > 0) */
    bool sends_sums;      /* it sends partial sums: those of halves as f32, twice the bytes */
    /* Does the call sum in tree order (tree.h, one leaf a worker) with n workers? */
    bool (*tree_order)(ls_collective, int n);
    void (*make)(const ls_call *, ls_coll_program *);
    /* What a call of n workers takes, n >= 2, with elements as they are. nbytes: of the whole
     * vector in an all-reduce, a reduce, a broadcast or a prefix; else of a worker's block, on
     * average. */
    ls_cost (*cost)(const ls_call *, double nbytes, int n);
    /* Seconds of a call over hosts, by the load that the algorithm puts on their network cards:
     * ls_hosts_seconds_near(), ls_hosts_seconds_far() or its own. */
    double (*hosts_seconds)(const ls_algorithm *, const ls_call *, const ls_hosts *);
};

extern const ls_algorithm ls_direct, ls_exchange, ls_ring, ls_halving, ls_doubling, ls_binomial,
    ls_double_tree, ls_hierarchical;

/* NULL-terminated. */
extern const ls_algorithm *const ls_algorithms[];
/* Does the algorithm have this collective at all? */
static inline bool ls_algorithm_has(const ls_algorithm *a, ls_collective what) {
    return a->collectives >> what & 1;
}
/* Does the algorithm support this call? */
bool ls_algorithm_supports(const ls_algorithm *, const ls_call *);
/* What the call takes with n workers; c->hosts is ignored. */
ls_cost ls_algorithm_cost(const ls_algorithm *, const ls_call *, int n);
/* NULL: there is none of that name. */
const ls_algorithm *ls_algorithm_named(const char *name);

const char *ls_collective_name(ls_collective); /* "all_reduce" */
bool ls_collective_from_name(const char *name, ls_collective *what_p);
bool ls_collective_reduces(ls_collective);
/* Does each worker's result reduce the inputs of the workers before it (and its own)? */
static inline bool ls_collective_is_prefix(ls_collective what) {
    return what == LS_CALL_SCAN || what == LS_CALL_EXSCAN;
}
/* Does each worker know only its own counts: what it sends to and expects from each? */
bool ls_collective_is_pairwise(ls_collective);
/* Are the call's sums computed in f32 and rounded once? */
static inline bool ls_call_widens(const ls_call *c) {
    return c->V == 0 && ls_dtype_is_half(c->dtype);
}

/* The division of the leaves of the call's sums among workers. */
static inline ls_tree_parts ls_call_parts(const ls_call *c) {
    return (ls_tree_parts){c->V, c->first, c->chunks, c->context};
}

/* Elements that worker `me`, whose pairwise call this is, sends to `peer` and expects from it. */
static inline size_t ls_call_sends(const ls_call *c, int me, int peer) {
    if (c->what == LS_CALL_GATHER_V) return peer == c->root ? c->own : 0;
    if (c->what == LS_CALL_SCATTER_V && me != c->root) return 0;
    return c->sends[peer];
}
static inline size_t ls_call_receives(const ls_call *c, int me, int peer) {
    if (c->what == LS_CALL_SCATTER_V) return peer == c->root ? c->own : 0;
    if (c->what == LS_CALL_GATHER_V && me != c->root) return 0;
    return c->receives[peer];
}
/* Does a pairwise call compare counts between these two? */
static inline bool ls_call_pairs(const ls_call *c, int me, int peer) {
    return c->what == LS_CALL_ALL_TO_ALL_V || me == c->root || peer == c->root;
}

/* The program of worker `rank` of `size`. The algorithm must support the call. */
void ls_algorithm_make(const ls_algorithm *, const ls_call *, int rank, int size, ls_in_place,
                       ls_coll_program *s_p);

/* ---- for algorithms ---- */

/* Some of the workers, by a number of their own: member i is worker ranks[i]. */
typedef struct ls_team {
    int size, me;
    const int *ranks; /* NULL: member i is worker i */
} ls_team;

static inline int ls_team_rank(const ls_team *t, int member) {
    return t->ranks ? t->ranks[member] : member;
}

/* Where block i of `count` elements in n blocks begins: the first count % n blocks have one more
 * element. */
static inline size_t ls_block(size_t count, int n, int i) {
    size_t size = count / (size_t)n, more = count % (size_t)n, at = (size_t)i;
    return at * size + (at < more ? at : more);
}

/* offset [size + 1] of the blocks of a call: counts of the uneven forms, `count` each of the even
 * ones. free() it. */
size_t *ls_call_offsets(const ls_call *, int size);
/* offset [n + 1] of `count` elements in n blocks. free() it. */
size_t *ls_even_offsets(size_t count, int n);

/* How a long message is cut, in elements: so that parts overlap, and each is still worth its
 * latency. */
size_t ls_call_piece(const ls_call *, int n);

/* Values of hosts_seconds. near: workers exchange with neighbours, most of them on the same host,
 * so that a card carries the bytes of one worker at a time; far: with all others, so that it
 * carries those of all its host's workers. */
double ls_hosts_seconds_near(const ls_algorithm *, const ls_call *, const ls_hosts *);
double ls_hosts_seconds_far(const ls_algorithm *, const ls_call *, const ls_hosts *);

/* Values of tree_order. */
bool ls_tree_order_always(ls_collective, int n);
bool ls_tree_order_up_to_two(ls_collective, int n); /* a + b is b + a */

/* Divides the sum, where the call asks for an average of workers. */
void ls_finish_average(const ls_call *, ls_coll_program *, ls_place out, size_t count);

/* The length of the next piece, with `left` elements to go. */
static inline size_t ls_piece(const ls_call *c, size_t left) {
    return c->piece && left > c->piece ? c->piece : left;
}

/* Building blocks over a team; offset [size + 1] are its blocks.
 *
 * reduce-scatter: member i's block of the sum of all `in` goes to its `out`.
 * all-gather: every block of buf comes from its member; this worker's own is already there. */
void ls_direct_reduce_scatter(const ls_call *, ls_coll_program *, const ls_team *, ls_place in,
                              const size_t *offset, ls_place out);
void ls_direct_all_gather(const ls_call *, ls_coll_program *, const ls_team *, ls_place buf,
                          const size_t *offset);
/* scan and exscan; prefix.c. */
void ls_doubling_prefix(const ls_call *, ls_coll_program *);
ls_cost ls_doubling_prefix_cost(const ls_call *, double nbytes, int n);
void ls_binomial_broadcast(const ls_call *, ls_coll_program *, const ls_team *, ls_place buf,
                           size_t count, int root);

#endif
