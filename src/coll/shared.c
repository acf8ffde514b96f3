/* shared.c - see shared.h. */
#include "coll/shared.h"

#include <assert.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "coll/tree.h"
#include "tensor/dtype.h"

enum {
    INLINE = 48,       /* bytes of an input that fit on the page's line */
    SMALL = 1024,      /* ... beside the page */
    HALF = 256 * 1024, /* of the stage */
    PIECE = 4096,      /* bytes that are worked on at a time, in the first-level cache */
};

/* What a worker shows of one call. The first line is all that a call with a short input needs. */
typedef struct slot {
    _Alignas(64) atomic_uint arrived; /* call number + 1 */
    uint32_t readable;                /* can `in` and `out` be read? */
    uint64_t print;
    unsigned char data[INLINE];
    int64_t in, out; /* offsets in the commons */
    atomic_uint done;
    atomic_uint filled, summed; /* rounds of a staged call */
} slot;
static_assert(sizeof(slot) == 128, "two cache lines");

typedef struct page {
    slot slots[LS_SHARED_SLOTS];
    _Alignas(64) atomic_uint finished;
    int64_t small, stage; /* offsets */
    atomic_uint opened;   /* how often; the page serves many groups */
    /* Read by others only when something is wrong. */
    _Alignas(64) atomic_uint version; /* odd while `last` is written */
    ls_record last;
} page;
static_assert(sizeof(page) <= LS_COMMONS_CALLS_NBYTES, "a worker's page");

/* For sums over the leaves of a call: those of the latest virtual workers are kept. */
struct scratch {
    ls_leaves leaves;
    int V;
    int *first; /* [size + 1] a copy, or NULL */
    float wide[PIECE / 2];
    float *widened;             /* [leaves.n][PIECE / 2], of halves */
    const void **data, **wides; /* [leaves.n] */
    const unsigned char **base; /* [leaves.n] */
};

static void free_leaves(struct scratch *w) {
    ls_leaves_free(&w->leaves);
    free(w->first);
    free(w->widened);
    free(w->data);
    free(w->wides);
    free(w->base);
}

static void make_leaves(const ls_shared *s, int V, const int *first) {
    struct scratch *w = s->scratch;
    size_t nbytes = ((size_t)s->size + 1) * sizeof *first;
    bool alike = w->V == V && !w->first == !first && (!first || !memcmp(w->first, first, nbytes));
    if (w->leaves.n && alike) return;
    free_leaves(w);
    w->V = V;
    w->first = NULL;
    if (first) w->first = memcpy(ls_alloc(nbytes), first, nbytes);
    ls_leaves_make(V, first, s->size, &w->leaves);
    size_t n = (size_t)w->leaves.n;
    w->widened = LS_NEW_ARRAY(float, n *(PIECE / 2));
    w->data = LS_NEW_ARRAY(const void *, n);
    w->wides = LS_NEW_ARRAY(const void *, n);
    w->base = LS_NEW_ARRAY(const unsigned char *, n);
}

/* ---- opening and closing ---- */

/* A group that was closed while others could still read what this worker had shown. */
typedef struct kept {
    ls_commons_kept link; /* first */
    int area, size;
    uint32_t started;
    unsigned char *small, *stage;
    struct {
        const ls_commons_worker *worker;
        const page *page;
        unsigned opened;
    } members[];
} kept;

static bool reached(unsigned value, unsigned want) { return (int)(value - want) >= 0; }

/* Will no member read it any more? One that uses its page for another group has left this one. */
static bool all_have_read(const kept *k) {
    for (int i = 0; i < k->size; i++) {
        const page *p = k->members[i].page;
        if (atomic_load_explicit(&p->opened, memory_order_acquire) == k->members[i].opened &&
            !reached(atomic_load_explicit(&p->finished, memory_order_acquire), k->started) &&
            !atomic_load(&k->members[i].worker->left))
            return false;
    }
    return true;
}

static void give_back(ls_commons *c) {
    for (ls_commons_kept **link = &c->kept; *link;) {
        kept *k = (kept *)*link;
        if (!all_have_read(k)) {
            link = &k->link.next;
            continue;
        }
        *link = k->link.next;
        ls_commons_free(c, k->small);
        ls_commons_free(c, k->stage);
        free(k);
    }
}

