/* world.c - see world.h. */
#include "state/world.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/pages.h"
#include "base/scratch.h"
#include "coll/virtual.h"
#include "model/stored_table.h"
#include "share/mesh.h"
#include "state/adopt.h"
#include "state/apart.h"
#include "state/errors.h"
#include "state/store_blocks.h"
#include "tensor/dtype.h"

static ls_status no_memory(const ls_share *sh, ls_error *e) {
    return ls_fail(e, LS_ENOMEM,
                   "no memory for parameters, gradients and optimizer: %.1f MB wanted; use a "
                   "smaller model, or fewer workers",
                   (double)ls_share_host_nbytes(sh) / 1e6);
}

static void place_state(ls_world *w, const ls_share *sh, void *state) {
    w->state = state;
    w->flat = ls_flat_of_state(state, sh->has_masters ? NULL : w->params,
                               ls_optim_nstates(&sh->optim), sh->floats);
}

ls_group *ls_world_sharers(const ls_world *w, const ls_share *sh, int bucket) {
    if (sh->buckets[bucket].island) return w->island;
    return sh->buckets[bucket].is_apart ? w->chunks : w->shards;
}

static ls_status take_wide(ls_world *w, const ls_share *sh, ls_error *e) {
    if (!sh->wide) return LS_OK;
    void *wide = NULL;
    LS_TRY(ls_map(sh->nbytes.wide, "sums over micro-batches", &wide, e));
    w->wide = wide;
    return LS_OK;
}

static ls_status take_room(ls_world *w, const ls_share *sh, ls_error *e) {
    if (!sh->nbytes.room) return LS_OK;
    return ls_map(sh->nbytes.room, "updates of whole parameters", &w->room, e);
}

/* The buffers that no other worker writes. */
static ls_status take_own(ls_world *w, const ls_share *sh, ls_error *e) {
    w->grads = ls_group_alloc(w->group, ls_share_grads_nbytes(sh, ls_group_rank(w->group)));
    w->parts = ls_group_alloc(w->group, sh->nbytes.scalars);
    w->sums = ls_group_alloc(w->group, sh->nbytes.scalars);
    if (!w->grads || !w->parts || !w->sums) return no_memory(sh, e);
    if (sh->has_errors && !w->errors) {
        LS_TRY(ls_errors_map(sh, &w->errors, e));
        w->frees_errors = true;
    }
    LS_TRY(take_room(w, sh, e));
    LS_TRY(ls_apart_open(w, sh, e));
    return take_wide(w, sh, e);
}

/* Are there buckets that only some workers of a holder have, those of a chunk? */
static bool splits_chunks(const ls_share *sh) {
    for (int k = 0; k < sh->nbuckets; k++)
        if (sh->buckets[k].is_apart) return true;
    return false;
}

/* The sharding groups and replicas, if there is more than one sharding group; the islands. */
static ls_status split(ls_world *w, const ls_share *sh, ls_error *e) {
    int rank = ls_group_rank(w->group), n = sh->nshards;
    w->shards = w->group;
    if (sh->islands)
        return ls_group_split(w->group, sh->workers[rank].first_island, rank, &w->island, e);
    if (splits_chunks(sh))
        LS_TRY(ls_group_split(w->group, sh->workers[rank].cell, rank, &w->chunks, e));
    if (sh->nholders > 1)
        return ls_group_split(w->group, sh->workers[rank].holder, rank, &w->shards, e);
    if (sh->nreplicas == 1) return LS_OK;
    LS_TRY(ls_group_split(w->group, rank / n, rank, &w->shards, e));
    return ls_group_split(w->group, rank % n, rank, &w->replicas, e);
}

/* Reserves room on the disk for what this worker writes: else a write without room would kill it.
 * Worker 0 collects all of the state. */
