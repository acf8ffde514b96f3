/* plan.c - making a plan, and what passes and readers share. */
#include "plan/plan.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/plural.h"
#include "coll/algo/tree.h"
#include "model/mixed.h"
#include "tensor/dtype.h"

static const struct {
    const char *name;
    ls_lane lane;
} kinds[LS_NACTION_KINDS] = {
    [LS_LOAD] = {"Load", LS_LANE_COMPUTE},
    [LS_FORWARD] = {"Forward", LS_LANE_COMPUTE},
    [LS_RECOMPUTE] = {"Recompute", LS_LANE_COMPUTE},
    [LS_BACKWARD] = {"Backward", LS_LANE_COMPUTE},
    [LS_ADD] = {"Add", LS_LANE_COMPUTE},
    [LS_REDUCE_SCATTER] = {"ReduceScatter", LS_LANE_COMM},
    [LS_NORM] = {"Norm", LS_LANE_COMPUTE},
    [LS_ALL_REDUCE] = {"AllReduce", LS_LANE_COMM},
    [LS_UPDATE] = {"Update", LS_LANE_COMPUTE},
    [LS_ALL_GATHER] = {"AllGather", LS_LANE_COMM},
    [LS_FREE] = {"Free", LS_LANE_COMPUTE},
};

const char *ls_action_kind_name(ls_action_kind kind) { return kinds[kind].name; }

static ls_status check_types(const ls_plan_config *c, ls_error *e) {
    const ls_dtype types[] = {c->compute, c->reduce};
    for (int i = 0; i < 2; i++)
        if (types[i] != LS_F32 && !ls_dtype_is_half(types[i]))
            return ls_fail(e, LS_EINVAL, "can't train in %s; use f32, bf16 or f16",
                           ls_dtype_name(types[i]));
    return LS_OK;
}

static ls_status check_shares(const ls_plan_config *c, ls_error *e) {
    if (!c->first) return LS_OK;
    bool fits = c->first[0] == 0 && c->first[c->nworkers] == c->V;
    for (int w = 0; w < c->nworkers; w++) fits = fits && c->first[w] < c->first[w + 1];
    bool one_group = c->shards == 0 || c->shards == c->nworkers;
    if (fits && one_group && !c->early) return LS_OK;
    return ls_fail(e, LS_EINVAL,
                   "uneven shares of virtual workers: each worker needs one at least, all must be "
                   "one sharding group, and parallel.accumulate late");
}

/* A group first sums what its own workers have: that must be a whole subtree, or the order of
 * summation would depend on the groups. */
static ls_status check_groups(const ls_plan_config *c, ls_error *e) {
    ls_node nodes[LS_TREE_MAX_COVER];
    if (c->shards == 0 || c->shards == c->nworkers) return LS_OK;
    if (c->shards < 0 || c->nworkers % c->shards)
        return ls_fail(e, LS_EINVAL,
                       "parallel.shard_group %d does not divide %d worker%s; use a divisor, or 0: "
                       "shard among all",
                       c->shards, c->nworkers, ls_plural(c->nworkers));
    if (c->zero == 0)
        return ls_fail(e, LS_EINVAL,
                       "parallel.shard_group %d: with parallel.zero 0 nothing is sharded; use zero "
                       "1, 2 or 3",
                       c->shards);
    int groups = c->nworkers / c->shards;
    for (int g = 0; c->tree && g < groups; g++) {
        int a = 0, b = 0;
        ls_tree_range(c->V, NULL, g, groups, &a, &b);
        if (c->V % groups == 0 && ls_tree_cover(c->V, a, b, nodes) == 1) continue;
        return ls_fail(e, LS_EINVAL,
                       "parallel.shard_group %d makes %d groups of %d workers, and their virtual "
                       "workers (%d in all) are no whole subtrees of the order of summation; use "
                       "powers of two for both, or parallel.reduce=fastest",
                       c->shards, groups, c->shards, c->V);
    }
    return LS_OK;
}

