/* shared_reduce.c - sums over shared memory, in tree order (tree.h); see shared.h. */
#include <stdlib.h>
#include <string.h>

#include "base/copy.h"
#include "base/mem.h"
#include "coll/shared_inside.h"

/* The leaves of a sum, and memory to read them. */
typedef struct leaf_set {
    ls_leaves leaves; /* n 0: none so far */
    ls_tree_parts parts;
    int *first;                 /* [size + 1] a copy, or NULL */
    float *widened;             /* [leaves.n][PIECE / 2], of halves */
    const void **data, **wides; /* [leaves.n] */
    const unsigned char **base; /* [leaves.n] */
} leaf_set;

/* A step has sums over virtual workers and sums over workers: both are retained. */
enum { SETS = 4 };

struct scratch {
    leaf_set sets[SETS], *now;
    int oldest;
    float wide[PIECE / 2];
};

static void free_set(leaf_set *x) {
    ls_leaves_free(&x->leaves);
    free(x->first);
    free(x->widened);
    free(x->data);
    free(x->wides);
    free(x->base);
}

static void make_set(const ls_shared *s, const ls_tree_parts *p, leaf_set *x) {
    const int *first = p->first;
    size_t nbytes = ((size_t)s->size + 1) * sizeof *first;
    free_set(x);
    *x = (leaf_set){.parts = *p};
    if (first) x->parts.first = x->first = memcpy(ls_alloc(nbytes), first, nbytes);
    ls_leaves_make(&x->parts, s->size, &x->leaves);
    size_t n = (size_t)x->leaves.n;
    x->widened = LS_NEW_ARRAY(float, n *(PIECE / 2));
    x->data = LS_NEW_ARRAY(const void *, n);
    x->wides = LS_NEW_ARRAY(const void *, n);
    x->base = LS_NEW_ARRAY(const unsigned char *, n);
}

static bool is_set(const ls_shared *s, const leaf_set *x, const ls_tree_parts *p) {
    const int *first = p->first;
    size_t nbytes = ((size_t)s->size + 1) * sizeof *first;
    if (!x->leaves.n || x->parts.V != p->V || !x->first != !first) return false;
    if (x->parts.chunks != p->chunks || x->parts.context != p->context) return false;
    return !first || memcmp(x->first, first, nbytes) == 0;
}

/* scratch->now: the leaves of sums over these virtual workers. */
static void make_leaves(const ls_shared *s, const ls_tree_parts *p) {
    struct scratch *w = s->scratch;
    if (is_set(s, w->now, p)) return;
    for (int i = 0; i < SETS; i++) {
        w->now = &w->sets[i];
        if (is_set(s, w->now, p)) return;
    }
    w->now = &w->sets[w->oldest];
    w->oldest = (w->oldest + 1) % SETS;
    make_set(s, p, w->now);
}

static void make_leaves_of(const ls_shared *s, const ls_call *c) {
    ls_tree_parts parts = ls_call_parts(c);
    make_leaves(s, &parts);
}

struct scratch *ls_shared_scratch_new(const ls_shared *s) {
    struct scratch *w = LS_NEW(struct scratch);
    w->now = w->sets;
    ls_shared t = {.size = s->size, .scratch = w};
    make_leaves(&t, &(ls_tree_parts){0});
    return w;
}

void ls_shared_scratch_free(struct scratch *w) {
    for (int i = 0; w && i < SETS; i++) free_set(&w->sets[i]);
    free(w);
}

/* ---- blocks ---- */

/* The elements that worker `member` reduces. */
static void block_of(const ls_shared *s, const ls_call *c, int member, size_t *first_p,
                     size_t *end_p) {
    if (c->what == LS_CALL_REDUCE_SCATTER) {
        *first_p = first_of_block(c, member);
        *end_p = first_of_block(c, member + 1);
        return;
    }
    /* Whole cache lines, so that no two workers write to one. */
    size_t size = ls_dtype_size(c->dtype), line = size < 64 ? 64 / size : 1;
    size_t lines = (c->count + line - 1) / line;
    size_t first = ls_block(lines, s->size, member) * line;
    size_t end = ls_block(lines, s->size, member + 1) * line;
    *first_p = first < c->count ? first : c->count;
    *end_p = end < c->count ? end : c->count;
}

/* out [n] = the reduction of the first `leaves` of data [leaves][n]; n elements are PIECE bytes at
 * most. */
