/* prefix.c - scan and exscan: worker r gets the reduction of workers 0 .. r, or 0 .. r - 1.
 *
 * The order is that of the fixed tree over just these workers: the same bits as an all-reduce among
 * them alone. The tree over m workers adds up blocks of powers of two, the last two first: for
 * m = 7 (0..3) + ((4+5) + 6). These blocks are also nodes of the tree over more workers, so that
 * their sums can be shared.
 *
 * direct: every worker sends its vector to all after it, and each adds up what it gets.
 *
 * doubling: in the step of distance d = 1, 2, 4, ... partners r and r ^ d are the halves of a block
 * of 2 d workers. The lower one sends the sum of its half, which the upper one adds on the left of
 * what it has: what comes after it in the order of the tree is there already. The upper one sends
 * its half's sum back only where workers after the block need the sum of both.
 *
 *     direct     n - 1 - r messages of worker r, (n - 1) / 2 on average
 *     doubling   log2 n messages at most (rounded up)
 *
 * Source of the doubling: Hillis & Steele, "Data parallel algorithms", Comm. ACM 29 (1986)
 * 1170-1183, by blocks as MPICH's scan.
 */
#include <stdlib.h>

#include "coll/algo/algorithm.h"

static const ls_place IN = {LS_IN, 0}, OUT = {LS_OUT, 0};
enum { MAX_LOG = 31 };

/* One piece of a vector on its way; `got` and `acc` are temporary places. */
typedef struct piece {
    ls_coll_program *s;
    size_t count;
    ls_place in, out, acc, got[MAX_LOG];
    bool later; /* workers after the block need its sum */
} piece;

/* The upper half of a block: `own` is its sum, *prefix_p what this worker has (has_prefix). */
static ls_place upper(const piece *p, ls_place got, ls_place own, bool *has_p, ls_place *prefix_p) {
    if (p->later) ls_coll_program_combine(p->s, got, own, p->acc, p->count);
    if (*has_p)
        ls_coll_program_combine(p->s, got, *prefix_p, p->out, p->count);
    else
        ls_coll_program_copy(p->s, got, p->out, p->count);
    *has_p = true;
    *prefix_p = p->out;
    return p->later ? p->acc : own;
}

static void prefix_piece(piece *p, bool inclusive) {
    ls_coll_program *s = p->s;
    int n = s->size, r = s->rank;
    /* The sums of this worker's block, and of its workers up to this one. */
    ls_place own = p->in, prefix = p->in;
    bool has_prefix = inclusive;
    for (int d = 1, k = 0; d < n; d *= 2, k++) {
        int peer = r ^ d;
        p->later = (r & ~(2 * d - 1)) + 2 * d < n;
        if (peer >= n) continue;
        if (peer > r) {
            ls_coll_program_send(s, peer, own, p->count);
            if (!p->later) continue;
            ls_coll_program_recv(s, peer, p->got[k], p->count);
            ls_coll_program_combine(s, own, p->got[k], p->acc, p->count);
            own = p->acc;
        } else {
            if (p->later) ls_coll_program_send(s, peer, own, p->count);
            ls_coll_program_recv(s, peer, p->got[k], p->count);
            own = upper(p, p->got[k], own, &has_prefix, &prefix);
        }
    }
    if (has_prefix) ls_coll_program_copy(s, prefix, p->out, p->count);
}

void ls_doubling_prefix(const ls_call *c, ls_coll_program *s) {
    piece p = {.s = s};
    ls_place got[MAX_LOG], acc = ls_coll_program_temp(s, c->count);
    for (int d = 1, k = 0; d < s->size; d *= 2, k++) got[k] = ls_coll_program_temp(s, c->count);
    for (size_t at = 0; at < c->count; at += p.count) {
        p.count = ls_piece(c, c->count - at);
        p.in = ls_at(IN, at);
        p.out = ls_at(OUT, at);
        p.acc = ls_at(acc, at);
        for (int d = 1, k = 0; d < s->size; d *= 2, k++) p.got[k] = ls_at(got[k], at);
        prefix_piece(&p, c->what == LS_CALL_SCAN);
    }
}

/* Workers of higher rank make sums that the others don't make, and those of lower rank send
 * messages that the others don't send: each is counted. */
ls_cost ls_doubling_prefix_cost(const ls_call *c, double nbytes, int n) {
    double log = ls_ceil_log2(n), messages = 0, sums = 0;
    bool inclusive = c->what == LS_CALL_SCAN;
    for (int r = 0; r < n; r++)
        for (int d = 1, first = 1; d < n; d *= 2) {
            bool later = (r & ~(2 * d - 1)) + 2 * d < n, is_upper = r & d;
            if ((r ^ d) >= n) continue;
            messages += !is_upper || later;
            sums += later + (is_upper && (inclusive || !first));
            first = first && !is_upper;
        }
    return (ls_cost){.chain_messages = log,
                     .chain_sent = log * nbytes,
                     .chain_added = log * nbytes,
                     .messages = messages / n,
                     .sent = messages / n * nbytes,
                     .added = sums / n * nbytes};
}
