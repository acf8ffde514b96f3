/* exec.c - see exec.h. */
#include "plan/exec.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "optim/norm.h"

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
    uint64_t first, end; /* the worker's samples of the batch */
    const uint32_t *tokens;
    float loss_scale;
    ls_adamw_step update;
    ls_step_out out;
    ls_node nodes[LS_LOCAL_MAX]; /* the leaves of every reduction: all workers' covers */
    int leaf_worker[LS_LOCAL_MAX], leaf_slot[LS_LOCAL_MAX], nleaves;

    /* lanes */
    ls_signal done[LS_NLANES]; /* steps complete since the executor began, of each lane */
    unsigned begun[LS_NLANES]; /* of them before the step in flight */
    ls_waiter waiter;
    pthread_t comm_thread;
    bool has_thread, quit;
    ls_signal steps_given, steps_done; /* to and from the communication thread */
    unsigned given;
    ls_status comm_status;
    ls_error comm_error;

    int64_t times[LS_NACTION_KINDS];
};

/* ---- actions ---- */

static float *buffer(const ls_exec *x, ls_buffer_kind kind, int layer) {
    size_t at = x->places.offsets[ls_plan_buffer(x->c.plan, kind, layer, 0)];
    return at == SIZE_MAX ? NULL : (float *)(void *)((char *)x->arena + at);
}

