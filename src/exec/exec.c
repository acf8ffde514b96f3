/* exec.c - see exec.h. */
#include "exec/exec.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/cores.h"
#include "base/thread.h"
#include "coll/request.h"
#include "coll/virtual.h"
#include "exec/exec_state.h"
#include "state/store_step.h"

static const char RECALLED[] = "this worker was recalled";

/* ---- one worker's step ---- */

static const ls_action *action_at(const ls_exec *x, ls_lane lane, int step) {
    return &x->c.plan->actions[x->lanes.steps[lane][step].action];
}

static int comm_index(const ls_exec *x, int step) {
    return x->lanes.steps[LS_LANE_COMM][step].action;
}

static ls_exec_call *call_at(ls_exec *x, int step) { return &x->calls[step % LS_PROGRESS_WINDOW]; }

/* The others are complete at once. */
static bool is_call(const ls_exec *x, const ls_action *a) {
    return a->kind != LS_FREE && ls_exec_runs(x, a);
}

static ls_status begin_comm(ls_exec *x, int step, ls_error *e) {
    int index = comm_index(x, step);
    const ls_action *a = &x->c.plan->actions[index];
    ls_exec_call *c = call_at(x, step);
    if (!is_call(x, a)) {
        LS_TRY(ls_exec_run_action(x, index, e));
        ls_progress_complete(&x->at, step);
        return LS_OK;
    }
    c->begin_ns = ls_exec_enter(x, index);
    LS_TRY(ls_exec_start_comm(x, a, &c->request, e));
    x->ncalls++;
    ls_progress_begun(&x->at, step);
    ls_exec_spend(x, index, c->begin_ns);
    return LS_OK;
}

/* Calls leave in the order of the lane. */
static void end_call(ls_exec *x, int step) {
    int from = atomic_load(&x->at.at[LS_LANE_COMM]);
    call_at(x, step)->end_ns = ls_clock_ns();
    x->ncalls--;
    ls_progress_complete(&x->at, step);
    for (int end = atomic_load(&x->at.at[LS_LANE_COMM]); from < end; from++)
        ls_exec_leave_comm(x, comm_index(x, from), call_at(x, from)->begin_ns,
                           call_at(x, from)->end_ns);
}

/* The calls in flight: the first from `step` on; -1: there is none. */
static int find_call(const ls_exec *x, int step) {
    for (int end = ls_progress_end(&x->at); step < end; step++)
        if (ls_progress_is_begun(&x->at, step)) return step;
    return -1;
}
static int first_call(const ls_exec *x) {
    return find_call(x, atomic_load(&x->at.at[LS_LANE_COMM]));
}

/* A test of one call makes progress for all. */
static ls_status test_calls(ls_exec *x, ls_error *e) {
    bool tested = false;
    for (int step = first_call(x); step >= 0; step = find_call(x, step + 1)) {
        ls_exec_call *c = call_at(x, step);
        if (tested && !c->request->done) continue;
        int index = comm_index(x, step);
        int64_t begin = ls_exec_enter(x, index);
        bool done = false;
        LS_TRY(ls_test(&c->request, &done, e));
        tested = true;
        if (done) LS_TRY(ls_exec_finish_comm(x, &x->c.plan->actions[index], e));
        ls_exec_spend(x, index, begin);
        if (done) end_call(x, step);
    }
    return LS_OK;
}

static ls_status wait_for_call(ls_exec *x, ls_error *e) {
    int step = first_call(x), index = comm_index(x, step);
    int64_t begin = ls_exec_enter(x, index);
    LS_TRY(ls_request_wait_any(call_at(x, step)->request, e));
    ls_exec_spend(x, index, begin);
    return test_calls(x, e);
}

ls_status ls_exec_move_comm(ls_exec *x, bool wait, ls_error *e) {
    int before = x->ncalls;
    if (x->sums_last && atomic_load(&x->at.at[LS_LANE_COMPUTE]) < x->norm_at) return LS_OK;
    for (int step; (step = ls_progress_next(&x->at)) >= 0; before = x->ncalls)
        LS_TRY(begin_comm(x, step, e));
    if (x->ncalls > 0) LS_TRY(test_calls(x, e));
    return wait && x->ncalls > 0 && x->ncalls == before ? wait_for_call(x, e) : LS_OK;
}

ls_status ls_exec_compute_next(ls_exec *x, ls_error *e) {
    int at = atomic_load(&x->at.at[LS_LANE_COMPUTE]);
    LS_TRY(ls_exec_run_action(x, x->lanes.steps[LS_LANE_COMPUTE][at].action, e));
    ls_progress_computed(&x->at);
    return LS_OK;
}