static void reduce_piece(ls_shared *s, const ls_call *c, int leaves, size_t n, void *out) {
    struct scratch *w = s->scratch;
    const leaf_set *x = w->now;
    ls_tree_sum sum = {
        .dtype = c->dtype, .op = c->op, .by = c->by, .V = x->leaves.V, .nleaves = leaves};
    if (leaves < x->leaves.n) sum.V = leaves; /* the tree over these workers alone */
    sum.nodes = x->leaves.nodes;
    sum.data = x->data;
    if (!ls_call_widens(c)) {
        ls_tree_sum_run(&sum, s->k, 0, n, out);
        if (c->op == LS_AVG && !c->V) s->k->average(c->dtype, n, s->size, out);
        return;
    }
    for (int i = 0; i < leaves; i++) {
        float *leaf = x->widened + (size_t)i * (PIECE / 2);
        s->k->widen(c->dtype, n, x->data[i], leaf);
        x->wides[i] = leaf;
    }
    sum.dtype = LS_F32;
    sum.data = x->wides;
    ls_tree_sum_run(&sum, s->k, 0, n, w->wide);
    if (c->op == LS_AVG && !c->V) s->k->average(LS_F32, n, s->size, w->wide);
    s->k->narrow(c->dtype, n, w->wide, out);
}

/* Elements [first, end) of the first `leaves` inputs (scratch->base) into out. */
static void reduce_first(ls_shared *s, const ls_call *c, int leaves, size_t first, size_t end,
                         unsigned char *out) {
    const leaf_set *x = s->scratch->now;
    size_t size = ls_dtype_size(c->dtype), most = PIECE / size;
    for (size_t at = first; at < end; at += most) {
        size_t n = end - at < most ? end - at : most;
        for (int i = 0; i < leaves; i++) x->data[i] = x->base[i] + at * size;
        reduce_piece(s, c, leaves, n, out + (at - first) * size);
    }
}

/* Reduces elements [first, end) of all inputs. */
static void reduce_range(ls_shared *s, const ls_call *c, size_t first, size_t end,
                         unsigned char *out) {
    const ls_leaves *l = &s->scratch->now->leaves;
    reduce_first(s, c, l->n, first, end, out);
    s->bytes_read +=
        (end - first) * ls_dtype_size(c->dtype) * (size_t)(l->n - ls_leaves_of(l, s->rank));
}

/* Finds where the call's inputs lie, one for each leaf. */
static const unsigned char **find_inputs(const ls_shared *s, const ls_shared_call *x) {
    make_leaves_of(s, &x->call);
    const ls_leaves *l = &s->scratch->now->leaves;
    size_t stride = x->call.stride * ls_dtype_size(x->call.dtype);
    for (int i = 0; i < l->n; i++)
        s->scratch->now->base[i] = input_of(s, x, l->worker[i]) + (size_t)l->slot[i] * stride;
    return s->scratch->now->base;
}

/* ---- scan and exscan ---- */

/* The number of inputs that worker `member` adds up: of all workers up to it, or before it. */
static int prefix_leaves(const ls_call *c, int member) {
    return c->what == LS_CALL_SCAN ? member + 1 : member;
}

/* Elements [first, end) of every worker's result; out(i): where worker i's goes. Goes from the last
 * worker to the first: a result may replace its worker's input, which earlier workers don't
 * need. */
typedef unsigned char *prefix_out_fn(ls_shared *, const ls_shared_call *, int member);
static void reduce_prefixes(ls_shared *s, const ls_shared_call *x, size_t first, size_t end,
                            prefix_out_fn *out) {
    size_t size = ls_dtype_size(x->call.dtype), most = PIECE / size;
    for (size_t at = first; at < end; at += most) {
        size_t stop = end - at < most ? end : at + most;
        for (int i = s->size - 1; i >= 0; i--) {
            int leaves = prefix_leaves(&x->call, i);
            if (leaves) reduce_first(s, &x->call, leaves, at, stop, out(s, x, i) + at * size);
        }
    }
    s->bytes_read += (end - first) * size * (size_t)(s->size - 1);
}

static unsigned char *out_of(ls_shared *s, const ls_shared_call *x, int member) {
    return ls_commons_at(s->commons, slot_of(s, x, member)->out);
}

/* ---- all ---- */