static ls_status map_file(ls_world *w, const ls_share *sh, const char *dir, void **state_p,
                          ls_error *e) {
    const ls_range all = {.end = sh->floats};
    int rank = ls_group_rank(w->group), file = -1;
    size_t flat = sh->floats * sizeof(float), n = (size_t)sh->nflats;
    LS_TRY(ls_scratch_open(dir, sh->nbytes.state, &file, e));
    ls_status s = LS_OK;
    for (size_t i = 0; i < n; i++)
        for (int k = 0; s == LS_OK && k < (rank ? sh->nbuckets : 1); k++) {
            ls_range b = rank ? ls_share_owned(sh, k, rank) : all;
            s = ls_scratch_reserve(file, dir, i * flat + b.first * sizeof(float),
                                   (b.end - b.first) * sizeof(float), e);
        }
    if (s == LS_OK) s = ls_scratch_map(file, dir, sh->nbytes.state, state_p, e);
    close(file);
    return s;
}

ls_status ls_world_rejoin(ls_world *w, const ls_share *sh, ls_group *g, ls_error *e) {
    size_t nbytes = 0;
    void *memory = ls_store_memory(w->store, &nbytes);
    w->group = g;
    memset(w->ahead, 0, sizeof w->ahead);
    ls_store_set_ahead(w->store, sh, NULL);
    ls_group_attach(g, memory, nbytes);
    return split(w, sh, e);
}

static ls_status open_in_store(ls_world *w, const ls_share *sh, ls_error *e) {
    int rank = ls_group_rank(w->group);
    LS_TRY(ls_world_rejoin(w, sh, w->group, e));
    w->shares_params = w->shares_state = sh->shards_moments && ls_group_is_one(w->shards);
    /* sharding groups may differ in that */
    int area = w->shares_params ? ls_share_first_of_shards(sh, rank) : rank;
    ls_store_place(w->store, rank, area);
    w->journal = ls_store_journal(w->store, rank);
    w->params = ls_store_params(w->store, area);
    place_state(w, sh, ls_store_state(w->store, area));
    w->grads = ls_store_grads(w->store, rank);
    w->parts = ls_store_sums(w->store, rank);
    w->sums = w->parts + sh->nscalars;
    if (sh->has_errors) w->errors = ls_store_errors(w->store);
    w->room = ls_store_room(w->store, rank);
    w->apart_rows = ls_store_apart_rows(w->store);
    w->apart_marks = ls_store_apart_marks(w->store);
    return take_wide(w, sh, e);
}

void ls_world_clear(const ls_world *w, const ls_share *sh) {
    memset(w->parts, 0, 2 * sh->nbytes.scalars);
}

ls_status ls_world_open(ls_world *w, const ls_share *sh, ls_group *g, ls_store *store,
                        const char *dir, ls_error *e) {
    *w = (ls_world){.group = g, .store = store, .state_in_file = dir != NULL};
    if (store) return open_in_store(w, sh, e);
    void *state = NULL;
    LS_TRY(split(w, sh, e));
    if (sh->shards_moments) LS_TRY(ls_group_alloc_one(w->shards, sh->nbytes.params, &w->params, e));
    w->shares_params = w->params != NULL;
    w->frees_params = !w->shares_params;
    if (!w->shares_params) LS_TRY(ls_map(sh->nbytes.params, "parameters", &w->params, e));
    if (w->shares_params && !dir)
        LS_TRY(ls_group_alloc_one(w->shards, sh->nbytes.state, &state, e));
    w->shares_state = state != NULL;
    w->frees_state = !w->shares_state;
    ls_status s = LS_OK;
    if (dir)
        s = map_file(w, sh, dir, &state, e);
    else if (!w->shares_state)
        s = ls_map(sh->nbytes.state, "optimizer", &state, e);
    if (s == LS_OK) place_state(w, sh, state);
    return s == LS_OK ? take_own(w, sh, e) : s;
}

