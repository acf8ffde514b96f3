/* halving.c - recursive halving and doubling: partners at distances 1, 2, 4, ...
 *
 * halving: an all-reduce of long vectors in few messages. Partners at distance 1 exchange halves of
 * the vector, and each adds up its own half; partners at distance 2 exchange halves of those, and
 * so on, until each worker has the sum of one part. The same steps backwards then gather the parts.
 * With the nearest partner first, the sums are those of the fixed tree when n is a power of two.
 * The reduce-scatter begins with the farthest partner instead, so that every worker ends at its own
 * block.
 *
 * doubling: the same exchanges, of the whole vector each: log2 n messages, one after the other, for
 * short vectors. All-gather and barrier, for any n: in the step of distance d, worker r receives
 * all that r + d has, and sends all that it has to r - d (modulo n). Scan and exscan: prefix.c.
 *
 * Any n: p is the largest power of two in n, and rest = n - p. The first 2 rest workers form pairs:
 * the even worker sends its vector to the odd one, waits, and receives the result. The odd workers
 * of the pairs, and all workers behind the pairs, are the p that take part.
 *
 *     halving all-reduce   2 log2 p messages, 2 (p-1)/p of the bytes; in a pair, the even worker
 *                          sends 1 message, and the odd one 1 more, each with all of the bytes
 *     doubling all-reduce  log2 p messages, log2 p times the bytes
 *     doubling all-gather  log2 n messages (rounded up; one more a step where blocks wrap round),
 *                          (n-1)/n of the bytes
 *
 * Order: the fixed tree when n is a power of two, for all-reduce; else a tree that depends on n.
 *
 * Source: Thakur, Rabenseifner & Gropp, "Optimization of collective communication operations in
 * MPICH", Int. J. High Perf. Comput. Appl. 19 (2005) 49-66; all-gather: Bruck et al., IEEE TPDS 8
 * (1997) 1143-1156.
 */
#include <stdlib.h>

#include "base/mem.h"
#include "coll/algo/algorithm.h"

static const ls_place IN = {LS_IN, 0}, OUT = {LS_OUT, 0};
enum { MAX_LOG = 31 };

typedef struct pairs {
    int p, rest;
    int me; /* this worker's number among the p that take part; -1: it gave its vector away */
} pairs;

static pairs pairs_of(int rank, int size) {
    pairs f = {.p = 1};
    while (f.p <= size / 2) f.p *= 2;
    f.rest = size - f.p;
    if (rank < 2 * f.rest)
        f.me = rank % 2 ? rank / 2 : -1;
    else
        f.me = rank - f.rest;
    return f;
}

static int pairs_rank(const pairs *f, int member) {
    return member < f->rest ? 2 * member + 1 : member + f->rest;
}

/* Adds the even worker's vector to the odd worker's; returns where the input of the p then lies. */
static ls_place fold(ls_coll_program *s, const pairs *f, size_t count, ls_place acc) {
    if (s->rank >= 2 * f->rest) return IN;
    if (f->me < 0) {
        ls_coll_program_send(s, s->rank + 1, IN, count);
        return IN;
    }
    ls_place got = ls_coll_program_temp(s, count);
    ls_coll_program_recv(s, s->rank - 1, got, count);
    ls_coll_program_combine(s, got, IN, acc, count);
    return acc;
}

/* The odd worker sends the even one `count` elements of the result. */
static void unfold(ls_coll_program *s, const pairs *f, ls_place from, size_t count) {
    if (s->rank >= 2 * f->rest) return;
    if (f->me < 0)
        ls_coll_program_recv(s, s->rank + 1, OUT, count);
    else
        ls_coll_program_send(s, s->rank - 1, from, count);
}

/* What this worker has, what the partner has, and where their sum goes. */
typedef struct exchanged {
    ls_place own, got, acc;
    size_t count;
} exchanged;

