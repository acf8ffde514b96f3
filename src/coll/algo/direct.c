/* direct.c - every worker sends each part straight to the one that needs it.
 *
 * reduce-scatter: block i of every input goes to worker i, which adds up all of them, piece by
 * piece, in tree order (tree.h, one leaf a worker). An all-reduce then gathers the blocks: each
 * owner sends its block to all others. All other collectives are one message from each source to
 * each destination.
 *
 *     all-reduce        2 (n-1) messages a worker, 2 (n-1)/n of the buffer's bytes
 *     reduce-scatter    n-1 messages, (n-1)/n of the bytes
 *     all-gather        the same
 *     broadcast         scatter, then all-gather: (n-1)/n of the bytes a worker, twice that at the
 *                       root
 *     reduce            reduce-scatter, then each block to the root
 *     gather, scatter   n-1 messages at the root
 *     all-to-all        n-1 messages at each worker
 *
 * With virtual workers each worker sends all its leaves (one, where V / n is a power of two), and
 * the owner finishes the tree over V.
 *
 * exchange: every worker sends its whole input to all others, and each adds up all of them in tree
 * order. One step instead of two, (n-1) times the bytes: for short messages.
 *
 * Inputs meet where they are summed: halves are widened there, summed in f32 and rounded once
 * (with virtual workers at every node of the tree: algorithm.h).
 *
 * Source of the direct reduce-scatter: Iannello, "Efficient algorithms for the reduce-scatter
 * operation in LogGP", IEEE TPDS 8 (1997) 970-982; the order of the sums is ours.
 */
#include <stdlib.h>

#include "base/mem.h"
#include "coll/algo/algorithm.h"
#include "coll/algo/tree.h"

enum { WINDOW = 4 }; /* pieces of a block that may be on the way at once */

static const uint32_t ALL = (1u << LS_NCALLS) - 1;

/* One piece of a sum: where each leaf's input lies. */
typedef struct piece_sum {
    ls_coll_program *s;
    const ls_leaves *leaves;
    const ls_place *at; /* [leaves->n] */
    int me;             /* the member whose leaves must not be overwritten; -1: none */
    size_t count;
    int next; /* leaves come from left to right */
} piece_sum;

typedef struct subtotal {
    ls_place at;
    bool own;
} subtotal;

/* The sum of node [lo, hi), in `target` if it is given and there is anything to add. At most one of
 * the two inputs of a sum is a leaf of this worker: a cover has no two halves of one node. */
static subtotal sum_node(piece_sum *p, int lo, int hi, const ls_place *target) {
    const ls_node *leaf = &p->leaves->nodes[p->next];
    if (leaf->lo == lo && leaf->hi == hi) {
        int i = p->next++;
        return (subtotal){p->at[i], p->leaves->worker[i] == p->me};
    }
    int middle = ls_tree_split(lo, hi);
    subtotal left = sum_node(p, lo, middle, NULL), right = sum_node(p, middle, hi, NULL);
    ls_place out = target ? *target : left.own ? right.at : left.at;
    ls_coll_program_combine(p->s, left.at, right.at, out, p->count);
    return (subtotal){out, false};
}

/* out = sum of the leaves; where they are widened, in `wide` [leaves * count]. */
static void sum_piece(const ls_call *c, piece_sum *p, ls_place wide, ls_place out) {
    ls_coll_program *s = p->s;
    int V = p->leaves->V, n = p->leaves->n;
    if (!ls_call_widens(c)) {
        subtotal sum = sum_node(p, 0, V, &out);
        if (n == 1) ls_coll_program_copy(s, sum.at, out, p->count);
        ls_finish_average(c, s, out, p->count);
        return;
    }
    ls_place *wides = LS_NEW_ARRAY(ls_place, (size_t)n);
    for (int i = 0; i < n; i++) {
        wides[i] = ls_at(wide, (size_t)i * p->count);
        ls_coll_program_copy(s, p->at[i], wides[i], p->count);
    }
    piece_sum w = {s, p->leaves, wides, -1, p->count, 0};
    subtotal sum = sum_node(&w, 0, V, NULL);
    ls_finish_average(c, s, sum.at, p->count);
    ls_coll_program_copy(s, sum.at, out, p->count);
    free(wides);
}

/* One piece of this worker's block: where its inputs and its sum go. */
typedef struct arrival {
    ls_place mine; /* that piece of this worker's first input */
    ls_place slot; /* the other members' pieces */
    ls_place wide; /* all pieces in f32, of halves */
    ls_place out;
    size_t count;
} arrival;

