/* direct.c - every worker sends each part straight to the one that needs it.
 *
 * reduce-scatter: block i of every input goes to worker i, which adds up all of them, piece by
 * piece, in tree order (tree.h, one leaf a worker). Then all-reduce gathers the blocks: each owner
 * sends its block to all others. All other collectives are one message from each source to each
 * destination.
 *
 *     all-reduce      2 (n-1) messages a worker, 2 (n-1)/n of the buffer's bytes
 *     reduce-scatter  n-1 messages, (n-1)/n of the bytes;  all-gather the same
 *     broadcast       scatter, then all-gather: (n-1)/n of the bytes a worker, twice that at the
 * root reduce          reduce-scatter, then each block to the root gather, scatter, all-to-all n-1
 * messages at the root, or at each worker
 *
 * exchange: every worker sends its whole input to all others, and each adds up all of them in tree
 * order. One step instead of two, (n-1) times the bytes: for short messages.
 *
 * Inputs meet where they are summed: halves are widened there, summed in f32 and rounded once.
 *
 * Source of the direct reduce-scatter: Iannello, "Efficient algorithms for the reduce-scatter
 * operation in LogGP", IEEE TPDS 8 (1997) 970-982; the order of the sums is ours.
 */
#include <stdlib.h>

#include "base/mem.h"
#include "coll/algorithm.h"
#include "coll/tree.h"
#include "tensor/dtype.h"

enum { WINDOW = 4 }; /* pieces of a block that may be on the way at once */

static const uint32_t ALL = (1u << LS_NCALLS) - 1;
/* One piece of a sum over the members: where each member's input lies. */
typedef struct piece_sum {
    ls_schedule *s;
    const ls_place *leaves; /* [size] */
    int own;                /* a leaf that must not be written; -1: none */
    size_t count;
} piece_sum;

/* The sum of leaves [lo, hi), in `target` if it is given. */
static ls_place sum_node(const piece_sum *p, int lo, int hi, const ls_place *target) {
    if (hi - lo == 1) return p->leaves[lo];
    int middle = ls_tree_split(lo, hi);
    ls_place left = sum_node(p, lo, middle, NULL), right = sum_node(p, middle, hi, NULL);
    ls_place out = target ? *target : middle - lo == 1 && lo == p->own ? right : left;
    ls_schedule_combine(p->s, left, right, out, p->count);
    return out;
}

/* out = sum of the leaves; halves are summed in `wide` [size * count]. */
static void sum_piece(const ls_call *c, piece_sum *p, int size, ls_place wide, ls_place out) {
    ls_schedule *s = p->s;
    if (!ls_dtype_is_half(s->dtype)) {
        ls_place sum = sum_node(p, 0, size, &out);
        if (size == 1) ls_schedule_copy(s, sum, out, p->count);
        ls_finish_average(c, s, out, p->count);
        return;
    }
    ls_place *wides = LS_NEW_ARRAY(ls_place, (size_t)size);
    for (int i = 0; i < size; i++) {
        wides[i] = ls_at(wide, (size_t)i * p->count);
        ls_schedule_copy(s, p->leaves[i], wides[i], p->count);
    }
    piece_sum w = {s, wides, -1, p->count};
    ls_place sum = sum_node(&w, 0, size, NULL);
    ls_finish_average(c, s, sum, p->count);
    ls_schedule_copy(s, sum, out, p->count);
    free(wides);
}

/* The members' pieces [first, first + count) of my block arrive in `slot`, and are summed. */
static void receive_piece(const ls_call *c, ls_schedule *s, const ls_team *t, ls_place mine,
                          ls_place slot, ls_place wide, size_t count, ls_place out) {
    ls_place *leaves = LS_NEW_ARRAY(ls_place, (size_t)t->size);
    for (int i = 0, free_slot = 0; i < t->size; i++)
        leaves[i] = i == t->me ? mine : ls_at(slot, count * (size_t)free_slot++);
    for (int k = 1; k < t->size; k++) {
        int from = (t->me + k) % t->size;
        ls_schedule_recv(s, ls_team_rank(t, from), leaves[from], count);
    }
    piece_sum p = {s, leaves, t->me, count};
    sum_piece(c, &p, t->size, wide, out);
    free(leaves);
}

