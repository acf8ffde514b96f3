/* binomial.c - trees in which a worker's children are at distances 1, 2, 4, ...
 *
 * reduce: in the step of distance d = 1, 2, 4, ... worker r, if r is an odd multiple of d, sends
 * its sum to r - d and is done; else it adds what r + d sends on the right of its own sum. So
 * worker r then holds the sum of [r, r + 2d), and worker 0 the sum of all, in the order of the
 * fixed tree, for any n. Worker 0 then sends the sum to the root, if that is another worker.
 *
 * broadcast: the same tree downwards, counted from the root. gather and scatter: the same, with the
 * blocks of a whole subtree in each message. all-reduce: reduce to worker 0, then broadcast.
 *
 *     reduce, broadcast   log2 n messages one after the other (rounded up), n-1 in all
 *     all-reduce          2 log2 n
 *     gather, scatter     log2 n, with n/2 log2 n blocks in all
 *
 * Source: Thakur, Rabenseifner & Gropp, Int. J. High Perf. Comput. Appl. 19 (2005) 49-66.
 */
#include <stdlib.h>

#include "coll/algo/algorithm.h"

static const ls_place IN = {LS_IN, 0}, OUT = {LS_OUT, 0};

/* Leaves the sum of all in `acc` of worker 0. */
static void reduce_to_first(const ls_call *c, ls_coll_program *s, ls_place acc) {
    ls_place own = IN;
    for (int d = 1; d < s->size; d *= 2) {
        if (s->rank & d) {
            ls_coll_program_send(s, s->rank - d, own, c->count);
            return;
        }
        if (s->rank + d >= s->size) continue;
        ls_place got = ls_coll_program_temp(s, c->count);
        ls_coll_program_recv(s, s->rank + d, got, c->count);
        ls_coll_program_combine(s, own, got, acc, c->count);
        own = acc;
    }
    ls_coll_program_copy(s, own, acc, c->count); /* alone */
    ls_finish_average(c, s, acc, c->count);
}

static void reduce(const ls_call *c, ls_coll_program *s) {
    bool at_root = s->rank == c->root;
    ls_place acc = at_root ? OUT : ls_coll_program_temp(s, c->count);
    reduce_to_first(c, s, acc);
    if (c->root == 0) return;
    if (s->rank == 0) ls_coll_program_send(s, c->root, acc, c->count);
    if (at_root) ls_coll_program_recv(s, 0, OUT, c->count);
}

void ls_binomial_broadcast(const ls_call *c, ls_coll_program *s, const ls_team *t, ls_place buf,
                           size_t count, int root) {
    int n = t->size, v = (t->me - root + n) % n, top = 1;
    while (top < n) top *= 2;
    int from = v ? v & (v - 1) : 0, reach = v ? v & -v : top; /* children at distances below */
    for (size_t at = 0; at < count; at += ls_piece(c, count - at)) {
        size_t piece = ls_piece(c, count - at);
        if (v) ls_coll_program_recv(s, ls_team_rank(t, (from + root) % n), ls_at(buf, at), piece);
        for (int d = reach / 2; d >= 1; d /= 2)
            if (v + d < n)
                ls_coll_program_send(s, ls_team_rank(t, (v + d + root) % n), ls_at(buf, at), piece);
    }
}

/* ---- blocks of subtrees ---- */

typedef struct subtree {
    ls_coll_program *s;
    size_t count; /* of a block */
    int root, n, v;
    ls_place whole; /* at the root: blocks in the order of ranks */
    ls_place part;  /* elsewhere: blocks from the worker's own on, counted from the root */
} subtree;

static ls_place block_place(const subtree *t, int v) {
    if (t->v) return ls_at(t->part, (size_t)(v - t->v) * t->count);
    return ls_at(t->whole, (size_t)((v + t->root) % t->n) * t->count);
}

