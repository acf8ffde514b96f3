/* action.c - what each kind of action is: its name and lane, whom it concerns, the buffers that it
 * uses, and its line in a printed plan. A new kind has a case in each part. */
#include "plan/plan.h"
#include "share/mesh.h"

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
    [LS_SUM_FACTORS] = {"SumFactors", LS_LANE_COMM},
    [LS_DECODE] = {"Decode", LS_LANE_COMPUTE},
    [LS_ADD] = {"Add", LS_LANE_COMPUTE},
    [LS_DELTA] = {"Delta", LS_LANE_COMPUTE},
    [LS_COPY] = {"Copy", LS_LANE_COMPUTE},
    [LS_MIX] = {"Mix", LS_LANE_COMPUTE},
    [LS_REDUCE_SCATTER] = {"ReduceScatter", LS_LANE_COMM},
    [LS_NORM] = {"Norm", LS_LANE_COMPUTE},
    [LS_ALL_REDUCE] = {"AllReduce", LS_LANE_COMM},
    [LS_REPLICA_NORM] = {"ReplicaNorm", LS_LANE_COMM},
    [LS_DECIDE] = {"Decide", LS_LANE_COMM},
    [LS_UPDATE] = {"Update", LS_LANE_COMPUTE},
    [LS_ALL_GATHER] = {"AllGather", LS_LANE_COMM},
    [LS_SEND] = {"Send", LS_LANE_COMM},
    [LS_TAKE] = {"Take", LS_LANE_COMPUTE},
    [LS_TO_DEVICE] = {"ToDevice", LS_LANE_COMPUTE},
    [LS_FROM_DEVICE] = {"FromDevice", LS_LANE_COMPUTE},
    [LS_FREE] = {"Free", LS_LANE_COMPUTE},
};

const char *ls_action_kind_name(ls_action_kind kind) { return kinds[kind].name; }
ls_lane ls_action_kind_lane(ls_action_kind kind) { return kinds[kind].lane; }

bool ls_action_calls_layer(const ls_action *a) {
    return a->kind == LS_FORWARD || a->kind == LS_RECOMPUTE || a->kind == LS_BACKWARD;
}

bool ls_action_on_device(const ls_share *sh, const ls_action *a) {
    switch (a->kind) {
    case LS_FORWARD:
    case LS_RECOMPUTE:
    case LS_TAKE:
    case LS_BACKWARD: return sh->on_device;
    case LS_ADD: return sh->on_device && !a->summed;
    case LS_NORM:
    case LS_UPDATE: return sh->state_on_device;
    case LS_REDUCE_SCATTER:
    case LS_ALL_REDUCE:
    case LS_ALL_GATHER: return sh->sums_on_device;
    default: return false;
    }
}

bool ls_action_reduces(const ls_action *a) {
    return a->kind == LS_REDUCE_SCATTER || a->kind == LS_EXCHANGE || a->kind == LS_SUM_FACTORS;
}

ls_worker_set ls_action_concerned(const ls_action *a) {
    bool send = a->kind == LS_SEND, up = send && a->worker < a->peer;
    if (send) {
        int from = up ? a->worker : a->peer, to = up ? a->peer : a->worker;
        return (ls_worker_set){from, to + 1, to - from};
    }
    if (a->worker == LS_ALL_WORKERS) return a->comm.of;
    return (ls_worker_set){a->worker, a->worker + 1, 1};
}

/* The Free of a gradient follows its reduction in the communication lane, beside computation. */
ls_lane ls_plan_lane(const ls_plan *p, const ls_action *a) {
    bool grad = a->kind == LS_FREE && ls_plan_buffer_of(p, a->buffer).kind == LS_BUF_GRAD;
    return grad ? LS_LANE_COMM : kinds[a->kind].lane;
}

bool ls_plan_runs(const ls_plan *p, const ls_action *a, int64_t step) {
    bool codes = step >= p->share.compress.warmup;
    return a->phase == LS_PHASE_ALL || codes == (a->phase == LS_PHASE_CODES);
}

/* ---- the buffers that it uses ---- */

typedef struct use_list {
    const ls_plan *p;
    bool there; /* the action uses the device's memory */
    ls_use_fn *fn;
    void *arg;
} use_list;

