/* layout.c - the part of a plan that each worker has: virtual workers, gradient sums, shards. */
#include "coll/algo/tree.h"
#include "plan/plan.h"
#include "tensor/dtype.h"

/* ---- the strategy ---- */

bool ls_plan_shards_moments(const ls_plan *p) { return p->c.zero >= 1; }
bool ls_plan_shards_grads(const ls_plan *p) { return p->c.zero >= 2; }
bool ls_plan_shards_params(const ls_plan *p) { return p->c.zero >= 3; }
bool ls_plan_reduces_rounds(const ls_plan *p) { return p->c.early; }

/* ---- virtual workers and their sums ---- */

/* Workers of one pipeline run the same. */
static void range_of(const ls_plan *p, int worker, int *a_p, int *b_p) {
    ls_tree_range(p->c.V, p->c.first, ls_plan_place(p, worker), ls_plan_data(p), a_p, b_p);
}

int ls_plan_vw(const ls_plan *p, int worker, int i) {
    int a = 0, b = 0;
    if (ls_plan_reduces_rounds(p)) return i * p->c.nworkers + worker;
    range_of(p, worker, &a, &b);
    return a + i;
}

int ls_plan_nvws(const ls_plan *p, int worker) {
    int a = 0, b = 0;
    range_of(p, worker, &a, &b);
    return ls_plan_reduces_rounds(p) ? p->c.V / p->c.nworkers : b - a;
}

int ls_plan_vw_step(const ls_plan *p) { return ls_plan_reduces_rounds(p) ? p->c.nworkers : 1; }

int ls_plan_vw_index(const ls_plan *p, int worker, int vw) {
    return ls_plan_reduces_rounds(p) ? vw / p->c.nworkers : vw - ls_plan_vw(p, worker, 0);
}

bool ls_plan_runs_vw(const ls_plan *p, int worker, int vw) {
    int i = ls_plan_vw_index(p, worker, vw);
    return i >= 0 && i < ls_plan_nvws(p, worker) && ls_plan_vw(p, worker, i) == vw;
}

int ls_plan_rounds(const ls_plan *p) {
    return ls_plan_reduces_rounds(p) ? p->c.V / p->c.nworkers : 1;
}
int ls_plan_round_vws(const ls_plan *p) {
    return ls_plan_reduces_rounds(p) ? p->c.nworkers : p->c.V;
}

/* An island has a tree of its own. Sums of different islands may have the same slot: they are in
 * different buckets. */
static int fold_in_island(const ls_plan *p, int worker, int i, int *slot_p) {
    int vws = ls_plan_island_vws(p), vw = ls_plan_vw(p, worker, i);
    int lo = vw / vws * vws, a = ls_plan_vw(p, worker, 0);
    return ls_tree_fold(vws, a > lo ? a - lo : 0, vw - lo, slot_p);
}

int ls_plan_fold(const ls_plan *p, int worker, int i, int *slot_p) {
    *slot_p = 0;
    if (ls_plan_reduces_rounds(p) || !p->c.tree) return 0;
    if (p->c.islands && p->c.task == LS_TASK_TRAIN) return fold_in_island(p, worker, i, slot_p);
    return ls_tree_fold(p->c.V, ls_plan_vw(p, worker, 0), ls_plan_vw(p, worker, i), slot_p);
}

int ls_plan_fold_round(const ls_plan *p, int i, int *slot_p) {
    *slot_p = ls_plan_reduces_rounds(p) && i > 0;
    return ls_plan_reduces_rounds(p) && p->c.tree ? ls_tree_fold(ls_plan_rounds(p), 0, i, slot_p)
                                                  : *slot_p;
}

int ls_plan_slots(const ls_plan *p, int worker) {
    int a = 0, b = 0;
    range_of(p, worker, &a, &b);
    int slots = p->c.tree && !ls_plan_reduces_rounds(p) ? ls_tree_slots(p->c.V, a, b) : 1;
    int chunk = 0, end = 1;
    ls_plan_chunks_of(p, worker, &chunk, &end);
    slots *= end - chunk;
    for (int i = 0; p->c.islands && i < b - a; i++) { /* training and Outer have the same buffers */
        int slot = 0;
        fold_in_island(p, worker, i, &slot);
        if (slot + 1 > slots) slots = slot + 1;
    }
    return slots;
}