void ls_shared_reduce_small(ls_shared *s, ls_shared_call *x) {
    size_t first = 0, end = x->call.count;
    if (x->call.what == LS_CALL_REDUCE_SCATTER) block_of(s, &x->call, s->rank, &first, &end);
    if (x->call.what == LS_CALL_REDUCE && s->rank != x->call.root) return;
    find_inputs(s, x);
    if (!ls_collective_is_prefix(x->call.what)) {
        reduce_range(s, &x->call, first, end, x->out);
        return;
    }
    int leaves = prefix_leaves(&x->call, s->rank);
    if (leaves) reduce_first(s, &x->call, leaves, first, end, x->out);
    s->bytes_read += (end - first) * ls_dtype_size(x->call.dtype) * (size_t)s->rank;
}

/* The all-reduce of two workers that is one addition: combine_both() writes both outputs. */
static bool is_one_addition(const ls_shared *s, const ls_call *c) {
    return s->size == 2 && c->what == LS_CALL_ALL_REDUCE && c->V == 0 && c->op != LS_AVG &&
           !c->by && !ls_dtype_is_half(c->dtype);
}

/* Elements [first, end) of all inputs, reduced, at `to` and at `also`. Piece by piece, each of
 * which is copied while it is in the cache. */
static void reduce_twice(ls_shared *s, const ls_call *c, size_t first, size_t end,
                         unsigned char *to, unsigned char *also) {
    size_t size = ls_dtype_size(c->dtype), most = PIECE / size;
    if (is_one_addition(s, c)) {
        const unsigned char **base = s->scratch->now->base;
        s->k->combine_both(c->dtype, c->op, end - first, base[0] + first * size,
                           base[1] + first * size, to, also);
        s->bytes_read += (end - first) * size;
        return;
    }
    for (size_t at = first; at < end; at += most) {
        size_t stop = end - at < most ? end : at + most, n = (stop - at) * size;
        reduce_range(s, c, at, stop, to);
        ls_copy(also, to, n);
        to += n;
        also += n;
    }
}

/* Piece by piece, each of which is copied to all outputs while it is in the cache. */
void ls_shared_reduce_direct(ls_shared *s, ls_shared_call *x) {
    const ls_call *c = &x->call;
    size_t first, end, size = ls_dtype_size(c->dtype), most = PIECE / size;
    block_of(s, c, s->rank, &first, &end);
    find_inputs(s, x);
    if (c->what == LS_CALL_REDUCE_SCATTER) {
        reduce_range(s, c, first, end, x->out);
        return;
    }
    if (ls_collective_is_prefix(c->what)) {
        reduce_prefixes(s, x, first, end, out_of);
        return;
    }
    int target = c->what == LS_CALL_REDUCE ? c->root : s->rank;
    unsigned char *out = ls_commons_at(s->commons, slot_of(s, x, target)->out);
    if (is_one_addition(s, c)) {
        unsigned char *other = ls_commons_at(s->commons, slot_of(s, x, 1 - s->rank)->out);
        reduce_twice(s, c, first, end, out + first * size, other + first * size);
        return;
    }
    for (size_t at = first; at < end; at += most) {
        size_t stop = end - at < most ? end : at + most;
        reduce_range(s, c, at, stop, out + at * size);
        for (int i = 0; i < s->size && c->what == LS_CALL_ALL_REDUCE; i++) {
            unsigned char *to = ls_commons_at(s->commons, slot_of(s, x, i)->out);
            if (i != s->rank) ls_copy(to + at * size, out + at * size, (stop - at) * size);
        }
    }
}

/* ---- staged ---- */

/* Elements of a block that go through the stage in one round. It holds the parts of all blocks of a
 * worker's first leaf, then those of the next. */
static size_t staged_part(const ls_shared *s, const ls_call *c) {
    make_leaves_of(s, c);
    size_t parts = (size_t)s->size * (size_t)s->scratch->now->leaves.most;
    size_t size = ls_dtype_size(c->dtype), round = LS_SHARED_ELEMENTS;
    /* Workers that take turns on the cores wait long for each other: few rounds. A call of a few
     * parts has more rounds of less: filling one and adding the last overlap. */
    if (s->size > s->commons->head->cores && longest_nbytes(s, c) > 4 * s->part) round = s->part;
    size_t least = size > PIECE ? size : PIECE; /* of each part */
    if (round < parts * least) round = s->part;
    return round / parts / size;
}

