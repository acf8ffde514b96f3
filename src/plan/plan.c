/* plan.c - makes a plan: runs the passes, and appends to its list of actions. */
#include "plan/plan.h"

#include <stdlib.h>

#include "share/codes.h"
#include "share/config.h"
#include "tensor/dtype.h"

static const struct {
    const char *name;
    ls_lane lane;
} kinds[LS_NACTION_KINDS] = {
    [LS_LOAD] = {"Load", LS_LANE_COMPUTE},
    [LS_FORWARD] = {"Forward", LS_LANE_COMPUTE},
    [LS_RECOMPUTE] = {"Recompute", LS_LANE_COMPUTE},
    [LS_BACKWARD] = {"Backward", LS_LANE_COMPUTE},
    [LS_SQUARES] = {"Squares", LS_LANE_COMPUTE},
    [LS_ENCODE] = {"Encode", LS_LANE_COMPUTE},
    [LS_EXCHANGE] = {"Exchange", LS_LANE_COMM},
    [LS_DECODE] = {"Decode", LS_LANE_COMPUTE},
    [LS_ADD] = {"Add", LS_LANE_COMPUTE},
    [LS_DELTA] = {"Delta", LS_LANE_COMPUTE},
    [LS_COPY] = {"Copy", LS_LANE_COMPUTE},
    [LS_MIX] = {"Mix", LS_LANE_COMPUTE},
    [LS_REDUCE_SCATTER] = {"ReduceScatter", LS_LANE_COMM},
    [LS_NORM] = {"Norm", LS_LANE_COMPUTE},
    [LS_ALL_REDUCE] = {"AllReduce", LS_LANE_COMM},
    [LS_UPDATE] = {"Update", LS_LANE_COMPUTE},
    [LS_ALL_GATHER] = {"AllGather", LS_LANE_COMM},
    [LS_SEND] = {"Send", LS_LANE_COMM},
    [LS_TAKE] = {"Take", LS_LANE_COMPUTE},
    [LS_FREE] = {"Free", LS_LANE_COMPUTE},
};

const char *ls_action_kind_name(ls_action_kind kind) { return kinds[kind].name; }

static ls_status order_passes(ls_plan *p, bool apart, ls_error *e) {
    const ls_share *sh = &p->share;
    ls_plan_order_plain(p, apart);
    if (sh->config->recompute > 0) ls_plan_add_recompute(p);
    return sh->ncells > 1 ? ls_plan_add_messages(p, e) : LS_OK;
}

/* A worker that puts passes off, to keep virtual workers apart, gives its parts of sums to others later:
 * these may then have to put passes off, too. */
static ls_status order_training(ls_plan *p, ls_error *e) {
    if (order_passes(p, false, NULL) != LS_OK) LS_TRY(order_passes(p, true, e));
    if (p->share.shards_params) ls_plan_add_gathers(p);
    LS_TRY(ls_plan_verify(p, LS_STAGE_ORDER, e));
    ls_plan_add_reduction(p);
    LS_TRY(ls_plan_verify(p, LS_STAGE_REDUCTION, e));
    ls_plan_add_update(p);
    LS_TRY(ls_plan_verify(p, LS_STAGE_UPDATE, e));
    ls_plan_add_frees(p);
    return ls_plan_verify(p, LS_STAGE_WHOLE, e);
}

static ls_status order(ls_plan *p, ls_error *e) {
    const ls_share *sh = &p->share;
    if (sh->task == LS_TASK_TRAIN) return order_training(p, e);
    if (ls_task_is_common(sh->task))
        ls_plan_order_outer(p);
    else if (sh->task == LS_TASK_MIX)
        ls_plan_order_mix(p);
    else
        ls_plan_order_adopt(p);
    return ls_plan_verify_sync(p, e);
}

ls_status ls_plan_make(const ls_share_config *c, ls_plan *p_p, ls_error *e) {
    ls_plan p = {.in_flight = 1};
    LS_TRY(ls_share_make(c, &p.share, e));
    ls_status s = order(&p, e);
    if (s == LS_OK)
        *p_p = p;
    else
        ls_plan_free(&p);
    return s;
}

ls_status ls_plan_solo(const ls_plan *p, ls_plan *solo_p, ls_error *e) {
    ls_share_config c = *p->share.config;
    c.nworkers = c.V;
    c.zero = c.shards = 0;
    c.early = false;
    c.first = NULL;
    c.compress.on = false;
    c.pipe = c.tensor = c.context = c.chunks = 0;
    c.schedule = LS_PIPE_1F1B;
    c.stages = NULL;
    return ls_plan_make(&c, solo_p, e);
}

ls_phase ls_plan_values_phase(const ls_plan *p) {
    return p->share.sends_codes ? LS_PHASE_VALUES : LS_PHASE_ALL;
}

bool ls_plan_runs(const ls_plan *p, const ls_action *a, int64_t step) {
    bool codes = step >= p->share.compress.warmup;
    return a->phase == LS_PHASE_ALL || codes == (a->phase == LS_PHASE_CODES);
}

