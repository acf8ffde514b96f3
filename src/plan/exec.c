/* exec.c - see exec.h. */
#include "plan/exec.h"

#include <math.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/random.h"
#include "coll/virtual.h"
#include "model/mixed.h"
#include "model/table.h"
#include "net/bell.h"
#include "net/cores.h"
#include "optim/norm.h"

static const char RECALLED[] = "this worker is recalled";

/* One of the two lanes of a step in flight. The bell is rung when the other lane has gone on. */
typedef struct lane_state {
    ls_bell bell;
    atomic_int done; /* actions complete */
} lane_state;

/* What one thread has done of both lanes: actions complete. */
typedef struct progress {
    int at[LS_NLANES];
} progress;

/* What a worker has of a step that was broken off. */
typedef enum has {
    HAS_NOTHING,
    HAS_PART, /* of its gradients: its executor goes on where it was */
    HAS_ALL   /* all its gradients, in the store */
} has;

struct ls_exec {
    ls_exec_config c;
    ls_lanes lanes;
    ls_arena_plan places;
    ls_compute compute;
    ls_loader *loader;
    void *arena, *work;
    size_t arena_nbytes, work_nbytes;

    /* operands of the step in flight */
    const ls_step_in *in;
    ls_batch batch;
    const uint32_t *tokens;
    float loss_scale;
    bool knows_norm;
    ls_adamw_step update;
    ls_step_out out;
    size_t *counts;      /* [nbuckets][shards] elements of each shard */
    ls_request *request; /* the communication in flight, where one thread runs both lanes */

    /* of a step that may be broken off */
    int norm_at;     /* of the compute lane: when all gradients are there */
    bool restarts;   /* sums that were broken off can be made again */
    bool sums_last;  /* communication begins when all gradients are there */
    progress at;     /* where one thread runs both lanes */
    int64_t at_step; /* of which; -1: none */
    has has;         /* when it begins */
    int64_t next_load;

    lane_state lanes_state[LS_NLANES];
    ls_patience patience;
    pthread_t comm_thread;
    bool has_thread;
    atomic_int given, taken; /* steps, to and from the communication thread; given -1: end */
    atomic_bool failed;      /* one of the lanes */
    ls_status comm_status;
    ls_error comm_error;

    int64_t times[LS_NLANES][LS_NACTION_KINDS]; /* each lane writes its own */
    ls_trace *trace;                            /* NULL: nobody wants to know */
};

/* ---- actions ---- */

static char *buffer(const ls_exec *x, ls_buffer_kind kind, int layer) {
    size_t at = x->places.offsets[ls_plan_buffer(x->c.plan, kind, layer, 0)];
    return at == SIZE_MAX ? NULL : (char *)x->arena + at;
}

static ls_status run_load(ls_exec *x) {
    ls_loader_next(x->loader, &x->batch, &x->tokens);
    x->next_load = x->in->step + 1;
    double tokens = (double)x->batch.count * (double)x->c.loader.T;
    x->loss_scale = (float)(x->in->loss_scale / tokens);
    double *losses = ls_world_losses(x->c.plan, x->c.world->parts);
    if (x->has != HAS_ALL) memset(losses, 0, (size_t)x->c.plan->c.batch * sizeof *losses);
    return LS_OK;
}

/* The samples of a Forward or Backward, as places in the batch: fewer than a micro-batch, or none,
 * where the batch is short. */
static void samples_of(const ls_exec *x, const ls_action *a, uint64_t *first_p, uint64_t *end_p) {
    uint64_t micro = (uint64_t)x->c.plan->c.micro_batch, end = 0;
    ls_batch_share(x->batch.count, x->c.plan->c.V, a->vw, a->vw + 1, first_p, &end);
    *end_p = end;
    if (a->micro < 0) return;
    *first_p += micro * (uint64_t)a->micro;
    if (*first_p > end) *first_p = end;
    if (*first_p + micro < end) *end_p = *first_p + micro;
}

/* A gradient sum of the worker, from element `first` on. */
static char *sum_at(const ls_exec *x, int slot, size_t first) {
    const ls_plan *p = x->c.plan;
    return (char *)x->c.world->grads +
           ((size_t)slot * p->c.model->nfloats + first) * ls_dtype_size(p->c.reduce);
}

/* The slot of the first sum over all workers: with early reduction they lie behind the worker's
 * own. */
static int sum_slot(const ls_exec *x) {
    const ls_plan *p = x->c.plan;
    return p->c.early ? ls_plan_slots(p, x->c.worker) : 0;
}