static bool help(const ls_exec *x) {
    const ls_exec_helpers *h = x->c.helpers;
    return h && h->idle(h->arg, x->in);
}

/* The store has all gradients: only the samples have to be loaded. */
static ls_status skip_gradients(ls_exec *x, ls_error *e) {
    for (int i = 0; i < x->norm_at; i++) {
        if (action_at(x, LS_LANE_COMPUTE, i)->kind == LS_LOAD) LS_TRY(ls_exec_load(x, e));
        ls_progress_computed(&x->at);
    }
    return LS_OK;
}

static ls_status begin_both(ls_exec *x, ls_error *e) {
    int compute = x->has == LS_HAS_PART ? atomic_load(&x->at.at[LS_LANE_COMPUTE]) : 0;
    ls_progress_begin(&x->at, &x->lanes, compute);
    x->ncalls = 0;
    if (x->has == LS_HAS_ALL) LS_TRY(skip_gradients(x, e));
    x->at_step = x->in->step;
    return LS_OK;
}

/* Both lanes in one thread. */
static ls_status run_both(ls_exec *x, ls_error *e) {
    LS_TRY(begin_both(x, e));
    while (!ls_progress_is_over(&x->at)) {
        if (ls_board_recalled(x->c.slot)) return ls_fail(e, LS_EABORT, RECALLED);
        bool ready = ls_progress_may_compute(&x->at);
        bool helps = !ready && !x->knows_norm && help(x);
        LS_TRY(ls_exec_move_comm(x, !ready && !helps, e));
        if (!ready) continue;
        LS_TRY(ls_exec_compute_next(x, e));
        bool all = x->at.at[LS_LANE_COMPUTE] == x->norm_at && !atomic_load(&x->gives_up);
        if (!all || !x->restarts) continue;
        LS_TRY(ls_on_device_await(&x->on, e));
        ls_store_set_computed(x->c.world->store, x->c.worker, x->in->step);
    }
    x->at_step = -1;
    return LS_OK;
}

/* ---- a thread for each lane ---- */

static bool may_compute_or_failed(void *arg) {
    const ls_exec *x = arg;
    return ls_progress_may_compute(&x->at) || atomic_load(&x->failed);
}

/* The other lane may have computed something to send, or a message has come. A lane that ends with
 * actions that don't run is complete without either. */
static bool may_move_or_failed(void *arg) {
    ls_exec *x = arg;
    if (atomic_load(&x->at.changed) || atomic_load(&x->failed)) return true;
    if (x->ncalls == 0) return atomic_load(&x->at.at[LS_LANE_COMM]) == x->lanes.n[LS_LANE_COMM];
    ls_request_progress(call_at(x, first_call(x))->request->g);
    for (int step = first_call(x); step >= 0; step = find_call(x, step + 1))
        if (call_at(x, step)->request->done) return true;
    return false;
}

/* Where the lane has one call that is no message, nothing else may begin. */
static bool is_alone(const ls_exec *x) {
    return x->ncalls == 1 && action_at(x, LS_LANE_COMM, first_call(x))->kind != LS_SEND;
}

static ls_status run_comm(ls_exec *x, ls_error *e) {
    enum { SLICE_NS = 100 * 1000 }; /* no bell rings when a message comes */
    ls_exec_lane *own = &x->lanes_state[LS_LANE_COMM];
    while (atomic_load(&x->at.at[LS_LANE_COMM]) < x->lanes.n[LS_LANE_COMM]) {
        if (ls_board_recalled(x->c.slot)) return ls_fail(e, LS_EABORT, RECALLED);
        if (atomic_load(&x->failed)) return LS_EABORT;
        LS_TRY(ls_exec_move_comm(x, is_alone(x), e));
        ls_bell_ring(&x->lanes_state[LS_LANE_COMPUTE].bell);
        if (!is_alone(x))
            ls_bell_wait(&own->bell, may_move_or_failed, x, &x->patience,
                         x->ncalls > 0 ? SLICE_NS : -1);
    }
    return LS_OK;
}

static ls_status run_compute(ls_exec *x, ls_error *e) {
    ls_exec_lane *own = &x->lanes_state[LS_LANE_COMPUTE];
    while (atomic_load(&x->at.at[LS_LANE_COMPUTE]) < x->lanes.n[LS_LANE_COMPUTE]) {
        if (!may_compute_or_failed(x))
            ls_bell_wait(&own->bell, may_compute_or_failed, x, &x->patience, -1);
        if (ls_board_recalled(x->c.slot)) return ls_fail(e, LS_EABORT, RECALLED);
        if (atomic_load(&x->failed)) return LS_EABORT;
        LS_TRY(ls_exec_compute_next(x, e));
        ls_bell_ring(&x->lanes_state[LS_LANE_COMM].bell);
    }
    return LS_OK;
}