int ls_plan_sums(const ls_plan *p, int bucket, int worker) {
    ls_node nodes[LS_TREE_MAX_COVER];
    int a = 0, b = 0;
    range_of(p, worker, &a, &b);
    if (p->c.islands && p->c.task == LS_TASK_TRAIN) {
        int vws = ls_plan_island_vws(p), lo = a / vws * vws;
        return b - a >= vws ? 1 : ls_tree_cover(vws, a - lo, b - lo, nodes);
    }
    if (ls_plan_nchunks(p) > 1 && p->buckets[bucket].chunk < 0) {
        ls_tree_parts parts = ls_plan_parts(p, bucket);
        int n = p->c.nworkers / ls_plan_owners(p);
        return ls_tree_parts_cover(&parts, ls_plan_number(p, worker), n, nodes);
    }
    return p->c.tree && !ls_plan_reduces_rounds(p) ? ls_tree_cover(p->c.V, a, b, nodes) : 1;
}

int ls_plan_sum_slot(const ls_plan *p, int bucket, int worker) {
    if (ls_plan_reduces_rounds(p)) return ls_plan_slots(p, worker);
    return ls_plan_first_slot(p, bucket, worker);
}

int ls_plan_all_slots(const ls_plan *p, int worker) {
    return ls_plan_slots(p, worker) + (ls_plan_reduces_rounds(p) ? p->nsums : 0);
}

int ls_plan_micros(const ls_plan *p) {
    int64_t samples = p->c.batch / p->c.V;
    return (int)((samples + p->c.micro_batch - 1) / p->c.micro_batch);
}

int64_t ls_plan_samples(const ls_plan *p, int micro) {
    int64_t all = p->c.batch / p->c.V, left = all - micro * p->c.micro_batch;
    if (micro < 0)
        left = all;
    else if (left > p->c.micro_batch)
        left = p->c.micro_batch;
    return ls_model_samples(p->c.model, left);
}

/* ---- shards ---- */

/* The workers of an owner. */
static int members(const ls_plan *p) { return p->c.nworkers / ls_plan_owners(p); }

/* The shards of a bucket in a sharding group, and the number of the worker's. */
static int shards_of(const ls_plan *p, int bucket) {
    return ls_plan_is_apart(p, bucket) ? ls_plan_data(p) : ls_plan_shards(p);
}
static int shard_of(const ls_plan *p, int bucket, int worker) {
    if (ls_plan_is_apart(p, bucket)) return ls_plan_place(p, worker);
    return ls_plan_number(p, worker) % ls_plan_shards(p);
}

int ls_plan_shards(const ls_plan *p) { return p->c.shards ? p->c.shards : members(p); }
int ls_plan_first_of_shards(const ls_plan *p, int worker) {
    int number = ls_plan_number(p, worker);
    return ls_plan_member(p, ls_plan_owner(p, worker), number - number % ls_plan_shards(p));
}
int ls_plan_replicas(const ls_plan *p) { return members(p) / ls_plan_shards(p); }
bool ls_plan_wide(const ls_plan *p) {
    return ls_dtype_is_half(p->c.reduce) && ls_plan_micros(p) > 1;
}

size_t ls_plan_nscalars(const ls_plan *p) {
    const ls_model *m = p->c.model;
    size_t each = (size_t)(m->nlosses + m->nnotes) + ls_weighing_is_on(&m->weighing);
    size_t noise = p->c.noise ? (size_t)p->c.V * LS_NOISE_SUMS : 0;
    return ls_plan_floats(p) / LS_BLOCK + (size_t)p->c.islands + each * (size_t)p->c.batch + noise +
           1;
}

double *ls_plan_noise(const ls_plan *p, double *scalars) {
    return scalars + ls_plan_nscalars(p) - 1 - (size_t)p->c.V * LS_NOISE_SUMS;
}