static ls_mixed_call call_of(const ls_exec *x, const ls_action *a) {
    const ls_plan *p = x->c.plan;
    uint64_t first = 0, end = 0;
    samples_of(x, a, &first, &end);
    int64_t T = x->c.loader.T;
    uint64_t start = 0, stop = 0, place = ls_loader_place(&x->c.loader, x->batch.count, a->vw);
    ls_batch_share(x->batch.count, p->c.V, a->vw, a->vw + 1, &start, &stop);
    place += first - start;
    return (ls_mixed_call){
        .threads = &x->compute,
        .compute = p->c.compute,
        .store = {.params_type = p->c.compute,
                  .grads_type = p->c.reduce,
                  .params = x->c.world->params,
                  .grads = sum_at(x, a->slot, 0),
                  .wide = x->c.world->wide,
                  .first = a->micro <= 0,
                  .last = a->last},
        .n = (int64_t)(end - first),
        .T = T,
        .tokens = x->tokens + place * (uint64_t)(T + 1),
        .grads_start = a->start,
        .x = a->layer ? buffer(x, LS_BUF_ACT, a->layer - 1) : NULL,
        .y = buffer(x, LS_BUF_ACT, a->layer),
        .saved = buffer(x, LS_BUF_SAVED, a->layer),
        .work = x->work,
        .loss_scale = x->loss_scale,
        .losses = ls_world_losses(p, x->c.world->parts) + first,
    };
}

/* ---- what another worker has computed ---- */

static void copy_given(const ls_exec *x, const ls_action *a, const char *grads,
                       const double *losses) {
    const ls_plan *p = x->c.plan;
    const ls_layer *l = &p->c.model->layers[a->layer];
    size_t size = ls_dtype_size(p->c.reduce);
    uint64_t first = 0, end = 0;
    for (int k = 0; k < l->nparams; k++)
        memcpy(sum_at(x, a->slot, l->offsets[k]), grads + l->offsets[k] * size,
               l->counts[k] * size);
    ls_batch_share(x->batch.count, p->c.V, a->vw, a->vw + 1, &first, &end);
    memcpy(ls_world_losses(p, x->c.world->parts) + first, losses + first,
           (end - first) * sizeof *losses);
}

/* Once it is given, nothing more is computed for the virtual worker; its gradient is taken from
 * there, layer by layer. */
static bool is_given_by_another(const ls_exec *x, const ls_action *a) {
    const ls_exec_helpers *h = x->c.helpers;
    const double *losses = NULL;
    const void *grads = h ? h->given(h->arg, x->in->step, a->vw, &losses) : NULL;
    if (!grads) return false;
    if (a->kind == LS_BACKWARD && a->last) copy_given(x, a, grads, losses);
    return true;
}

static ls_status run_forward(ls_exec *x, const ls_action *a) {
    if (is_given_by_another(x, a)) return LS_OK;
    const ls_layer *l = &x->c.plan->c.model->layers[a->layer];
    ls_mixed_call call = call_of(x, a);
    ls_mixed_forward(l, &call);
    return LS_OK;
}

/* Where a layer below takes all micro-batches at once, its gradient is gathered part by part. */
static ls_status run_backward(ls_exec *x, const ls_action *a) {
    if (is_given_by_another(x, a)) return LS_OK;
    const ls_model *m = x->c.plan->c.model;
    const ls_layer *l = &m->layers[a->layer];
    ls_mixed_call call = call_of(x, a);
    call.dy = buffer(x, LS_BUF_DACT, a->layer);
    if (a->layer > 0) {
        const ls_layer *below = &m->layers[a->layer - 1];
        size_t sample = below->y_floats * ls_dtype_size(call.compute);
        size_t part = below->backward_whole ? (size_t)(a->micro * x->c.plan->c.micro_batch) : 0;
        call.dx = buffer(x, LS_BUF_DACT, a->layer - 1) + part * sample;
    }
    ls_mixed_backward(l, &call);
    return LS_OK;
}

typedef struct add_job {
    const ls_exec *x;
    char *to, *from;
    size_t n;
} add_job;

static void add_run(void *arg, int thread, int nthreads) {
    const add_job *j = arg;
    int64_t a = 0, b = 0;
    ls_pool_share((int64_t)j->n, 16, thread, nthreads, &a, &b);
    ls_dtype type = j->x->c.plan->c.reduce;
    size_t at = (size_t)a * ls_dtype_size(type);
    j->x->compute.k->combine(type, LS_SUM, (size_t)(b - a), j->to + at, j->from + at, j->to + at);
}