/* Runs a lane to its end in the calling thread. */
static ls_status run_lane(ls_exec *x, ls_lane lane, ls_error *e) {
    ls_status s = lane == LS_LANE_COMM ? run_comm(x, e) : run_compute(x, e);
    if (s != LS_OK) atomic_store(&x->failed, true);
    ls_bell_ring(&x->lanes_state[!lane].bell);
    return s;
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

/* A lane that fails also ends the other, whose LS_EABORT is not the reason. */
static ls_status run_lanes(ls_exec *x, ls_error *e) {
    ls_error own = {0};
    ls_progress_begin(&x->at, &x->lanes, 0);
    x->ncalls = 0;
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
    ls_exec_begin(x, in);
    LS_TRY(x->has_thread ? run_lanes(x, e) : run_both(x, e));
    x->has = LS_HAS_NOTHING;
    atomic_store(&x->c.slot->action, -1);
    *out_p = x->out;
    return LS_OK;
}

/* ---- a step that was interrupted ---- */

static ls_exec_has what_is_left(const ls_exec *x, int64_t step) {
    if (!x->restarts) return LS_HAS_NOTHING;
    if (ls_store_has_computed(x->c.world->store, x->c.worker, step)) return LS_HAS_ALL;
    return x->at_step == step ? LS_HAS_PART : LS_HAS_NOTHING;
}

/* All workers call this. If it is interrupted, too, the mark makes all call it in the next view. */
static ls_status give_up_step(ls_exec *x, int64_t step, ls_error *e) {
    x->has = LS_HAS_NOTHING;
    ls_store_give_up_step(x->c.world->store, x->c.worker, step);
    return ls_barrier(x->c.world->group, e);
}

/* Nothing is retained if a sum is half made, or if part of a sum has overwritten gradients that
 * must be computed again. */
static ls_status agree_on_rest(ls_exec *x, int64_t step, ls_error *e) {
    const ls_world *w = x->c.world;
    bool some = false, half = false;
    x->has = what_is_left(x, step);
    ls_store_check_sums(w->store, x->c.worker, step, &some, &half);
    int32_t any[] = {x->has == LS_HAS_NOTHING, some, half}; /* of the workers it sums with first */
    LS_TRY(ls_all_reduce(w->shards, any, any, 3, LS_I32, LS_MAX, e));
    int32_t again = any[2] || (any[0] && any[1]);
    LS_TRY(ls_all_reduce(w->group, &again, &again, 1, LS_I32, LS_MAX, e));
    if (again) LS_TRY(give_up_step(x, step, e));
    if (x->has != LS_HAS_NOTHING) return LS_OK;
    ls_store_forget_step(w->store, x->c.worker);
    ls_world_clear(w, &x->c.plan->share);
    return LS_OK;
}

ls_status ls_exec_take_up(ls_exec *x, int64_t step, ls_error *e) {
    x->ncalls = 0; /* they ended with their group */
    x->trace = NULL;
    atomic_store(&x->failed, false);
    LS_TRY(agree_on_rest(x, step, e));
    if (x->has == LS_HAS_PART) return LS_OK;
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
        bool runs = kind != LS_NORM && kind != LS_FREE && kind != LS_ENCODE && kind != LS_SQUARES;
        if (runs) LS_TRY(ls_exec_run_action(x, index, e));
    }
    *at_p = i + 1 < n ? i + 1 : -1;
    return LS_OK;
}

/* The lanes of all workers of such a plan are the same but for the virtual worker. */
void ls_exec_aim(ls_exec *x, int vw, int64_t steps) {
    x->aim = vw;
    x->c.loader.a = vw;
    x->c.loader.b = vw + 1;
    ls_loader_seek(x->loader, vw, vw + 1, (uint64_t)steps);
}

void ls_exec_seek(ls_exec *x, int64_t steps) {
    ls_loader_seek(x->loader, x->c.loader.a, x->c.loader.b, (uint64_t)steps);
}

ls_status ls_exec_gradient(ls_exec *x, const ls_step_in *in, ls_error *e) {
    for (int at = 0; at >= 0;) LS_TRY(ls_exec_gradient_next(x, in, &at, e));
    return LS_OK;
}

/* ---- set-up ---- */

static void count_shards(ls_exec *x) {
    const ls_share *sh = &x->c.plan->share;
    size_t n = (size_t)sh->nshards;
    x->counts = LS_NEW_ARRAY(size_t, (size_t)sh->nbuckets * n);
    for (int k = 0; k < sh->nbuckets; k++) ls_share_shard_counts(sh, k, x->counts + (size_t)k * n);
}