/* Receives a piece from the other members, and sums it. */
static void receive_piece(const ls_call *c, ls_coll_program *s, const ls_team *t,
                          const ls_leaves *l, const arrival *x) {
    ls_place *at = LS_NEW_ARRAY(ls_place, (size_t)l->n);
    for (int i = 0, taken = 0; i < l->n; i++)
        at[i] = l->worker[i] == t->me ? ls_at(x->mine, (size_t)l->slot[i] * c->stride)
                                      : ls_at(x->slot, x->count * (size_t)taken++);
    for (int k = 1; k < t->size; k++) {
        int from = (t->me + k) % t->size;
        for (int i = 0; i < l->n; i++)
            if (l->worker[i] == from)
                ls_coll_program_recv(s, ls_team_rank(t, from), at[i], x->count);
    }
    piece_sum p = {s, l, at, t->me, x->count, 0};
    sum_piece(c, &p, x->wide, x->out);
    free(at);
}

/* This worker's inputs, cut into the members' blocks. */
typedef struct inputs {
    ls_place first;
    int n;                /* c->stride elements between them */
    const size_t *offset; /* [size + 1] of the blocks */
} inputs;

/* Sends the pieces at `at` of all other members' blocks, from each of this worker's inputs; false
 * when no block is that long. */
static bool send_pieces(const ls_call *c, ls_coll_program *s, const ls_team *t, const inputs *in,
                        size_t at) {
    bool any = false;
    for (int k = 1; k < t->size; k++) {
        int to = (t->me + k) % t->size;
        size_t n = in->offset[to + 1] - in->offset[to];
        if (at >= n) continue;
        any = true;
        for (int i = 0; i < in->n; i++)
            ls_coll_program_send(s, ls_team_rank(t, to),
                                 ls_at(in->first, (size_t)i * c->stride + in->offset[to] + at),
                                 ls_piece(c, n - at));
    }
    return any;
}

void ls_direct_reduce_scatter(const ls_call *c, ls_coll_program *s, const ls_team *t, ls_place in,
                              const size_t *offset, ls_place out) {
    ls_leaves l;
    ls_tree_parts parts = ls_call_parts(c);
    ls_leaves_make(&parts, t->size, &l);
    const inputs own = {in, ls_leaves_of(&l, t->me), offset};
    size_t n = offset[t->me + 1] - offset[t->me], most = ls_piece(c, n);
    ls_place slots[WINDOW], wides[WINDOW] = {0};
    size_t nslots = most == n ? 1 : WINDOW;
    for (size_t i = 0; i < nslots; i++) {
        slots[i] = ls_coll_program_temp(s, (size_t)(l.n - own.n) * most);
        if (ls_call_widens(c)) wides[i] = ls_coll_program_wide(s, (size_t)l.n * most);
    }
    size_t step = c->piece ? c->piece : SIZE_MAX / 2;
    for (size_t at = 0, i = 0;; at += step, i++) {
        bool sent = send_pieces(c, s, t, &own, at);
        arrival x = {ls_at(in, offset[t->me] + at), slots[i % nslots], wides[i % nslots],
                     ls_at(out, at), 0};
        if (at < n) {
            x.count = ls_piece(c, n - at);
            receive_piece(c, s, t, &l, &x);
        } else if (!sent)
            break;
    }
    ls_leaves_free(&l);
}

/* Each member sends its block to all others, piece by piece. */
void ls_direct_all_gather(const ls_call *c, ls_coll_program *s, const ls_team *t, ls_place buf,
                          const size_t *offset) {
    size_t step = c->piece ? c->piece : SIZE_MAX / 2;
    size_t mine = offset[t->me + 1] - offset[t->me], longest = 0;
    for (int i = 0; i < t->size; i++)
        if (offset[i + 1] - offset[i] > longest) longest = offset[i + 1] - offset[i];
    for (size_t at = 0; at < longest; at += step)
        for (int k = 1; k < t->size; k++) {
            int to = (t->me + k) % t->size, from = (t->me + t->size - k) % t->size;
            size_t n = offset[from + 1] - offset[from];
            if (at < mine)
                ls_coll_program_send(s, ls_team_rank(t, to), ls_at(buf, offset[t->me] + at),
                                     ls_piece(c, mine - at));
            if (at < n)
                ls_coll_program_recv(s, ls_team_rank(t, from), ls_at(buf, offset[from] + at),
                                     ls_piece(c, n - at));
        }
}

/* ---- the collectives ---- */