static ls_status run_add(ls_exec *x, const ls_action *a) {
    ls_bucket b = x->c.plan->buckets[a->bucket];
    if (a->summed) b = ls_plan_shard(x->c.plan, a->bucket, x->c.worker);
    int slot = a->slot + (a->summed ? sum_slot(x) : 0);
    add_job j = {x, sum_at(x, slot, b.first), sum_at(x, slot + 1, b.first), b.end - b.first};
    ls_pool_run(x->compute.pool, add_run, &j);
    return LS_OK;
}

static ls_status run_norm(ls_exec *x) {
    for (int k = 0; k < x->c.plan->nbuckets; k++) {
        ls_bucket s = ls_plan_normed(x->c.plan, k, x->c.worker);
        ls_norm_blocks(&x->compute, x->c.plan->c.reduce, sum_at(x, sum_slot(x), 0), s.first, s.end,
                       x->c.world->parts);
    }
    return LS_OK;
}

/* A step whose gradient overflowed changes nothing but the journal. */
static ls_status run_update(ls_exec *x, const ls_action *a) {
    const ls_world *w = x->c.world;
    const ls_plan *p = x->c.plan;
    ls_bucket s = ls_plan_owned(p, a->bucket, x->c.worker);
    ls_adamw_state state = {.grads_type = p->c.reduce,
                            .params_type = p->c.compute,
                            .grads = sum_at(x, sum_slot(x), 0),
                            .params = w->params,
                            .master = w->master,
                            .m = w->m,
                            .v = w->v,
                            .journal = w->store ? &w->journal : NULL,
                            .steps = ls_store_mark(x->in->step + 1)};
    if (!x->out.skipped)
        ls_adamw_run(&x->compute, p->c.model, &x->update, s.first, s.end, &state);
    else if (w->store)
        ls_journal_set(&w->journal, s.first, s.end, state.steps);
    return LS_OK;
}

static ls_status run_compute(ls_exec *x, const ls_action *a, ls_error *e) {
    switch (a->kind) {
    case LS_LOAD: return run_load(x);
    case LS_FORWARD:
    case LS_RECOMPUTE: return run_forward(x, a);
    case LS_BACKWARD: return run_backward(x, a);
    case LS_ADD: return run_add(x, a);
    case LS_NORM: return run_norm(x);
    case LS_UPDATE: return run_update(x, a);
    default: return ls_fail(e, LS_EINVAL, "no computation: %s", ls_action_kind_name(a->kind));
    }
}

/* What lies in the arena has its fixed place. */
static void run_free(ls_exec *x, const ls_action *a) {
    ls_buffer b = ls_plan_buffer_of(x->c.plan, a->buffer);
    if (!ls_buffer_in_arena(b.kind)) ls_world_drop(x->c.world, x->c.plan, &b);
}

/* ---- communication: started, then finished ---- */

/* If this step is broken off, it is known what was summed. */
static void mark_sum(const ls_exec *x, const ls_action *a) {
    const ls_world *w = x->c.world;
    bool replicas = a->axis == LS_AXIS_REPLICAS;
    ls_group *g = replicas ? w->replicas : a->kind == LS_REDUCE_SCATTER ? w->shards : w->group;
    ls_group_mark_next(g,
                       ls_store_sum_mark(w->store, x->c.worker, a->bucket, replicas, x->in->step));
}

/* The owner's sum replaces its part of its own lowest sum, which nobody else reads. */
static ls_status start_comm(ls_exec *x, const ls_action *a, ls_request **r_p, ls_error *e) {
    const ls_plan *p = x->c.plan;
    const ls_world *w = x->c.world;
    if (a->bucket == LS_SCALARS)
        return ls_all_reduce_start(w->group, w->parts, w->sums, ls_world_nsums(p), LS_F64, LS_SUM,
                                   r_p, e);
    size_t first = p->buckets[a->bucket].first, count = p->buckets[a->bucket].end - first;
    ls_bucket own = ls_plan_shard(p, a->bucket, x->c.worker);
    const size_t *counts = x->counts + (size_t)a->bucket * (size_t)ls_plan_shards(p);
    size_t stride = p->c.model->nfloats;
    int V = p->c.tree ? ls_plan_round_vws(p) : 0, slot = sum_slot(x) + a->slot;
    char *sum = sum_at(x, slot, own.first); /* of the own shard */
    ls_dtype sums = p->c.reduce, params = p->c.compute;
    if (a->kind != LS_ALL_GATHER && x->restarts) mark_sum(x, a);
    switch (a->kind) {
    case LS_REDUCE_SCATTER: /* the group's workers have a whole subtree */
        return ls_reduce_scatter_virtual_start(w->shards, V / ls_plan_replicas(p), p->c.first,
                                               sum_at(x, 0, first), stride, sum, counts, sums, r_p,
                                               e);
    case LS_ALL_REDUCE:
        if (a->axis == LS_AXIS_REPLICAS)
            return ls_all_reduce_virtual_start(w->replicas, V, NULL, sum, 0, sum,
                                               own.end - own.first, sums, r_p, e);
        return ls_all_reduce_virtual_start(w->group, V, p->c.first, sum_at(x, 0, first), stride,
                                           sum_at(x, 0, first), count, sums, r_p, e);
    case LS_ALL_GATHER:
        return ls_all_gather_v_start(w->shards, ls_flat_at(params, w->params, own.first),
                                     ls_flat_at_mut(params, w->params, first), counts, params, r_p,
                                     e);
    default: return ls_fail(e, LS_EINVAL, "no communication: %s", ls_action_kind_name(a->kind));
    }
}