/* Sends the pieces at `at` of all other members' blocks; false when no block is that long. */
static bool send_pieces(const ls_call *c, ls_schedule *s, const ls_team *t, ls_place in,
                        const size_t *offset, size_t at) {
    bool any = false;
    for (int k = 1; k < t->size; k++) {
        int to = (t->me + k) % t->size;
        size_t n = offset[to + 1] - offset[to];
        if (at >= n) continue;
        any = true;
        ls_schedule_send(s, ls_team_rank(t, to), ls_at(in, offset[to] + at), ls_piece(c, n - at));
    }
    return any;
}

void ls_direct_reduce_scatter(const ls_call *c, ls_schedule *s, const ls_team *t, ls_place in,
                              const size_t *offset, ls_place out) {
    size_t n = offset[t->me + 1] - offset[t->me], most = ls_piece(c, n);
    size_t others = (size_t)t->size - 1;
    ls_place slots[WINDOW], wides[WINDOW] = {0};
    size_t nslots = most == n ? 1 : WINDOW;
    for (size_t i = 0; i < nslots; i++) {
        slots[i] = ls_schedule_temp(s, others * most);
        if (ls_dtype_is_half(s->dtype)) wides[i] = ls_schedule_wide(s, (others + 1) * most);
    }
    size_t step = c->piece ? c->piece : SIZE_MAX / 2;
    for (size_t at = 0, i = 0;; at += step, i++) {
        bool sent = send_pieces(c, s, t, in, offset, at);
        if (at < n)
            receive_piece(c, s, t, ls_at(in, offset[t->me] + at), slots[i % nslots],
                          wides[i % nslots], ls_piece(c, n - at), ls_at(out, at));
        else if (!sent)
            break;
    }
}

/* Pieces of block i from member i to all. */
void ls_direct_all_gather(const ls_call *c, ls_schedule *s, const ls_team *t, ls_place buf,
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
                ls_schedule_send(s, ls_team_rank(t, to), ls_at(buf, offset[t->me] + at),
                                 ls_piece(c, mine - at));
            if (at < n)
                ls_schedule_recv(s, ls_team_rank(t, from), ls_at(buf, offset[from] + at),
                                 ls_piece(c, n - at));
        }
}

/* ---- the collectives ---- */

static const ls_place IN = {LS_IN, 0}, OUT = {LS_OUT, 0};

static void all_reduce(const ls_call *c, ls_schedule *s, const ls_team *t) {
    size_t *offset = ls_even_offsets(c->count, t->size);
    ls_direct_reduce_scatter(c, s, t, IN, offset, ls_at(OUT, offset[t->me]));
    ls_direct_all_gather(c, s, t, OUT, offset);
    free(offset);
}

static void reduce_scatter(const ls_call *c, ls_schedule *s, const ls_team *t) {
    size_t *offset = ls_call_offsets(c, t->size);
    ls_direct_reduce_scatter(c, s, t, IN, offset, OUT);
    free(offset);
}

static void all_gather(const ls_call *c, ls_schedule *s, const ls_team *t) {
    size_t *offset = ls_call_offsets(c, t->size);
    ls_schedule_copy(s, IN, ls_at(OUT, offset[t->me]), offset[t->me + 1] - offset[t->me]);
    ls_direct_all_gather(c, s, t, OUT, offset);
    free(offset);
}

static void gather_blocks(const ls_call *c, ls_schedule *s, const ls_team *t, ls_place mine,
                          const size_t *offset) {
    size_t n = offset[t->me + 1] - offset[t->me];
    if (t->me != c->root) {
        ls_schedule_send(s, c->root, mine, n);
        return;
    }
    ls_schedule_copy(s, mine, ls_at(OUT, offset[t->me]), n);
    for (int i = 0; i < t->size; i++)
        if (i != c->root) ls_schedule_recv(s, i, ls_at(OUT, offset[i]), offset[i + 1] - offset[i]);
}