static ls_status start_comm_thread(ls_exec *x, ls_error *e) {
    int failed = pthread_create(&x->comm_thread, NULL, comm_main, x);
    if (failed)
        return ls_fail(e, LS_ENOMEM, "the communication thread can't be started: %s",
                       ls_thread_why(failed));
    x->has_thread = true;
    return LS_OK;
}

static bool is_shared(ls_group *g) { return !g || ls_group_size(g) == 1 || ls_group_is_one(g); }

/* Parts of buckets' sums survive an interruption if all workers share the memory in which they are
 * made, in one order. If gradients need not be freed soon, no sum begins before all gradients are
 * complete: then the loss of another worker costs none of them. */
static void plan_restart(ls_exec *x) {
    const ls_share *sh = &x->c.plan->share;
    const ls_world *w = x->c.world;
    x->at_step = -1;
    x->next_load = x->c.first_step;
    x->norm_at = 0;
    while (x->norm_at < x->lanes.n[LS_LANE_COMPUTE] &&
           action_at(x, LS_LANE_COMPUTE, x->norm_at)->kind != LS_NORM)
        x->norm_at++;
    x->restarts = w->store && sh->restarts && !x->c.overlap && is_shared(w->group) &&
                  is_shared(w->shards) && is_shared(w->replicas);
    x->sums_last = x->restarts && !sh->shards_grads;
    for (int i = 0; i < x->norm_at; i++)
        x->sums_last = x->sums_last && x->lanes.steps[LS_LANE_COMPUTE][i].wait == 0;
}

static size_t encodes_nbytes(const ls_exec *x) {
    return (size_t)x->c.threads * x->encodes.each_nbytes;
}

static ls_status open_codes(ls_exec *x, ls_error *e) {
    const ls_share *sh = &x->c.plan->share;
    x->encodes = ls_encode_room_of(sh);
    LS_TRY(ls_map(encodes_nbytes(x), "codes of gradients", &x->encodes.memory, e));
    return sh->sends_codes ? ls_codes_open(&x->codes, sh, x->c.worker, e) : LS_OK;
}

static ls_status set_up(ls_exec *x, ls_error *e) {
    const ls_plan *p = x->c.plan;
    const ls_share *sh = &p->share;
    ls_plan_project(p, x->c.worker, &x->lanes);
    ls_plan_arena(p, x->c.worker, false, &x->places);
    if (sh->on_device) ls_plan_arena(p, x->c.worker, true, &x->there);
    count_shards(x);
    ls_exec_open_messages(x);
    plan_restart(x);
    x->runs_all = !sh->compress.on && !sh->islands;
    x->patience = ls_patience_for(x->c.busy, x->c.cores);
    x->arena_nbytes = /* beside a device, for evaluations */
        x->there.nbytes > x->places.nbytes ? x->there.nbytes : x->places.nbytes;
    x->work_nbytes = ls_plan_work_nbytes(p, false);
    if (sh->task != LS_TASK_TRAIN) {
        x->compute = *x->c.compute;
        x->work_nbytes = sh->task == LS_TASK_MIX ? ls_share_received(sh) * sizeof(float) : 0;
        if (x->work_nbytes) return ls_map(x->work_nbytes, "replicas that arrive", &x->work, e);
        return sh->compress.on ? open_codes(x, e) : LS_OK;
    }
    LS_TRY(ls_map(x->arena_nbytes, "activations", &x->arena, e));
    LS_TRY(ls_map(x->work_nbytes, "a layer's work", &x->work, e));
    if (sh->has_factors) {
        LS_TRY(ls_factors_open(&x->factors, sh, x->c.worker, e));
    } else if (sh->compress.on) {
        LS_TRY(open_codes(x, e));
    }
    LS_TRY(ls_compute_init(&x->compute, x->c.threads, ls_model_scratch_floats(sh->model), e));
    if (x->c.busy > x->c.cores) ls_pool_share_cores(x->compute.pool);
    LS_TRY(ls_loader_create(&x->c.loader, (uint64_t)x->c.first_step, &x->loader, e));
    assert(!sh->on_device || x->c.loader.sample_nbytes == sh->model->sample_nbytes);
    const ls_device_memory there = ls_plan_device_memory(p, x->c.worker);
    if (sh->on_device) {
        LS_TRY(ls_on_device_open(&x->on, x->c.device, &x->compute, &there, e));
        ls_exec_open_copies(x);
    }
    return x->c.overlap ? start_comm_thread(x, e) : LS_OK;
}

