/* world.c - see world.h. */
#include "exec/world.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/scratch.h"
#include "coll/virtual.h"
#include "exec/adopt.h"
#include "exec/apart.h"
#include "exec/errors.h"
#include "exec/store_blocks.h"
#include "model/table.h"
#include "plan/memory.h"
#include "tensor/dtype.h"

static ls_status no_memory(const ls_plan *p, ls_error *e) {
    return ls_fail(e, LS_ENOMEM,
                   "no memory for parameters, gradients and optimizer: %.1f MB wanted; use a "
                   "smaller model, or fewer workers",
                   (double)ls_plan_host_nbytes(p) / 1e6);
}

static void place_state(ls_world *w, const ls_plan *p, void *state) {
    w->state = state;
    w->flat = ls_flat_of_state(state, ls_plan_has_masters(p) ? NULL : w->params,
                               ls_optim_nstates(&p->c.optim), ls_plan_floats(p));
}

ls_group *ls_world_sharers(const ls_world *w, const ls_plan *p, int bucket) {
    if (p->buckets[bucket].island) return w->island;
    return ls_plan_is_apart(p, bucket) ? w->chunks : w->shards;
}

static ls_status take_wide(ls_world *w, const ls_plan *p, ls_error *e) {
    if (!ls_plan_wide(p)) return LS_OK;
    void *wide = NULL;
    LS_TRY(ls_map(ls_plan_wide_nbytes(p), "sums over micro-batches", &wide, e));
    w->wide = wide;
    return LS_OK;
}

static ls_status take_room(ls_world *w, const ls_plan *p, ls_error *e) {
    if (!ls_plan_room_nbytes(p)) return LS_OK;
    return ls_map(ls_plan_room_nbytes(p), "updates of whole parameters", &w->room, e);
}

/* The buffers that no other worker writes. */
static ls_status take_own(ls_world *w, const ls_plan *p, ls_error *e) {
    w->grads = ls_group_alloc(w->group, ls_plan_grads_nbytes(p, ls_group_rank(w->group)));
    w->parts = ls_group_alloc(w->group, ls_plan_scalars_nbytes(p));
    w->sums = ls_group_alloc(w->group, ls_plan_scalars_nbytes(p));
    if (!w->grads || !w->parts || !w->sums) return no_memory(p, e);
    if (ls_plan_has_errors(p) && !w->errors) {
        LS_TRY(ls_errors_map(p, &w->errors, e));
        w->frees_errors = true;
    }
    LS_TRY(take_room(w, p, e));
    LS_TRY(ls_apart_open(w, p, e));
    return take_wide(w, p, e);
}

/* Workers of an island have the same number. */
static int island_of(const ls_plan *p, int worker) {
    int first = 0, end = 0;
    ls_plan_islands_of(p, worker, &first, &end);
    return first;
}

/* Are there buckets that only some workers of an owner have, those of a chunk? */
static bool splits_chunks(const ls_plan *p) {
    for (int k = 0; k < p->nbuckets; k++)
        if (ls_plan_is_apart(p, k)) return true;
    return false;
}

/* The sharding groups and replicas, if there is more than one sharding group; the islands. */
static ls_status split(ls_world *w, const ls_plan *p, ls_error *e) {
    int rank = ls_group_rank(w->group), n = ls_plan_shards(p);
    w->shards = w->group;
    if (p->c.islands) return ls_group_split(w->group, island_of(p, rank), rank, &w->island, e);
    if (splits_chunks(p))
        LS_TRY(ls_group_split(w->group, ls_plan_rank(p, rank), rank, &w->chunks, e));
    if (ls_plan_owners(p) > 1)
        return ls_group_split(w->group, ls_plan_owner(p, rank), rank, &w->shards, e);
    if (ls_plan_replicas(p) == 1) return LS_OK;
    LS_TRY(ls_group_split(w->group, rank / n, rank, &w->shards, e));
    return ls_group_split(w->group, rank % n, rank, &w->replicas, e);
}

/* Reserves room on the disk for what this worker writes: else a write without room would kill it.
 * Worker 0 collects all of the state. */