uint64_t ls_shared_kept(ls_commons *c) {
    uint64_t areas = 0;
    give_back(c);
    for (ls_commons_kept *k = c->kept; k; k = k->next) areas |= (uint64_t)1 << ((kept *)k)->area;
    return areas;
}

/* Calls that this worker has started it leaves to the others, finished or not. */
static void keep(ls_shared *s) {
    size_t n = (size_t)s->size;
    kept *k = ls_alloc(sizeof *k + n * sizeof k->members[0]);
    *k = (kept){{s->commons->kept}, s->area, s->size - 1, s->started, s->small, s->stage};
    for (int i = 0, m = 0; i < s->size; i++) {
        if (i == s->rank) continue;
        k->members[m].worker = ls_commons_worker_of(s->commons, s->ranks[i]);
        k->members[m].page = s->pages[i];
        k->members[m++].opened = s->opened[i] ? s->opened[i] : atomic_load(&s->pages[i]->opened);
    }
    s->commons->kept = &k->link;
}

ls_status ls_shared_open(ls_shared *s, ls_commons *c, const ls_kernels *k, int area,
                         uint32_t identity, int rank, int size, const int *ranks, ls_error *e) {
    *s = (ls_shared){.commons = c, .k = k, .area = area, .rank = rank, .size = size};
    give_back(c);
    s->small = ls_commons_alloc(c, (size_t)LS_SHARED_SLOTS * SMALL);
    s->stage = ls_commons_alloc(c, (size_t)2 * HALF);
    if (!s->small || !s->stage) {
        ls_shared_close(s);
        return ls_fail(e, LS_ENOMEM,
                       "no room in the arena (%.1f MB a worker) for another group; make it larger "
                       "(arena_nbytes, or `lockstep run --arena`)",
                       (double)c->head->arena_nbytes / 1e6);
    }
    size_t n = (size_t)size;
    s->ranks = LS_NEW_ARRAY(int, n);
    s->opened = LS_NEW_ARRAY(unsigned, n);
    s->pages = LS_NEW_ARRAY(page *, n);
    for (int i = 0; i < size; i++) {
        s->ranks[i] = ranks[i];
        s->pages[i] = ls_commons_calls(c, area, ranks[i]);
    }
    s->scratch = LS_NEW(struct scratch);
    make_leaves(s, 0, NULL);
    page *mine = s->pages[rank];
    unsigned opened = atomic_load(&mine->opened) + 1;
    memset(mine, 0, sizeof *mine); /* the area may have served another group before */
    mine->last.group = identity;
    atomic_store_explicit(&mine->opened, opened ? opened : 1, memory_order_release);
    mine->small = ls_commons_offset(c, s->small);
    mine->stage = ls_commons_offset(c, s->stage);
    return LS_OK;
}

void ls_shared_close(ls_shared *s) {
    if (s->started) {
        keep(s);
        give_back(s->commons);
    } else {
        if (s->small) ls_commons_free(s->commons, s->small);
        if (s->stage) ls_commons_free(s->commons, s->stage);
    }
    if (s->scratch) free_leaves(s->scratch);
    free(s->scratch);
    free(s->ranks);
    free(s->opened);
    free(s->pages);
    *s = (ls_shared){0};
}

/* ---- showing ---- */

static slot *slot_of(const ls_shared *s, const ls_shared_call *x, int member) {
    return &s->pages[member]->slots[x->number % LS_SHARED_SLOTS];
}

static void ring_all(const ls_shared *s) {
    for (int i = 0; i < s->size; i++)
        if (i != s->rank) ls_bell_ring(&ls_commons_worker_of(s->commons, s->ranks[i])->bell);
}

static void post(const ls_shared *s, atomic_uint *what, unsigned value) {
    atomic_store_explicit(what, value, memory_order_release);
    ring_all(s);
}

bool ls_shared_room(ls_shared *s) {
    if (!reached(s->started, s->all_finished + LS_SHARED_SLOTS)) return true;
    unsigned least = s->finished;
    for (int i = 0; i < s->size; i++) {
        unsigned f = atomic_load_explicit(&s->pages[i]->finished, memory_order_acquire);
        if (!reached(f, least)) least = f;
    }
    s->all_finished = least;
    return !reached(s->started, least + LS_SHARED_SLOTS);
}