/* What a round sums must be a whole subtree. */
static ls_status check_rounds(const ls_plan_config *c, ls_error *e) {
    ls_node nodes[LS_TREE_MAX_COVER];
    if (!c->early) return LS_OK;
    if (c->zero < 2)
        return ls_fail(e, LS_EINVAL,
                       "parallel.accumulate early: with parallel.zero %d gradients are not "
                       "sharded, so it would save nothing; use zero 2 or 3",
                       c->zero);
    bool whole = c->V % c->nworkers == 0;
    for (int a = 0; whole && c->tree && a < c->V; a += c->nworkers)
        whole = ls_tree_cover(c->V, a, a + c->nworkers, nodes) == 1;
    if (whole) return LS_OK;
    return ls_fail(e, LS_EINVAL,
                   "parallel.accumulate early: %d workers take %d virtual workers in rounds that "
                   "are no whole subtrees of the order of summation; use powers of two for both, "
                   "or accumulate late",
                   c->nworkers, c->V);
}

/* A plan's memory: about 100 bytes a call of a layer. */
static ls_status check_calls(const ls_plan_config *c, ls_error *e) {
    ls_plan p = {.c = *c};
    double micro = 2.0 * c->V * c->model->nlayers, calls = micro * ls_plan_micros(&p);
    double least = ceil((double)c->batch / c->V / floor(LS_PLAN_MAX_CALLS / micro));
    if (calls <= LS_PLAN_MAX_CALLS) return LS_OK;
    return ls_fail(e, LS_EINVAL,
                   "train.micro_batch %lld makes a step of %.3g calls of layers (batch %lld, %d "
                   "layers), at most %d can be planned; use at least %.0f",
                   (long long)c->micro_batch, calls, (long long)c->batch, c->model->nlayers,
                   LS_PLAN_MAX_CALLS, least);
}

ls_status ls_plan_make(const ls_plan_config *c, ls_plan *p_p, ls_error *e) {
    if (c->nworkers < 1 || c->nworkers > c->V)
        return ls_fail(e, LS_EINVAL,
                       "%d workers for %d virtual workers; use at most %d workers, or raise "
                       "train.virtual_workers",
                       c->nworkers, c->V, c->V);
    if (c->batch % c->V)
        return ls_fail(e, LS_EINVAL, "train.virtual_workers %d does not divide train.batch %lld",
                       c->V, (long long)c->batch);
    LS_TRY(check_types(c, e));
    LS_TRY(check_shares(c, e));
    LS_TRY(check_groups(c, e));
    LS_TRY(check_rounds(c, e));
    LS_TRY(check_calls(c, e));
    size_t nbuckets = c->model->nfloats * sizeof(float) / (c->bucket_nbytes + 1) + 1;
    if (nbuckets > LS_PLAN_MAX_BUCKETS)
        return ls_fail(e, LS_EINVAL,
                       "parallel.bucket_mb %g cuts the gradient into %zu buckets, at most %d are "
                       "possible; use at least %.3g",
                       (double)c->bucket_nbytes / 1e6, nbuckets, LS_PLAN_MAX_BUCKETS,
                       (double)c->model->nfloats * sizeof(float) / LS_PLAN_MAX_BUCKETS / 1e6 +
                           0.001);
    ls_plan p = {.c = *c, .nslots = 1, .nsums = 1};
    for (int i = 0, slot = 0; c->early && i < ls_plan_rounds(&p); i++) {
        ls_plan_fold_round(&p, i, &slot);
        if (slot + 1 > p.nsums) p.nsums = slot + 1;
    }
    for (int w = 0; w < c->nworkers; w++)
        if (ls_plan_slots(&p, w) > p.nslots) p.nslots = ls_plan_slots(&p, w);
    ls_plan_cut_buckets(&p);
    ls_plan_order_plain(&p);
    if (c->recompute > 0) ls_plan_add_recompute(&p);
    if (c->zero == 3) ls_plan_add_gathers(&p);
    ls_status s = ls_plan_verify(&p, LS_STAGE_ORDER, e);
    if (s == LS_OK) {
        ls_plan_add_reduction(&p);
        s = ls_plan_verify(&p, LS_STAGE_REDUCTION, e);
    }
    if (s == LS_OK) {
        ls_plan_add_update(&p);
        s = ls_plan_verify(&p, LS_STAGE_WHOLE, e);
    }
    if (s == LS_OK) {
        ls_plan_add_frees(&p);
        s = ls_plan_verify(&p, LS_STAGE_WHOLE, e);
    }
    if (s == LS_OK)
        *p_p = p;
    else
        ls_plan_free(&p);
    return s;
}