void ls_plan_free(ls_plan *p) {
    ls_share_free(&p->share);
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

/* Bytes that all workers read together to sum a bucket: each reads its shard of every sum that
 * another worker of its group has. */
static int64_t read_to_sum(const ls_plan *p, int bucket) {
    const ls_share *sh = &p->share;
    size_t floats = sh->buckets[bucket].end - sh->buckets[bucket].first, sum = 0;
    ls_worker_set of = sh->buckets[bucket].workers;
    for (int w = of.from; w < of.to; w += of.step) {
        ls_range own = ls_share_shard(sh, bucket, w);
        sum += (size_t)ls_share_sums(sh, bucket, w) * (floats - (own.end - own.first));
    }
    return (int64_t)(sum * ls_dtype_size(sh->reduce));
}

/* As read_to_sum(), if all workers get the sum: each reads its part of the sums, then the others' parts of
 * the result. */
static int64_t read_to_sum_for_all(const ls_plan *p, int bucket, int64_t nbytes) {
    const ls_share *sh = &p->share;
    ls_worker_set of = sh->buckets[bucket].workers;
    int64_t n = ls_worker_set_count(of), sums = 0;
    for (int w = of.from; w < of.to; w += of.step) sums += ls_share_sums(sh, bucket, w);
    return nbytes * (n - 1) * sums / n + nbytes * (n - 1);
}

/* As read_to_sum(), if codes are sent: each worker reads the part that it decodes of those of all virtual
 * workers that others run. */
static int64_t read_to_decode(const ls_plan *p, int bucket) {
    const ls_share *sh = &p->share;
    size_t sum = 0;
    for (int w = 0; w < sh->nworkers; w++) {
        ls_range part = ls_share_code_part(sh, bucket, w);
        sum += (size_t)(ls_share_coded_before(sh, sh->V) - ls_share_ncoded(sh, w)) *
               (part.end - part.first);
    }
    return (int64_t)sum;
}

void ls_plan_append_comm(ls_plan *p, ls_action_kind kind, ls_axis axis, int bucket, int round) {
    const ls_share *sh = &p->share;
    ls_action a = {.kind = kind,
                   .worker = LS_ALL_WORKERS,
                   .bucket = bucket,
                   .axis = axis,
                   .island = sh->buckets[bucket].island};
    bool gather = kind == LS_ALL_GATHER;
    int64_t floats = (int64_t)(sh->buckets[bucket].end - sh->buckets[bucket].first), read = 0;
    ls_dtype gathered = sh->task == LS_TASK_ADOPT && !a.island ? LS_F32 : sh->compute;
    int64_t nbytes = floats * (int64_t)ls_dtype_size(gather ? gathered : sh->reduce);
    int replicas = sh->nreplicas;
    if (sh->divides) a.axis = axis = LS_AXIS_STAGE;
    a.of = sh->buckets[bucket].workers;
    if (kind == LS_EXCHANGE && sh->has_factors)
        read = read_to_sum_for_all(
            p, bucket, (int64_t)(ls_share_round_floats(sh, bucket, round) * sizeof(float)));
    else if (kind == LS_EXCHANGE)
        read = read_to_decode(p, bucket);
    else if (gather && (axis == LS_AXIS_ISLAND || axis == LS_AXIS_STAGE))
        read = nbytes * (ls_worker_set_count(a.of) - 1);
    else if (gather)
        read = nbytes * (sh->nshards - 1) * replicas;
    else if (kind == LS_REDUCE_SCATTER)
        read = read_to_sum(p, bucket);
    else if (axis == LS_AXIS_REPLICAS)
        read = 2 * nbytes * (replicas - 1);
    else
        read = read_to_sum_for_all(p, bucket, nbytes);
    if (!gather && kind != LS_EXCHANGE) ls_share_fold_round(sh, round, &a.slot);
    if (!gather) a.phase = kind == LS_EXCHANGE ? LS_PHASE_CODES : ls_plan_values_phase(p);
    a.round = round;
    a.nbytes = read / sh->nworkers;
    ls_plan_append(p, &a);
}

bool ls_action_calls_layer(const ls_action *a) {
    return a->kind == LS_FORWARD || a->kind == LS_RECOMPUTE || a->kind == LS_BACKWARD;
}

ls_worker_set ls_plan_concerned(const ls_plan *p, const ls_action *a) {
    bool send = a->kind == LS_SEND, up = send && a->worker < a->peer;
    if (send) {
        int from = up ? a->worker : a->peer, to = up ? a->peer : a->worker;
        return (ls_worker_set){from, to + 1, to - from};
    }
    if (a->axis == LS_AXIS_ISLAND || a->axis == LS_AXIS_STAGE) return a->of;
    if (a->worker == LS_ALL_WORKERS) return (ls_worker_set){0, p->share.nworkers, 1};
    return (ls_worker_set){a->worker, a->worker + 1, 1};
}

/* The Free of a gradient follows its reduction in the communication lane, beside computation. */
ls_lane ls_plan_lane(const ls_plan *p, const ls_action *a) {
    bool grad = a->kind == LS_FREE && ls_plan_buffer_of(p, a->buffer).kind == LS_BUF_GRAD;
    return grad ? LS_LANE_COMM : kinds[a->kind].lane;
}