/* The lower-numbered of the two is on the left. */
static void add_partner(ls_coll_program *s, const pairs *f, int partner, const exchanged *x) {
    bool left = partner < f->me;
    ls_coll_program_combine(s, left ? x->got : x->own, left ? x->own : x->got, x->acc, x->count);
}

typedef struct range {
    int lo, hi; /* of the p parts */
} range;

/* The part of `r` that member `me` keeps at this distance, and the one that it gives. */
static void halve(range r, int me, int distance, range *keep_p, range *give_p) {
    int middle = (r.lo + r.hi) / 2;
    range low = {r.lo, middle}, high = {middle, r.hi};
    *keep_p = me & distance ? high : low;
    *give_p = me & distance ? low : high;
}

/* A vector in p parts. */
typedef struct parts {
    const size_t *offset; /* [p + 1] */
    ls_place own, acc;    /* this worker's input and sums, each of the whole vector */
} parts;

/* The sums of this worker's part, in acc; history [log2 p]: its range after each step. */
static range halving(ls_coll_program *s, const pairs *f, bool near_first, const parts *v,
                     range *history) {
    const size_t *offset = v->offset;
    ls_place own = v->own, acc = v->acc;
    range r = {0, f->p};
    int step = 0;
    for (int d = near_first ? 1 : f->p / 2; d >= 1 && d < f->p; d = near_first ? 2 * d : d / 2) {
        range keep, give;
        halve(r, f->me, d, &keep, &give);
        int partner = f->me ^ d, rank = pairs_rank(f, partner);
        size_t first = offset[keep.lo], count = offset[keep.hi] - first;
        ls_place got = ls_coll_program_temp(s, count);
        ls_coll_program_send(s, rank, ls_at(own, offset[give.lo]),
                             offset[give.hi] - offset[give.lo]);
        ls_coll_program_recv(s, rank, got, count);
        add_partner(s, f, partner, &(exchanged){ls_at(own, first), got, ls_at(acc, first), count});
        own = acc;
        history[step++] = r = keep;
    }
    return r;
}

/* Makes these steps backwards: buf gets the parts of all p. */
static void gather_back(ls_coll_program *s, const pairs *f, const size_t *offset, ls_place buf,
                        const range *history) {
    int step = 0;
    while (1 << step < f->p) step++;
    for (int d = f->p / 2; d >= 1; d /= 2) {
        range whole = --step ? history[step - 1] : (range){0, f->p}, mine = history[step];
        range theirs =
            mine.lo == whole.lo ? (range){mine.hi, whole.hi} : (range){whole.lo, mine.lo};
        int rank = pairs_rank(f, f->me ^ d);
        ls_coll_program_send(s, rank, ls_at(buf, offset[mine.lo]),
                             offset[mine.hi] - offset[mine.lo]);
        ls_coll_program_recv(s, rank, ls_at(buf, offset[theirs.lo]),
                             offset[theirs.hi] - offset[theirs.lo]);
    }
}

static void halving_all_reduce(const ls_call *c, ls_coll_program *s) {
    pairs f = pairs_of(s->rank, s->size);
    ls_place own = fold(s, &f, c->count, OUT);
    if (f.me >= 0) {
        range history[MAX_LOG];
        size_t *offset = ls_even_offsets(c->count, f.p);
        range r = halving(s, &f, true, &(parts){offset, own, OUT}, history);
        size_t first = offset[r.lo], count = offset[r.hi] - first;
        if (f.p == 1) ls_coll_program_copy(s, own, OUT, count);
        ls_finish_average(c, s, ls_at(OUT, first), count);
        gather_back(s, &f, offset, OUT, history);
        free(offset);
    }
    unfold(s, &f, OUT, c->count);
}

