/* shared_copy.c - what each collective copies from which worker, over shared memory; see
 * shared.h. */
#include "base/copy.h"
#include "coll/shared_inside.h"

typedef struct extent {
    size_t from, to, nbytes; /* offsets in the source's input and in this worker's output */
} extent;

/* ---- pairwise calls ---- */

/* A hash of a count from one member to another, so that different counts don't cancel. */
static uint64_t weight(int from, int to, uint64_t count) {
    uint64_t x = ((uint64_t)(uint32_t)from << 32 | (uint32_t)to) * 0x9e3779b97f4a7c15u;
    x = (x ^ x >> 29 ^ count) * 0xbf58476d1ce4e5b9u;
    return x ^ x >> 32;
}

void ls_shared_pairs_show(ls_shared *s, const ls_shared_call *x) {
    pairs *mine = pairs_of(s, x, s->rank);
    uint64_t first = 0, at = 0, balance = 0;
    for (int i = 0; i < s->size; i++) {
        pair p = {ls_call_sends(&x->call, s->rank, i), ls_call_receives(&x->call, s->rank, i),
                  first, at};
        mine->with[i] = p;
        first += p.sends;
        at += p.receives;
        balance += weight(s->rank, i, p.sends) - weight(i, s->rank, p.receives);
    }
    mine->nin = first;
    mine->balance = balance;
}

bool ls_shared_pairs_differ(const ls_shared *s, ls_shared_call *x) {
    uint64_t balance = 0;
    for (int i = 0; i < s->size; i++) balance += pairs_of(s, x, i)->balance;
    for (int i = 0; balance && i < s->size; i++)
        for (int k = 0; k < s->size; k++) {
            uint64_t sent = pairs_of(s, x, i)->with[k].sends;
            uint64_t expected = pairs_of(s, x, k)->with[i].receives;
            if (sent == expected) continue;
            x->miscount = (ls_miscount){.found = true,
                                        .what = (uint8_t)x->call.what,
                                        .dtype = (uint8_t)x->call.dtype,
                                        .from = i,
                                        .to = k,
                                        .number = x->number,
                                        .sent = sent,
                                        .expected = expected};
            return true;
        }
    return false;
}

static extent pair_of(const ls_shared *s, const ls_shared_call *x, int from) {
    size_t size = ls_dtype_size(x->call.dtype);
    const pair *theirs = &pairs_of(s, x, from)->with[s->rank];
    const pair *mine = &pairs_of(s, x, s->rank)->with[from];
    return (extent){theirs->first * size, mine->at * size, theirs->sends * size};
}

/* ---- all ---- */

/* What this worker copies from `from`: nothing in a reduction. */
static extent part_of(const ls_shared *s, const ls_shared_call *x, int from) {
    const ls_call *c = &x->call;
    int reader = s->rank;
    if (ls_collective_is_pairwise(c->what)) return pair_of(s, x, from);
    size_t size = ls_dtype_size(c->dtype), block = c->count * size;
    switch (c->what) {
    case LS_CALL_ALL_GATHER:
        return (extent){0, first_of_block(c, from) * size,
                        (c->counts ? c->counts[from] : c->count) * size};
    case LS_CALL_BROADCAST:
        return from == c->root && reader != from ? (extent){0, 0, block} : (extent){0};
    case LS_CALL_GATHER:
        return reader == c->root ? (extent){0, (size_t)from * block, block} : (extent){0};
    case LS_CALL_SCATTER:
        return from == c->root ? (extent){(size_t)reader * block, 0, block} : (extent){0};
    case LS_CALL_ALL_TO_ALL: return (extent){(size_t)reader * block, (size_t)from * block, block};
    default: return (extent){0};
    }
}