static ls_status map_file(ls_world *w, const ls_plan *p, const char *dir, void **state_p,
                          ls_error *e) {
    const ls_bucket all = {.end = ls_plan_floats(p)};
    int rank = ls_group_rank(w->group), file = -1;
    size_t flat = ls_plan_floats(p) * sizeof(float), n = (size_t)ls_plan_nflats(p);
    LS_TRY(ls_scratch_open(dir, ls_plan_state_nbytes(p), &file, e));
    ls_status s = LS_OK;
    for (size_t i = 0; i < n; i++)
        for (int k = 0; s == LS_OK && k < (rank ? p->nbuckets : 1); k++) {
            ls_bucket b = rank ? ls_plan_owned(p, k, rank) : all;
            s = ls_scratch_reserve(file, dir, i * flat + b.first * sizeof(float),
                                   (b.end - b.first) * sizeof(float), e);
        }
    if (s == LS_OK) s = ls_scratch_map(file, dir, ls_plan_state_nbytes(p), state_p, e);
    close(file);
    return s;
}

ls_status ls_world_rejoin(ls_world *w, const ls_plan *p, ls_group *g, ls_error *e) {
    size_t nbytes = 0;
    void *memory = ls_store_memory(w->store, &nbytes);
    w->group = g;
    memset(w->ahead, 0, sizeof w->ahead);
    ls_store_set_ahead(w->store, p, NULL);
    ls_group_attach(g, memory, nbytes);
    return split(w, p, e);
}

static ls_status open_in_store(ls_world *w, const ls_plan *p, ls_error *e) {
    int rank = ls_group_rank(w->group);
    LS_TRY(ls_world_rejoin(w, p, w->group, e));
    w->shares_params = w->shares_state = ls_plan_shards_moments(p) && ls_group_is_one(w->shards);
    /* sharding groups may differ in that */
    int area = w->shares_params ? ls_plan_first_of_shards(p, rank) : rank;
    ls_store_place(w->store, rank, area);
    w->journal = ls_store_journal(w->store, rank);
    w->params = ls_store_params(w->store, area);
    place_state(w, p, ls_store_state(w->store, area));
    w->grads = ls_store_grads(w->store, rank);
    w->parts = ls_store_sums(w->store, rank);
    w->sums = w->parts + ls_plan_nscalars(p);
    if (ls_plan_has_errors(p)) w->errors = ls_store_errors(w->store);
    w->room = ls_store_room(w->store, rank);
    w->apart_rows = ls_store_apart_rows(w->store);
    w->apart_marks = ls_store_apart_marks(w->store);
    return take_wide(w, p, e);
}

void ls_world_clear(const ls_world *w, const ls_plan *p) {
    memset(w->parts, 0, 2 * ls_plan_scalars_nbytes(p));
}

ls_status ls_world_open(ls_world *w, const ls_plan *p, ls_group *g, ls_store *store,
                        const char *dir, ls_error *e) {
    *w = (ls_world){.group = g, .store = store, .state_in_file = dir != NULL};
    if (store) return open_in_store(w, p, e);
    void *state = NULL;
    LS_TRY(split(w, p, e));
    if (ls_plan_shards_moments(p))
        LS_TRY(ls_group_alloc_one(w->shards, ls_plan_params_nbytes(p), &w->params, e));
    w->shares_params = w->params != NULL;
    w->frees_params = !w->shares_params;
    if (!w->shares_params) LS_TRY(ls_map(ls_plan_params_nbytes(p), "parameters", &w->params, e));
    if (w->shares_params && !dir)
        LS_TRY(ls_group_alloc_one(w->shards, ls_plan_state_nbytes(p), &state, e));
    w->shares_state = state != NULL;
    w->frees_state = !w->shares_state;
    ls_status s = LS_OK;
    if (dir)
        s = map_file(w, p, dir, &state, e);
    else if (!w->shares_state)
        s = ls_map(ls_plan_state_nbytes(p), "optimizer", &state, e);
    if (s == LS_OK) place_state(w, p, state);
    return s == LS_OK ? take_own(w, p, e) : s;
}