/* Part j of the vector has the blocks of member j: two if it is the odd one of a pair. */
static void halving_reduce_scatter(const ls_call *c, ls_coll_program *s) {
    pairs f = pairs_of(s->rank, s->size);
    size_t *block = ls_call_offsets(c, s->size), total = block[s->size];
    size_t mine = block[s->rank + 1] - block[s->rank];
    ls_place acc = ls_coll_program_temp(s, total), own = fold(s, &f, total, acc);
    if (f.me >= 0) {
        range history[MAX_LOG];
        size_t *offset = LS_NEW_ARRAY(size_t, (size_t)f.p + 1);
        for (int j = 0; j <= f.p; j++) offset[j] = block[j <= f.rest ? 2 * j : j + f.rest];
        range r = halving(s, &f, false, &(parts){offset, own, acc}, history);
        size_t first = offset[r.lo], count = offset[r.hi] - first;
        if (f.p == 1) ls_coll_program_copy(s, own, acc, count);
        ls_finish_average(c, s, ls_at(acc, first), count);
        ls_coll_program_copy(s, ls_at(acc, block[s->rank]), OUT, mine);
        free(offset);
    }
    /* The even worker of the pair gets its own block. */
    if (s->rank < 2 * f.rest) {
        int even = s->rank & ~1;
        unfold(s, &f, ls_at(acc, block[even]), block[even + 1] - block[even]);
    }
    free(block);
}

static void make_halving(const ls_call *c, ls_coll_program *s) {
    if (c->what == LS_CALL_ALL_REDUCE)
        halving_all_reduce(c, s);
    else
        halving_reduce_scatter(c, s);
}

/* ---- doubling ---- */

static void doubling_all_reduce(const ls_call *c, ls_coll_program *s) {
    pairs f = pairs_of(s->rank, s->size);
    ls_place own = fold(s, &f, c->count, OUT);
    if (f.me >= 0) {
        for (int d = 1; d < f.p; d *= 2) {
            int partner = f.me ^ d, rank = pairs_rank(&f, partner);
            ls_place got = ls_coll_program_temp(s, c->count);
            ls_coll_program_send(s, rank, own, c->count);
            ls_coll_program_recv(s, rank, got, c->count);
            add_partner(s, &f, partner, &(exchanged){own, got, OUT, c->count});
            own = OUT;
        }
        ls_coll_program_copy(s, own, OUT, c->count);
        ls_finish_average(c, s, OUT, c->count);
    }
    unfold(s, &f, OUT, c->count);
}

/* Blocks [first, first + n) modulo size of a buffer. */
typedef struct blocks {
    ls_place buf;
    const size_t *offset;
    int first, n;
} blocks;

/* Sends or receives them: in two runs where they wrap round. */
static void blocks_move(ls_coll_program *s, void (*move)(ls_coll_program *, int, ls_place, size_t),
                        int peer, const blocks *b) {
    int size = s->size, end = b->first + b->n <= size ? b->first + b->n : size;
    const size_t *offset = b->offset;
    move(s, peer, ls_at(b->buf, offset[b->first]), offset[end] - offset[b->first]);
    if (b->first + b->n > size) move(s, peer, b->buf, offset[b->first + b->n - size]);
}

static void dissemination(ls_coll_program *s, ls_place buf, const size_t *offset) {
    int n = s->size, r = s->rank;
    for (int d = 1; d < n; d *= 2) {
        int many = d < n - d ? d : n - d;
        const blocks mine = {buf, offset, r, many}, theirs = {buf, offset, (r + d) % n, many};
        blocks_move(s, ls_coll_program_send, (r - d + n) % n, &mine);
        blocks_move(s, ls_coll_program_recv, (r + d) % n, &theirs);
    }
}

static void make_doubling(const ls_call *c, ls_coll_program *s) {
    if (c->what == LS_CALL_ALL_REDUCE) {
        doubling_all_reduce(c, s);
        return;
    }
    if (ls_collective_is_prefix(c->what)) {
        ls_doubling_prefix(c, s);
        return;
    }
    bool barrier = c->what == LS_CALL_BARRIER;
    size_t *offset =
        barrier ? ls_even_offsets((size_t)s->size, s->size) : ls_call_offsets(c, s->size);
    ls_place buf = barrier ? ls_coll_program_temp(s, (size_t)s->size) : OUT;
    if (!barrier)
        ls_coll_program_copy(s, IN, ls_at(OUT, offset[s->rank]),
                             offset[s->rank + 1] - offset[s->rank]);
    dissemination(s, buf, offset);
    free(offset);
}