void ls_plan_free(ls_plan *p) {
    free(p->buckets);
    free(p->touched);
    free(p->touched_from);
    free(p->actions);
    *p = (ls_plan){0};
}

void ls_plan_append(ls_plan *p, const ls_action *a) {
    if (p->nactions == p->capacity) {
        p->capacity = p->capacity ? 2 * p->capacity : 256;
        p->actions = ls_realloc(p->actions, (size_t)p->capacity * sizeof *p->actions);
    }
    p->actions[p->nactions++] = *a;
}

/* Sent by a worker at least: of n that have a vector of `nbytes` to sum or to gather. */
static int64_t part_of(int64_t nbytes, int n) { return nbytes * (n - 1) / n; }

void ls_plan_append_comm(ls_plan *p, ls_action_kind kind, ls_axis axis, int bucket, int round) {
    ls_action a = {.kind = kind, .worker = LS_ALL_WORKERS, .bucket = bucket, .axis = axis};
    bool gather = kind == LS_ALL_GATHER;
    int64_t floats = (int64_t)(p->buckets[bucket].end - p->buckets[bucket].first);
    int64_t nbytes = floats * (int64_t)ls_dtype_size(gather ? p->c.compute : p->c.reduce);
    int n = axis == LS_AXIS_ALL        ? p->c.nworkers
            : axis == LS_AXIS_REPLICAS ? ls_plan_replicas(p)
                                       : ls_plan_shards(p);
    if (axis == LS_AXIS_REPLICAS) nbytes /= ls_plan_shards(p);
    if (!gather) ls_plan_fold_round(p, round, &a.slot);
    a.round = round;
    a.nbytes = part_of(nbytes, n) * (kind == LS_ALL_REDUCE ? 2 : 1);
    ls_plan_append(p, &a);
}

bool ls_action_concerns(const ls_action *a, int worker) {
    return a->worker == worker || a->worker == LS_ALL_WORKERS;
}

int ls_plan_vw(const ls_plan *p, int worker, int i) {
    int a = 0, b = 0;
    if (p->c.early) return i * p->c.nworkers + worker;
    ls_tree_range(p->c.V, p->c.first, worker, p->c.nworkers, &a, &b);
    return a + i;
}

int ls_plan_nvws(const ls_plan *p, int worker) {
    int a = 0, b = 0;
    ls_tree_range(p->c.V, p->c.first, worker, p->c.nworkers, &a, &b);
    return p->c.early ? p->c.V / p->c.nworkers : b - a;
}

int ls_plan_vw_index(const ls_plan *p, int worker, int vw) {
    return p->c.early ? vw / p->c.nworkers : vw - ls_plan_vw(p, worker, 0);
}

int ls_plan_rounds(const ls_plan *p) { return p->c.early ? p->c.V / p->c.nworkers : 1; }
int ls_plan_round_vws(const ls_plan *p) { return p->c.early ? p->c.nworkers : p->c.V; }