size_t ls_shared_reduce_rounds(const ls_shared *s, const ls_call *c) {
    size_t longest = 0, part = staged_part(s, c);
    for (int i = 0; i < s->size; i++) {
        size_t first, end;
        block_of(s, c, i, &first, &end);
        if (end - first > longest) longest = end - first;
    }
    return (longest + part - 1) / part;
}

/* This round's elements of a block. */
static void staged_range(const ls_shared *s, const ls_shared_call *x, int block, size_t *first_p,
                         size_t *n_p) {
    size_t first, end, part = staged_part(s, &x->call);
    block_of(s, &x->call, block, &first, &end);
    first += x->round * part;
    *first_p = first;
    *n_p = first >= end ? 0 : end - first < part ? end - first : part;
}

void ls_shared_reduce_fill(ls_shared *s, ls_shared_call *x) {
    unsigned char *to = stage_of(s, x, s->rank);
    size_t size = ls_dtype_size(x->call.dtype), part = staged_part(s, &x->call);
    int inputs = ls_leaves_of(&s->scratch->now->leaves, s->rank);
    for (int i = 0; i < inputs * s->size; i++, to += part * size) {
        size_t first, n, input = (size_t)(i / s->size) * x->call.stride;
        if (i % s->size == s->rank) continue; /* only this worker needs it, from where it lies */
        staged_range(s, x, i % s->size, &first, &n);
        if (n) ls_copy(to, x->in + (input + first) * size, n * size);
    }
}

/* This worker's part of a member's stage. */
static unsigned char *my_part_of(ls_shared *s, const ls_shared_call *x, int member) {
    size_t size = ls_dtype_size(x->call.dtype);
    return stage_of(s, x, member) + (size_t)s->rank * staged_part(s, &x->call) * size;
}

/* Does this worker's output have the sums of all blocks? */
static bool has_all_sums(const ls_shared *s, const ls_call *c) {
    return c->what == LS_CALL_ALL_REDUCE || (c->what == LS_CALL_REDUCE && s->rank == c->root);
}

/* The sum of this worker's block goes into its own stage (where no other worker reads this block)
 * and to its output, if that has it; in a scan, each worker's result for this block goes into that
 * worker's stage. */
void ls_shared_reduce_staged(ls_shared *s, ls_shared_call *x) {
    size_t first, n, size = ls_dtype_size(x->call.dtype);
    size_t part = staged_part(s, &x->call) * size, at = (size_t)s->rank * part;
    staged_range(s, x, s->rank, &first, &n);
    const ls_leaves *l = &s->scratch->now->leaves;
    for (int i = 0; i < l->n; i++) {
        size_t input = (size_t)l->slot[i] * x->call.stride, theirs = (size_t)(l->slot[i] * s->size);
        s->scratch->now->base[i] = l->worker[i] == s->rank
                                       ? x->in + (input + first) * size
                                       : stage_of(s, x, l->worker[i]) + theirs * part + at;
    }
    unsigned char *to = stage_of(s, x, s->rank) + at;
    if (ls_collective_is_prefix(x->call.what)) {
        reduce_prefixes(s, x, 0, n, my_part_of);
        return;
    }
    if (has_all_sums(s, &x->call)) {
        reduce_twice(s, &x->call, 0, n, to, x->out + first * size);
        return;
    }
    if (x->call.what == LS_CALL_REDUCE_SCATTER) to = x->out + x->round * part;
    reduce_range(s, &x->call, 0, n, to);
}

void ls_shared_reduce_collect(ls_shared *s, ls_shared_call *x) {
    bool prefix = ls_collective_is_prefix(x->call.what);
    bool wanted = prefix ? prefix_leaves(&x->call, s->rank) > 0 : has_all_sums(s, &x->call);
    size_t size = ls_dtype_size(x->call.dtype), part = staged_part(s, &x->call);
    for (int b = 0; b < s->size && wanted; b++) {
        size_t first, n;
        if (b == s->rank && !prefix) continue; /* it is there already */
        staged_range(s, x, b, &first, &n);
        int from = prefix ? s->rank : b;
        if (n)
            ls_copy(x->out + first * size, stage_of(s, x, from) + (size_t)b * part * size,
                    n * size);
        if (from != s->rank) s->bytes_read += n * size;
    }
}
