/* shared_inside.h - what the files of shared.h share: a worker's page, and where inputs lie.
 *
 *     shared.c         opening and closing, a call's states
 *     shared_remote.c  reading other processes' own memory
 *     shared_copy.c    what each collective copies from which worker
 *     shared_reduce.c  sums
 */
#ifndef LS_COLL_SHARED_INSIDE_H
#define LS_COLL_SHARED_INSIDE_H

#include <assert.h>

#include "coll/algo/tree.h"
#include "coll/shared.h"
#include "tensor/dtype.h"

enum {
    INLINE = 48,  /* bytes of an input that fit on the page's line */
    SMALL = 1024, /* bytes of one that fit beside the page */
    PARTS = 3,    /* of the stage; the longer, the fewer waits */
    PARTS_OF_ARENA = 256,
    MOST_PART = 1 << 20,
    PIECE = 4096, /* bytes that are worked on at a time, in the first-level cache */
};

/* How the other workers can come at this worker's buffers, and it at theirs. */
typedef enum way {
    IN_SHARED = 1, /* in the commons */
    OUT_SHARED = 2,
    REACHES = 4, /* this worker can read the memory of all others' processes */
} way;

/* What a worker shows of one call. The first line is all that a call with a short input needs. */
typedef struct slot {
    _Alignas(64) atomic_uint arrived; /* call number + 1 */
    uint32_t ways;                    /* flags of `way` */
    uint64_t print;
    unsigned char data[INLINE];
    int64_t in, out; /* offsets in the commons, of what is there */
    atomic_uint done;
    atomic_uint filled, summed; /* rounds of a staged call */
    uint64_t in_at;             /* the address in this worker's process */
} slot;
static_assert(sizeof(slot) == 128, "two cache lines");

typedef struct page {
    slot slots[LS_SHARED_SLOTS];
    _Alignas(64) atomic_uint finished;
    int64_t small, stage, pairs; /* offsets */
    uint64_t mark, mark_at; /* a random number, and where it lies in the process's own memory */
    atomic_uint opened;     /* how often; the page serves many groups */
    /* Read by others only when something is wrong. */
    _Alignas(64) atomic_uint version; /* odd while `history` is written */
    ls_history history;
    atomic_bool miscounted; /* set after `miscount` */
    ls_miscount miscount;
} page;
static_assert(sizeof(page) <= LS_COMMONS_CALLS_NBYTES, "a worker's page");

/* What a worker shows of a pairwise call: what goes between it and each member. */
typedef struct pair {
    uint64_t sends, receives; /* elements to it, and expected from it */
    uint64_t first, at;       /* where they begin in this worker's input and output */
} pair;
typedef struct pairs {
    uint64_t balance; /* the balances of all members add up to 0 where their counts fit together */
    uint64_t nin;     /* elements of the whole input */
    pair with[];      /* [size] */
} pairs;

static inline slot *slot_of(const ls_shared *s, const ls_shared_call *x, int member) {
    return &s->pages[member]->slots[x->number % LS_SHARED_SLOTS];
}

/* What others read: the input; in a broadcast, the root's buffer. */
static inline const unsigned char *source(const ls_shared_call *x) {
    return x->call.what == LS_CALL_BROADCAST ? x->out : x->in;
}

static inline size_t source_nbytes(const ls_shared *s, const ls_shared_call *x) {
    if (x->call.what != LS_CALL_BROADCAST) return x->nin;
    return s->rank == x->call.root ? x->nout : 0;
}

static inline pairs *pairs_of(const ls_shared *s, const ls_shared_call *x, int member) {
    unsigned char *all = ls_commons_at(s->commons, s->pages[member]->pairs);
    return (pairs *)(void *)(all + (x->number % LS_SHARED_SLOTS) * s->pairs_nbytes);
}

/* The element at which a member's block begins among all blocks. */
static inline size_t first_of_block(const ls_call *c, int member) {
    if (!c->counts) return (size_t)member * c->count;
    size_t at = 0;
    for (int i = 0; i < member; i++) at += c->counts[i];
    return at;
}