static const ls_place IN = {LS_IN, 0}, OUT = {LS_OUT, 0};

static void all_reduce(const ls_call *c, ls_coll_program *s, const ls_team *t) {
    size_t *offset = ls_even_offsets(c->count, t->size);
    ls_direct_reduce_scatter(c, s, t, IN, offset, ls_at(OUT, offset[t->me]));
    ls_direct_all_gather(c, s, t, OUT, offset);
    free(offset);
}

static void reduce_scatter(const ls_call *c, ls_coll_program *s, const ls_team *t) {
    size_t *offset = ls_call_offsets(c, t->size);
    ls_direct_reduce_scatter(c, s, t, IN, offset, OUT);
    free(offset);
}

static void all_gather(const ls_call *c, ls_coll_program *s, const ls_team *t) {
    size_t *offset = ls_call_offsets(c, t->size);
    ls_coll_program_copy(s, IN, ls_at(OUT, offset[t->me]), offset[t->me + 1] - offset[t->me]);
    ls_direct_all_gather(c, s, t, OUT, offset);
    free(offset);
}

static void gather_blocks(const ls_call *c, ls_coll_program *s, const ls_team *t, ls_place mine,
                          const size_t *offset) {
    size_t n = offset[t->me + 1] - offset[t->me];
    if (t->me != c->root) {
        ls_coll_program_send(s, c->root, mine, n);
        return;
    }
    ls_coll_program_copy(s, mine, ls_at(OUT, offset[t->me]), n);
    for (int i = 0; i < t->size; i++)
        if (i != c->root)
            ls_coll_program_recv(s, i, ls_at(OUT, offset[i]), offset[i + 1] - offset[i]);
}

static void scatter_blocks(const ls_call *c, ls_coll_program *s, const ls_team *t, ls_place from,
                           const size_t *offset, ls_place mine) {
    size_t n = offset[t->me + 1] - offset[t->me];
    if (t->me != c->root) {
        ls_coll_program_recv(s, c->root, mine, n);
        return;
    }
    for (int k = 1; k < t->size; k++) {
        int i = (t->me + k) % t->size;
        ls_coll_program_send(s, i, ls_at(from, offset[i]), offset[i + 1] - offset[i]);
    }
    ls_coll_program_copy(s, ls_at(from, offset[t->me]), mine, n);
}

static void broadcast(const ls_call *c, ls_coll_program *s, const ls_team *t) {
    size_t *offset = ls_even_offsets(c->count, t->size);
    scatter_blocks(c, s, t, OUT, offset, ls_at(OUT, offset[t->me]));
    ls_direct_all_gather(c, s, t, OUT, offset);
    free(offset);
}

static void reduce(const ls_call *c, ls_coll_program *s, const ls_team *t) {
    size_t *offset = ls_even_offsets(c->count, t->size);
    size_t n = offset[t->me + 1] - offset[t->me];
    ls_place mine = t->me == c->root ? ls_at(OUT, offset[t->me]) : ls_coll_program_temp(s, n);
    ls_direct_reduce_scatter(c, s, t, IN, offset, mine);
    gather_blocks(c, s, t, mine, offset);
    free(offset);
}

static void gather(const ls_call *c, ls_coll_program *s, const ls_team *t) {
    size_t *offset = ls_call_offsets(c, t->size);
    gather_blocks(c, s, t, IN, offset);
    free(offset);
}

static void scatter(const ls_call *c, ls_coll_program *s, const ls_team *t) {
    size_t *offset = ls_call_offsets(c, t->size);
    scatter_blocks(c, s, t, IN, offset, OUT);
    free(offset);
}

/* In place, a block that arrives waits in TEMP until the block that it replaces has been sent. */
static void all_to_all(const ls_call *c, ls_coll_program *s, const ls_team *t) {
    int n = t->size, me = t->me;
    bool in_place = s->place.overlap != LS_APART;
    ls_place room = {LS_TEMP, 0};
    if (in_place) room = ls_coll_program_temp(s, (size_t)(n - 1) * c->count);
    ls_coll_program_copy(s, ls_at(IN, (size_t)me * c->count), ls_at(OUT, (size_t)me * c->count),
                         c->count);
    for (int k = 1; k < n; k++) {
        int to = (me + k) % n, from = (me + n - k) % n;
        ls_place at = in_place ? ls_at(room, (size_t)(k - 1) * c->count)
                               : ls_at(OUT, (size_t)from * c->count);
        ls_coll_program_send(s, to, ls_at(IN, (size_t)to * c->count), c->count);
        ls_coll_program_recv(s, from, at, c->count);
    }
    for (int k = 1; k < n && in_place; k++)
        ls_coll_program_copy(s, ls_at(room, (size_t)(k - 1) * c->count),
                             ls_at(OUT, (size_t)((me + n - k) % n) * c->count), c->count);
}