int ls_shared_behind(const ls_shared *s) {
    int behind = s->rank;
    unsigned least = s->finished;
    for (int i = 0; i < s->size; i++) {
        unsigned f = atomic_load_explicit(&s->pages[i]->finished, memory_order_acquire);
        if (reached(f, least)) continue;
        least = f;
        behind = i;
    }
    return behind;
}

/* The thread sanitizer knows no fences; there, the record is only for messages that nobody tests.
 */
#if defined(__SANITIZE_THREAD__)
#define FENCE(order) (void)0
#else
#define FENCE(order) atomic_thread_fence(order)
#endif

static void begin_note(page *p) {
    unsigned version = atomic_load_explicit(&p->version, memory_order_relaxed);
    atomic_store_explicit(&p->version, version + 1, memory_order_relaxed);
    FENCE(memory_order_release);
}

static void end_note(page *p) {
    unsigned version = atomic_load_explicit(&p->version, memory_order_relaxed);
    atomic_store_explicit(&p->version, version + 1, memory_order_release);
}

/* What others read: of a broadcast, the root's buffer. */
static const unsigned char *source(const ls_shared_call *x) {
    return x->call.what == LS_CALL_BROADCAST ? x->out : x->in;
}
static size_t source_nbytes(const ls_shared *s, const ls_shared_call *x) {
    if (x->call.what != LS_CALL_BROADCAST) return x->nin;
    return s->rank == x->call.root ? x->nout : 0;
}

/* The longest input of any member, the same on all. */
static size_t longest_nbytes(const ls_shared *s, const ls_call *c) {
    size_t size = ls_dtype_size(c->dtype), n = (size_t)s->size, most = 0, all = 0;
    for (size_t i = 0; c->counts && i < n; i++) {
        if (c->counts[i] > most) most = c->counts[i];
        all += c->counts[i];
    }
    switch (c->what) {
    case LS_CALL_REDUCE_SCATTER: return (c->counts ? all : n * c->count) * size;
    case LS_CALL_ALL_GATHER: return (c->counts ? most : c->count) * size;
    case LS_CALL_SCATTER:
    case LS_CALL_ALL_TO_ALL: return n * c->count * size;
    case LS_CALL_BARRIER: return 0;
    default: return c->count * size;
    }
}

static bool is_small(const ls_shared *s, const ls_shared_call *x) {
    return x->call.V == 0 && longest_nbytes(s, &x->call) <= SMALL;
}

ls_shared_call *ls_shared_start(ls_shared *s, const ls_call *c, uint64_t print, const void *in,
                                void *out, size_t nin, size_t nout, const char *file, int line) {
    ls_shared_call *x = &s->calls[s->started % LS_SHARED_SLOTS];
    assert(x->state == LS_SHARED_FREE);
    *x = (ls_shared_call){.call = *c, .number = s->started++, .print = print, .in = in, .out = out};
    x->nin = nin;
    x->nout = nout;
    x->state = LS_SHARED_COMING;
    x->differs = -1;
    slot *mine = slot_of(s, x, s->rank);
    mine->print = print;
    size_t nsource = source_nbytes(s, x);
    if (is_small(s, x)) {
        bool fits = longest_nbytes(s, c) <= INLINE;
        unsigned char *to = fits ? mine->data : s->small + (x->number % LS_SHARED_SLOTS) * SMALL;
        if (nsource) memcpy(to, source(x), nsource);
    } else {
        mine->readable = (nsource == 0 || ls_commons_readable(s->commons, source(x), nsource)) &&
                         (nout == 0 || ls_commons_readable(s->commons, out, nout));
        mine->in = ls_commons_offset(s->commons, source(x));
        mine->out = ls_commons_offset(s->commons, out);
        /* Not what a call of long ago left: after 2^31 others it would seem to be ahead. */
        atomic_store_explicit(&mine->done, x->number, memory_order_relaxed);
        atomic_store_explicit(&mine->filled, 0, memory_order_relaxed);
        atomic_store_explicit(&mine->summed, 0, memory_order_relaxed);
    }
    page *shown = s->pages[s->rank];
    begin_note(shown);
    ls_record_set(&shown->last, c, x->number, print, file, line);
    end_note(shown);
    post(s, &mine->arrived, x->number + 1);
    return x;
}

