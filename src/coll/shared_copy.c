/* shared_copy.c - what each collective copies from whom, over shared memory; see shared.h. */
#include <string.h>

#include "coll/shared_inside.h"

typedef struct extent {
    size_t from, to, nbytes; /* offsets in the source's input and in my output */
} extent;

static size_t offset_of(const ls_call *c, int member, size_t size) {
    if (!c->counts) return (size_t)member * c->count * size;
    size_t at = 0;
    for (int i = 0; i < member; i++) at += c->counts[i];
    return at * size;
}

/* What worker `reader` copies from `from`; of reductions, nothing. */
static extent part_of(const ls_call *c, int reader, int from) {
    size_t size = ls_dtype_size(c->dtype), block = c->count * size;
    switch (c->what) {
    case LS_CALL_ALL_GATHER:
        return (extent){0, offset_of(c, from, size),
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

void ls_shared_copy_parts(ls_shared *s, ls_shared_call *x) {
    for (int k = 0; k < s->size; k++) {
        int from = (s->rank + k) % s->size;
        extent p = part_of(&x->call, s->rank, from);
        const unsigned char *src = input_of(s, x, from) + p.from;
        if (p.nbytes && src != x->out + p.to) memcpy(x->out + p.to, src, p.nbytes);
        if (from != s->rank) s->bytes_read += p.nbytes;
    }
}

/* ---- staged ---- */

size_t ls_shared_copy_rounds(const ls_shared *s, const ls_call *c) {
    return (longest_nbytes(s, c) + HALF - 1) / HALF;
}

void ls_shared_copy_fill(ls_shared *s, ls_shared_call *x) {
    size_t at = x->round * HALF, n = source_nbytes(s, x);
    if (at < n) memcpy(half_of(s, x, s->rank), source(x) + at, n - at < HALF ? n - at : HALF);
}

/* The parts of my output that lie in this round's stages. */
void ls_shared_copy_staged(ls_shared *s, ls_shared_call *x) {
    size_t lo = x->round * HALF, hi = lo + HALF;
    for (int k = 0; k < s->size; k++) {
        int from = (s->rank + k) % s->size;
        extent p = part_of(&x->call, s->rank, from);
        size_t a = p.from > lo ? p.from : lo, b = p.from + p.nbytes < hi ? p.from + p.nbytes : hi;
        if (a >= b) continue;
        memcpy(x->out + p.to + (a - p.from), half_of(s, x, from) + (a - lo), b - a);
        if (from != s->rank) s->bytes_read += b - a;
    }
}