ls_status ls_exec_create(const ls_exec_config *c, ls_exec **x_p, ls_error *e) {
    ls_exec *x = aligned_alloc(_Alignof(ls_exec), sizeof *x);
    if (!x) return ls_fail(e, LS_ENOMEM, "no memory for an executor");
    memset(x, 0, sizeof *x);
    x->c = *c;
    x->aim = -1;
    ls_squares_open(&x->squares, &c->plan->share);
    ls_status s = set_up(x, e);
    if (s == LS_OK)
        *x_p = x;
    else
        ls_exec_free(x);
    return s;
}

void ls_exec_fail(ls_exec *x) {
    if (x && x->on.compute.device) x->on.compute.device->patience_ns = 0;
}

void ls_exec_free(ls_exec *x) {
    if (!x) return;
    if (x->has_thread) {
        atomic_store(&x->given, -1);
        ls_bell_ring(&x->lanes_state[LS_LANE_COMM].bell);
        pthread_join(x->comm_thread, NULL);
    }
    ls_peers_close(&x->peers, &x->on);
    ls_held_close(&x->held, &x->on.compute);
    ls_on_device_close(&x->on);
    ls_loader_free(x->loader);
    if (!x->c.compute) ls_compute_close(&x->compute);
    ls_unmap(x->arena, x->arena_nbytes);
    ls_unmap(x->work, x->work_nbytes);
    ls_unmap(x->encodes.memory, encodes_nbytes(x));
    ls_codes_close(&x->codes);
    ls_factors_close(&x->factors);
    ls_squares_close(&x->squares);
    ls_arena_plan_free(&x->places);
    ls_arena_plan_free(&x->there);
    ls_lanes_free(&x->lanes);
    free(x->counts);
    free(x->copies);
    free(x->late);
    ls_exec_close_messages(x);
    free(x);
}

/* Backward runs the last layer first. A block that a layer shares with the one below is considered
 * only if no other block overflowed. */
const char *ls_exec_overflow(const ls_exec *x) {
    const ls_model *m = x->c.plan->share.model;
    const double *sums = x->c.world->sums;
    if (!isfinite(x->out.loss)) return "the loss";
    for (int shared = 0; shared < 2; shared++)
        for (int i = m->nlayers - 1; i >= 0; i--) {
            const ls_layer *l = &m->layers[i];
            for (int k = 0; k < l->nparams; k++) {
                if (l->link.frozen[k]) continue;
                size_t first = l->link.offsets[k] / LS_BLOCK + (shared ? 0 : 1);
                for (size_t b = first; b * LS_BLOCK < l->link.offsets[k] + l->counts[k]; b++)
                    if (!isfinite(sums[b])) return l->name;
            }
        }
    return "a gradient";
}

int64_t ls_exec_time(const ls_exec *x, ls_action_kind kind) {
    return x->times[LS_LANE_COMPUTE][kind] + x->times[LS_LANE_COMM][kind];
}
int64_t ls_exec_compute_time(const ls_exec *x) {
    int64_t sum = 0;
    for (int k = 0; k < LS_NACTION_KINDS; k++) sum += x->times[LS_LANE_COMPUTE][k];
    return sum;
}
int64_t ls_exec_data_wait_ns(const ls_exec *x) { return ls_loader_waited_ns(x->loader); }
void ls_exec_trace(ls_exec *x, ls_trace *t) { x->trace = t; }
void ls_exec_reset_times(ls_exec *x) { memset(x->times, 0, sizeof x->times); }
bool ls_exec_gave_up(const ls_exec *x) { return x->gave_up; }

/* ---- binding ---- */

typedef struct place {
    int i, n, cores; /* worker i of n; the cores of each */
} place;

/* The calling thread has all cores of the worker, since threads that it starts later inherit them;
 * with the others at theirs it stays at the first. */
static void bind_one(void *arg, int thread, int nthreads) {
    const place *p = arg;
    (void)nthreads;
    if (p->i < 0)
        ls_cores_unbind();
    else if (thread == 0)
        ls_cores_bind_worker(p->i, p->n, p->cores);
    else
        ls_cores_bind_thread(p->i, p->n, p->cores, thread);
}

void ls_exec_bind(const ls_exec *x, int i, int n, int cores) {
    place p = {i, n, cores};
    ls_pool_run(x->compute.pool, bind_one, &p);
}

const ls_compute *ls_exec_compute(const ls_exec *x) { return &x->compute; }

float *ls_exec_arena(const ls_exec *x, size_t *nbytes_p) {
    *nbytes_p = x->arena_nbytes;
    return x->arena;
}