/* Of two twins, the one in the memory that the action uses. */
static void use(const use_list *u, ls_buffer_kind kind, int index, int slot, ls_use how) {
    int id = ls_plan_buffer(u->p, kind, index, slot);
    u->fn(u->there ? ls_plan_twin(u->p, id) : id, how, u->arg);
}

static void use_call(const use_list *u, ls_buffer_kind kind, const ls_action *a, int layer,
                     ls_use how) {
    int id = ls_plan_layer_buffer(u->p, kind, a, layer);
    u->fn(u->there ? ls_plan_twin(u->p, id) : id, how, u->arg);
}

static void use_layer(const use_list *u, const ls_action *a) {
    const ls_model *m = u->p->share.model;
    int l = a->layer;
    bool forward = a->kind != LS_BACKWARD, has_y = !m->layers[l].traits.loss;
    bool inputs = !forward && a->back != LS_BACK_PARAMS;
    bool params = !forward && a->back != LS_BACK_INPUTS;
    use(u, LS_BUF_SAMPLES, 0, 0, LS_USE_READ);
    use(u, LS_BUF_WORK, 0, 0, LS_USE_WRITE);
    const ls_layer *layer = &m->layers[l];
    for (int k = 0; k < layer->ninputs; k++)
        if (forward || !layer->unread[k]) use_call(u, LS_BUF_ACT, a, layer->inputs[k], LS_USE_READ);
    if (m->layers[l].memory.saved)
        use_call(u, LS_BUF_SAVED, a, l, forward ? LS_USE_WRITE : LS_USE_READ);
    if (!has_y) use(u, LS_BUF_LOSSES, 0, 0, LS_USE_WRITE);
    if (forward && has_y) use_call(u, LS_BUF_ACT, a, l, LS_USE_WRITE);
    if (!forward && has_y) use_call(u, LS_BUF_DACT, a, l, LS_USE_READ);
    for (int k = 0; inputs && k < layer->ninputs; k++) {
        if (m->layers[layer->inputs[k]].link.is_constant) continue;
        /* a layer whose backward is whole collects the parts of its micro-batches */
        bool part = m->layers[layer->inputs[k]].traits.backward_whole && a->micro > 0;
        use_call(u, LS_BUF_DACT, a, layer->inputs[k],
                 part || layer->link.adds[k] ? LS_USE_UPDATE : LS_USE_WRITE);
    }
    const int *touched = NULL;
    for (int i = 0, n = ls_share_touched(&u->p->share, l, &touched); i < n; i++) {
        int b =
            ls_share_bucket_in(&u->p->share, touched[i], ls_share_island_of(&u->p->share, a->vw));
        if (forward || !m->layers[l].traits.backward_alone) use(u, LS_BUF_PARAM, b, 0, LS_USE_READ);
        bool opens = a->start && ls_share_opens(&u->p->share, touched[i], l);
        if (params) use(u, LS_BUF_GRAD, b, a->slot, opens ? LS_USE_WRITE : LS_USE_UPDATE);
    }
}

/* The receiver of a gradient's part has it in its inbox; of all else both have the same buffer. */
static void use_message(const use_list *u, const ls_action *a, int worker) {
    ls_buffer b = ls_plan_buffer_of(u->p, a->buffer);
    int scores = worker == a->worker ? ls_plan_scores(u->p, a) : -1;
    if (scores >= 0) u->fn(scores, LS_USE_READ, u->arg);
    if (worker != a->worker)
        u->fn(a->buffer, LS_USE_WRITE, u->arg);
    else if (u->p->share.task == LS_TASK_MIX)
        use(u, LS_BUF_PARAM,
            ls_share_bucket_in(&u->p->share, ls_share_common_bucket(&u->p->share, a->bucket),
                               a->island),
            0, LS_USE_READ);
    else if (b.kind == LS_BUF_INBOX)
        use(u, LS_BUF_GRAD, a->bucket, a->slot, LS_USE_READ);
    else
        u->fn(a->buffer, ls_plan_chosen(u->p, a) ? LS_USE_UPDATE : LS_USE_READ, u->arg);
}