/* The reduce-scatter begins with the farthest partner. */
static bool power_of_two(ls_collective what, int n) {
    if (ls_collective_is_prefix(what)) return true;
    return (n & (n - 1)) == 0 && (what == LS_CALL_ALL_REDUCE || n <= 2);
}

/* ---- prices ---- */

/* `among` is the cost of the p workers that take part; the others' vectors (`whole` bytes) go to
 * them before, and the results back. */
static ls_cost among_power(int n, double whole, ls_even_cost among) {
    int p = 1 << (int)ls_floor_log2(n), rest = n - p;
    ls_cost x = ls_cost_even(among);
    if (!rest) return x;
    x.chain_messages += 2;
    x.chain_sent += 2 * whole;
    x.chain_added += whole;
    x.messages = (p * among.messages + 2 * rest) / n;
    x.sent = (p * among.sent + 2 * rest * whole) / n;
    x.added = (p * among.added + rest * whole) / n;
    return x;
}

static ls_cost halving_cost(const ls_call *c, double nbytes, int n) {
    double others = n - 1.0, log = ls_floor_log2(n), p = 1 << (int)log, part = (p - 1) / p;
    ls_even_cost among = {
        .steps = log, .messages = log, .sent = others * nbytes, .added = others * nbytes};
    if (c->what == LS_CALL_REDUCE_SCATTER) return among_power(n, n * nbytes, among);
    among = (ls_even_cost){
        .steps = 2 * log, .messages = 2 * log, .sent = 2 * part * nbytes, .added = part * nbytes};
    return among_power(n, nbytes, among);
}

/* One message a step, and one more where the blocks that go wrap round. */
static double wrapped_messages(int n) {
    double sum = 0;
    for (int d = 1; d < n; d *= 2) sum += 1 + ((d < n - d ? d : n - d) - 1.0) / n;
    return sum;
}

static ls_cost doubling_cost(const ls_call *c, double nbytes, int n) {
    double low = ls_floor_log2(n);
    ls_even_cost even = {.steps = ls_ceil_log2(n)};
    switch (c->what) {
    case LS_CALL_ALL_REDUCE:
        even = (ls_even_cost){
            .steps = low, .messages = low, .sent = low * nbytes, .added = low * nbytes};
        return among_power(n, nbytes, even);
    case LS_CALL_SCAN:
    case LS_CALL_EXSCAN: return ls_doubling_prefix_cost(c, nbytes, n);
    case LS_CALL_ALL_GATHER: even.sent = (n - 1.0) * nbytes; break;
    default: break; /* the bytes of a barrier don't count */
    }
    even.messages = wrapped_messages(n);
    return ls_cost_even(even);
}

const ls_algorithm ls_halving = {.name = "halving",
                                 .collectives =
                                     1u << LS_CALL_ALL_REDUCE | 1u << LS_CALL_REDUCE_SCATTER,
                                 .sends_sums = true,
                                 .tree_order = power_of_two,
                                 .make = make_halving,
                                 .cost = halving_cost,
                                 .hosts_seconds = ls_hosts_seconds_far};

const ls_algorithm ls_doubling = {.name = "doubling",
                                  .collectives = 1u << LS_CALL_ALL_REDUCE |
                                                 1u << LS_CALL_ALL_GATHER | 1u << LS_CALL_SCAN |
                                                 1u << LS_CALL_EXSCAN | 1u << LS_CALL_BARRIER,
                                  .sends_sums = true,
                                  .tree_order = power_of_two,
                                  .make = make_doubling,
                                  .cost = doubling_cost,
                                  .hosts_seconds = ls_hosts_seconds_far};