/* Norms and losses of all are there: each worker adds them up itself, in the same order. */
static void finish_comm(ls_exec *x, const ls_action *a) {
    if (a->kind != LS_ALL_REDUCE || a->bucket != LS_SCALARS) return;
    const ls_plan *p = x->c.plan;
    const double *losses = ls_world_losses(p, x->c.world->sums);
    x->knows_norm = true;
    x->out.batch = x->batch;
    double norm = ls_norm_total(x->c.world->sums, p->c.model->nfloats / LS_BLOCK);
    x->out.grad_norm = norm / x->in->loss_scale;
    x->out.skipped = x->in->skips && !isfinite(norm);
    double loss = 0.0;
    for (uint64_t i = 0; i < x->batch.count; i++) loss += losses[i];
    x->out.loss = loss / ((double)x->batch.count * (double)x->c.loader.T);
    double clip = ls_clip_factor(x->out.grad_norm, x->in->clip);
    x->update = ls_adamw_at(&x->in->adamw, x->in->updates, x->in->lr, clip / x->in->loss_scale);
    if (x->c.decided) x->c.decided(x->c.decided_arg, x->in, &x->out, &x->update);
}

/* Tells where this worker is, and begins to count the time. */
static int64_t enter(ls_exec *x, int index) {
    atomic_store_explicit(&x->c.slot->action, index, memory_order_relaxed);
    return ls_clock_ns();
}

/* Counts it; `complete`: of the action nothing is left to do. */
static void leave(ls_exec *x, int index, int64_t begin, bool complete) {
    const ls_action *a = &x->c.plan->actions[index];
    ls_lane lane = ls_plan_lane(x->c.plan, a);
    int64_t end = ls_clock_ns();
    x->times[lane][a->kind] += end - begin;
    if (x->trace) ls_trace_add(x->trace, lane, index, begin, end, complete);
}

static ls_status run_action(ls_exec *x, int index, ls_error *e) {
    const ls_action *a = &x->c.plan->actions[index];
    int64_t begin = enter(x, index);
    ls_status s = LS_OK;
    if (a->kind == LS_FREE) {
        run_free(x, a);
    } else if (a->worker != LS_ALL_WORKERS) {
        s = run_compute(x, a, e);
    } else {
        ls_request *r = NULL;
        s = start_comm(x, a, &r, e);
        if (s == LS_OK) s = ls_wait(&r, -1, e);
        if (s == LS_OK) finish_comm(x, a);
    }
    leave(x, index, begin, true);
    return s;
}

/* ---- one worker's step ---- */

typedef struct lane_wait {
    ls_exec *x;
    ls_lane other;
    int want;
} lane_wait;

static bool may_go_on(void *arg) {
    const lane_wait *w = arg;
    return atomic_load(&w->x->lanes_state[w->other].done) >= w->want || atomic_load(&w->x->failed);
}

/* Runs a lane to its end in the calling thread, waiting for the other lane where a step must. */
static ls_status run_lane(ls_exec *x, ls_lane lane, ls_error *e) {
    ls_lane other = lane == LS_LANE_COMPUTE ? LS_LANE_COMM : LS_LANE_COMPUTE;
    for (int i = 0; i < x->lanes.n[lane]; i++) {
        const ls_lane_step *s = &x->lanes.steps[lane][i];
        lane_wait w = {x, other, s->wait};
        if (s->wait) ls_bell_wait(&x->lanes_state[lane].bell, may_go_on, &w, &x->patience, -1);
        ls_status status = LS_EABORT;
        if (ls_board_recalled(x->c.slot))
            ls_fail(e, LS_EABORT, RECALLED);
        else if (!atomic_load(&x->failed))
            status = run_action(x, s->action, e);
        if (status == LS_OK)
            atomic_store(&x->lanes_state[lane].done, i + 1);
        else
            atomic_store(&x->failed, true);
        ls_bell_ring(&x->lanes_state[other].bell);
        if (status != LS_OK) return status;
    }
    return LS_OK;
}