int ls_plan_fold(const ls_plan *p, int worker, int i, int *slot_p) {
    *slot_p = 0;
    if (p->c.early || !p->c.tree) return 0;
    return ls_tree_fold(p->c.V, ls_plan_vw(p, worker, 0), ls_plan_vw(p, worker, i), slot_p);
}

int ls_plan_fold_round(const ls_plan *p, int i, int *slot_p) {
    *slot_p = p->c.early && i > 0;
    return p->c.early && p->c.tree ? ls_tree_fold(ls_plan_rounds(p), 0, i, slot_p) : *slot_p;
}

int ls_plan_slots(const ls_plan *p, int worker) {
    int a = 0, b = 0;
    ls_tree_range(p->c.V, p->c.first, worker, p->c.nworkers, &a, &b);
    return p->c.tree && !p->c.early ? ls_tree_slots(p->c.V, a, b) : 1;
}

int ls_plan_sums(const ls_plan *p, int worker) {
    ls_node nodes[LS_TREE_MAX_COVER];
    int a = 0, b = 0;
    ls_tree_range(p->c.V, p->c.first, worker, p->c.nworkers, &a, &b);
    return p->c.tree && !p->c.early ? ls_tree_cover(p->c.V, a, b, nodes) : 1;
}

int ls_plan_micros(const ls_plan *p) {
    int64_t samples = p->c.batch / p->c.V;
    return (int)((samples + p->c.micro_batch - 1) / p->c.micro_batch);
}

int64_t ls_plan_samples(const ls_plan *p, int micro) {
    int64_t all = p->c.batch / p->c.V;
    if (micro < 0) return all;
    int64_t left = all - micro * p->c.micro_batch;
    return left < p->c.micro_batch ? left : p->c.micro_batch;
}

int ls_plan_shards(const ls_plan *p) { return p->c.shards ? p->c.shards : p->c.nworkers; }
int ls_plan_replicas(const ls_plan *p) { return p->c.nworkers / ls_plan_shards(p); }
bool ls_plan_wide(const ls_plan *p) {
    return ls_dtype_is_half(p->c.reduce) && ls_plan_micros(p) > 1;
}

size_t ls_plan_nscalars(const ls_plan *p) {
    return p->c.model->nfloats / LS_BLOCK + (size_t)p->c.batch + 1;
}

double *ls_plan_losses(const ls_plan *p, double *scalars) {
    return scalars + p->c.model->nfloats / LS_BLOCK;
}

ls_bucket ls_plan_shard(const ls_plan *p, int bucket, int worker) {
    const ls_bucket *b = &p->buckets[bucket];
    size_t blocks = (b->end - b->first) / LS_BLOCK, n = (size_t)ls_plan_shards(p);
    size_t w = (size_t)worker % n;
    return (ls_bucket){.first = b->first + blocks * w / n * LS_BLOCK,
                       .end = b->first + blocks * (w + 1) / n * LS_BLOCK,
                       .writer = b->writer};
}

void ls_plan_shard_counts(const ls_plan *p, int bucket, size_t *counts) {
    for (int i = 0; i < ls_plan_shards(p); i++) {
        ls_bucket s = ls_plan_shard(p, bucket, i);
        counts[i] = s.end - s.first;
    }
}

ls_bucket ls_plan_normed(const ls_plan *p, int bucket, int worker) {
    ls_bucket s = ls_plan_shard(p, bucket, worker);
    if (worker >= ls_plan_shards(p)) s.end = s.first;
    return s;
}

ls_bucket ls_plan_owned(const ls_plan *p, int bucket, int worker) {
    return p->c.zero ? ls_plan_shard(p, bucket, worker) : p->buckets[bucket];
}

/* ---- buffers: a fixed few, then three a layer, four a bucket, and the sums of each bucket ---- */