/* The same for all workers in this thread, which must not wait for each other. */
static ls_status split_islands(ls_world *worlds, const ls_plan *p, ls_group **groups, ls_error *e) {
    for (int w = 0, end = 0; w < p->c.nworkers; w = end) {
        for (end = w + 1; end < p->c.nworkers && island_of(p, end) == island_of(p, w);) end++;
        LS_TRY(ls_group_open_threads(end - w, NULL, groups, e));
        for (int i = w; i < end; i++) worlds[i].island = groups[i - w];
    }
    return LS_OK;
}

static ls_status split_all(ls_world *worlds, const ls_plan *p, ls_error *e) {
    int n = ls_plan_shards(p), replicas = ls_plan_replicas(p);
    ls_group **groups = LS_NEW_ARRAY(ls_group *, (size_t)p->c.nworkers);
    ls_status s = LS_OK;
    if (p->c.islands) {
        s = split_islands(worlds, p, groups, e);
        free(groups);
        return s;
    }
    for (int g = 0; s == LS_OK && n < p->c.nworkers && g < p->c.nworkers / n; g++) {
        s = ls_group_open_threads(n, NULL, groups, e);
        for (int i = 0; s == LS_OK && i < n; i++)
            worlds[ls_plan_owners(p) > 1 ? ls_plan_member(p, g, i) : g * n + i].shards = groups[i];
    }
    int ranks = splits_chunks(p) ? ls_plan_ranks(p) : 0;
    for (int rank = 0; s == LS_OK && rank < ranks; rank++) {
        s = ls_group_open_threads(ls_plan_data(p), NULL, groups, e);
        for (int i = 0; s == LS_OK && i < ls_plan_data(p); i++)
            worlds[ls_plan_worker(p, rank, i)].chunks = groups[i];
    }
    for (int i = 0; s == LS_OK && replicas > 1 && i < n; i++) {
        s = ls_group_open_threads(replicas, NULL, groups, e);
        for (int g = 0; s == LS_OK && g < replicas; g++) worlds[g * n + i].replicas = groups[g];
    }
    free(groups);
    return s;
}

ls_status ls_world_open_all(ls_world *worlds, const ls_plan *p, ls_group **groups, bool shares,
                            ls_error *e) {
    bool all = shares && ls_plan_divides(p);
    int n = all ? p->c.nworkers : ls_plan_shards(p);
    for (int i = 0; i < p->c.nworkers; i++) {
        worlds[i] = (ls_world){.group = groups[i], .shards = groups[i], .in_one_thread = true};
        worlds[i].shares_params = worlds[i].shares_state = shares;
    }
    if (ls_plan_replicas(p) > 1 || p->c.islands || ls_plan_divides(p))
        LS_TRY(split_all(worlds, p, e));
    for (int i = 0; i < p->c.nworkers; i++) {
        ls_world *w = &worlds[i], *first = &worlds[i / n * n];
        w->frees_params = w->frees_state = i % n == 0 || !shares;
        w->params = first->params;
        void *state = first->state;
        if (w->frees_params) {
            LS_TRY(ls_map(ls_plan_params_nbytes(p), "parameters", &w->params, e));
            LS_TRY(ls_map(ls_plan_state_nbytes(p), "optimizer", &state, e));
        }
        place_state(w, p, state);
        w->errors = worlds[0].errors;
        LS_TRY(take_own(w, p, e));
    }
    return LS_OK;
}

void ls_world_part(ls_world *w) {
    if (w->shards != w->group) ls_group_close(w->shards);
    ls_group_close(w->chunks);
    ls_group_close(w->replicas);
    ls_group_close(w->island);
    w->group = w->shards = w->chunks = w->replicas = w->island = NULL;
}

void ls_world_close(ls_world *w, const ls_plan *p) {
    if (!w->group && !w->store) return;
    if (!w->store) {
        ls_unmap(w->room, ls_plan_room_nbytes(p));
        ls_apart_close(w, p);
        ls_group_free(w->group, w->grads);
        ls_group_free(w->group, w->parts);
        ls_group_free(w->group, w->sums);
    }
    if (w->frees_params) ls_unmap(w->params, ls_plan_params_nbytes(p));
    if (w->frees_state) ls_unmap(w->state, ls_plan_state_nbytes(p));
    ls_unmap(w->wide, ls_plan_wide_nbytes(p));
    if (w->frees_errors) ls_errors_unmap(p, w->errors);
    ls_world_part(w);
    *w = (ls_world){0};
}