/* The gradient of a bucket is summed into the first sum; the other sums are only read. */
static void use_sum(const use_list *u, const ls_action *a, int worker) {
    int first = ls_share_first_slot(&u->p->share, a->bucket, worker);
    for (int s = ls_share_sums(&u->p->share, a->bucket, worker) - 1; s >= 0; s--)
        use(u, LS_BUF_GRAD, a->bucket, first + s, LS_USE_READ);
    use(u, LS_BUF_SUM, a->bucket, a->slot, LS_USE_WRITE);
}

/* Does the worker have a sum of this bucket, when it comes to its Update? */
static bool has_sum(const ls_plan *p, int bucket, int worker) {
    const ls_share *sh = &p->share;
    if (sh->islands == 0) return ls_share_has(sh, bucket, worker);
    if (sh->task == LS_TASK_TRAIN)
        return sh->buckets[bucket].island && ls_share_has(sh, bucket, worker);
    if (sh->task == LS_TASK_MIX && !ls_share_has(sh, bucket, worker)) return false;
    return sh->task != LS_TASK_ADOPT && ls_share_changes_bucket(sh, bucket);
}

/* Does its Update mix the common parameters into a replica? */
static bool adopts(const ls_plan *p, int bucket, int worker) {
    const ls_share *sh = &p->share;
    return sh->task == LS_TASK_ADOPT && ls_share_has(sh, bucket, worker) &&
           ls_share_changes_bucket(sh, bucket);
}

/* A change that brings replicas together is not certain before all that it needs is there: then it
 * can be finished for a worker that is lost. */
static void use_decision(const use_list *u, int worker) {
    const ls_plan *p = u->p;
    const ls_share *sh = &p->share;
    use(u, LS_BUF_SCALARS, 0, 0, LS_USE_WRITE);
    if (sh->task == LS_TASK_TRAIN) {
        use(u, LS_BUF_NORMS, 0, 0, LS_USE_READ);
        use(u, LS_BUF_LOSSES, 0, 0, LS_USE_READ);
        return;
    }
    for (int k = 0; sh->task == LS_TASK_MIX && k < sh->nbuckets; k++)
        if (has_sum(p, k, worker)) use(u, LS_BUF_SUM, k, 0, LS_USE_READ);
    for (int k = 0; sh->task != LS_TASK_MIX && k < sh->segment_buckets; k++) {
        int changed = sh->task == LS_TASK_ADOPT ? ls_share_bucket_in(sh, k, 1) : k;
        if (ls_share_changes_bucket(sh, changed)) use(u, LS_BUF_SUM, k, 0, LS_USE_READ);
    }
}

/* With the samples go losses of 0. */
static void use_copy(const use_list *u, const ls_action *a) {
    int twin = ls_plan_twin(u->p, a->buffer);
    bool to = a->kind == LS_TO_DEVICE;
    u->fn(to ? a->buffer : twin, LS_USE_READ, u->arg);
    u->fn(to ? twin : a->buffer, LS_USE_WRITE, u->arg);
    if (ls_plan_buffer_of(u->p, a->buffer).kind != LS_BUF_SAMPLES) return;
    use(u, LS_BUF_LOSSES, 0, 0, LS_USE_READ);
    use(u, LS_BUF_DEVICE_LOSSES, 0, 0, LS_USE_WRITE);
}