/* ---- copying: what each collective copies from whom ---- */

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

static const unsigned char *small_of(const ls_shared *s, const ls_shared_call *x, int member) {
    if (longest_nbytes(s, &x->call) <= INLINE) return slot_of(s, x, member)->data;
    const unsigned char *small = ls_commons_at(s->commons, s->pages[member]->small);
    return small + (x->number % LS_SHARED_SLOTS) * SMALL;
}

static const unsigned char *input_of(const ls_shared *s, const ls_shared_call *x, int member) {
    if (is_small(s, x)) return small_of(s, x, member);
    return ls_commons_at(s->commons, slot_of(s, x, member)->in);
}

static void copy_parts(ls_shared *s, ls_shared_call *x) {
    for (int k = 0; k < s->size; k++) {
        int from = (s->rank + k) % s->size;
        extent p = part_of(&x->call, s->rank, from);
        const unsigned char *src = input_of(s, x, from) + p.from;
        if (p.nbytes && src != x->out + p.to) memcpy(x->out + p.to, src, p.nbytes);
        if (from != s->rank) s->bytes_read += p.nbytes;
    }
}

/* ---- reducing ---- */

/* The elements that worker `member` reduces. */
static void block_of(const ls_shared *s, const ls_call *c, int member, size_t *first_p,
                     size_t *end_p) {
    if (c->what == LS_CALL_REDUCE_SCATTER) {
        *first_p = offset_of(c, member, 1);
        *end_p = offset_of(c, member + 1, 1);
        return;
    }
    /* Whole cache lines, so that no two workers write to one. */
    size_t line = 64 / ls_dtype_size(c->dtype), lines = (c->count + line - 1) / line;
    size_t first = ls_block(lines, s->size, member) * line;
    size_t end = ls_block(lines, s->size, member + 1) * line;
    *first_p = first < c->count ? first : c->count;
    *end_p = end < c->count ? end : c->count;
}

/* out [n] = the reduction of data [leaves][n]; n elements are PIECE bytes at most. */
static void reduce_piece(ls_shared *s, const ls_call *c, const void *const *data, size_t n,
                         void *out) {
    struct scratch *w = s->scratch;
    ls_tree_sum sum = {.dtype = c->dtype, .op = c->op, .V = w->leaves.V, .nleaves = w->leaves.n};
    sum.nodes = w->leaves.nodes;
    sum.data = data;
    if (!ls_call_widens(c)) {
        ls_tree_sum_run(&sum, s->k, 0, n, out);
        if (c->op == LS_AVG) s->k->average(c->dtype, n, s->size, out);
        return;
    }
    for (int i = 0; i < w->leaves.n; i++) {
        float *leaf = w->widened + (size_t)i * (PIECE / 2);
        s->k->widen(c->dtype, n, data[i], leaf);
        w->wides[i] = leaf;
    }
    sum.dtype = LS_F32;
    sum.data = w->wides;
    ls_tree_sum_run(&sum, s->k, 0, n, w->wide);
    if (c->op == LS_AVG) s->k->average(LS_F32, n, s->size, w->wide);
    s->k->narrow(c->dtype, n, w->wide, out);
}

/* Elements [first, end) of all inputs (scratch->base) into out. */
static void reduce_range(ls_shared *s, const ls_call *c, size_t first, size_t end,
                         unsigned char *out) {
    struct scratch *w = s->scratch;
    size_t size = ls_dtype_size(c->dtype), most = PIECE / size;
    for (size_t at = first; at < end; at += most) {
        size_t n = end - at < most ? end - at : most;
        for (int i = 0; i < w->leaves.n; i++) w->data[i] = w->base[i] + at * size;
        reduce_piece(s, c, w->data, n, out + (at - first) * size);
    }
    int others = w->leaves.n - ls_leaves_of(&w->leaves, s->rank);
    s->bytes_read += (end - first) * size * (size_t)others;
}