void ls_world_round(const ls_world *w, const ls_plan *p, const ls_compute *c, size_t first,
                    size_t end) {
    if (ls_plan_has_masters(p))
        ls_table_narrow(c, p->c.compute, end - first, w->flat.of[0] + first,
                        ls_flat_at_mut(p->c.compute, w->params, first));
}

/* ---- transient memory ---- */

/* Returns the whole pages of elements [first, end) to the system. Shared memory is removed from its
 * file, private pages are discarded. */
static void drop_range(void *x, size_t size, size_t first, size_t end) {
    const uintptr_t page = 4096;
    uintptr_t a = ((uintptr_t)x + first * size + page - 1) / page * page;
    uintptr_t b = ((uintptr_t)x + end * size) / page * page;
    if (a < b && madvise((void *)a, b - a, MADV_REMOVE) != 0)
        madvise((void *)a, b - a, MADV_DONTNEED);
}

static void drop_others(void *x, size_t size, ls_bucket all, ls_bucket own) {
    drop_range(x, size, all.first, own.first);
    drop_range(x, size, own.end, all.end);
}

void ls_world_drop(const ls_world *w, const ls_plan *p, const ls_buffer *b) {
    ls_bucket all = p->buckets[b->index];
    ls_bucket own = ls_plan_shard(p, b->index, ls_group_rank(w->group));
    if (b->kind == LS_BUF_PARAM && !w->shares_params)
        drop_others(w->params, ls_dtype_size(p->c.compute), all, own);
    if (b->kind != LS_BUF_GRAD) return;
    char *grads = (char *)w->grads + (size_t)b->slot * ls_plan_slot_nbytes(p);
    if (ls_plan_keeps_shard(p, *b))
        drop_others(grads, ls_dtype_size(p->c.reduce), all, own);
    else
        drop_range(grads, ls_dtype_size(p->c.reduce), all.first, all.end);
}

static bool is_gathered(const ls_world *w, const ls_plan *p, int bucket) {
    return !w->shares_params && ls_plan_gathers(p, bucket);
}

/* Sends the parameters of a bucket from the owners of its shards to all. counts [shards]: scratch.
 */
static ls_status gather_bucket(ls_world *w, const ls_plan *p, void *params, int k, size_t *counts,
                               ls_error *e) {
    ls_dtype type = p->c.compute;
    size_t own = ls_plan_shard(p, k, ls_group_rank(w->group)).first;
    ls_group *g = ls_world_sharers(w, p, k);
    ls_plan_shard_counts(p, k, counts);
    if (!ls_plan_has(p, k, ls_group_rank(w->group))) return LS_OK;
    return ls_all_gather_v(g, ls_flat_at(type, params, own),
                           ls_flat_at_mut(type, params, p->buckets[k].first), counts, type, e);
}

/* If there is one copy of the parameters, the barrier waits until all workers have written theirs.
 */
ls_status ls_world_adopt(ls_world *w, const ls_plan *p, const ls_compute *c, int64_t last,
                         ls_error *e) {
    int rank = ls_group_rank(w->group);
    LS_TRY(ls_apart_agree(w, p, last, e));
    unsigned char *missing = ls_alloc(ls_plan_floats(p) / LS_BLOCK);
    ls_store_adopt(w->store, p, rank, missing);
    ls_status s = ls_adopt(w, p, missing, e);
    free(missing);
    LS_TRY(s);
    LS_TRY(ls_errors_adopt(w, p, e));
    for (int k = 0; ls_plan_has_masters(p) && k < p->nbuckets; k++) {
        ls_bucket own = ls_plan_owned(p, k, rank);
        ls_world_round(w, p, c, own.first, own.end);
    }
    LS_TRY(ls_barrier(w->group, e));
    if (w->shares_params || !ls_plan_shards_moments(p)) return LS_OK;
    size_t *counts = LS_NEW_ARRAY(size_t, (size_t)ls_plan_shards(p));
    for (int k = 0; s == LS_OK && k < p->nbuckets; k++)
        if (!is_gathered(w, p, k)) s = gather_bucket(w, p, w->params, k, counts, e);
    free(counts);
    return s;
}

