/* store_blocks.c - see store_blocks.h. */
#include "state/store_blocks.h"

#include <string.h>

#include "state/errors.h"
#include "state/store_inside.h"

/* The area in which the block has this mark; -1: none. */
static int area_with(const ls_store *s, size_t block, uint32_t mark) {
    for (int i = 0; i < s->most; i++)
        if (atomic_load_explicit(&ls_store_block_steps(s, i)[block], memory_order_relaxed) == mark)
            return i;
    return -1;
}

/* Has each block of the island this mark in some area? */
static bool has_island(const ls_store *s, size_t first, size_t end, uint32_t mark) {
    for (size_t i = first; i < end; i++)
        if (area_with(s, i, mark) < 0) return false;
    return true;
}

void ls_store_find_ahead(const ls_store *s, const ls_share *sh, int64_t last, int64_t *changes) {
    size_t blocks = sh->segment_floats / LS_BLOCK;
    for (int island = 1; island <= sh->islands; island++) {
        int64_t best = ls_store_steps(s);
        size_t first = (size_t)island * blocks;
        for (int i = 0; i < s->most; i++) {
            int64_t had = (int64_t)atomic_load(&ls_store_block_steps(s, i)[first]) - 1;
            bool ahead = had > best && had <= last;
            if (ahead && has_island(s, first, first + blocks, ls_store_mark(had))) best = had;
        }
        changes[island - 1] = best;
    }
}

static ls_status incomplete(size_t first, int64_t steps, ls_error *e) {
    return ls_fail(
        e, LS_EINVAL,
        "the state in memory after step %lld is incomplete: no worker has its elements from "
        "%zu on; continue from the last checkpoint with --resume",
        (long long)steps, first);
}

static void copy_block(const ls_flat *to, const ls_flat *from, size_t first) {
    for (int i = 0; i < to->n; i++)
        memcpy(to->of[i] + first, from->of[i] + first, LS_BLOCK * sizeof(float));
}

void ls_store_adopt(ls_store *s, const ls_share *sh, int w, unsigned char *missing) {
    int area = atomic_load(&s->workers[w].area);
    ls_flat to = ls_store_flat_of(s, area);
    memset(missing, 0, s->nblocks);
    for (int k = 0; k < sh->nbuckets; k++) {
        ls_range b = ls_share_owned(sh, k, w);
        for (size_t i = b.first / LS_BLOCK; i < b.end / LS_BLOCK; i++) {
            uint32_t mark = ls_store_mark_of(s, i);
            int from = area_with(s, i, mark);
            missing[i] = from < 0;
            if (from < 0 || atomic_load(&ls_store_block_steps(s, area)[i]) == mark) continue;
            ls_flat other = ls_store_flat_of(s, from);
            copy_block(&to, &other, i * LS_BLOCK);
            atomic_store_explicit(&ls_store_block_steps(s, area)[i], mark, memory_order_release);
        }
    }
}

void ls_store_list_blocks(ls_store *s, unsigned char *has) {
    for (size_t i = 0; i < s->nblocks; i++) has[i] = area_with(s, i, ls_store_mark_of(s, i)) >= 0;
}

void ls_store_read_block(ls_store *s, size_t block, float *to) {
    ls_flat from = ls_store_flat_of(s, area_with(s, block, ls_store_mark_of(s, block)));
    for (int i = 0; i < from.n; i++)
        memcpy(to + i * LS_BLOCK, from.of[i] + block * LS_BLOCK, LS_BLOCK * sizeof(float));
}

void ls_store_write_block(ls_store *s, int w, size_t block, const float *from) {
    int area = atomic_load(&s->workers[w].area);
    ls_flat to = ls_store_flat_of(s, area);
    for (int i = 0; i < to.n; i++)
        memcpy(to.of[i] + block * LS_BLOCK, from + i * LS_BLOCK, LS_BLOCK * sizeof(float));
    atomic_store_explicit(&ls_store_block_steps(s, area)[block], ls_store_mark_of(s, block),
                          memory_order_release);
}

/* The newest note has it; if there is none yet, it is the one that the state began with. */
ls_scaler ls_store_scaler_after(const ls_store *s, int64_t steps) {
    const ls_store_note *n = ls_store_newest_note(s);
    return n && n->steps == steps * s->per_step ? n->scaler : s->head->scaler;
}

static ls_status copy_range(ls_store *s, int64_t steps, size_t first, size_t end, const ls_flat *to,
                            ls_error *e) {
    uint32_t mark = ls_store_mark(steps * s->per_step);
    for (size_t block = first / LS_BLOCK; block < end / LS_BLOCK; block++) {
        int from = area_with(s, block, mark);
        if (from < 0) return incomplete(block * LS_BLOCK, steps, e);
        ls_flat other = ls_store_flat_of(s, from);
        copy_block(to, &other, block * LS_BLOCK);
    }
    return LS_OK;
}

static ls_flat flat_at(const ls_store *s, float *flat) {
    return ls_flat_of_state(flat, NULL, s->nstates, s->nfloats);
}

ls_status ls_store_copy(ls_store *s, int64_t steps, float *flat, ls_error *e) {
    const ls_flat to = flat_at(s, flat);
    return copy_range(s, steps, 0, s->nfloats, &to, e);
}

ls_status ls_store_copy_owned(ls_store *s, const ls_share *sh, int w, int64_t steps, float *flat,
                              ls_error *e) {
    const ls_flat to = flat_at(s, flat);
    for (int k = 0; k < sh->nbuckets; k++) {
        ls_range b = ls_share_owned(sh, k, w);
        LS_TRY(copy_range(s, steps, b.first, b.end, &to, e));
    }
    return LS_OK;
}

ls_status ls_store_copy_errors(ls_store *s, const ls_share *sh, int64_t steps, int vw,
                               float *errors, ls_error *e) {
    if (!ls_errors_are_in(s, sh, steps, vw))
        return ls_fail(e, LS_EINVAL,
                       "the state in memory after step %lld is incomplete: no worker has the "
                       "compression errors of virtual worker %d; continue from the last checkpoint "
                       "with --resume",
                       (long long)steps, vw);
    memcpy(errors, ls_errors_of(ls_store_errors(s), sh, steps, vw),
           sh->error_floats * sizeof *errors);
    return LS_OK;
}