static ls_status run_load(ls_exec *x) {
    ls_loader_next(x->loader, &x->batch, &x->first, &x->end, &x->tokens);
    double tokens = (double)x->batch.count * (double)x->c.loader.T;
    x->loss_scale = (float)(1.0 / tokens);
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

static ls_layer_call call_of(const ls_exec *x, const ls_action *a) {
    const ls_plan *p = x->c.plan;
    uint64_t first = 0, end = 0;
    samples_of(x, a, &first, &end);
    int64_t T = x->c.loader.T;
    return (ls_layer_call){
        .compute = &x->compute,
        .n = (int64_t)(end - first),
        .T = T,
        .tokens = x->tokens + (first - x->first) * (uint64_t)(T + 1),
        .params = x->c.world->params,
        .grads = x->c.world->grads[x->c.worker] + (size_t)a->slot * p->c.model->nfloats,
        .grads_start = a->start,
        .x = a->layer ? buffer(x, LS_BUF_ACT, a->layer - 1) : NULL,
        .y = buffer(x, LS_BUF_ACT, a->layer),
        .saved = buffer(x, LS_BUF_SAVED, a->layer),
        .work = x->work,
        .loss_scale = x->loss_scale,
        .losses = x->c.world->losses + first,
    };
}

static ls_status run_forward(ls_exec *x, const ls_action *a) {
    const ls_layer *l = &x->c.plan->c.model->layers[a->layer];
    ls_layer_call call = call_of(x, a);
    l->ops->forward(l, &call);
    return LS_OK;
}

/* Where a layer below takes all micro-batches at once, its gradient is gathered part by part. */
static ls_status run_backward(ls_exec *x, const ls_action *a) {
    const ls_model *m = x->c.plan->c.model;
    const ls_layer *l = &m->layers[a->layer];
    ls_layer_call call = call_of(x, a);
    call.dy = buffer(x, LS_BUF_DACT, a->layer);
    if (a->layer > 0) {
        call.dx = buffer(x, LS_BUF_DACT, a->layer - 1);
        if (m->layers[a->layer - 1].backward_whole)
            call.dx +=
                (size_t)(a->micro * x->c.plan->c.micro_batch) * m->layers[a->layer - 1].y_floats;
    }
    l->ops->backward(l, &call);
    return LS_OK;
}

typedef struct add_job {
    const ls_exec *x;
    float *to;
    const float *from;
    size_t n;
} add_job;

static void add_run(void *arg, int thread, int nthreads) {
    const add_job *j = arg;
    int64_t a = 0, b = 0;
    ls_pool_share((int64_t)j->n, 16, thread, nthreads, &a, &b);
    j->x->compute.k->add(b - a, j->to + a, j->from + a, j->to + a);
}

static ls_status run_add(ls_exec *x, const ls_action *a) {
    const ls_plan *p = x->c.plan;
    const ls_bucket *b = &p->buckets[a->bucket];
    float *to = x->c.world->grads[x->c.worker] + (size_t)a->slot * p->c.model->nfloats + b->first;
    add_job j = {x, to, to + p->c.model->nfloats, b->end - b->first};
    ls_pool_run(x->compute.pool, add_run, &j);
    return LS_OK;
}

/* The owner's sum replaces its own lowest sum, which nobody else reads there. */
static ls_status run_reduce_scatter(ls_exec *x, const ls_action *a, ls_error *e) {
    const ls_plan *p = x->c.plan;
    const void *data[LS_LOCAL_MAX];
    for (int i = 0; i < x->nleaves; i++)
        data[i] =
            x->c.world->grads[x->leaf_worker[i]] + (size_t)x->leaf_slot[i] * p->c.model->nfloats;
    ls_local_reduce r = {
        .tree = p->c.tree,
        .sum = {
            .dtype = LS_F32, .V = p->c.V, .nleaves = x->nleaves, .nodes = x->nodes, .data = data}};
    ls_bucket s = ls_plan_shard(p, a->bucket, x->c.worker);
    return ls_local_reduce_scatter(x->c.local, &r, s.first, s.end - s.first,
                                   x->c.world->grads[x->c.worker] + s.first, e);
}

static ls_status run_norm(ls_exec *x) {
    for (int k = 0; k < x->c.plan->nbuckets; k++) {
        ls_bucket s = ls_plan_shard(x->c.plan, k, x->c.worker);
        ls_norm_blocks(&x->compute, x->c.world->grads[x->c.worker], s.first, s.end,
                       x->c.world->norms);
    }
    return LS_OK;
}

/* Block sums and losses lie in shared memory; once all are there, each worker adds them up itself.
 */
static ls_status run_all_reduce(ls_exec *x, ls_error *e) {
    LS_TRY(ls_local_barrier(x->c.local, e));
    x->out.batch = x->batch;
    x->out.grad_norm = ls_norm_total(x->c.world->norms, x->c.plan->c.model->nfloats / LS_BLOCK);
    double loss = 0.0;
    for (uint64_t i = 0; i < x->batch.count; i++) loss += x->c.world->losses[i];
    x->out.loss = loss / ((double)x->batch.count * (double)x->c.loader.T);
    x->update = ls_adamw_at(&x->in->adamw, x->in->step, x->in->lr,
                            ls_clip_factor(x->out.grad_norm, x->in->clip));
    return LS_OK;
}

static ls_status run_update(ls_exec *x, const ls_action *a) {
    const ls_world *w = x->c.world;
    ls_bucket s = ls_plan_shard(x->c.plan, a->bucket, x->c.worker);
    ls_adamw_run(&x->compute, x->c.plan->c.model, &x->update, s.first, s.end, w->grads[x->c.worker],
                 w->params, w->m, w->v);
    return LS_OK;
}

static ls_status run_action(ls_exec *x, int index, ls_error *e) {
    const ls_action *a = &x->c.plan->actions[index];
    switch (a->kind) {
    case LS_LOAD: return run_load(x);
    case LS_FORWARD: return run_forward(x, a);
    case LS_BACKWARD: return run_backward(x, a);
    case LS_ADD: return run_add(x, a);
    case LS_REDUCE_SCATTER: return run_reduce_scatter(x, a, e);
    case LS_NORM: return run_norm(x);
    case LS_ALL_REDUCE: return run_all_reduce(x, e);
    case LS_UPDATE: return run_update(x, a);
    case LS_ALL_GATHER: return ls_local_barrier(x->c.local, e); /* the parameters are shared */
    case LS_FREE: return LS_OK;                                 /* the arena's places are fixed */
    case LS_NACTION_KINDS: break;
    }
    return ls_fail(e, LS_EINVAL, "action %d has no kind", index);
}

static ls_status run_timed(ls_exec *x, int index, ls_error *e) {
    atomic_store_explicit(&x->c.region->header->workers[x->c.worker].action, index,
                          memory_order_relaxed);
    int64_t begin = ls_clock_ns();
    ls_status s = run_action(x, index, e);
    x->times[x->c.plan->actions[index].kind] += ls_clock_ns() - begin;
    return s;
}

/* ---- one worker's step ---- */

/* Runs a lane to its end in the calling thread, waiting for the other lane where a step must. */
static ls_status run_lane(ls_exec *x, ls_lane lane, ls_error *e) {
    ls_lane other = lane == LS_LANE_COMPUTE ? LS_LANE_COMM : LS_LANE_COMPUTE;
    for (int i = 0; i < x->lanes.n[lane]; i++) {
        const ls_lane_step *s = &x->lanes.steps[lane][i];
        unsigned want = x->begun[other] + (unsigned)s->wait;
        if (s->wait && ls_signal_wait(&x->done[other], want, &x->waiter) != LS_OK)
            return ls_fail(e, LS_EABORT, "worker %d: another worker failed", x->c.worker);
        ls_status status = run_timed(x, s->action, e);
        if (status != LS_OK) {
            ls_region_fail(x->c.region, x->c.worker, e);
            return status;
        }
        ls_signal_post(&x->done[lane], x->begun[lane] + (unsigned)i + 1);
    }
    return LS_OK;
}

/* Both lanes in one thread: communication only when computing must wait for it. */
static ls_status run_both(ls_exec *x, ls_error *e) {
    int at[LS_NLANES] = {0, 0};
    const int *n = x->lanes.n;
    while (at[LS_LANE_COMPUTE] < n[LS_LANE_COMPUTE] || at[LS_LANE_COMM] < n[LS_LANE_COMM]) {
        int i = at[LS_LANE_COMPUTE];
        bool ready =
            i < n[LS_LANE_COMPUTE] && x->lanes.steps[LS_LANE_COMPUTE][i].wait <= at[LS_LANE_COMM];
        ls_lane lane = ready ? LS_LANE_COMPUTE : LS_LANE_COMM;
        ls_status s = run_timed(x, x->lanes.steps[lane][at[lane]++].action, e);
        if (s != LS_OK) {
            ls_region_fail(x->c.region, x->c.worker, e);
            return s;
        }
    }
    return LS_OK;
}

static const atomic_int never_aborted;

static void *comm_main(void *arg) {
    ls_exec *x = arg;
    const ls_waiter patient = {&never_aborted, x->waiter.spins, -1};
    for (unsigned step = 1;; step++) {
        ls_signal_wait(&x->steps_given, step, &patient);
        if (x->quit) return NULL;
        x->comm_status = run_lane(x, LS_LANE_COMM, &x->comm_error);
        ls_signal_post(&x->steps_done, step);
    }
}

static ls_status run_lanes(ls_exec *x, ls_error *e) {
    ls_signal_post(&x->steps_given, ++x->given);
    ls_status s = run_lane(x, LS_LANE_COMPUTE, e);
    const ls_waiter patient = {&never_aborted, x->waiter.spins, -1};
    ls_signal_wait(&x->steps_done, x->given, &patient); /* comes soon after an abort, too */
    for (int lane = 0; lane < LS_NLANES; lane++) x->begun[lane] += (unsigned)x->lanes.n[lane];
    if (s == LS_OK && x->comm_status != LS_OK) {
        *e = x->comm_error;
        s = x->comm_status;
    }
    return s;
}

ls_status ls_exec_step(ls_exec *x, const ls_step_in *in, ls_step_out *out_p, ls_error *e) {
    ls_worker_slot *slot = &x->c.region->header->workers[x->c.worker];
    atomic_store(&slot->step, in->step);
    x->in = in;
    LS_TRY(x->has_thread ? run_lanes(x, e) : run_both(x, e));
    atomic_store(&slot->action, -1);
    *out_p = x->out;
    return LS_OK;
}

ls_status ls_exec_step_all(ls_exec **execs, const ls_step_in *in, ls_step_out *out_p, ls_error *e) {
    const ls_plan *p = execs[0]->c.plan;
    for (int w = 0; w < p->c.nworkers; w++) execs[w]->in = in;
    for (int i = 0; i < p->nactions; i++)
        for (int w = 0; w < p->c.nworkers; w++)
            if (ls_action_concerns(&p->actions[i], w)) LS_TRY(run_timed(execs[w], i, e));
    *out_p = execs[0]->out;
    return LS_OK;
}

/* ---- set-up ---- */

static void list_leaves(ls_exec *x) {
    const ls_plan *p = x->c.plan;
    for (int w = 0; w < p->c.nworkers; w++) {
        int a = 0, b = 0;
        ls_plan_range(p, w, &a, &b);
        ls_node own[LS_TREE_MAX_COVER] = {{a, b}};
        int n = p->c.tree ? ls_tree_cover(p->c.V, a, b, own) : 1;
        for (int slot = 0; slot < n; slot++) {
            x->nodes[x->nleaves] = own[slot];
            x->leaf_worker[x->nleaves] = w;
            x->leaf_slot[x->nleaves++] = slot;
        }
    }
}

static ls_status start_comm_thread(ls_exec *x, ls_error *e) {
    int failed = pthread_create(&x->comm_thread, NULL, comm_main, x);
    if (failed)
        return ls_fail(e, LS_ENOMEM, "the communication thread can't be started: %s",
                       strerror(failed));
    x->has_thread = true;
    return LS_OK;
}

static ls_status set_up(ls_exec *x, ls_error *e) {
    const ls_plan *p = x->c.plan;
    ls_plan_project(p, x->c.worker, &x->lanes);
    ls_plan_arena(p, x->c.worker, &x->places);
    list_leaves(x);
    x->waiter = x->c.local->waiter;
    x->arena_nbytes = x->places.nbytes;
    x->work_nbytes = ls_model_work_floats(p->c.model) * (size_t)p->c.micro_batch * sizeof(float);
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
        x->quit = true;
        ls_signal_post(&x->steps_given, x->given + 1);
        pthread_join(x->comm_thread, NULL);
    }
    ls_loader_free(x->loader);
    ls_compute_close(&x->compute);
    ls_unmap(x->arena, x->arena_nbytes);
    ls_unmap(x->work, x->work_nbytes);
    ls_arena_plan_free(&x->places);
    ls_lanes_free(&x->lanes);
    free(x);
}

const int64_t *ls_exec_times(const ls_exec *x) { return x->times; }
void ls_exec_reset_times(ls_exec *x) { memset(x->times, 0, sizeof x->times); }
const ls_compute *ls_exec_compute(const ls_exec *x) { return &x->compute; }

float *ls_exec_arena(const ls_exec *x, size_t *nbytes_p) {
    *nbytes_p = x->arena_nbytes;
    return x->arena;
}