void ls_action_uses(const ls_plan *p, const ls_action *a, int worker, ls_use_fn *fn, void *arg) {
    const ls_share *sh = &p->share;
    use_list u = {p, p->has_copies && ls_action_on_device(sh, a), fn, arg};
    switch (a->kind) {
    case LS_LOAD:
        use(&u, LS_BUF_SAMPLES, 0, 0, LS_USE_WRITE);
        use(&u, LS_BUF_LOSSES, 0, 0, LS_USE_WRITE);
        break;
    case LS_FORWARD:
    case LS_RECOMPUTE:
    case LS_BACKWARD: use_layer(&u, a); break;
    case LS_SQUARES: /* as if it changed the gradient: the sum that takes its place comes later */
        use(&u, LS_BUF_GRAD, a->bucket, a->slot, LS_USE_UPDATE);
        use(&u, LS_BUF_LOSSES, 0, 0, LS_USE_UPDATE);
        break;
    case LS_ENCODE:
        if (a->round > 0) { /* from the errors, which have the gradient, and the sum */
            use(&u, LS_BUF_CODES, a->bucket, 0, LS_USE_READ);
            use(&u, LS_BUF_ERROR, a->bucket, 0, LS_USE_READ);
            use(&u, LS_BUF_CODE, a->bucket, 0, LS_USE_UPDATE);
            break;
        }
        use(&u, LS_BUF_GRAD, a->bucket, a->slot, sh->has_factors ? LS_USE_READ : LS_USE_UPDATE);
        if (sh->has_errors) use(&u, LS_BUF_ERROR, a->bucket, 0, LS_USE_UPDATE);
        if (sh->sends_codes)
            use(&u, LS_BUF_CODE, a->bucket, 0,
                ls_share_vw_index(sh, worker, a->vw) ? LS_USE_UPDATE : LS_USE_WRITE);
        break;
    case LS_EXCHANGE:
    case LS_SUM_FACTORS:
        use(&u, LS_BUF_CODE, a->bucket, 0, LS_USE_READ);
        use(&u, LS_BUF_CODES, a->bucket, 0, a->round ? LS_USE_UPDATE : LS_USE_WRITE);
        break;
    case LS_DECODE: /* the sum takes the place of the worker's part of its gradient */
        use(&u, LS_BUF_CODES, a->bucket, 0, LS_USE_READ);
        if (sh->has_factors) use(&u, LS_BUF_ERROR, a->bucket, 0, LS_USE_UPDATE);
        use(&u, LS_BUF_GRAD, a->bucket, 0, LS_USE_READ);
        use(&u, LS_BUF_SUM, a->bucket, 0, LS_USE_WRITE);
        break;
    case LS_ADD: {
        ls_buffer_kind what = a->summed ? LS_BUF_SUM : LS_BUF_GRAD;
        use(&u, what, a->bucket, a->slot, LS_USE_UPDATE);
        use(&u, what, a->bucket, a->from, LS_USE_READ);
        break;
    }
    case LS_DELTA:
        use(&u, LS_BUF_PARAM, a->bucket, 0, LS_USE_READ);
        use(&u, LS_BUF_PARAM, ls_share_bucket_in(sh, a->bucket, ls_share_island_of(sh, a->vw)), 0,
            LS_USE_READ);
        use(&u, LS_BUF_GRAD, a->bucket, a->slot, LS_USE_WRITE);
        break;
    case LS_COPY:
        use(&u, LS_BUF_PARAM, a->bucket, 0, LS_USE_READ);
        use(&u, LS_BUF_SUM, a->bucket, 0, LS_USE_WRITE);
        break;
    case LS_MIX:
        use(&u, LS_BUF_PARAM,
            ls_share_bucket_in(sh, ls_share_common_bucket(sh, a->bucket), a->island), 0,
            LS_USE_READ);
        fn(a->buffer, LS_USE_READ, arg);
        use(&u, LS_BUF_SUM, a->bucket, 0, a->start ? LS_USE_WRITE : LS_USE_UPDATE);
        break;
    case LS_REDUCE_SCATTER: use_sum(&u, a, worker); break;
    case LS_ALL_REDUCE:
        if (a->comm.axis == LS_AXIS_REPLICAS)
            use(&u, LS_BUF_SUM, a->bucket, a->slot, LS_USE_UPDATE);
        else
            use_sum(&u, a, worker);
        break;
    case LS_REPLICA_NORM: use(&u, LS_BUF_NORMS, 0, 0, LS_USE_UPDATE); break;
    case LS_DECIDE: use_decision(&u, worker); break;
    case LS_NORM:
        for (int b = 0; b < sh->nbuckets; b++)
            if (has_sum(p, b, worker)) use(&u, LS_BUF_SUM, b, 0, LS_USE_READ);
        use(&u, LS_BUF_NORMS, 0, 0, LS_USE_WRITE);
        break;
    case LS_UPDATE:
        use(&u, LS_BUF_SCALARS, 0, 0, LS_USE_READ);
        if (has_sum(p, a->bucket, worker)) use(&u, LS_BUF_SUM, a->bucket, 0, LS_USE_READ);
        if (adopts(p, a->bucket, worker))
            use(&u, LS_BUF_SUM, ls_share_common_bucket(sh, a->bucket), 0, LS_USE_READ);
        use(&u, LS_BUF_MOMENT, a->bucket, 0, LS_USE_UPDATE);
        use(&u, LS_BUF_SHARD, a->bucket, 0, LS_USE_UPDATE);
        if (!sh->shards_moments) use(&u, LS_BUF_PARAM, a->bucket, 0, LS_USE_UPDATE);
        break;
    case LS_ALL_GATHER:
        if (sh->task == LS_TASK_ADOPT && sh->buckets[a->bucket].island == 0) {
            use(&u, LS_BUF_SHARD, a->bucket, 0, LS_USE_READ);
            use(&u, LS_BUF_SUM, a->bucket, 0, LS_USE_WRITE);
            break;
        }
        use(&u, LS_BUF_SHARD, a->bucket, 0, LS_USE_READ);
        use(&u, LS_BUF_PARAM, a->bucket, 0, LS_USE_WRITE);
        break;
    case LS_SEND: use_message(&u, a, worker); break;
    case LS_TAKE: /* the bucket's own layers may have written the rest already, or not yet */
        fn(a->buffer, LS_USE_READ, arg);
        use(&u, LS_BUF_GRAD, a->bucket, a->slot, LS_USE_WRITE);
        break;
    case LS_TO_DEVICE:
    case LS_FROM_DEVICE: use_copy(&u, a); break;
    case LS_FREE: fn(a->buffer, LS_USE_WRITE, arg); break;
    case LS_NACTION_KINDS: break;
    }
}