bool ls_shared_copy_parts(ls_shared *s, ls_shared_call *x) {
    for (int k = 0; k < s->size; k++) {
        int from = (s->rank + k) % s->size;
        extent p = part_of(s, x, from);
        if (!p.nbytes) continue; /* there may be no buffer */
        reading input = {.member = from, .at = p.from, .nbytes = p.nbytes};
        if (!ls_shared_read(s, x, input, x->out + p.to)) return false;
    }
    return true;
}

/* ---- staged ---- */

/* Elements of each block that a round of an all-to-all takes. A round takes a part of every block,
 * so that an in-place call overwrites only what is in its stage already. */
static size_t part_of_blocks(const ls_shared *s, const ls_call *c) {
    return s->part / ls_dtype_size(c->dtype) / (size_t)s->size;
}

/* This round's part of each block: bytes, and where it begins in the block. */
static size_t block_part(const ls_shared *s, const ls_shared_call *x, size_t *at_p) {
    size_t size = ls_dtype_size(x->call.dtype), part = part_of_blocks(s, &x->call);
    size_t at = x->round * part, left = x->call.count - at;
    *at_p = at * size;
    return (left < part ? left : part) * size;
}

static void fill_blocks(ls_shared *s, ls_shared_call *x) {
    size_t size = ls_dtype_size(x->call.dtype), block = x->call.count * size, at;
    size_t n = block_part(s, x, &at), part = part_of_blocks(s, &x->call) * size;
    for (int i = 0; i < s->size; i++)
        ls_copy(stage_of(s, x, s->rank) + (size_t)i * part, x->in + (size_t)i * block + at, n);
}

static void copy_blocks(ls_shared *s, ls_shared_call *x) {
    size_t size = ls_dtype_size(x->call.dtype), block = x->call.count * size, at;
    size_t n = block_part(s, x, &at), part = part_of_blocks(s, &x->call) * size;
    for (int k = 0; k < s->size; k++) {
        int from = (s->rank + k) % s->size;
        ls_copy(x->out + (size_t)from * block + at, stage_of(s, x, from) + (size_t)s->rank * part,
                n);
        if (from != s->rank) s->bytes_read += n;
    }
}

size_t ls_shared_copy_rounds(const ls_shared *s, const ls_shared_call *x) {
    size_t longest = longest_nbytes(s, &x->call), size = ls_dtype_size(x->call.dtype);
    size_t part = part_of_blocks(s, &x->call);
    if (x->call.what == LS_CALL_ALL_TO_ALL) return (x->call.count + part - 1) / part;
    for (int i = 0; ls_collective_is_pairwise(x->call.what) && i < s->size; i++) {
        size_t nbytes = pairs_of(s, x, i)->nin * size;
        if (nbytes > longest) longest = nbytes;
    }
    return (longest + s->part - 1) / s->part;
}

void ls_shared_copy_fill(ls_shared *s, ls_shared_call *x) {
    if (x->call.what == LS_CALL_ALL_TO_ALL) {
        fill_blocks(s, x);
        return;
    }
    size_t at = x->round * s->part, n = source_nbytes(s, x);
    if (at < n)
        ls_copy(stage_of(s, x, s->rank), source(x) + at, n - at < s->part ? n - at : s->part);
}

/* Copies the parts of this worker's output that lie in this round's stages. */
void ls_shared_copy_staged(ls_shared *s, ls_shared_call *x) {
    if (x->call.what == LS_CALL_ALL_TO_ALL) {
        copy_blocks(s, x);
        return;
    }
    size_t lo = x->round * s->part, hi = lo + s->part;
    for (int k = 0; k < s->size; k++) {
        int from = (s->rank + k) % s->size;
        extent p = part_of(s, x, from);
        size_t a = p.from > lo ? p.from : lo, b = p.from + p.nbytes < hi ? p.from + p.nbytes : hi;
        if (a >= b) continue;
        ls_copy(x->out + p.to + (a - p.from), stage_of(s, x, from) + (a - lo), b - a);
        if (from != s->rank) s->bytes_read += b - a;
    }
}
