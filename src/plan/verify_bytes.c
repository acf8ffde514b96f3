/* verify_bytes.c - the bytes of communications, as the verifier counts them (plan.c has another
 * way). */
#include "plan/plan.h"
#include "share/codes.h"
#include "tensor/dtype.h"

/* The sums of a bucket that these workers have together. */
static size_t sums_of(const ls_plan *p, int bucket, ls_worker_set of) {
    size_t sums = 0;
    for (int i = of.from; i < of.to; i += of.step)
        sums += (size_t)ls_share_sums(&p->share, bucket, i);
    return sums;
}

/* Among some of the workers: those of an island, or a cell. */
static size_t island_nbytes(const ls_plan *p, const ls_action *a, size_t floats) {
    const ls_share *sh = &p->share;
    size_t n = (size_t)ls_worker_set_count(a->comm.of), sum = 0;
    size_t nbytes = floats * ls_dtype_size(sh->reduce);
    size_t partial = sums_of(p, a->bucket, a->comm.of);
    if (a->kind == LS_ALL_GATHER) return (n - 1) * floats * ls_dtype_size(sh->compute);
    if (a->kind == LS_ALL_REDUCE) return (n - 1) * partial * nbytes / n + (n - 1) * nbytes;
    for (int i = a->comm.of.from; i < a->comm.of.to; i += a->comm.of.step) {
        ls_range own = ls_share_shard(sh, a->bucket, i);
        sum += (own.end - own.first) * (partial - (size_t)ls_share_sums(sh, a->bucket, i));
    }
    return sum * ls_dtype_size(sh->reduce);
}

size_t ls_plan_read_nbytes(const ls_plan *p, const ls_action *a) {
    const ls_share *sh = &p->share;
    const ls_worker_set all = {0, sh->nworkers, 1};
    size_t n = (size_t)sh->nworkers, replicas = (size_t)sh->nreplicas, sum = 0;
    if (a->kind == LS_REPLICA_NORM)
        return 2 * (size_t)(ls_worker_set_count(a->comm.of) - 1) * (sh->model->nfloats / LS_BLOCK) *
               sizeof(double);
    if (a->kind == LS_DECIDE) {
        const ls_model *m = sh->model;
        size_t each = (size_t)(m->nlosses + m->nnotes) + (ls_weighing_is_on(&m->weighing) ? 1 : 0);
        size_t blocks = m->nfloats / LS_BLOCK, islands = (size_t)sh->islands;
        size_t noise = sh->noise ? (size_t)sh->V * LS_NOISE_SUMS : 0;
        return 2 * (n - 1) * ((islands ? islands : blocks) + each * (size_t)sh->batch + noise + 1) *
               sizeof(double);
    }
    if (a->kind == LS_SUM_FACTORS) {
        size_t nbytes = ls_share_round_floats(sh, a->bucket, a->round) * sizeof(float);
        return (n - 1) * sums_of(p, a->bucket, all) * nbytes / n + (n - 1) * nbytes;
    }
    if (a->kind == LS_EXCHANGE) {
        for (int i = 0; i < sh->nworkers; i++) {
            ls_range part = ls_share_code_part(sh, a->bucket, i);
            sum += (part.end - part.first) *
                   (size_t)(ls_share_coded_before(sh, sh->V) - ls_share_ncoded(sh, i));
        }
        return sum;
    }
    size_t floats = sh->buckets[a->bucket].end - sh->buckets[a->bucket].first;
    if (a->comm.axis == LS_AXIS_ISLAND || a->comm.axis == LS_AXIS_STAGE)
        return island_nbytes(p, a, floats);
    if (a->kind == LS_ALL_GATHER) return (n - replicas) * floats * ls_dtype_size(sh->compute);
    size_t nbytes = floats * ls_dtype_size(sh->reduce);
    if (a->comm.axis == LS_AXIS_REPLICAS) return 2 * (replicas - 1) * nbytes;
    size_t partial = sums_of(p, a->bucket, all);
    if (a->comm.axis == LS_AXIS_ALL) return (n - 1) * partial * nbytes / n + (n - 1) * nbytes;
    for (int i = 0; i < sh->nworkers; i++) {
        ls_range own = ls_share_shard(sh, a->bucket, i);
        sum +=
            (own.end - own.first) * (partial / replicas - (size_t)ls_share_sums(sh, a->bucket, i));
    }
    return sum * ls_dtype_size(sh->reduce);
}