/* Two workers that may send elements to each other always exchange messages, empty ones too: so
 * both sides see both counts. */
static void pairwise(const ls_call *c, ls_coll_program *s, const ls_team *t) {
    int n = t->size, me = t->me;
    size_t *in = LS_NEW_ARRAY(size_t, (size_t)n + 1), *out = LS_NEW_ARRAY(size_t, (size_t)n + 1);
    for (int i = 0; i < n; i++) {
        in[i + 1] = in[i] + ls_call_sends(c, me, i);
        out[i + 1] = out[i] + ls_call_receives(c, me, i);
    }
    ls_coll_program_copy(s, ls_at(IN, in[me]), ls_at(OUT, out[me]), in[me + 1] - in[me]);
    for (int k = 1; k < n; k++) {
        int to = (me + k) % n, from = (me + n - k) % n;
        if (ls_call_pairs(c, me, to))
            ls_coll_program_send_counted(s, to, ls_at(IN, in[to]), in[to + 1] - in[to],
                                         out[to + 1] - out[to]);
        if (ls_call_pairs(c, me, from))
            ls_coll_program_recv_counted(s, from, ls_at(OUT, out[from]), out[from + 1] - out[from],
                                         in[from + 1] - in[from]);
    }
    free(in);
    free(out);
}

/* Sums the inputs of the workers before this one, and (scan) its own, in the order of the tree over
 * these workers. */
static void prefix(const ls_call *c, ls_coll_program *s) {
    int me = s->rank, n = c->what == LS_CALL_SCAN ? me + 1 : me;
    ls_place slot = ls_coll_program_temp(s, (size_t)me * c->count), wide = {LS_WIDE, 0};
    ls_place *at = LS_NEW_ARRAY(ls_place, (size_t)me + 1);
    for (int to = me + 1; to < s->size; to++) ls_coll_program_send(s, to, IN, c->count);
    for (int from = 0; from < me; from++) {
        at[from] = ls_at(slot, (size_t)from * c->count);
        ls_coll_program_recv(s, from, at[from], c->count);
    }
    at[me] = IN;
    if (n > 0) {
        ls_leaves l;
        ls_leaves_make(&(ls_tree_parts){0}, n, &l);
        if (ls_call_widens(c)) wide = ls_coll_program_wide(s, (size_t)n * c->count);
        piece_sum p = {s, &l, at, me, c->count, 0};
        sum_piece(c, &p, wide, OUT);
        ls_leaves_free(&l);
    }
    free(at);
}

static void barrier(const ls_call *c, ls_coll_program *s, const ls_team *t) {
    (void)c;
    ls_place token = ls_coll_program_temp(s, (size_t)t->size);
    for (int k = 1; k < t->size; k++) {
        int to = (t->me + k) % t->size, from = (t->me + t->size - k) % t->size;
        ls_coll_program_send(s, to, ls_at(token, (size_t)t->me), 1);
        ls_coll_program_recv(s, from, ls_at(token, (size_t)from), 1);
    }
}

static void make_direct(const ls_call *c, ls_coll_program *s) {
    const ls_team t = {.size = s->size, .me = s->rank};
    switch (c->what) {
    case LS_CALL_ALL_REDUCE: all_reduce(c, s, &t); break;
    case LS_CALL_REDUCE_SCATTER: reduce_scatter(c, s, &t); break;
    case LS_CALL_ALL_GATHER: all_gather(c, s, &t); break;
    case LS_CALL_BROADCAST: broadcast(c, s, &t); break;
    case LS_CALL_REDUCE: reduce(c, s, &t); break;
    case LS_CALL_GATHER: gather(c, s, &t); break;
    case LS_CALL_SCATTER: scatter(c, s, &t); break;
    case LS_CALL_ALL_TO_ALL: all_to_all(c, s, &t); break;
    case LS_CALL_ALL_TO_ALL_V:
    case LS_CALL_GATHER_V:
    case LS_CALL_SCATTER_V: pairwise(c, s, &t); break;
    case LS_CALL_SCAN:
    case LS_CALL_EXSCAN: prefix(c, s); break;
    case LS_CALL_BARRIER:
    case LS_NCALLS: barrier(c, s, &t); break;
    }
}