/* Sends a bucket from the first worker that has it to all workers of an owner, or to the one copy that
 * they share. */
static ls_status send_bucket(const ls_world *w, const ls_plan *p, void *params, int k, int owner,
                             ls_error *e) {
    bool one = params == w->params && w->shares_params, home = owner == ls_plan_owner_of(p, k);
    int me = ls_group_rank(w->group);
    int from = ls_plan_workers_of(p, k).from, to = ls_plan_member(p, owner, 0);
    size_t n = (p->buckets[k].end - p->buckets[k].first) * ls_dtype_size(p->c.compute);
    void *at = ls_flat_at_mut(p->c.compute, params, p->buckets[k].first);
    if (!home && me == from) LS_TRY(ls_send(w->group, at, n, LS_U8, to, e));
    if (!home && me == to) LS_TRY(ls_recv(w->group, at, n, LS_U8, from, e));
    if (one || ls_plan_owner(p, me) != owner) return LS_OK;
    return ls_broadcast(w->shards, at, n, LS_U8, home ? ls_plan_number(p, from) : 0, e);
}

/* Does a worker of the owner read the bucket? Those that have it do not count. */
static bool reads(const ls_plan *p, int bucket, int owner) {
    for (int i = 0; p->buckets[bucket].shared && i < p->c.nworkers / ls_plan_owners(p); i++) {
        int w = ls_plan_member(p, owner, i);
        if (!ls_plan_has(p, bucket, w) && ls_plan_touches(p, bucket, ls_plan_rank(p, w)))
            return true;
    }
    return false;
}

ls_status ls_world_spread(ls_world *w, const ls_plan *p, ls_error *e) {
    if (w->in_one_thread) return LS_OK;
    if (ls_plan_owners(p) == 1) return LS_OK;
    for (int k = 0; k < p->nbuckets; k++)
        for (int owner = 0; owner < ls_plan_owners(p); owner++)
            if (reads(p, k, owner)) LS_TRY(send_bucket(w, p, w->params, k, owner, e));
    return ls_barrier(w->group, e);
}

/* All workers get all buckets. */
static ls_status share_all(const ls_world *w, const ls_plan *p, void *params, ls_error *e) {
    for (int k = 0; k < p->nbuckets; k++)
        for (int owner = 0; owner < ls_plan_owners(p); owner++)
            if (owner != ls_plan_owner_of(p, k) || ls_plan_is_apart(p, k))
                LS_TRY(send_bucket(w, p, params, k, owner, e));
    return ls_barrier(w->group, e);
}

ls_status ls_world_gather_params(ls_world *w, const ls_plan *p, ls_error *e) {
    if (w->in_one_thread) return LS_OK;
    bool divides = ls_plan_divides(p);
    if (divides || w->shares_params) /* until all have written their shards */
        LS_TRY(ls_barrier(divides ? w->group : w->shards, e));
    size_t *counts = LS_NEW_ARRAY(size_t, (size_t)ls_plan_shards(p));
    ls_status s = LS_OK;
    for (int k = 0; s == LS_OK && k < p->nbuckets; k++)
        if (is_gathered(w, p, k)) s = gather_bucket(w, p, w->params, k, counts, e);
    free(counts);
    return s == LS_OK && divides ? share_all(w, p, w->params, e) : s;
}

/* Rounds elements of the average `ema`, or of the averages of rules, to params. */
static void round_average(const ls_world *w, const ls_plan *p, const ls_compute *c, ls_bucket b,
                          bool ema, void *params) {
    const ls_model *m = p->c.model;
    for (int i = 0; i < m->nparams; i++) {
        const ls_param *q = &m->params[i];
        size_t first = q->offset > b.first ? q->offset : b.first;
        size_t end = q->offset + q->count < b.end ? q->offset + q->count : b.end;
        if (q->frozen || first >= end) continue;
        int of = ema ? 1 + ls_optim_ema(&p->c.optim) : ls_optim_weights(&p->c.optim, q, 1);
        const float *from = w->flat.of[of] + first;
        if (ls_plan_has_masters(p))
            ls_table_narrow(c, p->c.compute, end - first, from,
                            ls_flat_at_mut(p->c.compute, params, first));
        else
            memcpy((float *)params + first, from, (end - first) * sizeof *from);
    }
}