static int first_of(const ls_plan *p, ls_buffer_kind kind) {
    int layers = p->c.model->nlayers, buckets = p->nbuckets;
    switch (kind) {
    case LS_BUF_ACT: return LS_BUF_ACT;
    case LS_BUF_SAVED: return LS_BUF_ACT + layers;
    case LS_BUF_DACT: return LS_BUF_ACT + 2 * layers;
    case LS_BUF_PARAM: return LS_BUF_ACT + 3 * layers;
    case LS_BUF_SHARD: return LS_BUF_ACT + 3 * layers + buckets;
    case LS_BUF_MOMENT: return LS_BUF_ACT + 3 * layers + 2 * buckets;
    case LS_BUF_SUM: return LS_BUF_ACT + 3 * layers + 3 * buckets;
    case LS_BUF_GRAD: return LS_BUF_ACT + 3 * layers + (3 + p->nsums) * buckets;
    default: return (int)kind;
    }
}

int ls_plan_nbuffers(const ls_plan *p) {
    return first_of(p, LS_BUF_GRAD) + p->nbuckets * p->nslots;
}

int ls_plan_buffer(const ls_plan *p, ls_buffer_kind kind, int index, int slot) {
    if (kind == LS_BUF_GRAD) index = index * p->nslots + slot;
    if (kind == LS_BUF_SUM) index = index * p->nsums + slot;
    return first_of(p, kind) + index;
}

ls_buffer ls_plan_buffer_of(const ls_plan *p, int id) {
    if (id < LS_BUF_ACT) return (ls_buffer){.kind = (ls_buffer_kind)id};
    id -= LS_BUF_ACT;
    for (int kind = LS_BUF_ACT; kind < LS_BUF_SUM; kind++) {
        int n = kind < LS_BUF_PARAM ? p->c.model->nlayers : p->nbuckets;
        if (id < n) return (ls_buffer){.kind = (ls_buffer_kind)kind, .index = id};
        id -= n;
    }
    bool grad = id >= p->nsums * p->nbuckets;
    if (grad) id -= p->nsums * p->nbuckets;
    int slots = grad ? p->nslots : p->nsums;
    return (ls_buffer){grad ? LS_BUF_GRAD : LS_BUF_SUM, id / slots, id % slots};
}

bool ls_buffer_in_arena(ls_buffer_kind kind) {
    return kind == LS_BUF_ACT || kind == LS_BUF_SAVED || kind == LS_BUF_DACT;
}

/* Gradients of a worker are all in use at once where a second micro-batch adds to them, or a second
 * virtual worker before the first is reduced. To give their memory back later in the step would
 * save nothing at its peak, and cost time. */
static bool grads_come_and_go(const ls_plan *p) {
    return p->c.zero >= 2 && ls_plan_micros(p) == 1 && (p->c.early || p->c.V == p->c.nworkers);
}

bool ls_plan_gathers(const ls_plan *p, int bucket) {
    const ls_bucket *b = &p->buckets[bucket];
    return p->c.zero == 3 && (b->end - b->first) * ls_dtype_size(p->c.compute) > p->c.whole_nbytes;
}

bool ls_plan_transient(const ls_plan *p, ls_buffer b) {
    return ls_buffer_in_arena(b.kind) || (b.kind == LS_BUF_PARAM && ls_plan_gathers(p, b.index)) ||
           (b.kind == LS_BUF_GRAD && grads_come_and_go(p));
}

/* A gradient's buffer is given back when its sum is known, beside computing. */
ls_lane ls_plan_lane(const ls_plan *p, const ls_action *a) {
    bool grad = a->kind == LS_FREE && ls_plan_buffer_of(p, a->buffer).kind == LS_BUF_GRAD;
    return grad ? LS_LANE_COMM : kinds[a->kind].lane;
}

static size_t arena_nbytes(const ls_plan *p, const ls_buffer *b) {
    const ls_layer *l = &p->c.model->layers[b->index];
    int64_t n = p->c.micro_batch;
    if (b->kind == LS_BUF_DACT && l->backward_whole) n = p->c.batch / p->c.V;
    if (b->kind == LS_BUF_SAVED) return ls_mixed_saved_nbytes(l, n, p->c.compute);
    return (size_t)n * l->y_floats * ls_dtype_size(p->c.compute);
}

