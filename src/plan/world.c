/* world.c - see world.h. */
#include "plan/world.h"

#include <stdlib.h>
#include <sys/mman.h>

#include "coll/virtual.h"

/* A group's own part of the arena, for its messages; and for a few more groups. */
enum { GROUPS_NBYTES = 8 << 20 };

static size_t flat_nbytes(const ls_plan *p) { return p->c.model->nfloats * sizeof(float); }
static size_t sums_nbytes(const ls_plan *p) { return ls_world_nsums(p) * sizeof(double); }
static size_t grads_nbytes(const ls_plan *p, int worker) {
    return (size_t)ls_plan_slots(p, worker) * flat_nbytes(p);
}
static size_t most_grads_nbytes(const ls_plan *p) {
    size_t most = 0;
    for (int w = 0; w < p->c.nworkers; w++)
        if (grads_nbytes(p, w) > most) most = grads_nbytes(p, w);
    return most;
}

size_t ls_world_nsums(const ls_plan *p) {
    return p->c.model->nfloats / LS_BLOCK + (size_t)p->c.batch;
}

size_t ls_world_arena_nbytes(const ls_plan *p) {
    return 3 * flat_nbytes(p) + most_grads_nbytes(p) + 2 * sums_nbytes(p) + GROUPS_NBYTES;
}

size_t ls_world_host_nbytes(const ls_plan *p) {
    size_t sum = 3 * flat_nbytes(p);
    for (int w = 0; w < p->c.nworkers; w++) sum += grads_nbytes(p, w) + 2 * sums_nbytes(p);
    return sum;
}

static ls_status no_memory(const ls_plan *p, ls_error *e) {
    return ls_fail(e, LS_ENOMEM,
                   "no memory for parameters, gradients and optimizer: %.1f MB wanted; use a "
                   "smaller model, or fewer workers",
                   (double)ls_world_host_nbytes(p) / 1e6);
}

static void place_state(ls_world *w, const ls_plan *p, void *state) {
    w->params = state;
    w->m = w->params + p->c.model->nfloats;
    w->v = w->m + p->c.model->nfloats;
}

/* What is this worker's own, whoever else there is. */
static ls_status take_own(ls_world *w, const ls_plan *p, ls_error *e) {
    w->grads = ls_group_alloc(w->group, grads_nbytes(p, ls_group_rank(w->group)));
    w->parts = ls_group_alloc(w->group, sums_nbytes(p));
    w->sums = ls_group_alloc(w->group, sums_nbytes(p));
    return w->grads && w->parts && w->sums ? LS_OK : no_memory(p, e);
}

ls_status ls_world_open(ls_world *w, const ls_plan *p, ls_group *g, ls_error *e) {
    *w = (ls_world){.group = g, .nbytes = 3 * flat_nbytes(p)};
    void *state = NULL;
    if (p->c.zero > 0) LS_TRY(ls_group_alloc_one(g, w->nbytes, &state, e));
    w->one = state != NULL;
    w->mine = !w->one;
    if (!w->one) LS_TRY(ls_map(w->nbytes, "parameters and optimizer", &state, e));
    place_state(w, p, state);
    return take_own(w, p, e);
}

ls_status ls_world_open_all(ls_world *worlds, const ls_plan *p, ls_group **groups, bool one,
                            ls_error *e) {
    for (int i = 0; i < p->c.nworkers; i++) {
        ls_world *w = &worlds[i];
        *w = (ls_world){.group = groups[i], .one = one, .together = true};
        w->nbytes = 3 * flat_nbytes(p);
        void *state = worlds[0].params;
        if (i == 0 || !one) LS_TRY(ls_map(w->nbytes, "parameters and optimizer", &state, e));
        w->mine = i == 0 || !one;
        place_state(w, p, state);
        LS_TRY(take_own(w, p, e));
    }
    return LS_OK;
}

void ls_world_close(ls_world *w) {
    if (!w->group) return;
    ls_group_free(w->group, w->grads);
    ls_group_free(w->group, w->parts);
    ls_group_free(w->group, w->sums);
    if (w->mine) ls_unmap(w->params, w->nbytes);
    *w = (ls_world){0};
}

/* ---- what comes and goes ---- */

/* Whole pages of x [first, end) become empty. Shared memory is removed from its file, private pages
 * are forgotten. */
static void drop_range(float *x, size_t first, size_t end) {
    const uintptr_t page = 4096;
    uintptr_t a = ((uintptr_t)(x + first) + page - 1) / page * page;
    uintptr_t b = (uintptr_t)(x + end) / page * page;
    if (a < b && madvise((void *)a, b - a, MADV_REMOVE) != 0)
        madvise((void *)a, b - a, MADV_DONTNEED);
}