/* Is the next action of a lane there, and are those of the other lane complete that it needs? */
static bool is_ready(const ls_exec *x, const progress *p, ls_lane lane) {
    ls_lane other = lane == LS_LANE_COMPUTE ? LS_LANE_COMM : LS_LANE_COMPUTE;
    if (lane == LS_LANE_COMM && x->sums_last && p->at[other] < x->norm_at) return false;
    return p->at[lane] < x->lanes.n[lane] && x->lanes.steps[lane][p->at[lane]].wait <= p->at[other];
}

/* Starts the next communication where it may start, and looks whether it is done; `wait`: until it
 * is. */
static ls_status move_comm(ls_exec *x, progress *p, bool wait, ls_error *e) {
    if (!x->request && !is_ready(x, p, LS_LANE_COMM)) return LS_OK;
    int index = x->lanes.steps[LS_LANE_COMM][p->at[LS_LANE_COMM]].action;
    const ls_action *a = &x->c.plan->actions[index];
    if (a->kind == LS_FREE) {
        p->at[LS_LANE_COMM]++;
        return run_action(x, index, e);
    }
    int64_t begin = enter(x, index);
    bool done = false;
    if (!x->request) LS_TRY(start_comm(x, a, &x->request, e));
    LS_TRY(wait ? ls_wait(&x->request, -1, e) : ls_test(&x->request, &done, e));
    if (wait || done) {
        finish_comm(x, a);
        p->at[LS_LANE_COMM]++;
    }
    leave(x, index, begin, wait || done);
    return LS_OK;
}

static bool help(const ls_exec *x) {
    const ls_exec_helpers *h = x->c.helpers;
    return h && h->idle(h->arg, x->in);
}

static const ls_action *compute_action(const ls_exec *x, int at) {
    return &x->c.plan->actions[x->lanes.steps[LS_LANE_COMPUTE][at].action];
}

/* All gradients are there already: what is left is to know which samples they are of. */
static ls_status pass_over_gradients(ls_exec *x) {
    progress *p = &x->at;
    for (; p->at[LS_LANE_COMPUTE] < x->norm_at; p->at[LS_LANE_COMPUTE]++)
        if (compute_action(x, p->at[LS_LANE_COMPUTE])->kind == LS_LOAD) LS_TRY(run_load(x));
    return LS_OK;
}

static void begin_both(ls_exec *x) {
    if (x->has != HAS_PART) x->at = (progress){{0, 0}};
    if (x->has == HAS_ALL) pass_over_gradients(x);
    x->at.at[LS_LANE_COMM] = 0;
    x->at_step = x->in->step;
}

/* Both lanes in one thread. */
static ls_status run_both(ls_exec *x, ls_error *e) {
    progress *p = &x->at;
    const int *n = x->lanes.n;
    begin_both(x);
    while (p->at[LS_LANE_COMPUTE] < n[LS_LANE_COMPUTE] || p->at[LS_LANE_COMM] < n[LS_LANE_COMM]) {
        if (ls_board_recalled(x->c.slot)) return ls_fail(e, LS_EABORT, RECALLED);
        if (p->at[LS_LANE_COMPUTE] == x->norm_at && x->restarts)
            ls_store_compute(x->c.world->store, x->c.worker, x->in->step);
        bool ready = is_ready(x, p, LS_LANE_COMPUTE);
        bool helps = !ready && !x->knows_norm && help(x);
        LS_TRY(move_comm(x, p, !ready && !helps, e));
        if (!ready) continue;
        LS_TRY(run_action(x, x->lanes.steps[LS_LANE_COMPUTE][p->at[LS_LANE_COMPUTE]].action, e));
        p->at[LS_LANE_COMPUTE]++;
    }
    x->at_step = -1;
    return LS_OK;
}

static bool is_given(void *arg) {
    ls_exec *x = arg;
    return atomic_load(&x->given) != atomic_load(&x->taken);
}
static bool is_taken(void *arg) { return !is_given(arg); }