size_t ls_plan_work_nbytes(const ls_plan *p) {
    size_t most = 0;
    for (int i = 0; i < p->c.model->nlayers; i++) {
        const ls_layer *l = &p->c.model->layers[i];
        int64_t n = l->backward_whole ? p->c.batch / p->c.V : p->c.micro_batch;
        size_t nbytes = ls_mixed_work_nbytes(l, n, p->c.compute, p->c.reduce);
        if (nbytes > most) most = nbytes;
    }
    return most;
}

size_t ls_plan_buffer_nbytes(const ls_plan *p, int id, int worker) {
    ls_buffer b = ls_plan_buffer_of(p, id);
    if (ls_buffer_in_arena(b.kind)) return arena_nbytes(p, &b);
    if (!ls_plan_transient(p, b)) return 0;
    ls_bucket all = p->buckets[b.index], own = ls_plan_shard(p, b.index, worker);
    size_t floats = all.end - all.first;
    bool keeps = b.kind == LS_BUF_PARAM || (b.slot == 0 && !p->c.early);
    if (keeps) floats -= own.end - own.first;
    return floats * ls_dtype_size(b.kind == LS_BUF_PARAM ? p->c.compute : p->c.reduce);
}

void ls_plan_buffer_name(const ls_plan *p, int id, char *text, size_t nbytes) {
    static const char *const names[] = {
        "tokens",          "losses", "norms", "scalars", "work",     "output", "saved",
        "output gradient", "params", "shard", "moments", "gradient", "sum"};
    ls_buffer b = ls_plan_buffer_of(p, id);
    if (ls_buffer_in_arena(b.kind))
        snprintf(text, nbytes, "%s %s", p->c.model->layers[b.index].name, names[b.kind]);
    else if (b.kind == LS_BUF_GRAD)
        snprintf(text, nbytes, "bucket %d sum %d", b.index, b.slot);
    else if (b.kind == LS_BUF_SUM && p->nsums > 1)
        snprintf(text, nbytes, "bucket %d sum over workers %d", b.index, b.slot);
    else if (b.kind >= LS_BUF_PARAM)
        snprintf(text, nbytes, "bucket %d %s", b.index, names[b.kind]);
    else
        snprintf(text, nbytes, "%s", names[b.kind]);
}

/* ---- uses ---- */

typedef struct use_list {
    const ls_plan *p;
    ls_use_fn *fn;
    void *arg;
} use_list;

static void use(const use_list *u, ls_buffer_kind kind, int index, int slot, ls_use how) {
    u->fn(ls_plan_buffer(u->p, kind, index, slot), how, u->arg);
}

static void use_layer(const use_list *u, const ls_action *a) {
    const ls_model *m = u->p->c.model;
    int l = a->layer;
    bool forward = a->kind != LS_BACKWARD, has_y = !m->layers[l].loss;
    use(u, LS_BUF_TOKENS, 0, 0, LS_USE_READ);
    use(u, LS_BUF_WORK, 0, 0, LS_USE_WRITE);
    if (l > 0) use(u, LS_BUF_ACT, l - 1, 0, LS_USE_READ);
    if (m->layers[l].saved_floats) use(u, LS_BUF_SAVED, l, 0, forward ? LS_USE_WRITE : LS_USE_READ);
    if (!has_y) use(u, LS_BUF_LOSSES, 0, 0, LS_USE_WRITE);
    if (forward && has_y) use(u, LS_BUF_ACT, l, 0, LS_USE_WRITE);
    if (!forward && has_y) use(u, LS_BUF_DACT, l, 0, LS_USE_READ);
    if (!forward && l > 0) {
        /* a whole backward gathers its micro-batches' parts */
        bool part = m->layers[l - 1].backward_whole && a->micro > 0;
        use(u, LS_BUF_DACT, l - 1, 0, part ? LS_USE_UPDATE : LS_USE_WRITE);
    }
    const int *touched = NULL;
    for (int i = 0, n = ls_plan_touched(u->p, l, &touched); i < n; i++) {
        int b = touched[i];
        if (forward || !m->layers[l].backward_alone) use(u, LS_BUF_PARAM, b, 0, LS_USE_READ);
        bool opens = a->start && l == u->p->buckets[b].opener;
        if (!forward) use(u, LS_BUF_GRAD, b, a->slot, opens ? LS_USE_WRITE : LS_USE_UPDATE);
    }
}