/* As split(), for all workers in this thread, which must not wait for each other. */
static ls_status split_islands(ls_world *worlds, const ls_share *sh, ls_group **groups,
                               ls_error *e) {
    for (int w = 0, end = 0; w < sh->nworkers; w = end) {
        for (end = w + 1;
             end < sh->nworkers && sh->workers[end].first_island == sh->workers[w].first_island;)
            end++;
        LS_TRY(ls_group_open_threads(end - w, NULL, groups, e));
        for (int i = w; i < end; i++) worlds[i].island = groups[i - w];
    }
    return LS_OK;
}

static ls_status split_all(ls_world *worlds, const ls_share *sh, ls_error *e) {
    int n = sh->nshards, replicas = sh->nreplicas;
    ls_group **groups = LS_NEW_ARRAY(ls_group *, (size_t)sh->nworkers);
    ls_status s = LS_OK;
    if (sh->islands) {
        s = split_islands(worlds, sh, groups, e);
        free(groups);
        return s;
    }
    for (int g = 0; s == LS_OK && n < sh->nworkers && g < sh->nworkers / n; g++) {
        s = ls_group_open_threads(n, NULL, groups, e);
        for (int i = 0; s == LS_OK && i < n; i++)
            worlds[sh->nholders > 1 ? ls_share_member(sh, g, i) : g * n + i].shards = groups[i];
    }
    int ranks = splits_chunks(sh) ? sh->ncells : 0;
    for (int rank = 0; s == LS_OK && rank < ranks; rank++) {
        s = ls_group_open_threads(sh->data, NULL, groups, e);
        for (int i = 0; s == LS_OK && i < sh->data; i++)
            worlds[ls_share_worker(sh, rank, i)].chunks = groups[i];
    }
    for (int i = 0; s == LS_OK && replicas > 1 && i < n; i++) {
        s = ls_group_open_threads(replicas, NULL, groups, e);
        for (int g = 0; s == LS_OK && g < replicas; g++) worlds[g * n + i].replicas = groups[g];
    }
    free(groups);
    return s;
}

