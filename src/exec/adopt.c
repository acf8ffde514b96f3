/* adopt.c - see adopt.h.
 *
 * Workers tell each other what they lack and what their hosts have, a byte a block. Then each run
 * of blocks that somebody lacks, and one worker has, is broadcast from there. Hosts come seldom;
 * what counts is that all know, without being told, who sends what and when.
 */
#include "exec/adopt.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "exec/store_blocks.h"

enum {
    BLOCK = 3 * LS_BLOCK, /* floats: master, m, v */
    MOST = 128            /* blocks of one message: 1.5 MB */
};

/* Of a worker, of a block. */
enum { LACKS = 1, HAS = 2 };

static ls_status lost(const ls_world *w, size_t block, ls_error *e) {
    ls_store_set_finding(w->store, LS_STORE_LOST);
    return ls_fail(e, LS_EPEER,
                   "the state after step %lld is not whole: no host that is left has elements "
                   "%zu and on",
                   (long long)ls_store_steps(w->store), block * LS_BLOCK);
}

/* Who sends the block: -1: nobody lacks it; -2: nobody has it. */
static int source_of(const unsigned char *all, size_t nblocks, int size, size_t block) {
    int first = -2;
    bool lacked = false;
    for (int r = size - 1; r >= 0; r--) {
        unsigned char x = all[(size_t)r * nblocks + block];
        lacked = lacked || (x & LACKS);
        if (x & HAS) first = r;
    }
    return lacked ? first : -1;
}

static ls_status move(ls_world *w, const unsigned char *own, size_t at, size_t n, int source,
                      float *buffer, ls_error *e) {
    int rank = ls_group_rank(w->group);
    for (size_t i = 0; rank == source && i < n; i++)
        ls_store_read_block(w->store, at + i, buffer + i * BLOCK);
    LS_TRY(ls_broadcast(w->group, buffer, n * BLOCK, LS_F32, source, e));
    for (size_t i = 0; i < n; i++)
        if (own[at + i] & LACKS) ls_store_write_block(w->store, rank, at + i, buffer + i * BLOCK);
    return LS_OK;
}

static ls_status move_all(ls_world *w, const unsigned char *all, size_t nblocks, float *buffer,
                          ls_error *e) {
    int size = ls_group_size(w->group);
    const unsigned char *own = all + (size_t)ls_group_rank(w->group) * nblocks;
    for (size_t at = 0; at < nblocks; at++)
        if (source_of(all, nblocks, size, at) == -2) return lost(w, at, e);
    for (size_t at = 0, n = 0; at < nblocks; at += n) {
        int source = source_of(all, nblocks, size, at);
        for (n = 1; n < MOST && at + n < nblocks; n++)
            if (source_of(all, nblocks, size, at + n) != source) break;
        if (source >= 0) LS_TRY(move(w, own, at, n, source, buffer, e));
    }
    return LS_OK;
}

ls_status ls_adopt(ls_world *w, const ls_plan *p, const unsigned char *missing, ls_error *e) {
    size_t nblocks = p->c.model->nfloats / LS_BLOCK, size = (size_t)ls_group_size(w->group);
    int32_t lacks = 0;
    for (size_t i = 0; i < nblocks; i++) lacks |= missing[i] != 0;
    LS_TRY(ls_all_reduce(w->group, &lacks, &lacks, 1, LS_I32, LS_MAX, e));
    if (!lacks) return LS_OK;
    unsigned char *own = ls_alloc(nblocks), *all = ls_alloc(nblocks * size);
    float *buffer = LS_NEW_ARRAY(float, (size_t)MOST *BLOCK);
    ls_store_list_blocks(w->store, own);
    for (size_t i = 0; i < nblocks; i++)
        own[i] = (unsigned char)((own[i] ? HAS : 0) | (missing[i] ? LACKS : 0));
    ls_status s = ls_all_gather(w->group, own, all, nblocks, LS_U8, e);
    if (s == LS_OK) s = move_all(w, all, nblocks, buffer, e);
    free(own);
    free(all);
    free(buffer);
    return s;
}