static void *comm_main(void *arg) {
    ls_exec *x = arg;
    for (;;) {
        ls_bell_wait(&x->lanes_state[LS_LANE_COMM].bell, is_given, x, &x->patience, -1);
        int step = atomic_load(&x->given);
        if (step < 0) return NULL;
        x->comm_status = run_lane(x, LS_LANE_COMM, &x->comm_error);
        atomic_store(&x->taken, step);
        ls_bell_ring(&x->lanes_state[LS_LANE_COMPUTE].bell);
    }
}

/* A lane that fails ends the other, which then says no more than that. */
static ls_status run_lanes(ls_exec *x, ls_error *e) {
    ls_error own = {0};
    for (int lane = 0; lane < LS_NLANES; lane++) atomic_store(&x->lanes_state[lane].done, 0);
    atomic_store(&x->given, atomic_load(&x->given) == 1 ? 2 : 1);
    ls_bell_ring(&x->lanes_state[LS_LANE_COMM].bell);
    ls_status s = run_lane(x, LS_LANE_COMPUTE, &own);
    ls_bell_wait(&x->lanes_state[LS_LANE_COMPUTE].bell, is_taken, x, &x->patience, -1);
    bool comm = s == LS_OK || (s == LS_EABORT && x->comm_status != LS_OK);
    if (comm) s = x->comm_status;
    if (s != LS_OK) *e = comm ? x->comm_error : own;
    return s;
}

ls_status ls_exec_step(ls_exec *x, const ls_step_in *in, ls_step_out *out_p, ls_error *e) {
    atomic_store(&x->c.slot->step, in->step);
    x->in = in;
    x->knows_norm = false;
    LS_TRY(x->has_thread ? run_lanes(x, e) : run_both(x, e));
    x->has = HAS_NOTHING;
    atomic_store(&x->c.slot->action, -1);
    *out_p = x->out;
    return LS_OK;
}

/* ---- a step that was broken off ---- */

static has kept(const ls_exec *x, int64_t step) {
    if (!x->restarts) return HAS_NOTHING;
    if (ls_store_has_computed(x->c.world->store, x->c.worker, step)) return HAS_ALL;
    return x->at_step == step ? HAS_PART : HAS_NOTHING;
}

/* All do, or if this is broken off, too, all will. */
static ls_status give_up_step(ls_exec *x, int64_t step, ls_error *e) {
    x->has = HAS_NOTHING;
    ls_store_give_up_step(x->c.world->store, x->c.worker, step);
    return ls_barrier(x->c.world->group, e);
}

/* Nothing is kept where half a sum was made, or where a part of a sum stands in the place of
 * gradients that have to be computed again. */
static ls_status agree_on_kept(ls_exec *x, int64_t step, ls_error *e) {
    const ls_world *w = x->c.world;
    bool some = false, half = false;
    x->has = kept(x, step);
    ls_store_look_at_sums(w->store, x->c.worker, step, &some, &half);
    int32_t any[] = {x->has == HAS_NOTHING, some, half}; /* of those with whom it sums first */
    LS_TRY(ls_all_reduce(w->shards, any, any, 3, LS_I32, LS_MAX, e));
    int32_t again = any[2] || (any[0] && any[1]);
    LS_TRY(ls_all_reduce(w->group, &again, &again, 1, LS_I32, LS_MAX, e));
    if (again) LS_TRY(give_up_step(x, step, e));
    if (x->has != HAS_NOTHING) return LS_OK;
    ls_store_forget_step(w->store, x->c.worker);
    ls_world_clear(w, x->c.plan);
    return LS_OK;
}

ls_status ls_exec_take_up(ls_exec *x, int64_t step, ls_error *e) {
    x->request = NULL; /* gone with its group */
    x->trace = NULL;
    atomic_store(&x->failed, false);
    LS_TRY(agree_on_kept(x, step, e));
    if (x->has == HAS_PART) return LS_OK;
    x->at_step = -1;
    if (x->next_load == step) return LS_OK;
    x->next_load = step;
    ls_loader_free(x->loader);
    x->loader = NULL;
    return ls_loader_create(&x->c.loader, (uint64_t)step, &x->loader, e);
}

ls_status ls_exec_gradient_next(ls_exec *x, const ls_step_in *in, int *at_p, ls_error *e) {
    int i = *at_p, n = x->lanes.n[LS_LANE_COMPUTE];
    x->in = in;
    if (i < n) {
        int index = x->lanes.steps[LS_LANE_COMPUTE][i].action;
        ls_action_kind kind = x->c.plan->actions[index].kind;
        if (kind == LS_NORM) i = n;
        if (kind != LS_NORM && kind != LS_FREE) LS_TRY(run_action(x, index, e));
    }
    *at_p = i + 1 < n ? i + 1 : -1;
    return LS_OK;
}

