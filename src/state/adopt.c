/* adopt.c - see adopt.h.
 *
 * Workers gather which blocks each of them lacks and which its host has, a byte a block. Then each
 * run of missing blocks is broadcast by the first worker whose host has them. Hosts join seldom, so
 * this need not be fast; what matters is that all workers derive the same transfers from the same
 * table.
 */
#include "state/adopt.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "state/store_blocks.h"

enum {
    MOST = 128 /* blocks of a message: 1.5 MB with two states */
};

/* For each worker and block. */
enum { LACKS = 1, HAS = 2 };

static ls_status lost(const ls_world *w, size_t block, ls_error *e) {
    ls_store_set_finding(w->store, LS_STORE_LOST);
    return ls_fail(e, LS_EPEER,
                   "the state in memory after step %lld is incomplete: no remaining host has its "
                   "elements from %zu on",
                   (long long)ls_store_trained(w->store), block * LS_BLOCK);
}

typedef struct adoption {
    const ls_world *world;
    size_t nblocks;
    unsigned char *all; /* [workers][nblocks] LACKS | HAS */
    size_t block;       /* floats of a block: its parameters and their states */
    float *buffer;      /* [MOST][block] */
} adoption;

/* In place of the worker that sends a block. */
enum { NOT_LACKED = -1, NOWHERE = -2 };

/* The first worker whose host has the block, if any worker lacks it. */
static int source_of(const adoption *a, size_t block) {
    int first = NOWHERE;
    bool lacked = false;
    for (int r = ls_group_size(a->world->group) - 1; r >= 0; r--) {
        unsigned char x = a->all[(size_t)r * a->nblocks + block];
        lacked = lacked || (x & LACKS);
        if (x & HAS) first = r;
    }
    return lacked ? first : NOT_LACKED;
}

/* Consecutive blocks from one source. */
typedef struct run {
    size_t at, n;
    int source;
} run;

static ls_status move(const adoption *a, run r, ls_error *e) {
    ls_store *s = a->world->store;
    int rank = ls_group_rank(a->world->group);
    const unsigned char *own = a->all + (size_t)rank * a->nblocks;
    for (size_t i = 0; rank == r.source && i < r.n; i++)
        ls_store_read_block(s, r.at + i, a->buffer + i * a->block);
    LS_TRY(ls_broadcast(a->world->group, a->buffer, r.n * a->block, LS_F32, r.source, e));
    for (size_t i = 0; i < r.n; i++)
        if (own[r.at + i] & LACKS)
            ls_store_write_block(s, rank, r.at + i, a->buffer + i * a->block);
    return LS_OK;
}

static ls_status move_all(const adoption *a, ls_error *e) {
    for (size_t at = 0; at < a->nblocks; at++)
        if (source_of(a, at) == NOWHERE) return lost(a->world, at, e);
    for (run r = {0}; r.at < a->nblocks; r.at += r.n) {
        r.source = source_of(a, r.at);
        for (r.n = 1; r.n < MOST && r.at + r.n < a->nblocks; r.n++)
            if (source_of(a, r.at + r.n) != r.source) break;
        if (r.source >= 0) LS_TRY(move(a, r, e));
    }
    return LS_OK;
}

ls_status ls_adopt(ls_world *w, const ls_share *sh, const unsigned char *missing, ls_error *e) {
    size_t nblocks = sh->floats / LS_BLOCK, size = (size_t)ls_group_size(w->group);
    int32_t lacks = 0;
    for (size_t i = 0; i < nblocks; i++) lacks |= missing[i] != 0;
    LS_TRY(ls_all_reduce(w->group, &lacks, &lacks, 1, LS_I32, LS_MAX, e));
    if (!lacks) return LS_OK;
    unsigned char *own = ls_alloc(nblocks);
    adoption a = {.world = w, .nblocks = nblocks, .all = ls_alloc(nblocks * size)};
    a.block = (size_t)w->flat.n * LS_BLOCK;
    a.buffer = LS_NEW_ARRAY(float, MOST *a.block);
    ls_store_list_blocks(w->store, own);
    for (size_t i = 0; i < nblocks; i++)
        own[i] = (unsigned char)((own[i] ? HAS : 0) | (missing[i] ? LACKS : 0));
    ls_status s = ls_all_gather(w->group, own, a.all, nblocks, LS_U8, e);
    if (s == LS_OK) s = move_all(&a, e);
    free(own);
    free(a.all);
    free(a.buffer);
    return s;
}