/* Each worker rounds what it has: all, if its sharding group has one copy of the states. */
ls_status ls_world_gather_average(ls_world *w, const ls_plan *p, const ls_compute *c, bool ema,
                                  void **params_p, ls_error *e) {
    bool one = w->in_one_thread || w->shares_state, gathers = !one && ls_plan_shards_moments(p);
    size_t *counts = LS_NEW_ARRAY(size_t, (size_t)ls_plan_shards(p));
    void *params = NULL;
    ls_status s = ls_map(ls_plan_params_nbytes(p), "the average of the weights", &params, e);
    if (s == LS_OK && w->shares_state && !w->in_one_thread)
        s = ls_barrier(w->shards, e); /* until all have written their shards */
    for (int k = 0; s == LS_OK && k < p->nbuckets; k++) {
        ls_bucket b = gathers ? ls_plan_owned(p, k, ls_group_rank(w->group)) : p->buckets[k];
        if (gathers || ls_plan_has(p, k, ls_group_rank(w->group)) || w->in_one_thread)
            round_average(w, p, c, b, ema, params);
        if (gathers) s = gather_bucket(w, p, params, k, counts, e);
    }
    if (s == LS_OK && ls_plan_divides(p) && !w->in_one_thread) s = share_all(w, p, params, e);
    free(counts);
    if (s == LS_OK)
        *params_p = params;
    else if (params)
        ls_unmap(params, ls_plan_params_nbytes(p));
    return s;
}

/* Does the bucket belong to workers who may have one copy together with this one? */
static bool is_near(const ls_world *w, const ls_plan *p, int bucket) {
    return ls_plan_owner_of(p, bucket) == ls_plan_owner(p, ls_group_rank(w->group));
}

/* Parameters that only others read, those who share this copy not among them. */
static bool is_foreign(const ls_world *w, const ls_plan *p, int bucket) {
    int worker = ls_group_rank(w->group);
    if (w->in_one_thread || !ls_plan_divides(p)) return false;
    if (w->shares_params)
        return !is_near(w, p, bucket) && !reads(p, bucket, ls_plan_owner(p, worker));
    return !ls_plan_has(p, bucket, worker) && !ls_plan_touches(p, bucket, ls_plan_rank(p, worker));
}

void ls_world_drop_params(const ls_world *w, const ls_plan *p) {
    for (int k = 0; k < p->nbuckets; k++)
        if (is_foreign(w, p, k) && (!w->shares_params || ls_group_rank(w->shards) == 0))
            drop_range(w->params, ls_dtype_size(p->c.compute), p->buckets[k].first,
                       p->buckets[k].end);
    for (int k = 0; k < p->nbuckets; k++)
        if (is_gathered(w, p, k))
            ls_world_drop(w, p, &(ls_buffer){.kind = LS_BUF_PARAM, .index = k});
}

/* Sends what each owner has of x to the first worker of the sharding group; of what several workers
 * have whole, the first one sends it. */
static ls_status collect(ls_world *w, const ls_plan *p, float *x, ls_error *e) {
    bool divides = ls_plan_divides(p);
    ls_group *g = divides ? w->group : w->shards;
    int rank = ls_group_rank(g);
    for (int k = 0; k < p->nbuckets; k++) {
        ls_worker_set of = {0, ls_plan_shards(p), 1};
        if (p->c.islands || divides) of = ls_plan_workers_of(p, k);
        if (!ls_plan_shards_moments(p)) of.to = of.from + 1;
        for (int owner = of.from; owner < of.to; owner += of.step) {
            if (owner == 0) continue;
            ls_bucket s = ls_plan_owned(p, k, owner);
            if (rank == owner) LS_TRY(ls_send(g, x + s.first, s.end - s.first, LS_F32, 0, e));
            if (rank == 0) LS_TRY(ls_recv(g, x + s.first, s.end - s.first, LS_F32, owner, e));
        }
    }
    return LS_OK;
}