/* A block to or from the root, scattered or gathered, beside a reduce-scatter or an all-gather. */
static ls_cost by_blocks(double nbytes, int n, double added) {
    double others = n - 1.0, part = others / n;
    return (ls_cost){.chain_messages = 2 + 0.2 * (others - 1),
                     .chain_sent = 2 * part * nbytes,
                     .chain_added = part * added,
                     .messages = others + part,
                     .sent = part * nbytes * (1 + 1.0 / n),
                     .added = part * added};
}

/* One message to or from the root; `answers`: each is answered by an empty one. */
static ls_cost at_root(double nbytes, int n, bool answers) {
    double others = n - 1.0, part = others / n;
    return (ls_cost){.chain_messages = 1 + (answers ? 0.2 : 0.1) * (others - 1),
                     .chain_sent = others * nbytes,
                     .messages = answers ? 2 * part : part,
                     .sent = part * nbytes};
}

/* Workers of higher rank sum more than the others. */
static ls_cost prefix_cost(const ls_call *c, double nbytes, int n) {
    double others = n - 1.0;
    double sums = c->what == LS_CALL_SCAN ? others / 2 : others * (n - 2) / 2 / n;
    return (ls_cost){.chain_messages = 1 + 0.1 * (others - 1),
                     .chain_sent = others * nbytes,
                     .chain_added = others * nbytes,
                     .messages = others / 2,
                     .sent = others / 2 * nbytes,
                     .added = sums * nbytes};
}

static ls_cost direct_cost(const ls_call *c, double nbytes, int n) {
    double others = n - 1.0, part = others / n;
    ls_even_cost even = {.steps = 1, .further = others - 1, .messages = others};
    even.sent = others * nbytes;
    switch (c->what) {
    case LS_CALL_ALL_REDUCE:
        return ls_cost_even((ls_even_cost){.steps = 2,
                                           .further = 2 * (others - 1),
                                           .messages = 2 * others,
                                           .sent = 2 * part * nbytes,
                                           .added = part * nbytes});
    case LS_CALL_REDUCE_SCATTER: even.added = others * nbytes; break;
    case LS_CALL_BROADCAST: return by_blocks(nbytes, n, 0);
    case LS_CALL_REDUCE: return by_blocks(nbytes, n, nbytes);
    case LS_CALL_GATHER:
    case LS_CALL_SCATTER: return at_root(nbytes, n, false);
    case LS_CALL_GATHER_V:
    case LS_CALL_SCATTER_V: return at_root(nbytes, n, true);
    case LS_CALL_SCAN:
    case LS_CALL_EXSCAN: return prefix_cost(c, nbytes, n);
    case LS_CALL_BARRIER: even.sent = 0; break; /* its bytes don't count */
    default: break;
    }
    return ls_cost_even(even);
}

const ls_algorithm ls_direct = {.name = "direct",
                                .collectives = ALL,
                                .virtual_workers = true,
                                .tree_order = ls_tree_order_always,
                                .make = make_direct,
                                .cost = direct_cost,
                                .hosts_seconds = ls_hosts_seconds_far};

/* Where IN and OUT are one, the waits make every send from IN precede the write of OUT. */
static void make_exchange(const ls_call *c, ls_coll_program *s) {
    const ls_team t = {.size = s->size, .me = s->rank};
    for (int k = 1; k < t.size; k++) ls_coll_program_send(s, (t.me + k) % t.size, IN, c->count);
    ls_place slot = ls_coll_program_temp(s, ((size_t)t.size - 1) * c->count);
    ls_place wide = {LS_WIDE, 0};
    if (ls_call_widens(c)) wide = ls_coll_program_wide(s, (size_t)t.size * c->count);
    ls_leaves l;
    ls_leaves_make(&(ls_tree_parts){0}, t.size, &l);
    receive_piece(c, s, &t, &l, &(arrival){IN, slot, wide, OUT, c->count});
    ls_leaves_free(&l);
}

static ls_cost exchange_cost(const ls_call *c, double nbytes, int n) {
    (void)c;
    double others = n - 1.0;
    return ls_cost_even((ls_even_cost){.steps = 1,
                                       .further = others - 1,
                                       .messages = others,
                                       .sent = others * nbytes,
                                       .added = others * nbytes});
}

const ls_algorithm ls_exchange = {.name = "exchange",
                                  .collectives = 1u << LS_CALL_ALL_REDUCE,
                                  .tree_order = ls_tree_order_always,
                                  .make = make_exchange,
                                  .cost = exchange_cost,
                                  .hosts_seconds = ls_hosts_seconds_far};
