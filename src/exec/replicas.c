/* replicas.c - see replicas.h. */
#include "exec/replicas.h"

#include <string.h>

/* Floats of a bucket that threads divide. */
typedef struct float_job {
    void (*work)(const struct float_job *, size_t first, size_t end);
    float *to;
    const float *from, *own;
    double weight;
    size_t n;
} float_job;

static void run_floats(void *arg, int thread, int nthreads) {
    const float_job *j = arg;
    int64_t a = 0, b = 0;
    ls_pool_share((int64_t)j->n, 16, thread, nthreads, &a, &b);
    j->work(j, (size_t)a, (size_t)b);
}

static void subtract(const float_job *j, size_t first, size_t end) {
    for (size_t i = first; i < end; i++) j->to[i] = j->from[i] - j->own[i];
}

static void copy(const float_job *j, size_t first, size_t end) {
    memcpy(j->to + first, j->from + first, (end - first) * sizeof(float));
}

static void clear(const float_job *j, size_t first, size_t end) {
    memset(j->to + first, 0, (end - first) * sizeof(float));
}

/* Weights are doubles: those of a mix add up to 1, which rounded ones might not. */
static void weigh_floats(const float_job *j, size_t first, size_t end) {
    for (size_t i = first; i < end; i++) j->to[i] = (float)(j->weight * (double)j->from[i]);
}

static void add_weighed(const float_job *j, size_t first, size_t end) {
    for (size_t i = first; i < end; i++)
        j->to[i] = (float)((double)j->to[i] + j->weight * (double)j->from[i]);
}

/* Where the parameters of a replica begin, 0: the common ones. */
static float *params_of(const ls_exec *x, int island) {
    return x->c.world->flat.of[0] + (size_t)island * x->c.plan->share.segment_floats;
}

/* Only the first virtual worker of an island has it. */
ls_status ls_replicas_delta(ls_exec *x, const ls_action *a) {
    const ls_share *sh = &x->c.plan->share;
    ls_bucket b = sh->buckets[a->bucket];
    int island = ls_share_island_of(sh, a->vw);
    const float *own = params_of(x, island) + b.first;
    float_job j = {.work = clear,
                   .to = (float *)(void *)ls_exec_sum_at(x, a->slot, b.first),
                   .from = params_of(x, 0) + b.first,
                   .own = own,
                   .n = b.end - b.first};
    if (a->vw % sh->island_vws == 0) j.work = subtract;
    if (j.work == subtract && sh->task == LS_TASK_MEAN) {
        j.work = weigh_floats;
        j.from = own;
        j.weight = sh->sync.mix->mass[island - 1] / sh->islands;
    }
    ls_pool_run_sized(x->compute.pool, (int64_t)j.n, run_floats, &j);
    return LS_OK;
}

ls_status ls_replicas_copy(ls_exec *x, const ls_action *a) {
    ls_bucket b = x->c.plan->share.buckets[a->bucket];
    float_job j = {.work = copy,
                   .to =
                       (float *)(void *)ls_exec_sum_at(x, ls_exec_sum_slot(x, a->bucket), b.first),
                   .from = params_of(x, 0) + b.first,
                   .n = b.end - b.first};
    ls_pool_run_sized(x->compute.pool, (int64_t)j.n, run_floats, &j);
    return LS_OK;
}

/* Where the part of a bucket's mix that the worker updates arrives. */
static float *arrival_at(const ls_exec *x, int bucket) {
    const ls_share *sh = &x->c.plan->share;
    size_t at = ls_share_owned(sh, bucket, x->c.worker).first - sh->buckets[bucket].first;
    return (float *)x->work + ls_share_received_at(sh, x->c.worker, bucket) + at;
}

/* The other replica is the worker's own, or has arrived. */
ls_status ls_replicas_mix(ls_exec *x, const ls_action *a) {
    const ls_share *sh = &x->c.plan->share;
    int into = sh->buckets[a->bucket].island, common = ls_share_common_bucket(sh, a->bucket);
    ls_range own = ls_share_owned(sh, a->bucket, x->c.worker);
    size_t first = own.first - ls_share_base(sh, a->bucket);
    bool here = ls_share_has(sh, ls_share_bucket_in(sh, common, a->island), x->c.worker);
    float_job j = {
        .work = a->start ? weigh_floats : add_weighed,
        .to = (float *)(void *)ls_exec_sum_at(x, ls_exec_sum_slot(x, a->bucket), own.first),
        .from = here ? params_of(x, a->island) + first : arrival_at(x, a->bucket),
        .weight = sh->sync.mix->of[into - 1][a->island - 1],
        .n = own.end - own.first};
    ls_pool_run_sized(x->compute.pool, (int64_t)j.n, run_floats, &j);
    return LS_OK;
}

void *ls_replicas_message(const ls_exec *x, const ls_action *a) {
    const ls_share *sh = &x->c.plan->share;
    if (x->c.worker == a->peer) return arrival_at(x, a->bucket);
    size_t first = ls_share_owned(sh, a->bucket, a->peer).first - ls_share_base(sh, a->bucket);
    return params_of(x, a->island) + first;
}