ls_status ls_world_collect_errors(ls_world *w, const ls_plan *p, int64_t steps, ls_error *e) {
    if (w->in_one_thread || !ls_plan_has_errors(p)) return LS_OK;
    return ls_errors_collect(w->group, p, steps, w->errors, e);
}

static ls_status collect_islands(ls_world *w, const ls_plan *p, ls_error *e) {
    if (w->shares_state) return ls_barrier(w->group, e);
    for (int i = 0; i < w->flat.n; i++) LS_TRY(collect(w, p, w->flat.of[i], e));
    return LS_OK;
}

/* Of what a rank shares in one copy, all of it is there after the barrier. */
static ls_status collect_stages(ls_world *w, const ls_plan *p, ls_error *e) {
    LS_TRY(ls_barrier(w->group, e));
    for (int i = 0; i < w->flat.n; i++) LS_TRY(collect(w, p, w->flat.of[i], e));
    return LS_OK;
}

ls_status ls_world_collect(ls_world *w, const ls_plan *p, ls_error *e) {
    if (p->c.islands) return w->in_one_thread ? LS_OK : collect_islands(w, p, e);
    if (ls_plan_divides(p)) return w->in_one_thread ? LS_OK : collect_stages(w, p, e);
    if (w->in_one_thread || !ls_plan_shards_moments(p)) return LS_OK;
    if (w->shares_params) LS_TRY(ls_barrier(w->shards, e));
    if (ls_group_rank(w->group) >= ls_plan_shards(p)) return LS_OK; /* a replica */
    for (int i = 1; !w->shares_state && i < w->flat.n; i++) LS_TRY(collect(w, p, w->flat.of[i], e));
    if (ls_plan_has_masters(p)) return w->shares_state ? LS_OK : collect(w, p, w->flat.of[0], e);
    return !w->shares_params && ls_plan_shards_params(p) ? collect(w, p, w->params, e) : LS_OK;
}

/* The system drops pages of a file by itself when memory is short. */
void ls_world_drop_state(const ls_world *w, const ls_plan *p, int bucket) {
    bool keeps = w->shares_state || !ls_plan_shards_moments(p);
    if (ls_plan_divides(p))
        keeps = w->in_one_thread || ls_plan_has(p, bucket, ls_group_rank(w->group)) ||
                (w->shares_state && is_near(w, p, bucket));
    if (keeps || w->state_in_file) return;
    ls_bucket all = p->buckets[bucket], own = ls_plan_shard(p, bucket, ls_group_rank(w->group));
    for (int i = ls_plan_has_masters(p) ? 0 : 1; i < w->flat.n; i++)
        drop_others(w->flat.of[i], sizeof(float), all, own);
}

void ls_world_drop_collected(ls_world *w, const ls_plan *p) {
    if (w->in_one_thread || ls_group_rank(w->group) != 0) return;
    if (ls_plan_has_errors(p)) ls_errors_drop(p, 0, w->errors);
    for (int k = 0; k < p->nbuckets; k++) ls_world_drop_state(w, p, k);
    ls_world_drop_params(w, p);
}

static size_t resident(const void *x, size_t nbytes) {
    const uintptr_t page = 4096;
    uintptr_t a = (uintptr_t)x / page * page;
    size_t npages = ((uintptr_t)x + nbytes - a + page - 1) / page, n = 0;
    if (nbytes == 0) return 0;
    unsigned char *there = LS_NEW_ARRAY(unsigned char, npages);
    if (mincore((void *)a, npages * page, there) == 0)
        for (size_t i = 0; i < npages; i++) n += there[i] & 1;
    free(there);
    return n * page;
}

size_t ls_world_resident_nbytes(const ls_world *w, const ls_plan *p) {
    size_t n = (size_t)ls_plan_shards(p);
    size_t params = resident(w->params, ls_plan_params_nbytes(p)) / (w->shares_params ? n : 1);
    size_t state = resident(w->state, ls_plan_state_nbytes(p));
    return params + state / (w->shares_state ? n : 1) + resident(w->wide, ls_plan_wide_nbytes(p)) +
           resident(w->grads, ls_plan_grads_nbytes(p, ls_group_rank(w->group)));
}