double *ls_plan_squares(const ls_plan *p, double *scalars) {
    return scalars + ls_plan_floats(p) / LS_BLOCK;
}

double *ls_plan_losses(const ls_plan *p, double *scalars) {
    return ls_plan_squares(p, scalars) + p->c.islands;
}

double *ls_plan_notes(const ls_plan *p, double *scalars) {
    return ls_plan_losses(p, scalars) + p->c.model->nlosses * p->c.batch;
}

double *ls_plan_weights(const ls_plan *p, double *scalars) {
    const ls_model *m = p->c.model;
    if (!ls_weighing_is_on(&m->weighing)) return NULL;
    return ls_plan_notes(p, scalars) + m->nnotes * p->c.batch;
}

/* With islands, the workers of the bucket's island shard it; other workers have nothing of it. */
static ls_bucket shard_in_island(const ls_plan *p, int bucket, int worker) {
    ls_bucket s = p->buckets[bucket];
    size_t blocks = (s.end - s.first) / LS_BLOCK, first = s.first;
    ls_worker_set of = ls_plan_workers_of(p, bucket);
    bool has = ls_worker_set_has(of, worker);
    size_t w = has ? (size_t)(worker - of.from) : 0, n = (size_t)ls_worker_set_count(of);
    s.first = first + blocks * w / n * LS_BLOCK;
    s.end = has ? first + blocks * (w + 1) / n * LS_BLOCK : s.first;
    return s;
}

ls_bucket ls_plan_shard(const ls_plan *p, int bucket, int worker) {
    const ls_bucket *b = &p->buckets[bucket];
    if (p->c.islands) return shard_in_island(p, bucket, worker);
    size_t blocks = (b->end - b->first) / LS_BLOCK, n = (size_t)shards_of(p, bucket);
    size_t w = (size_t)shard_of(p, bucket, worker), row = (size_t)ls_plan_shards(p) + 1;
    const size_t *cuts = p->cuts ? p->cuts + (size_t)bucket * row : NULL;
    if (!ls_plan_has(p, bucket, worker))
        return (ls_bucket){
            .first = b->first, .end = b->first, .writer = b->writer, .rank = b->rank};
    if (cuts)
        return (ls_bucket){
            .first = cuts[w], .end = cuts[w + 1], .writer = b->writer, .rank = b->rank};
    return (ls_bucket){.first = b->first + blocks * w / n * LS_BLOCK,
                       .end = b->first + blocks * (w + 1) / n * LS_BLOCK,
                       .writer = b->writer,
                       .island = b->island,
                       .rank = b->rank};
}

void ls_plan_shard_counts(const ls_plan *p, int bucket, size_t *counts) {
    ls_worker_set of = ls_plan_workers_of(p, bucket);
    int n = p->c.islands ? ls_worker_set_count(of) : shards_of(p, bucket);
    for (int i = 0; i < n; i++) {
        ls_bucket s = ls_plan_shard(p, bucket, of.from + i * of.step);
        counts[i] = s.end - s.first;
    }
}

ls_bucket ls_plan_normed(const ls_plan *p, int bucket, int worker) {
    ls_bucket s = ls_plan_shard(p, bucket, worker);
    bool common = p->c.islands && p->buckets[bucket].island == 0; /* has no gradient */
    if (ls_plan_number(p, worker) >= ls_plan_shards(p) || common) s.end = s.first;
    return s;
}

ls_bucket ls_plan_owned(const ls_plan *p, int bucket, int worker) {
    if (ls_plan_shards_moments(p)) return ls_plan_shard(p, bucket, worker);
    ls_bucket all = p->buckets[bucket];
    if (!ls_plan_has(p, bucket, worker)) all.end = all.first;
    return all;
}

bool ls_plan_gathers(const ls_plan *p, int bucket) {
    const ls_bucket *b = &p->buckets[bucket];
    size_t nbytes = (b->end - b->first) * ls_dtype_size(p->c.compute);
    return ls_plan_shards_params(p) && nbytes > p->c.whole_nbytes && !b->shared;
}