/* Moves blocks [v, end), counted from the root: in two runs where their ranks wrap round. */
static void move_blocks(const subtree *t, void (*move)(ls_coll_program *, int, ls_place, size_t),
                        int peer, int v, int end) {
    int wrap = t->n - t->root, middle = wrap < v ? v : wrap > end ? end : wrap;
    int rank = (peer + t->root) % t->n;
    if (v < middle) move(t->s, rank, block_place(t, v), (size_t)(middle - v) * t->count);
    if (middle < end) move(t->s, rank, block_place(t, middle), (size_t)(end - middle) * t->count);
}

static int least(int a, int b) { return a < b ? a : b; }

static void gather(const subtree *t) {
    for (int d = 1; d < t->n; d *= 2) {
        if (t->v & d) {
            move_blocks(t, ls_coll_program_send, t->v - d, t->v, least(t->v + d, t->n));
            return;
        }
        if (t->v + d < t->n)
            move_blocks(t, ls_coll_program_recv, t->v + d, t->v + d, least(t->v + 2 * d, t->n));
    }
}

static void scatter(const subtree *t) {
    int top = 1;
    while (top < t->n) top *= 2;
    int reach = t->v ? t->v & -t->v : top;
    if (t->v) move_blocks(t, ls_coll_program_recv, t->v - reach, t->v, least(t->v + reach, t->n));
    for (int d = reach / 2; d >= 1; d /= 2)
        if (t->v + d < t->n)
            move_blocks(t, ls_coll_program_send, t->v + d, t->v + d, least(t->v + 2 * d, t->n));
}

static void gather_or_scatter(const ls_call *c, ls_coll_program *s) {
    bool down = c->what == LS_CALL_SCATTER;
    subtree t = {.s = s,
                 .count = c->count,
                 .root = c->root,
                 .n = s->size,
                 .v = (s->rank - c->root + s->size) % s->size,
                 .whole = down ? IN : OUT};
    int reach = t.v ? least(t.v & -t.v, t.n - t.v) : 0;
    t.part = ls_coll_program_temp(s, (size_t)reach * c->count);
    ls_place own = block_place(&t, t.v);
    if (down) {
        scatter(&t);
        ls_coll_program_copy(s, own, OUT, c->count);
    } else {
        ls_coll_program_copy(s, IN, own, c->count);
        gather(&t);
    }
}

static void make(const ls_call *c, ls_coll_program *s) {
    const ls_team all = {.size = s->size, .me = s->rank};
    switch (c->what) {
    case LS_CALL_ALL_REDUCE:
        reduce_to_first(c, s, OUT);
        ls_binomial_broadcast(c, s, &all, OUT, c->count, 0);
        break;
    case LS_CALL_REDUCE: reduce(c, s); break;
    case LS_CALL_BROADCAST: ls_binomial_broadcast(c, s, &all, OUT, c->count, c->root); break;
    default: gather_or_scatter(c, s); break;
    }
}

static ls_cost cost(const ls_call *c, double nbytes, int n) {
    double log = ls_ceil_log2(n), others = n - 1.0, part = others / n;
    switch (c->what) {
    case LS_CALL_ALL_REDUCE: return ls_cost_tree(nbytes, n, 2, nbytes);
    case LS_CALL_REDUCE: return ls_cost_tree(nbytes, n, 1, nbytes);
    case LS_CALL_BROADCAST: return ls_cost_tree(nbytes, n, 1, 0);
    default: /* gather and scatter */
        return (ls_cost){.chain_messages = log,
                         .chain_sent = others * nbytes,
                         .messages = part,
                         .sent = log / 2 * nbytes};
    }
}

const ls_algorithm ls_binomial = {.name = "binomial",
                                  .collectives = 1u << LS_CALL_ALL_REDUCE | 1u << LS_CALL_REDUCE |
                                                 1u << LS_CALL_BROADCAST | 1u << LS_CALL_GATHER |
                                                 1u << LS_CALL_SCATTER,
                                  .sends_sums = true,
                                  .tree_order = ls_tree_order_always,
                                  .make = make,
                                  .cost = cost,
                                  .hosts_seconds = ls_hosts_seconds_near};