ls_status ls_exec_gradient(ls_exec *x, const ls_step_in *in, ls_error *e) {
    for (int at = 0; at >= 0;) LS_TRY(ls_exec_gradient_next(x, in, &at, e));
    return LS_OK;
}

/* A communication of all workers, all of them in this thread: each is moved in turn. */
static ls_status run_comm_all(ls_exec **execs, int n, int index, ls_error *e) {
    const ls_action *a = &execs[0]->c.plan->actions[index];
    for (int w = 0; w < n; w++) {
        int64_t begin = enter(execs[w], index);
        LS_TRY(start_comm(execs[w], a, &execs[w]->request, e));
        leave(execs[w], index, begin, false);
    }
    for (int left = n; left > 0;)
        for (int w = 0; w < n; w++) {
            bool done = false;
            if (!execs[w]->request) continue;
            int64_t begin = enter(execs[w], index);
            LS_TRY(ls_test(&execs[w]->request, &done, e));
            if (done) finish_comm(execs[w], a);
            leave(execs[w], index, begin, done);
            left -= done;
        }
    return LS_OK;
}

ls_status ls_exec_step_all(ls_exec **execs, const ls_step_in *in, ls_step_out *out_p, ls_error *e) {
    const ls_plan *p = execs[0]->c.plan;
    for (int w = 0; w < p->c.nworkers; w++) execs[w]->in = in;
    for (int i = 0; i < p->nactions; i++) {
        const ls_action *a = &p->actions[i];
        if (a->worker == LS_ALL_WORKERS)
            LS_TRY(run_comm_all(execs, p->c.nworkers, i, e));
        else
            LS_TRY(run_action(execs[a->worker], i, e));
    }
    *out_p = execs[0]->out;
    return LS_OK;
}

ls_status ls_exec_step_chaos(ls_exec **execs, uint64_t seed, const ls_step_in *in,
                             ls_step_out *out_p, ls_error *e) {
    int n = execs[0]->c.plan->c.nworkers, left = 0;
    progress *at = LS_NEW_ARRAY(progress, (size_t)n);
    ls_status s = LS_OK;
    for (int w = 0; w < n; w++) {
        execs[w]->in = in;
        left += execs[w]->lanes.n[LS_LANE_COMPUTE] + execs[w]->lanes.n[LS_LANE_COMM];
    }
    for (uint64_t draw = 0; s == LS_OK && left > 0; draw++) {
        uint32_t random[4];
        ls_random_words(seed, LS_STREAM_FAKE, (uint64_t)in->step, draw, random);
        int w = (int)(random[0] % (uint32_t)n);
        progress *p = &at[w];
        int before = p->at[LS_LANE_COMPUTE] + p->at[LS_LANE_COMM];
        if (random[1] % 2) {
            s = move_comm(execs[w], p, false, e);
        } else if (is_ready(execs[w], p, LS_LANE_COMPUTE)) {
            const ls_lane_step *next =
                &execs[w]->lanes.steps[LS_LANE_COMPUTE][p->at[LS_LANE_COMPUTE]++];
            s = run_action(execs[w], next->action, e);
        }
        left -= p->at[LS_LANE_COMPUTE] + p->at[LS_LANE_COMM] - before;
    }
    free(at);
    *out_p = execs[0]->out;
    return s;
}

/* ---- set-up ---- */

static void count_shards(ls_exec *x) {
    const ls_plan *p = x->c.plan;
    size_t n = (size_t)ls_plan_shards(p);
    x->counts = LS_NEW_ARRAY(size_t, (size_t)p->nbuckets * n);
    for (int k = 0; k < p->nbuckets; k++) ls_plan_shard_counts(p, k, x->counts + (size_t)k * n);
}

static ls_status start_comm_thread(ls_exec *x, ls_error *e) {
    int failed = pthread_create(&x->comm_thread, NULL, comm_main, x);
    if (failed)
        return ls_fail(e, LS_ENOMEM, "the communication thread can't be started: %s",
                       strerror(failed));
    x->has_thread = true;
    return LS_OK;
}

static bool is_shared(ls_group *g) { return !g || ls_group_size(g) == 1 || ls_group_is_one(g); }