/* Where the call's inputs lie: every leaf's. */
static const unsigned char **find_inputs(const ls_shared *s, const ls_shared_call *x) {
    make_leaves(s, x->call.V, x->call.first);
    const ls_leaves *l = &s->scratch->leaves;
    size_t stride = x->call.stride * ls_dtype_size(x->call.dtype);
    for (int i = 0; i < l->n; i++)
        s->scratch->base[i] = input_of(s, x, l->worker[i]) + (size_t)l->slot[i] * stride;
    return s->scratch->base;
}

/* Everything that this worker's output needs, by itself. */
static void reduce_small(ls_shared *s, ls_shared_call *x) {
    size_t first = 0, end = x->call.count;
    if (x->call.what == LS_CALL_REDUCE_SCATTER) block_of(s, &x->call, s->rank, &first, &end);
    if (x->call.what == LS_CALL_REDUCE && s->rank != x->call.root) return;
    find_inputs(s, x);
    reduce_range(s, &x->call, first, end, x->out);
}

/* My block of the inputs goes to all outputs that want it, piece by piece while it is in the cache.
 */
static void reduce_direct(ls_shared *s, ls_shared_call *x) {
    const ls_call *c = &x->call;
    size_t first, end, size = ls_dtype_size(c->dtype), most = PIECE / size;
    block_of(s, c, s->rank, &first, &end);
    const unsigned char **base = find_inputs(s, x);
    if (c->what == LS_CALL_REDUCE_SCATTER) {
        reduce_range(s, c, first, end, x->out);
        return;
    }
    int target = c->what == LS_CALL_REDUCE ? c->root : s->rank;
    unsigned char *out = ls_commons_at(s->commons, slot_of(s, x, target)->out);
    if (s->size == 2 && c->what == LS_CALL_ALL_REDUCE && c->V == 0 && c->op != LS_AVG &&
        !ls_dtype_is_half(c->dtype)) {
        unsigned char *other = ls_commons_at(s->commons, slot_of(s, x, 1 - s->rank)->out);
        s->k->combine_both(c->dtype, c->op, end - first, base[0] + first * size,
                           base[1] + first * size, out + first * size, other + first * size);
        s->bytes_read += (end - first) * size;
        return;
    }
    for (size_t at = first; at < end; at += most) {
        size_t stop = end - at < most ? end : at + most;
        reduce_range(s, c, at, stop, out + at * size);
        for (int i = 0; i < s->size && c->what == LS_CALL_ALL_REDUCE; i++) {
            unsigned char *to = ls_commons_at(s->commons, slot_of(s, x, i)->out);
            if (i != s->rank) memcpy(to + at * size, out + at * size, (stop - at) * size);
        }
    }
}

/* ---- staged ---- */

static unsigned char *half_of(const ls_shared *s, const ls_shared_call *x, int member) {
    unsigned char *stage = ls_commons_at(s->commons, s->pages[member]->stage);
    return stage + x->half * HALF;
}

/* Elements of a block that go through the stage in one round. The half holds the parts of all
 * blocks of a worker's first leaf, then those of the next. */
static size_t staged_part(const ls_shared *s, const ls_call *c) {
    make_leaves(s, c->V, c->first);
    size_t parts = (size_t)s->size * (size_t)s->scratch->leaves.most;
    return (size_t)HALF / parts / ls_dtype_size(c->dtype);
}

