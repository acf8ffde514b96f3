/* comm.c - the communications of a plan: who takes part, what it moves, and how many bytes. */
#include "plan/plan.h"
#include "share/codes.h"

/* Sums of a bucket that these workers have, all together. */
static int sums_of(const ls_share *sh, int bucket, ls_worker_set of) {
    int sums = 0;
    for (int w = of.from; w < of.to; w += of.step) sums += ls_share_sums(sh, bucket, w);
    return sums;
}

/* Each worker reads its shard of every sum that another worker of its group has. */
static int64_t read_to_scatter(const ls_share *sh, int bucket) {
    size_t floats = sh->buckets[bucket].end - sh->buckets[bucket].first, sum = 0;
    ls_worker_set of = sh->buckets[bucket].workers;
    for (int w = of.from; w < of.to; w += of.step) {
        ls_range own = ls_share_shard(sh, bucket, w);
        sum += (size_t)ls_share_sums(sh, bucket, w) * (floats - (own.end - own.first));
    }
    return (int64_t)(sum * ls_dtype_size(sh->reduce));
}

/* Each worker reads the part that it decodes of the codes of all virtual workers that others
 * run. */
static int64_t read_to_decode(const ls_share *sh, int bucket) {
    size_t sum = 0;
    for (int w = 0; w < sh->nworkers; w++) {
        ls_range part = ls_share_code_part(sh, bucket, w);
        sum += (size_t)(ls_share_coded_before(sh, sh->V) - ls_share_ncoded(sh, w)) *
               (part.end - part.first);
    }
    return (int64_t)sum;
}

/* Each worker reads its part of the sums of others, then the others' parts of the result. nbytes:
 * of the result, of all groups together. */
static int64_t read_to_sum(const ls_comm *c, int64_t nbytes) {
    return nbytes * (c->members - 1) * c->sums / c->members + nbytes * (c->members - 1);
}

/* What is summed, or gathered, of a bucket; and the virtual workers whose sum it is. */
static void set_operands(const ls_share *sh, const ls_action *a, ls_comm *c) {
    const ls_bucket *b = &sh->buckets[a->bucket];
    c->dtype = sh->reduce;
    c->count = b->end - b->first;
    if (a->kind == LS_ALL_GATHER) {
        c->dtype = sh->task == LS_TASK_ADOPT && !b->island ? LS_F32 : sh->compute;
        return;
    }
    c->V = c->axis == LS_AXIS_ISLAND ? sh->island_vws : b->leaves.V;
    c->sums = sums_of(sh, a->bucket, c->of);
    if (c->axis == LS_AXIS_SHARDS) { /* the virtual workers of a group are a whole subtree */
        c->sums /= sh->nreplicas;
        c->V /= sh->nreplicas;
    }
    if (c->axis == LS_AXIS_REPLICAS) c->sums = sh->nreplicas;
    if (a->kind != LS_SUM_FACTORS) return;
    c->dtype = LS_F32;
    c->count = ls_share_round_floats(sh, a->bucket, a->round);
    c->V = sh->V;
}

/* Bytes that all workers read; c->count is still that of the whole bucket. */
static int64_t read_by_all(const ls_share *sh, const ls_action *a, const ls_comm *c) {
    int64_t nbytes = (int64_t)(c->count * ls_dtype_size(c->dtype));
    int groups = ls_worker_set_count(c->of) / c->members;
    switch (a->kind) {
    case LS_ALL_GATHER: return nbytes * (c->members - 1) * groups;
    case LS_EXCHANGE: return read_to_decode(sh, a->bucket);
    case LS_REDUCE_SCATTER: return read_to_scatter(sh, a->bucket);
    default: return read_to_sum(c, nbytes);
    }
}

void ls_plan_append_comm(ls_plan *p, ls_action_kind kind, ls_axis axis, int bucket, int round) {
    const ls_share *sh = &p->share;
    const ls_bucket *b = &sh->buckets[bucket];
    ls_action a = {.kind = kind,
                   .worker = LS_ALL_WORKERS,
                   .bucket = bucket,
                   .island = b->island,
                   .round = round};
    ls_comm c = {.axis = sh->divides ? LS_AXIS_STAGE : axis, .of = b->workers};
    c.members = c.axis == LS_AXIS_SHARDS     ? sh->nshards
                : c.axis == LS_AXIS_REPLICAS ? sh->nreplicas
                                             : ls_worker_set_count(c.of);
    set_operands(sh, &a, &c);
    c.nbytes = read_by_all(sh, &a, &c) / sh->nworkers;
    if (c.axis == LS_AXIS_REPLICAS) c.count /= (size_t)sh->nshards;
    if (kind == LS_EXCHANGE && c.members > 1) { /* as a gather in which each reads as much */
        c.dtype = LS_U8;
        c.count = (size_t)(c.nbytes * c.members / (c.members - 1));
    }
    bool sums = kind == LS_REDUCE_SCATTER || kind == LS_ALL_REDUCE;
    if (sums) ls_share_fold_round(sh, round, &a.slot);
    if (sums) a.phase = ls_plan_values_phase(p);
    if (kind == LS_EXCHANGE || kind == LS_SUM_FACTORS) a.phase = LS_PHASE_CODES;
    a.comm = c;
    ls_plan_append(p, &a);
}

static void append_scalars(ls_plan *p, ls_action *a, size_t count) {
    ls_comm *c = &a->comm;
    a->worker = LS_ALL_WORKERS;
    a->bucket = LS_NO_BUCKET;
    c->dtype = LS_F64;
    c->count = count;
    c->members = c->sums = ls_worker_set_count(c->of);
    c->nbytes = read_to_sum(c, (int64_t)(count * sizeof(double))) / p->share.nworkers;
    ls_plan_append(p, a);
}

void ls_plan_append_norm(ls_plan *p, int island) {
    const ls_share *sh = &p->share;
    ls_action a = {.kind = LS_REPLICA_NORM, .island = island, .comm.axis = LS_AXIS_ISLAND};
    a.comm.of = sh->buckets[ls_share_bucket_in(sh, 0, island)].workers;
    append_scalars(p, &a, sh->segment_floats / LS_BLOCK);
}

void ls_plan_append_decide(ls_plan *p) {
    const ls_share *sh = &p->share;
    ls_action a = {.kind = LS_DECIDE, .comm.of = {0, sh->nworkers, 1}};
    size_t norms = sh->islands ? sh->floats / LS_BLOCK : 0; /* their islands have summed these */
    append_scalars(p, &a, sh->task == LS_TASK_TRAIN ? sh->nscalars - norms : 1);
}