ls_status ls_world_open_all(ls_world *worlds, const ls_share *sh, ls_group **groups, bool shares,
                            ls_error *e) {
    bool all = shares && (sh->divides || sh->islands);
    int n = all ? sh->nworkers : sh->nshards;
    for (int i = 0; i < sh->nworkers; i++) {
        worlds[i] = (ls_world){.group = groups[i], .shards = groups[i], .in_one_thread = true};
        worlds[i].shares_params = worlds[i].shares_state = shares;
    }
    if (sh->nreplicas > 1 || sh->islands || sh->divides) LS_TRY(split_all(worlds, sh, e));
    for (int i = 0; i < sh->nworkers; i++) {
        ls_world *w = &worlds[i], *first = &worlds[i / n * n];
        w->frees_params = w->frees_state = i % n == 0 || !shares;
        w->params = first->params;
        void *state = first->state;
        if (w->frees_params) {
            LS_TRY(ls_map(sh->nbytes.params, "parameters", &w->params, e));
            LS_TRY(ls_map(sh->nbytes.state, "optimizer", &state, e));
        }
        place_state(w, sh, state);
        w->errors = worlds[0].errors;
        LS_TRY(take_own(w, sh, e));
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

void ls_world_close(ls_world *w, const ls_share *sh) {
    if (!w->group && !w->store) return;
    if (!w->store) {
        ls_unmap(w->room, sh->nbytes.room);
        ls_apart_close(w, sh);
        ls_group_free(w->group, w->grads);
        ls_group_free(w->group, w->parts);
        ls_group_free(w->group, w->sums);
    }
    if (w->frees_params) ls_unmap(w->params, sh->nbytes.params);
    if (w->frees_state) ls_unmap(w->state, sh->nbytes.state);
    ls_unmap(w->wide, sh->nbytes.wide);
    if (w->frees_errors) ls_errors_unmap(sh, w->errors);
    ls_world_part(w);
    *w = (ls_world){0};
}

void ls_world_round(const ls_world *w, const ls_share *sh, const ls_compute *c, size_t first,
                    size_t end) {
    if (sh->has_masters)
        ls_table_narrow(c, sh->compute, end - first, w->flat.of[0] + first,
                        ls_flat_at_mut(sh->compute, w->params, first));
}

/* ---- transient memory ---- */

static void drop_range(void *x, size_t size, size_t first, size_t end) {
    if (first < end) ls_pages_return((char *)x + first * size, (end - first) * size);
}

static void drop_others(void *x, size_t size, ls_range all, ls_range own) {
    drop_range(x, size, all.first, own.first);
    drop_range(x, size, own.end, all.end);
}

void ls_world_drop_gathered(const ls_world *w, const ls_share *sh, int bucket) {
    if (w->shares_params) return;
    drop_others(w->params, ls_dtype_size(sh->compute), ls_share_range(sh, bucket),
                ls_share_shard(sh, bucket, ls_group_rank(w->group)));
}

void ls_world_drop_sum(const ls_world *w, const ls_share *sh, int bucket, int slot) {
    char *grads = (char *)w->grads + (size_t)slot * sh->nbytes.slot;
    ls_range all = ls_share_range(sh, bucket), own = {all.end, all.end};
    if (ls_share_keeps_shard(sh, slot)) own = ls_share_shard(sh, bucket, ls_group_rank(w->group));
    drop_others(grads, ls_dtype_size(sh->reduce), all, own);
}

static bool is_gathered(const ls_world *w, const ls_share *sh, int bucket) {
    return !w->shares_params && sh->buckets[bucket].is_gathered;
}

/* Sends the parameters of a bucket from the owners of its shards to all. counts [shards]: scratch.
 */
static ls_status gather_bucket(ls_world *w, const ls_share *sh, void *params, int k, size_t *counts,
                               ls_error *e) {
    ls_dtype type = sh->compute;
    size_t own = ls_share_shard(sh, k, ls_group_rank(w->group)).first;
    ls_group *g = ls_world_sharers(w, sh, k);
    ls_share_shard_counts(sh, k, counts);
    if (!ls_share_has(sh, k, ls_group_rank(w->group))) return LS_OK;
    return ls_all_gather_v(g, ls_flat_at(type, params, own),
                           ls_flat_at_mut(type, params, sh->buckets[k].first), counts, type, e);
}

/* If there is one copy of the parameters, the barrier waits until all workers have written theirs.
 */
ls_status ls_world_adopt(ls_world *w, const ls_share *sh, const ls_compute *c, int64_t last,
                         ls_error *e) {
    int rank = ls_group_rank(w->group);
    LS_TRY(ls_apart_agree(w, sh, last, e));
    unsigned char *missing = ls_alloc(sh->floats / LS_BLOCK);
    ls_store_adopt(w->store, sh, rank, missing);
    ls_status s = ls_adopt(w, sh, missing, e);
    free(missing);
    LS_TRY(s);
    LS_TRY(ls_errors_adopt(w, sh, e));
    for (int k = 0; sh->has_masters && k < sh->nbuckets; k++) {
        ls_range own = ls_share_owned(sh, k, rank);
        ls_world_round(w, sh, c, own.first, own.end);
    }
    LS_TRY(ls_barrier(w->group, e));
    if (w->shares_params || !sh->shards_moments) return LS_OK;
    size_t *counts = LS_NEW_ARRAY(size_t, (size_t)sh->nshards);
    for (int k = 0; s == LS_OK && k < sh->nbuckets; k++)
        if (!is_gathered(w, sh, k)) s = gather_bucket(w, sh, w->params, k, counts, e);
    free(counts);
    return s;
}

/* Sends a bucket from the first worker that has it to all workers of a holder, or to the one copy
 * that they share. */
static ls_status send_bucket(const ls_world *w, const ls_share *sh, void *params, int k, int holder,
                             ls_error *e) {
    bool one = params == w->params && w->shares_params, home = holder == ls_share_holder_of(sh, k);
    int me = ls_group_rank(w->group);
    int from = sh->buckets[k].workers.from, to = ls_share_member(sh, holder, 0);
    size_t n = (sh->buckets[k].end - sh->buckets[k].first) * ls_dtype_size(sh->compute);
    void *at = ls_flat_at_mut(sh->compute, params, sh->buckets[k].first);
    if (!home && me == from) LS_TRY(ls_send(w->group, at, n, LS_U8, to, e));
    if (!home && me == to) LS_TRY(ls_recv(w->group, at, n, LS_U8, from, e));
    if (one || sh->workers[me].holder != holder) return LS_OK;
    return ls_broadcast(w->shards, at, n, LS_U8, home ? sh->workers[from].holder_place : 0, e);
}

/* Does a worker of the holder read the bucket? Those that have it do not count. */
static bool reads(const ls_share *sh, int bucket, int holder) {
    for (int i = 0; sh->buckets[bucket].shared && i < sh->nworkers / sh->nholders; i++) {
        int w = ls_share_member(sh, holder, i);
        if (!ls_share_has(sh, bucket, w) && ls_share_touches(sh, bucket, sh->workers[w].cell))
            return true;
    }
    return false;
}

ls_status ls_world_spread(ls_world *w, const ls_share *sh, ls_error *e) {
    if (w->in_one_thread) return LS_OK;
    if (sh->nholders == 1) return LS_OK;
    for (int k = 0; k < sh->nbuckets; k++)
        for (int holder = 0; holder < sh->nholders; holder++)
            if (reads(sh, k, holder)) LS_TRY(send_bucket(w, sh, w->params, k, holder, e));
    return ls_barrier(w->group, e);
}

/* All workers get all buckets. */
static ls_status share_all(const ls_world *w, const ls_share *sh, void *params, ls_error *e) {
    for (int k = 0; k < sh->nbuckets; k++)
        for (int holder = 0; holder < sh->nholders; holder++)
            if (holder != ls_share_holder_of(sh, k) || sh->buckets[k].is_apart)
                LS_TRY(send_bucket(w, sh, params, k, holder, e));
    return ls_barrier(w->group, e);
}

static ls_status fetch(ls_world *w, bool states, ls_error *e) {
    return w->fetch ? w->fetch(w->fetch_arg, states, e) : LS_OK;
}

ls_status ls_world_gather_params(ls_world *w, const ls_share *sh, ls_error *e) {
    LS_TRY(fetch(w, false, e));
    if (w->in_one_thread) return LS_OK;
    bool divides = sh->divides;
    if (divides || w->shares_params) /* until all have written their shards */
        LS_TRY(ls_barrier(divides ? w->group : w->shards, e));
    size_t *counts = LS_NEW_ARRAY(size_t, (size_t)sh->nshards);
    ls_status s = LS_OK;
    for (int k = 0; s == LS_OK && k < sh->nbuckets; k++)
        if (is_gathered(w, sh, k)) s = gather_bucket(w, sh, w->params, k, counts, e);
    free(counts);
    return s == LS_OK && divides ? share_all(w, sh, w->params, e) : s;
}

/* Rounds elements of the average `ema`, or of the averages of rules, to params. */
static void round_average(const ls_world *w, const ls_share *sh, const ls_compute *c, ls_range b,
                          bool ema, void *params) {
    const ls_model *m = sh->model;
    for (int i = 0; i < m->nparams; i++) {
        const ls_param *q = &m->params[i];
        size_t first = q->offset > b.first ? q->offset : b.first;
        size_t end = q->offset + q->count < b.end ? q->offset + q->count : b.end;
        if (q->frozen || first >= end) continue;
        int of = ema ? 1 + ls_optim_ema(&sh->optim) : ls_optim_weights(&sh->optim, q, 1);
        const float *from = w->flat.of[of] + first;
        if (sh->has_masters)
            ls_table_narrow(c, sh->compute, end - first, from,
                            ls_flat_at_mut(sh->compute, params, first));
        else
            memcpy((float *)params + first, from, (end - first) * sizeof *from);
    }
}

/* Each worker rounds what it has: all, if its sharding group has one copy of the states. */
ls_status ls_world_gather_average(ls_world *w, const ls_share *sh, const ls_compute *c, bool ema,
                                  void **params_p, ls_error *e) {
    bool one = w->in_one_thread || w->shares_state, gathers = !one && sh->shards_moments;
    LS_TRY(fetch(w, true, e));
    size_t *counts = LS_NEW_ARRAY(size_t, (size_t)sh->nshards);
    void *params = NULL;
    ls_status s = ls_map(sh->nbytes.params, "the average of the weights", &params, e);
    if (s == LS_OK && w->shares_state && !w->in_one_thread)
        s = ls_barrier(w->shards, e); /* until all have written their shards */
    for (int k = 0; s == LS_OK && k < sh->nbuckets; k++) {
        ls_range b =
            gathers ? ls_share_owned(sh, k, ls_group_rank(w->group)) : ls_share_range(sh, k);
        if (gathers || ls_share_has(sh, k, ls_group_rank(w->group)) || w->in_one_thread)
            round_average(w, sh, c, b, ema, params);
        if (gathers) s = gather_bucket(w, sh, params, k, counts, e);
    }
    if (s == LS_OK && sh->divides && !w->in_one_thread) s = share_all(w, sh, params, e);
    free(counts);
    if (s == LS_OK)
        *params_p = params;
    else if (params)
        ls_unmap(params, sh->nbytes.params);
    return s;
}

/* Does the bucket belong to workers that may share one copy with this one? */
static bool is_near(const ls_world *w, const ls_share *sh, int bucket) {
    return ls_share_holder_of(sh, bucket) == sh->workers[ls_group_rank(w->group)].holder;
}

/* Are the parameters read only by other workers, none of which shares this copy? */
static bool is_foreign(const ls_world *w, const ls_share *sh, int bucket) {
    int worker = ls_group_rank(w->group);
    if (w->in_one_thread || !sh->divides) return false;
    if (w->shares_params)
        return !is_near(w, sh, bucket) && !reads(sh, bucket, sh->workers[worker].holder);
    return !ls_share_has(sh, bucket, worker) &&
           !ls_share_touches(sh, bucket, sh->workers[worker].cell);
}

void ls_world_drop_params(const ls_world *w, const ls_share *sh) {
    for (int k = 0; k < sh->nbuckets; k++)
        if (is_foreign(w, sh, k) && (!w->shares_params || ls_group_rank(w->shards) == 0))
            drop_range(w->params, ls_dtype_size(sh->compute), sh->buckets[k].first,
                       sh->buckets[k].end);
    for (int k = 0; k < sh->nbuckets; k++)
        if (is_gathered(w, sh, k)) ls_world_drop_gathered(w, sh, k);
}

/* Sends what each owner has of x to the first worker of the sharding group; of what several workers
 * have whole, the first one sends it. */
static ls_status collect(ls_world *w, const ls_share *sh, float *x, ls_error *e) {
    bool divides = sh->divides;
    ls_group *g = divides ? w->group : w->shards;
    int rank = ls_group_rank(g);
    for (int k = 0; k < sh->nbuckets; k++) {
        ls_worker_set of = {0, sh->nshards, 1};
        if (sh->islands || divides) of = sh->buckets[k].workers;
        if (!sh->shards_moments) of.to = of.from + 1;
        for (int owner = of.from; owner < of.to; owner += of.step) {
            if (owner == 0) continue;
            ls_range s = ls_share_owned(sh, k, owner);
            if (rank == owner) LS_TRY(ls_send(g, x + s.first, s.end - s.first, LS_F32, 0, e));
            if (rank == 0) LS_TRY(ls_recv(g, x + s.first, s.end - s.first, LS_F32, owner, e));
        }
    }
    return LS_OK;
}

ls_status ls_world_collect_errors(ls_world *w, const ls_share *sh, int64_t steps, ls_error *e) {
    if (w->in_one_thread || !sh->has_errors) return LS_OK;
    return ls_errors_collect(w->group, sh, steps, w->errors, e);
}

static ls_status collect_islands(ls_world *w, const ls_share *sh, ls_error *e) {
    if (w->shares_state) return ls_barrier(w->group, e);
    for (int i = 0; i < w->flat.n; i++) LS_TRY(collect(w, sh, w->flat.of[i], e));
    return LS_OK;
}

/* After the barrier, all is there of what workers share in one copy. */
static ls_status collect_stages(ls_world *w, const ls_share *sh, ls_error *e) {
    LS_TRY(ls_barrier(w->group, e));
    for (int i = 0; i < w->flat.n; i++) LS_TRY(collect(w, sh, w->flat.of[i], e));
    return LS_OK;
}

ls_status ls_world_collect(ls_world *w, const ls_share *sh, ls_error *e) {
    LS_TRY(fetch(w, true, e));
    if (sh->islands) return w->in_one_thread ? LS_OK : collect_islands(w, sh, e);
    if (sh->divides) return w->in_one_thread ? LS_OK : collect_stages(w, sh, e);
    if (w->in_one_thread || !sh->shards_moments) return LS_OK;
    if (w->shares_params) LS_TRY(ls_barrier(w->shards, e));
    if (ls_group_rank(w->group) >= sh->nshards) return LS_OK; /* a replica */
    for (int i = 1; !w->shares_state && i < w->flat.n; i++)
        LS_TRY(collect(w, sh, w->flat.of[i], e));
    if (sh->has_masters) return w->shares_state ? LS_OK : collect(w, sh, w->flat.of[0], e);
    return !w->shares_params && sh->shards_params ? collect(w, sh, w->params, e) : LS_OK;
}

/* The system drops pages of a file by itself when memory is short. */
void ls_world_drop_state(const ls_world *w, const ls_share *sh, int bucket) {
    bool keeps = w->shares_state || !sh->shards_moments;
    if (sh->divides)
        keeps = w->in_one_thread || ls_share_has(sh, bucket, ls_group_rank(w->group)) ||
                (w->shares_state && is_near(w, sh, bucket));
    if (keeps || w->state_in_file) return;
    ls_range all = ls_share_range(sh, bucket),
             own = ls_share_shard(sh, bucket, ls_group_rank(w->group));
    for (int i = sh->has_masters ? 0 : 1; i < w->flat.n; i++)
        drop_others(w->flat.of[i], sizeof(float), all, own);
}

void ls_world_drop_collected(ls_world *w, const ls_share *sh) {
    if (w->in_one_thread || ls_group_rank(w->group) != 0) return;
    if (sh->has_errors) ls_errors_drop(sh, 0, w->errors);
    for (int k = 0; k < sh->nbuckets; k++) ls_world_drop_state(w, sh, k);
    ls_world_drop_params(w, sh);
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

size_t ls_world_resident_nbytes(const ls_world *w, const ls_share *sh) {
    size_t n = (size_t)sh->nshards;
    size_t params = resident(w->params, sh->nbytes.params) / (w->shares_params ? n : 1);
    size_t state = resident(w->state, sh->nbytes.state);
    return params + state / (w->shares_state ? n : 1) + resident(w->wide, sh->nbytes.wide) +
           resident(w->grads, ls_share_grads_nbytes(sh, ls_group_rank(w->group)));
}