static void drop_others(float *x, ls_bucket all, ls_bucket own) {
    drop_range(x, all.first, own.first);
    drop_range(x, own.end, all.end);
}

void ls_world_drop(const ls_world *w, const ls_plan *p, const ls_buffer *b) {
    ls_bucket all = p->buckets[b->index];
    ls_bucket own = ls_plan_shard(p, b->index, ls_group_rank(w->group));
    if (b->kind == LS_BUF_PARAM && !w->one) drop_others(w->params, all, own);
    if (b->kind != LS_BUF_GRAD) return;
    float *grads = w->grads + (size_t)b->slot * p->c.model->nfloats;
    if (b->slot == 0)
        drop_others(grads, all, own);
    else
        drop_range(grads, all.first, all.end);
}

static bool params_are_sharded(const ls_world *w, const ls_plan *p) {
    return !w->one && ls_plan_transient(p, LS_BUF_PARAM);
}

ls_status ls_world_gather_params(ls_world *w, const ls_plan *p, ls_error *e) {
    if (w->together) return LS_OK;
    if (w->one) return ls_barrier(w->group, e); /* all have written their shards */
    if (!params_are_sharded(w, p)) return LS_OK;
    size_t *counts = LS_NEW_ARRAY(size_t, (size_t)p->c.nworkers);
    ls_status s = LS_OK;
    for (int k = 0; s == LS_OK && k < p->nbuckets; k++) {
        for (int i = 0; i < p->c.nworkers; i++) {
            ls_bucket b = ls_plan_shard(p, k, i);
            counts[i] = b.end - b.first;
        }
        const float *own = w->params + ls_plan_shard(p, k, ls_group_rank(w->group)).first;
        s = ls_all_gather_v(w->group, own, w->params + p->buckets[k].first, counts, LS_F32, e);
    }
    free(counts);
    return s;
}

void ls_world_drop_params(ls_world *w, const ls_plan *p) {
    for (int k = 0; params_are_sharded(w, p) && k < p->nbuckets; k++)
        ls_world_drop(w, p, &(ls_buffer){.kind = LS_BUF_PARAM, .index = k});
}

/* Every shard of x that is another worker's goes to worker 0. */
static ls_status collect(ls_world *w, const ls_plan *p, float *x, ls_error *e) {
    int rank = ls_group_rank(w->group);
    for (int k = 0; k < p->nbuckets; k++)
        for (int owner = 1; owner < p->c.nworkers; owner++) {
            ls_bucket s = ls_plan_shard(p, k, owner);
            if (rank == owner)
                LS_TRY(ls_send(w->group, x + s.first, s.end - s.first, LS_F32, 0, e));
            if (rank == 0)
                LS_TRY(ls_recv(w->group, x + s.first, s.end - s.first, LS_F32, owner, e));
        }
    return LS_OK;
}

ls_status ls_world_collect(ls_world *w, const ls_plan *p, ls_error *e) {
    if (w->together || p->c.zero == 0) return LS_OK;
    if (w->one) return ls_barrier(w->group, e);
    LS_TRY(collect(w, p, w->m, e));
    LS_TRY(collect(w, p, w->v, e));
    return params_are_sharded(w, p) ? collect(w, p, w->params, e) : LS_OK;
}

void ls_world_drop_collected(ls_world *w, const ls_plan *p) {
    if (w->one || p->c.zero == 0 || ls_group_rank(w->group) != 0) return;
    for (int k = 0; k < p->nbuckets; k++) {
        drop_others(w->m, p->buckets[k], ls_plan_shard(p, k, 0));
        drop_others(w->v, p->buckets[k], ls_plan_shard(p, k, 0));
    }
    ls_world_drop_params(w, p);
}

static size_t resident(const float *x, size_t count) {
    const uintptr_t page = 4096;
    uintptr_t a = (uintptr_t)x / page * page;
    size_t npages = ((uintptr_t)(x + count) - a + page - 1) / page, n = 0;
    unsigned char *there = LS_NEW_ARRAY(unsigned char, npages);
    if (mincore((void *)a, npages * page, there) == 0)
        for (size_t i = 0; i < npages; i++) n += there[i] & 1;
    free(there);
    return n * page;
}

size_t ls_world_resident_nbytes(const ls_world *w, const ls_plan *p) {
    size_t n = p->c.model->nfloats, sums = (size_t)ls_plan_slots(p, ls_group_rank(w->group));
    size_t state = resident(w->params, 3 * n) / (w->one ? (size_t)p->c.nworkers : 1);
    return state + resident(w->grads, sums * n);
}
