/* ring.c - workers in a ring: each sends to the next and receives from the one before.
 *
 * reduce-scatter: the sum of block b starts at worker b+1 with that worker's input and travels
 * round the ring; each worker adds its own input and passes it on, until worker b has added the
 * last. In step k = 0 .. n-2, worker r sends the sum of block r-1-k and receives that of block
 * r-2-k. all-gather: in step k, worker r sends block r-k on, and receives block r-1-k. Blocks go in
 * pieces, so that a piece travels on while the next arrives.
 *
 *     all-reduce      2 (n-1) messages a worker (times the pieces), 2 (n-1)/n of the buffer's bytes
 *     reduce-scatter, all-gather   half of that
 *     broadcast       from the root round the ring in pieces: one message, all of the bytes
 *
 * Order of block b's sum: ((x[b+1] + x[b+2]) + ...) + x[b], numbers modulo n. It depends on n. Of
 * two workers it is that of the tree.
 *
 * Source: Patarasuk & Yuan, "Bandwidth optimal all-reduce algorithms for clusters of workstations",
 * J. Parallel Distrib. Comput. 69 (2009) 117-124.
 */
#include <math.h>
#include <stdlib.h>

#include "coll/algo/algorithm.h"
#include "tensor/dtype.h"

static const ls_place IN = {LS_IN, 0}, OUT = {LS_OUT, 0};

static int around(int i, int n) { return (i % n + n) % n; }

/* The sum of this worker's block goes to out. Two alternating slots hold the sums that pass
 * through. */
static void reduce_scatter(const ls_call *c, ls_coll_program *s, const size_t *offset,
                           ls_place out) {
    int n = s->size, r = s->rank, next = around(r + 1, n), before = around(r - 1, n);
    size_t longest = 0;
    for (int i = 0; i < n; i++)
        if (offset[i + 1] - offset[i] > longest) longest = offset[i + 1] - offset[i];
    ls_place slots[2] = {ls_coll_program_temp(s, longest), ls_coll_program_temp(s, longest)};
    if (n == 1) ls_coll_program_copy(s, ls_at(IN, offset[0]), out, offset[1] - offset[0]);
    for (int k = 0; k < n - 1; k++) {
        int sent = around(r - 1 - k, n), got = around(r - 2 - k, n);
        ls_place from = k == 0 ? ls_at(IN, offset[sent]) : slots[(k + 1) % 2], into = slots[k % 2];
        size_t nsent = offset[sent + 1] - offset[sent], ngot = offset[got + 1] - offset[got];
        for (size_t at = 0; at < nsent; at += ls_piece(c, nsent - at))
            ls_coll_program_send(s, next, ls_at(from, at), ls_piece(c, nsent - at));
        for (size_t at = 0; at < ngot; at += ls_piece(c, ngot - at)) {
            size_t count = ls_piece(c, ngot - at);
            ls_place sum = got == r ? ls_at(out, at) : ls_at(into, at);
            ls_place come = ls_at(into, at), own = ls_at(IN, offset[got] + at);
            bool left = n == 2 && r == 0; /* of two, as in the tree */
            ls_coll_program_recv(s, before, come, count);
            ls_coll_program_combine(s, left ? own : come, left ? come : own, sum, count);
        }
    }
    ls_finish_average(c, s, out, offset[r + 1] - offset[r]);
}

static void all_gather(const ls_call *c, ls_coll_program *s, const size_t *offset) {
    int n = s->size, r = s->rank, next = around(r + 1, n), before = around(r - 1, n);
    for (int k = 0; k < n - 1; k++) {
        int sent = around(r - k, n), got = around(r - 1 - k, n);
        size_t nsent = offset[sent + 1] - offset[sent], ngot = offset[got + 1] - offset[got];
        for (size_t at = 0; at < nsent; at += ls_piece(c, nsent - at))
            ls_coll_program_send(s, next, ls_at(OUT, offset[sent] + at), ls_piece(c, nsent - at));
        for (size_t at = 0; at < ngot; at += ls_piece(c, ngot - at))
            ls_coll_program_recv(s, before, ls_at(OUT, offset[got] + at), ls_piece(c, ngot - at));
    }
}

static void broadcast(const ls_call *c, ls_coll_program *s) {
    int n = s->size, r = s->rank;
    bool first = r == c->root, last = around(r + 1, n) == c->root;
    for (size_t at = 0; at < c->count; at += ls_piece(c, c->count - at)) {
        size_t count = ls_piece(c, c->count - at);
        if (!first) ls_coll_program_recv(s, around(r - 1, n), ls_at(OUT, at), count);
        if (!last) ls_coll_program_send(s, around(r + 1, n), ls_at(OUT, at), count);
    }
}

static void make(const ls_call *c, ls_coll_program *s) {
    int r = s->rank;
    size_t *offset = c->what == LS_CALL_ALL_REDUCE ? ls_even_offsets(c->count, s->size)
                                                   : ls_call_offsets(c, s->size);
    switch (c->what) {
    case LS_CALL_ALL_REDUCE:
        reduce_scatter(c, s, offset, ls_at(OUT, offset[r]));
        all_gather(c, s, offset);
        break;
    case LS_CALL_REDUCE_SCATTER: reduce_scatter(c, s, offset, OUT); break;
    case LS_CALL_ALL_GATHER:
        ls_coll_program_copy(s, IN, ls_at(OUT, offset[r]), offset[r + 1] - offset[r]);
        all_gather(c, s, offset);
        break;
    default: broadcast(c, s); break;
    }
    free(offset);
}

static ls_cost broadcast_cost(const ls_call *c, double nbytes, int n) {
    double size = (double)ls_dtype_size(c->dtype), others = n - 1.0, part = others / n;
    double pieces = fmax(ceil(nbytes / size / (double)ls_call_piece(c, n)), 1);
    return (ls_cost){.chain_messages = others,
                     .chain_sent = nbytes * (1 + (others - 1) / pieces),
                     .messages = part,
                     .sent = part * nbytes};
}

static ls_cost cost(const ls_call *c, double nbytes, int n) {
    double others = n - 1.0, part = others / n;
    ls_even_cost half = {.steps = others, .messages = others, .sent = others * nbytes};
    switch (c->what) {
    case LS_CALL_ALL_REDUCE:
        return ls_cost_even((ls_even_cost){.steps = 2 * others,
                                           .messages = 2 * others,
                                           .sent = 2 * part * nbytes,
                                           .added = part * nbytes});
    case LS_CALL_REDUCE_SCATTER: half.added = others * nbytes; return ls_cost_even(half);
    case LS_CALL_ALL_GATHER: return ls_cost_even(half);
    default: return broadcast_cost(c, nbytes, n);
    }
}

/* With two workers, the sum of block 1 is x[0] + x[1], that of block 0 x[1] + x[0]: the same bits.
 * */
const ls_algorithm ls_ring = {.name = "ring",
                              .collectives = 1u << LS_CALL_ALL_REDUCE |
                                             1u << LS_CALL_REDUCE_SCATTER |
                                             1u << LS_CALL_ALL_GATHER | 1u << LS_CALL_BROADCAST,
                              .sends_sums = true,
                              .tree_order = ls_tree_order_up_to_two,
                              .make = make,
                              .cost = cost,
                              .hosts_seconds = ls_hosts_seconds_near};