static void scatter_blocks(const ls_call *c, ls_schedule *s, const ls_team *t, ls_place from,
                           const size_t *offset, ls_place mine) {
    size_t n = offset[t->me + 1] - offset[t->me];
    if (t->me != c->root) {
        ls_schedule_recv(s, c->root, mine, n);
        return;
    }
    for (int k = 1; k < t->size; k++) {
        int i = (t->me + k) % t->size;
        ls_schedule_send(s, i, ls_at(from, offset[i]), offset[i + 1] - offset[i]);
    }
    ls_schedule_copy(s, ls_at(from, offset[t->me]), mine, n);
}

static void broadcast(const ls_call *c, ls_schedule *s, const ls_team *t) {
    size_t *offset = ls_even_offsets(c->count, t->size);
    scatter_blocks(c, s, t, OUT, offset, ls_at(OUT, offset[t->me]));
    ls_direct_all_gather(c, s, t, OUT, offset);
    free(offset);
}

static void reduce(const ls_call *c, ls_schedule *s, const ls_team *t) {
    size_t *offset = ls_even_offsets(c->count, t->size);
    size_t n = offset[t->me + 1] - offset[t->me];
    ls_place mine = t->me == c->root ? ls_at(OUT, offset[t->me]) : ls_schedule_temp(s, n);
    ls_direct_reduce_scatter(c, s, t, IN, offset, mine);
    gather_blocks(c, s, t, mine, offset);
    free(offset);
}

static void gather(const ls_call *c, ls_schedule *s, const ls_team *t) {
    size_t *offset = ls_call_offsets(c, t->size);
    gather_blocks(c, s, t, IN, offset);
    free(offset);
}

static void scatter(const ls_call *c, ls_schedule *s, const ls_team *t) {
    size_t *offset = ls_call_offsets(c, t->size);
    scatter_blocks(c, s, t, IN, offset, OUT);
    free(offset);
}

static void all_to_all(const ls_call *c, ls_schedule *s, const ls_team *t) {
    ls_schedule_copy(s, ls_at(IN, (size_t)t->me * c->count), ls_at(OUT, (size_t)t->me * c->count),
                     c->count);
    for (int k = 1; k < t->size; k++) {
        int to = (t->me + k) % t->size, from = (t->me + t->size - k) % t->size;
        ls_schedule_send(s, to, ls_at(IN, (size_t)to * c->count), c->count);
        ls_schedule_recv(s, from, ls_at(OUT, (size_t)from * c->count), c->count);
    }
}

static void barrier(const ls_call *c, ls_schedule *s, const ls_team *t) {
    (void)c;
    ls_place token = ls_schedule_temp(s, (size_t)t->size);
    for (int k = 1; k < t->size; k++) {
        int to = (t->me + k) % t->size, from = (t->me + t->size - k) % t->size;
        ls_schedule_send(s, to, ls_at(token, (size_t)t->me), 1);
        ls_schedule_recv(s, from, ls_at(token, (size_t)from), 1);
    }
}

static void make_direct(const ls_call *c, ls_schedule *s) {
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
    case LS_CALL_BARRIER:
    case LS_NCALLS: barrier(c, s, &t); break;
    }
}

const ls_algorithm ls_direct = {.name = "direct",
                                .does = ALL,
                                .order = "tree",
                                .tree_order = ls_tree_order_always,
                                .make = make_direct};

/* Sends from IN before OUT is written, where they are one: the waits see to that. */
static void make_exchange(const ls_call *c, ls_schedule *s) {
    const ls_team t = {.size = s->size, .me = s->rank};
    for (int k = 1; k < t.size; k++) ls_schedule_send(s, (t.me + k) % t.size, IN, c->count);
    ls_place slot = ls_schedule_temp(s, ((size_t)t.size - 1) * c->count);
    ls_place wide = {LS_WIDE, 0};
    if (ls_dtype_is_half(s->dtype)) wide = ls_schedule_wide(s, (size_t)t.size * c->count);
    receive_piece(c, s, &t, IN, slot, wide, c->count, OUT);
}

const ls_algorithm ls_exchange = {.name = "exchange",
                                  .does = 1u << LS_CALL_ALL_REDUCE,
                                  .order = "tree",
                                  .tree_order = ls_tree_order_always,
                                  .make = make_exchange};