/* The longest input of any member, the same at all; no member knows it in a pairwise call. */
static inline size_t longest_nbytes(const ls_shared *s, const ls_call *c) {
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

static inline bool is_small(const ls_shared *s, const ls_shared_call *x) {
    return x->call.V == 0 && !ls_collective_is_pairwise(x->call.what) &&
           longest_nbytes(s, &x->call) <= SMALL;
}

static inline const unsigned char *small_of(const ls_shared *s, const ls_shared_call *x,
                                            int member) {
    if (longest_nbytes(s, &x->call) <= INLINE) return slot_of(s, x, member)->data;
    const unsigned char *small = ls_commons_at(s->commons, s->pages[member]->small);
    return small + (x->number % LS_SHARED_SLOTS) * SMALL;
}

static inline const unsigned char *input_of(const ls_shared *s, const ls_shared_call *x,
                                            int member) {
    if (is_small(s, x)) return small_of(s, x, member);
    if (member == s->rank) return (const unsigned char *)(uintptr_t)slot_of(s, x, member)->in_at;
    return ls_commons_at(s->commons, slot_of(s, x, member)->in);
}

/* The part of a member's stage that this round uses. */
static inline unsigned char *stage_of(const ls_shared *s, const ls_shared_call *x, int member) {
    unsigned char *stage = ls_commons_at(s->commons, s->pages[member]->stage);
    return stage + (x->base + x->round) % PARTS * s->part;
}

/* ---- shared_remote.c ---- */

/* Shows this worker's mark on its page. */
struct remote *ls_shared_remote_new(const ls_shared *);
void ls_shared_remote_free(struct remote *);
/* Has this worker found that it can read all others' memory? Found out by the second, which is
 * called when all have come. */
bool ls_shared_reaches(const ls_shared *);
void ls_shared_reach(ls_shared *);
/* Is it a call that can be made the remote way? Every member gets the same answer. */
bool ls_shared_goes_remote(const ls_shared *, const ls_shared_call *);
/* A part of a member's input. */
typedef struct reading {
    int member;
    size_t at, nbytes;
} reading;
/* Copies it, unless it lies there already. False: the member is lost. */
bool ls_shared_read(ls_shared *, ls_shared_call *, reading, unsigned char *to);

/* ---- shared_copy.c ---- */

/* The first shows what a pairwise call sends and expects; the second, when all have shown it, fills
 * in x->miscount if two members' counts differ. Every member finds the same. */
void ls_shared_pairs_show(ls_shared *, const ls_shared_call *);
bool ls_shared_pairs_differ(const ls_shared *, ls_shared_call *);
/* Copies this worker's output straight from the others' inputs. False: a member is lost. */
bool ls_shared_copy_parts(ls_shared *, ls_shared_call *);
/* Through the stage: the number of rounds; copies this round's part of this worker's input into its
 * stage; copies what this worker needs in this round from all stages. */
size_t ls_shared_copy_rounds(const ls_shared *, const ls_shared_call *);
void ls_shared_copy_fill(ls_shared *, ls_shared_call *);
void ls_shared_copy_staged(ls_shared *, ls_shared_call *);

/* ---- shared_reduce.c ---- */

struct scratch *ls_shared_scratch_new(const ls_shared *);
void ls_shared_scratch_free(struct scratch *);

/* Computes this worker's whole output by itself. */
void ls_shared_reduce_small(ls_shared *, ls_shared_call *);
/* Reduces this worker's block of all inputs, and writes it to every output that needs it. */
void ls_shared_reduce_direct(ls_shared *, ls_shared_call *);
/* Through the stage: the number of rounds; copies this round's part of this worker's inputs into
 * its stage; reduces this worker's block; copies the others' sums from their owners. */
size_t ls_shared_reduce_rounds(const ls_shared *, const ls_call *);
void ls_shared_reduce_fill(ls_shared *, ls_shared_call *);
void ls_shared_reduce_staged(ls_shared *, ls_shared_call *);
void ls_shared_reduce_collect(ls_shared *, ls_shared_call *);

#endif