/* ---- its line in a printed plan ---- */

static const char *factor_name(const ls_plan *p, const ls_action *a) {
    if (!p->share.has_factors) return "";
    return a->round ? ", second factor" : ", first factor";
}

static void print_mix(const ls_plan *p, const ls_action *a, ls_buf *out) {
    const ls_share *sh = &p->share;
    int into = sh->buckets[a->bucket].island;
    ls_buf_printf(out, "  bucket %-3d replica %d %s %g * replica %d", a->bucket, into - 1,
                  a->start ? "=" : "+=", sh->sync.mix->of[into - 1][a->island - 1], a->island - 1);
}

static void print_chosen(const ls_plan *p, const ls_action *a, ls_buf *out) {
    const ls_chosen_rows *c = ls_plan_chosen(p, a);
    if (!c) return;
    ls_buf_printf(out, " at most: rows that choose experts %lld to %lld by %s, about %.0f",
                  (long long)c->first, (long long)c->end - 1,
                  p->share.model->layers[c->scores].name, ls_plan_sent_nbytes(p, a));
}

static void print_comm(const ls_plan *p, const ls_action *a, ls_buf *out) {
    const ls_comm *c = &a->comm;
    const ls_bucket *b = &p->share.buckets[a->bucket];
    ls_buf_printf(out, "  bucket %-3d [%zu, %zu)  %lld bytes a worker", a->bucket, b->first, b->end,
                  (long long)c->nbytes);
    if (a->kind == LS_SUM_FACTORS) ls_buf_printf(out, "%s", factor_name(p, a));
    if (c->axis == LS_AXIS_ISLAND)
        ls_buf_printf(out, ", of replica %d, workers %d to %d", a->island - 1, c->of.from,
                      c->of.to - 1);
    if (c->axis == LS_AXIS_STAGE)
        ls_buf_printf(out,
                      c->of.step > 1 ? ", of workers %d to %d, each %d" : ", of workers %d to %d",
                      c->of.from, c->of.to - 1, c->of.step);
    if (p->share.nreplicas > 1 && c->axis == LS_AXIS_SHARDS)
        ls_buf_printf(out, ", in groups of %d", c->members);
    if (c->axis == LS_AXIS_REPLICAS)
        ls_buf_printf(out, ", of its shard, among %d groups", c->members);
}