static size_t rounds(const ls_shared *s, const ls_call *c) {
    if (!ls_collective_reduces(c->what)) return (longest_nbytes(s, c) + HALF - 1) / HALF;
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

/* A half is filled again in the next round but one. By then all have read it: they say that they
 * filled the next one only after that, and this worker has waited for it. */
static void fill_stage(ls_shared *s, ls_shared_call *x) {
    x->half = s->staged++ % 2;
    unsigned char *to = half_of(s, x, s->rank);
    if (!ls_collective_reduces(x->call.what)) {
        size_t at = x->round * HALF, n = source_nbytes(s, x);
        if (at < n) memcpy(to, source(x) + at, n - at < HALF ? n - at : HALF);
        return;
    }
    size_t size = ls_dtype_size(x->call.dtype), part = staged_part(s, &x->call);
    int inputs = ls_leaves_of(&s->scratch->leaves, s->rank);
    for (int i = 0; i < inputs * s->size; i++, to += part * size) {
        size_t first, n, input = (size_t)(i / s->size) * x->call.stride;
        staged_range(s, x, i % s->size, &first, &n);
        if (n) memcpy(to, x->in + (input + first) * size, n * size);
    }
}

/* The parts of my output that lie in this round's stages. */
static void copy_staged(ls_shared *s, ls_shared_call *x) {
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

/* My block's sum, into my own stage (where only I read this block), or to my output. */
static void sum_staged(ls_shared *s, ls_shared_call *x) {
    size_t first, n, size = ls_dtype_size(x->call.dtype);
    size_t part = staged_part(s, &x->call) * size, at = (size_t)s->rank * part;
    staged_range(s, x, s->rank, &first, &n);
    const ls_leaves *l = &s->scratch->leaves;
    for (int i = 0; i < l->n; i++)
        s->scratch->base[i] =
            half_of(s, x, l->worker[i]) + (size_t)(l->slot[i] * s->size) * part + at;
    unsigned char *to = half_of(s, x, s->rank) + at;
    if (x->call.what == LS_CALL_REDUCE_SCATTER) to = x->out + x->round * part;
    reduce_range(s, &x->call, 0, n, to);
}

/* The sums of all blocks, from their owners. */
static void collect_sums(ls_shared *s, ls_shared_call *x) {
    bool wanted = x->call.what == LS_CALL_ALL_REDUCE ||
                  (x->call.what == LS_CALL_REDUCE && s->rank == x->call.root);
    size_t size = ls_dtype_size(x->call.dtype), part = staged_part(s, &x->call);
    for (int b = 0; b < s->size && wanted; b++) {
        size_t first, n;
        staged_range(s, x, b, &first, &n);
        if (n) memcpy(x->out + first * size, half_of(s, x, b) + (size_t)b * part * size, n * size);
        if (b != s->rank) s->bytes_read += n * size;
    }
}

/* ---- the states ---- */

static bool all_come(ls_shared *s, ls_shared_call *x) {
    for (; x->come < s->size; x->come++) {
        const slot *other = slot_of(s, x, x->come);
        unsigned arrived = atomic_load_explicit(&other->arrived, memory_order_acquire);
        if (!reached(arrived, x->number + 1)) return false;
        if (!s->opened[x->come])
            s->opened[x->come] =
                atomic_load_explicit(&s->pages[x->come]->opened, memory_order_relaxed);
        if (other->print != x->print) {
            x->differs = x->come;
            return false;
        }
    }
    return true;
}

static bool all_at(ls_shared *s, ls_shared_call *x, size_t offset, unsigned want) {
    for (; x->left < s->size; x->left++) {
        atomic_uint *at = (atomic_uint *)(void *)((unsigned char *)slot_of(s, x, x->left) + offset);
        if (!reached(atomic_load_explicit(at, memory_order_acquire), want)) return false;
    }
    x->left = 0;
    return true;
}

static bool all_direct(const ls_shared *s, const ls_shared_call *x) {
    for (int i = 0; i < s->size; i++)
        if (!slot_of(s, x, i)->readable) return false;
    return true;
}

/* This worker's part, unless it was done before the call was made again. */
static void reduce_marked(ls_shared *s, ls_shared_call *x) {
    const ls_call_mark *m = &x->call.mark;
    if (m->at && atomic_load(m->at) == m->value + 1) return;
    if (m->at) atomic_store(m->at, m->value);
    reduce_direct(s, x);
    if (m->at) atomic_store(m->at, m->value + 1);
}

static void work(ls_shared *s, ls_shared_call *x, bool small) {
    if (!ls_collective_reduces(x->call.what))
        copy_parts(s, x);
    else if (small)
        reduce_small(s, x);
    else
        reduce_marked(s, x);
}

/* Calls may finish in any order; `finished` counts those before which all have. */
static bool finish(ls_shared *s, ls_shared_call *x) {
    x->state = LS_SHARED_DONE;
    while (s->finished != s->started) {
        ls_shared_call *oldest = &s->calls[s->finished % LS_SHARED_SLOTS];
        if (oldest->state != LS_SHARED_DONE) break;
        oldest->state = LS_SHARED_FREE;
        s->finished++;
    }
    atomic_store_explicit(&s->pages[s->rank]->finished, s->finished, memory_order_release);
    return true;
}

/* Each of these does what can be done in its state; false when there is nothing (yet). */

static bool step_coming(ls_shared *s, ls_shared_call *x) {
    if (!all_come(s, x)) return false;
    if (is_small(s, x)) {
        work(s, x, true);
        return finish(s, x);
    }
    if (all_direct(s, x)) {
        work(s, x, false);
        x->state = LS_SHARED_LEAVING;
        post(s, &slot_of(s, x, s->rank)->done, x->number + 1);
        return true;
    }
    if (x->number != s->finished) return false; /* (3) */
    fill_stage(s, x);
    x->state = LS_SHARED_STAGING;
    post(s, &slot_of(s, x, s->rank)->filled, 1);
    return true;
}

static bool next_round(ls_shared *s, ls_shared_call *x) {
    if (++x->round == rounds(s, &x->call)) return finish(s, x);
    fill_stage(s, x);
    x->state = LS_SHARED_STAGING;
    post(s, &slot_of(s, x, s->rank)->filled, (unsigned)x->round + 1);
    return true;
}

static bool step_staging(ls_shared *s, ls_shared_call *x) {
    unsigned round = (unsigned)x->round + 1;
    if (!all_at(s, x, offsetof(slot, filled), round)) return false;
    if (!ls_collective_reduces(x->call.what)) {
        copy_staged(s, x);
        return next_round(s, x);
    }
    sum_staged(s, x);
    x->state = LS_SHARED_SUMMING;
    post(s, &slot_of(s, x, s->rank)->summed, round);
    return true;
}

static bool step_summing(ls_shared *s, ls_shared_call *x) {
    if (!all_at(s, x, offsetof(slot, summed), (unsigned)x->round + 1)) return false;
    collect_sums(s, x);
    return next_round(s, x);
}

bool ls_shared_step(ls_shared *s, ls_shared_call *x) {
    bool moved = true;
    while (moved) {
        switch (x->state) {
        case LS_SHARED_COMING: moved = step_coming(s, x); break;
        case LS_SHARED_STAGING: moved = step_staging(s, x); break;
        case LS_SHARED_SUMMING: moved = step_summing(s, x); break;
        case LS_SHARED_LEAVING:
            moved = all_at(s, x, offsetof(slot, done), x->number + 1) && finish(s, x);
            break;
        case LS_SHARED_DONE:
        case LS_SHARED_FREE: return true;
        }
    }
    return x->differs >= 0;
}

/* ---- who is late ---- */

int ls_shared_late(const ls_shared *s, const ls_shared_call *x) {
    if (x->state == LS_SHARED_COMING) return x->come < s->size ? x->come : -1;
    return x->state == LS_SHARED_DONE || x->state == LS_SHARED_FREE ? -1 : x->left;
}

void ls_shared_note(ls_shared *s, const ls_record *r) {
    page *mine = s->pages[s->rank];
    begin_note(mine);
    mine->last = *r;
    end_note(mine);
}

/* It may be written at this moment: then again. Half of one call and half of the next would look
 * like a call that nobody made. */
__attribute__((no_sanitize("thread"))) ls_record ls_shared_record(const ls_shared *s, int member) {
    const page *p = s->pages[member];
    for (int tries = 0; tries < 1000; tries++) {
        unsigned version = atomic_load_explicit(&p->version, memory_order_acquire);
        ls_record r = p->last;
        FENCE(memory_order_acquire);
        unsigned after = atomic_load_explicit(&p->version, memory_order_relaxed);
        if (version == after && version % 2 == 0) return r;
        sched_yield();
    }
    return (ls_record){0}; /* it was stopped while it wrote */
}

bool ls_shared_has_come(const ls_shared *s, const ls_shared_call *x, int member) {
    return reached(atomic_load(&slot_of(s, x, member)->arrived), x->number + 1);
}