/* What is known of a step that is broken off: parts of buckets' sums, where these are made in
 * memory that all share, in one order. Where gradients need not go soon, none is summed before all
 * are there: then nothing of them is lost with another worker. */
static void look_at_restart(ls_exec *x) {
    const ls_plan_config *c = &x->c.plan->c;
    const ls_world *w = x->c.world;
    x->at_step = -1;
    x->next_load = x->c.first_step;
    x->norm_at = 0;
    while (x->norm_at < x->lanes.n[LS_LANE_COMPUTE] &&
           compute_action(x, x->norm_at)->kind != LS_NORM)
        x->norm_at++;
    x->restarts = w->store && c->tree && !c->early && !x->c.overlap && is_shared(w->group) &&
                  is_shared(w->shards) && is_shared(w->replicas);
    x->sums_last = x->restarts && c->zero <= 1;
    for (int i = 0; i < x->norm_at; i++)
        x->sums_last = x->sums_last && x->lanes.steps[LS_LANE_COMPUTE][i].wait == 0;
}

static ls_status set_up(ls_exec *x, ls_error *e) {
    const ls_plan *p = x->c.plan;
    ls_plan_project(p, x->c.worker, &x->lanes);
    ls_plan_arena(p, x->c.worker, &x->places);
    count_shards(x);
    look_at_restart(x);
    x->patience = ls_patience_for(x->c.busy, ls_cores());
    x->arena_nbytes = x->places.nbytes;
    x->work_nbytes = ls_plan_work_nbytes(p);
    LS_TRY(ls_map(x->arena_nbytes, "activations", &x->arena, e));
    LS_TRY(ls_map(x->work_nbytes, "a layer's work", &x->work, e));
    LS_TRY(ls_compute_init(&x->compute, x->c.threads, ls_model_scratch_floats(p->c.model), e));
    LS_TRY(ls_loader_create(&x->c.loader, (uint64_t)x->c.first_step, &x->loader, e));
    return x->c.overlap ? start_comm_thread(x, e) : LS_OK;
}

ls_status ls_exec_create(const ls_exec_config *c, ls_exec **x_p, ls_error *e) {
    ls_exec *x = aligned_alloc(_Alignof(ls_exec), sizeof *x);
    if (!x) return ls_fail(e, LS_ENOMEM, "no memory for an executor");
    memset(x, 0, sizeof *x);
    x->c = *c;
    ls_status s = set_up(x, e);
    if (s == LS_OK)
        *x_p = x;
    else
        ls_exec_free(x);
    return s;
}

void ls_exec_free(ls_exec *x) {
    if (!x) return;
    if (x->has_thread) {
        atomic_store(&x->given, -1);
        ls_bell_ring(&x->lanes_state[LS_LANE_COMM].bell);
        pthread_join(x->comm_thread, NULL);
    }
    ls_loader_free(x->loader);
    ls_compute_close(&x->compute);
    ls_unmap(x->arena, x->arena_nbytes);
    ls_unmap(x->work, x->work_nbytes);
    ls_arena_plan_free(&x->places);
    ls_lanes_free(&x->lanes);
    free(x->counts);
    free(x);
}

/* Backward comes to the last layer first. A block that a layer shares with the one below tells only
 * where no other does. */
const char *ls_exec_overflow(const ls_exec *x) {
    const ls_model *m = x->c.plan->c.model;
    const double *sums = x->c.world->sums;
    if (!isfinite(x->out.loss)) return "the loss";
    for (int shared = 0; shared < 2; shared++)
        for (int i = m->nlayers - 1; i >= 0; i--) {
            const ls_layer *l = &m->layers[i];
            for (int k = 0; k < l->nparams; k++) {
                size_t first = l->offsets[k] / LS_BLOCK + (shared ? 0 : 1);
                for (size_t b = first; b * LS_BLOCK < l->offsets[k] + l->counts[k]; b++)
                    if (!isfinite(sums[b])) return l->name;
            }
        }
    return "a gradient";
}

int64_t ls_exec_time(const ls_exec *x, ls_action_kind kind) {
    return x->times[LS_LANE_COMPUTE][kind] + x->times[LS_LANE_COMM][kind];
}
void ls_exec_trace(ls_exec *x, ls_trace *t) { x->trace = t; }
void ls_exec_reset_times(ls_exec *x) { memset(x->times, 0, sizeof x->times); }
const ls_compute *ls_exec_compute(const ls_exec *x) { return &x->compute; }

float *ls_exec_arena(const ls_exec *x, size_t *nbytes_p) {
    *nbytes_p = x->arena_nbytes;
    return x->arena;
}