static void print_details(const ls_plan *p, const ls_action *a, ls_buf *out) {
    const ls_share *sh = &p->share;
    char name[96];
    switch (a->kind) {
    case LS_FORWARD:
    case LS_RECOMPUTE:
    case LS_BACKWARD:
        ls_buf_printf(out, "  %-10s vw %d", sh->model->layers[a->layer].name, a->vw);
        if (a->micro >= 0)
            ls_buf_printf(out, " micro %d", a->micro);
        else
            ls_buf_printf(out, " all micros");
        if (a->kind == LS_BACKWARD)
            ls_buf_printf(out, "  sum %d%s%s", a->slot, a->start ? " (start)" : "",
                          a->back == LS_BACK_INPUTS   ? ", of inputs"
                          : a->back == LS_BACK_PARAMS ? ", of parameters"
                                                      : "");
        break;
    case LS_SQUARES:
        ls_buf_printf(out, "  bucket %-3d vw %d  sum %d", a->bucket, a->vw, a->slot);
        break;
    case LS_ENCODE:
        ls_buf_printf(out, "  bucket %-3d vw %d  sum %d, %s%s", a->bucket, a->vw, a->slot,
                      ls_compression_name(sh->compress.how.kind), factor_name(p, a));
        break;
    case LS_ADD:
        ls_buf_printf(out, "  bucket %-3d vw %d  sum %d += sum %d%s", a->bucket, a->vw, a->slot,
                      a->from, a->summed ? ", over all workers" : "");
        break;
    case LS_DECODE: ls_buf_printf(out, "  bucket %-3d", a->bucket); break;
    case LS_REPLICA_NORM:
        ls_buf_printf(out, "  norm of replica %d  %lld bytes a worker", a->island - 1,
                      (long long)a->comm.nbytes);
        break;
    case LS_DECIDE:
        ls_buf_printf(out, "  norm, loss  %lld bytes a worker", (long long)a->comm.nbytes);
        break;
    case LS_EXCHANGE:
    case LS_SUM_FACTORS:
    case LS_REDUCE_SCATTER:
    case LS_ALL_REDUCE:
    case LS_ALL_GATHER: print_comm(p, a, out); break;
    case LS_DELTA:
        ls_buf_printf(out, "  bucket %-3d vw %d  sum %d, replica %d", a->bucket, a->vw, a->slot,
                      ls_share_island_of(sh, a->vw) - 1);
        break;
    case LS_COPY: ls_buf_printf(out, "  bucket %-3d", a->bucket); break;
    case LS_MIX: print_mix(p, a, out); break;
    case LS_UPDATE: {
        ls_range s = ls_share_owned(sh, a->bucket, a->worker);
        ls_buf_printf(out, "  bucket %-3d [%zu, %zu)", a->bucket, s.first, s.end);
        break;
    }
    case LS_SEND:
        if (sh->task == LS_TASK_MIX) {
            ls_buf_printf(out, "  to w%-3d bucket %d of replica %d  %lld bytes", a->peer,
                          ls_share_common_bucket(sh, a->bucket), a->island - 1,
                          (long long)a->comm.nbytes);
            break;
        }
        ls_plan_buffer_name(p, a->buffer, name, sizeof name);
        ls_buf_printf(out, "  to w%-3d %s", a->peer, name);
        if (a->micro >= 0) ls_buf_printf(out, "  vw %d micro %d", a->vw, a->micro);
        ls_buf_printf(out, "  %lld bytes", (long long)a->comm.nbytes);
        print_chosen(p, a, out);
        break;
    case LS_TAKE:
        ls_plan_buffer_name(p, a->buffer, name, sizeof name);
        ls_buf_printf(out, "  bucket %-3d vw %d  sum %d = %s, from w%d", a->bucket, a->vw, a->slot,
                      name, a->peer);
        break;
    case LS_TO_DEVICE:
    case LS_FROM_DEVICE:
        ls_plan_buffer_name(p, a->buffer, name, sizeof name);
        ls_buf_printf(out, "  %s", name);
        break;
    case LS_FREE:
        ls_plan_buffer_name(p, a->buffer, name, sizeof name);
        ls_buf_printf(out, "  %s  %zu bytes", name, ls_plan_buffer_nbytes(p, a->buffer, a->worker));
        break;
    default: break;
    }
}

void ls_plan_print_action(const ls_plan *p, int i, ls_buf *out) {
    const ls_action *a = &p->actions[i];
    if (a->worker == LS_ALL_WORKERS)
        ls_buf_printf(out, "%6d  all  %-13s", i, ls_action_kind_name(a->kind));
    else
        ls_buf_printf(out, "%6d  w%-3d %-13s", i, a->worker, ls_action_kind_name(a->kind));
    print_details(p, a, out);
    if (a->phase == LS_PHASE_VALUES) ls_buf_printf(out, ", in the warm-up");
    ls_buf_append(out, "\n", 1);
}