/* The gradient of a bucket is summed. The result lies in the first of the sums; what else is there
 * is only read. */
static void use_sum(const use_list *u, const ls_action *a, int worker) {
    for (int s = ls_plan_sums(u->p, worker) - 1; s >= 0; s--)
        use(u, LS_BUF_GRAD, a->bucket, s, LS_USE_READ);
    use(u, LS_BUF_SUM, a->bucket, a->slot, LS_USE_WRITE);
}

void ls_action_uses(const ls_plan *p, const ls_action *a, int worker, ls_use_fn *fn, void *arg) {
    use_list u = {p, fn, arg};
    switch (a->kind) {
    case LS_LOAD:
        use(&u, LS_BUF_TOKENS, 0, 0, LS_USE_WRITE);
        use(&u, LS_BUF_LOSSES, 0, 0, LS_USE_WRITE);
        break;
    case LS_FORWARD:
    case LS_RECOMPUTE:
    case LS_BACKWARD: use_layer(&u, a); break;
    case LS_ADD: {
        ls_buffer_kind what = a->summed ? LS_BUF_SUM : LS_BUF_GRAD;
        use(&u, what, a->bucket, a->slot, LS_USE_UPDATE);
        use(&u, what, a->bucket, a->slot + 1, LS_USE_READ);
        break;
    }
    case LS_REDUCE_SCATTER: use_sum(&u, a, worker); break;
    case LS_ALL_REDUCE:
        if (a->axis == LS_AXIS_REPLICAS) {
            use(&u, LS_BUF_SUM, a->bucket, a->slot, LS_USE_UPDATE);
            break;
        }
        if (a->bucket != LS_SCALARS) {
            use_sum(&u, a, worker);
            break;
        }
        use(&u, LS_BUF_NORMS, 0, 0, LS_USE_READ);
        use(&u, LS_BUF_LOSSES, 0, 0, LS_USE_READ);
        use(&u, LS_BUF_SCALARS, 0, 0, LS_USE_WRITE);
        break;
    case LS_NORM:
        for (int b = 0; b < p->nbuckets; b++) use(&u, LS_BUF_SUM, b, 0, LS_USE_READ);
        use(&u, LS_BUF_NORMS, 0, 0, LS_USE_WRITE);
        break;
    case LS_UPDATE:
        use(&u, LS_BUF_SCALARS, 0, 0, LS_USE_READ);
        use(&u, LS_BUF_SUM, a->bucket, 0, LS_USE_READ);
        use(&u, LS_BUF_MOMENT, a->bucket, 0, LS_USE_UPDATE);
        use(&u, LS_BUF_SHARD, a->bucket, 0, LS_USE_UPDATE);
        if (p->c.zero == 0) use(&u, LS_BUF_PARAM, a->bucket, 0, LS_USE_UPDATE);
        break;
    case LS_ALL_GATHER:
        use(&u, LS_BUF_SHARD, a->bucket, 0, LS_USE_READ);
        use(&u, LS_BUF_PARAM, a->bucket, 0, LS_USE_WRITE);
        break;
    case LS_FREE: fn(a->buffer, LS_USE_WRITE, arg); break;
    case LS_NACTION_KINDS: break;
    }
}
