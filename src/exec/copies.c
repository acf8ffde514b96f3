/* copies.c - what a worker copies to its device and from there (exec_state.h): in a step what the
 * plan says; before the first step the state, which comes back when the host reads it.
 */
#include "base/mem.h"
#include "exec/exec_state.h"
#include "model/mixed_device.h"
#include "tensor/dtype.h"

/* Numbers that the host has in `type`, and the device in f32 if that has 16 bits, else as they
 * are. */
typedef struct twins {
    void *host;
    char *device;
    size_t nbytes; /* of the host's */
    ls_dtype type;
} twins;

/* The host's parameters and the device's. */
static twins params_at(const ls_exec *x, ls_range r) {
    ls_dtype type = x->c.plan->share.compute;
    return (twins){ls_flat_at_mut(type, x->c.world->params, r.first),
                   x->on.params + r.first * sizeof(float), (r.end - r.first) * ls_dtype_size(type),
                   type};
}

/* A buffer that the host and the device have, at the same places in theirs. */
static twins twins_of(const ls_exec *x, const ls_action *a) {
    const ls_share *sh = &x->c.plan->share;
    ls_buffer b = ls_plan_buffer_of(x->c.plan, a->buffer);
    ls_scalars scalars = ls_share_scalars(sh, x->c.world->parts);
    bool params = b.kind == LS_BUF_PARAM || b.kind == LS_BUF_SHARD;
    if (ls_buffer_in_arena(b.kind))
        return (twins){ls_exec_buffer(x, a->buffer),
                       ls_exec_buffer(x, ls_plan_twin(x->c.plan, a->buffer)),
                       ls_plan_buffer_nbytes(x->c.plan, a->buffer, x->c.worker), sh->compute};
    if (b.kind == LS_BUF_LOSSES)
        return (twins){scalars.losses, x->on.losses, x->on.nbytes.losses, LS_F32};
    if (b.kind == LS_BUF_NORMS)
        return (twins){scalars.norms, x->on.norms, x->on.nbytes.norms, LS_F32};
    bool part = b.kind == LS_BUF_SHARD || (b.kind == LS_BUF_SUM && sh->shards_moments);
    ls_range r = part ? ls_share_shard(sh, b.index, x->c.worker) : ls_share_range(sh, b.index);
    int slot = b.kind == LS_BUF_SUM ? ls_exec_sum_slot(x, b.index) + b.slot : b.slot;
    if (params) return params_at(x, r);
    return (twins){ls_exec_sum_at(x, slot, r.first), ls_exec_sum_there(x, slot, r.first),
                   (r.end - r.first) * ls_dtype_size(sh->reduce), sh->reduce};
}

/* Where the host's bytes are on the device: between the copy and the conversion, if there is
 * one. */
static void *copied_there(const ls_exec *x, const twins *t) {
    return ls_dtype_is_half(t->type) ? ls_on_device_half(&x->on, t->device) : t->device;
}

/* Before the copy from the device; and after the copy to it. */
static void narrow_there(const ls_exec *x, const twins *t) {
    if (ls_dtype_is_half(t->type))
        ls_device_narrow(&x->on.compute, t->type, t->nbytes / sizeof(uint16_t),
                         (const float *)(const void *)t->device, copied_there(x, t));
}
static void widen_there(const ls_exec *x, const twins *t) {
    if (ls_dtype_is_half(t->type))
        ls_device_widen(&x->on.compute, t->type, t->nbytes / sizeof(uint16_t), copied_there(x, t),
                        (float *)(void *)t->device);
}

static void send(const ls_exec *x, const twins *t) {
    ls_on_device_send(&x->on, copied_there(x, t), t->host, t->nbytes);
    widen_there(x, t);
}

ls_status ls_exec_take_there(ls_exec *x, const ls_action *a, const void *from, ls_error *e) {
    const ls_share *sh = &x->c.plan->share;
    size_t n = a->part.end - a->part.first;
    twins t = {.device = ls_exec_sum_there(x, a->slot, a->part.first),
               .nbytes = n * ls_dtype_size(sh->reduce),
               .type = sh->reduce};
    ls_status s = ls_on_device_give(&x->on, copied_there(x, &t), from, t.nbytes, e);
    if (s == LS_OK) widen_there(x, &t);
    return s;
}

/* The first of the flat buffers that is not the parameters: f32 masters beside parameters of 16
 * bits are a state. */
static int first_state(const ls_share *sh) { return sh->has_masters ? 0 : 1; }

/* The states of what the worker owns lie bucket after bucket. */
ls_flat ls_exec_flat_there(const ls_exec *x, int bucket) {
    const ls_share *sh = &x->c.plan->share;
    ls_flat f = {.n = x->c.world->flat.n, .of = {(float *)(void *)x->on.params}};
    int first = first_state(sh);
    size_t all = x->on.nbytes.state / sizeof(float) / (f.n > first ? (size_t)(f.n - first) : 1);
    size_t before = 0;
    for (int k = 0; k < bucket; k++) {
        ls_range own = ls_share_owned(sh, k, x->c.worker);
        before += own.end - own.first;
    }
    float *state =
        (float *)(void *)x->on.state + before - ls_share_owned(sh, bucket, x->c.worker).first;
    for (int i = first; i < f.n; i++) f.of[i] = state + (size_t)(i - first) * all;
    return f;
}

/* What of a bucket's parameters outlives a step there: all, where no gather precedes their use;
 * where workers divide the model, none of what the worker's layers don't read. */
static ls_range params_there(const ls_exec *x, int bucket) {
    const ls_plan *p = x->c.plan;
    if (p->share.divides && !ls_plan_knows(p, x->c.worker, bucket)) return (ls_range){0};
    bool all = ls_plan_outlives(p, ls_plan_buffer(p, LS_BUF_DEVICE_PARAM, bucket, 0)) &&
               !p->share.buckets[bucket].is_gathered;
    return all ? ls_share_range(&p->share, bucket) : ls_share_owned(&p->share, bucket, x->c.worker);
}

/* The state comes from the host once: from then on the device's is the newest. */
void ls_exec_send_state(ls_exec *x) {
    const ls_share *sh = &x->c.plan->share;
    if (!sh->state_on_device || x->on.has_state) return;
    for (int k = 0; k < sh->nbuckets; k++) {
        ls_range own = ls_share_owned(sh, k, x->c.worker);
        ls_flat here = x->c.world->flat, there = ls_exec_flat_there(x, k);
        twins params = params_at(x, params_there(x, k));
        send(x, &params);
        for (int i = first_state(sh); i < here.n; i++)
            ls_on_device_send(&x->on, there.of[i] + own.first, here.of[i] + own.first,
                              (own.end - own.first) * sizeof(float));
    }
    x->on.has_state = true;
}

static ls_status fetch(const ls_exec *x, const twins *t, ls_error *e) {
    if (!t->nbytes) return LS_OK;
    narrow_there(x, t);
    return ls_on_device_fetch(&x->on, t->host, copied_there(x, t), t->nbytes, e);
}

/* Of parameters in one copy each worker brings its own. */
ls_status ls_exec_fetch_state(ls_exec *x, bool states, ls_error *e) {
    const ls_share *sh = &x->c.plan->share;
    const ls_world *w = x->c.world;
    int end = x->on.states_are_newer && states ? w->flat.n : 0;
    for (int k = 0; k < sh->nbuckets; k++) {
        ls_range own = ls_share_owned(sh, k, x->c.worker);
        twins params = params_at(x, w->shares_params ? own : params_there(x, k));
        ls_flat there = ls_exec_flat_there(x, k);
        if (x->on.params_are_newer) LS_TRY(fetch(x, &params, e));
        for (int i = first_state(sh); i < end; i++) {
            const twins t = {w->flat.of[i] + own.first, (char *)(there.of[i] + own.first),
                             (own.end - own.first) * sizeof(float), LS_F32};
            LS_TRY(fetch(x, &t, e));
        }
    }
    x->on.params_are_newer = false;
    if (states) x->on.states_are_newer = false;
    return LS_OK;
}

/* Does the device have the state's parameters, all of them? */
static bool has_params(const ls_exec *x) {
    const ls_share *sh = &x->c.plan->share;
    bool has = sh->state_on_device && x->on.has_state && !x->on.has_other_params;
    for (int k = 0; has && k < sh->nbuckets; k++) {
        ls_range all = ls_share_range(sh, k), there = params_there(x, k);
        has = there.first == all.first && there.end == all.end;
    }
    return has;
}

size_t ls_exec_device_arena(const ls_exec *x) { return x->on.nbytes.arena; }

ls_status ls_exec_lend_device(ls_exec *x, const void *params, size_t nbytes, ls_exec_device *d,
                              ls_error *e) {
    LS_TRY(ls_on_device_need(&x->on, nbytes, e));
    LS_TRY(ls_held_open(&x->held, &x->on.compute, x->c.plan->share.model, x->c.world->frozen,
                        x->on.nbytes.weights, e));
    const ls_share *sh = &x->c.plan->share;
    bool other = params != x->c.world->params;
    twins all = {.host = (void *)(uintptr_t)params,
                 .device = x->on.params,
                 .nbytes = sh->nbytes.params,
                 .type = sh->compute};
    if (other || !has_params(x)) send(x, &all);
    x->on.has_other_params = other;
    *d = (ls_exec_device){.compute = &x->on.compute,
                          .params = x->on.params,
                          .frozen = x->held.frozen,
                          .constants = x->held.constants,
                          .memory = x->on.lent ? x->on.lent : x->on.arena};
    return ls_device_finish(x->on.compute.device, LS_DEVICE_COPY, e);
}

/* With the samples go their weights, and losses of 0. */
ls_status ls_exec_send(ls_exec *x, const ls_action *a, ls_error *e) {
    ls_buffer_kind kind = ls_plan_buffer_of(x->c.plan, a->buffer).kind;
    if (kind == LS_BUF_SAMPLES) {
        ls_on_device_send(&x->on, x->on.samples, x->samples, x->on.nbytes.samples);
        if (x->held.weights)
            ls_on_device_send(&x->on, x->held.weights,
                              ls_share_scalars(&x->c.plan->share, x->c.world->parts).weights,
                              x->on.nbytes.weights);
        ls_on_device_send(&x->on, x->on.losses,
                          ls_share_scalars(&x->c.plan->share, x->c.world->parts).losses,
                          x->on.nbytes.losses);
        return LS_OK;
    }
    twins t = twins_of(x, a);
    if (!ls_buffer_in_arena(kind)) {
        send(x, &t);
        return LS_OK;
    }
    void *to = copied_there(x, &t);
    ls_status s = LS_OK;
    if (x->late[a->buffer])
        s = ls_on_device_give(&x->on, to, t.host, t.nbytes, e);
    else
        x->copies[a->buffer] = ls_on_device_begin_give(&x->on, to, t.host, t.nbytes);
    widen_there(x, &t);
    return s;
}

/* A gradient, and what is sent of a layer, is waited for by who reads it (ls_exec_await_copies()),
 * unless another gradient takes its place on the device in the same step, as of what belongs to
 * another stage. All else is waited for here. */
ls_status ls_exec_fetch(ls_exec *x, const ls_action *a, ls_error *e) {
    twins t = twins_of(x, a);
    const ls_share *sh = &x->c.plan->share;
    ls_buffer b = ls_plan_buffer_of(x->c.plan, a->buffer);
    bool last = b.kind == LS_BUF_GRAD && ls_share_has(sh, b.index, x->c.worker);
    bool layer = ls_buffer_in_arena(b.kind);
    const void *from = copied_there(x, &t);
    narrow_there(x, &t);
    if (layer || (last && !sh->by_rounds)) {
        int event = ls_on_device_begin_fetch(&x->on, t.host, from, t.nbytes);
        x->copies[a->buffer] = event;
        if (layer) x->copies[ls_plan_twin(x->c.plan, a->buffer)] = event;
        return LS_OK;
    }
    return ls_on_device_fetch(&x->on, t.host, from, t.nbytes, e);
}

typedef struct awaiting {
    ls_exec *x;
    ls_status status;
    ls_error *e;
} awaiting;

static void await_copy(int buffer, ls_use how, void *arg) {
    awaiting *w = arg;
    int event = w->x->copies[buffer];
    (void)how;
    if (event < 0 || w->status != LS_OK) return;
    w->status = ls_device_await(w->x->on.compute.device, event, w->e);
    w->x->copies[buffer] = -1;
}

ls_status ls_exec_await_copies(ls_exec *x, const ls_action *a, ls_error *e) {
    awaiting w = {x, LS_OK, e};
    if (x->copies) ls_action_uses(x->c.plan, a, x->c.worker, await_copy, &w);
    return w.status;
}

void ls_exec_end_copy(ls_exec *x, int buffer) {
    bool there = x->there.offsets && x->there.offsets[buffer] != SIZE_MAX;
    if (!there || x->copies[buffer] < 0) return;
    ls_device_wait(x->on.compute.device, LS_DEVICE_COMPUTE, x->copies[buffer]);
    x->copies[buffer] = -1;
}

void ls_exec_open_copies(ls_exec *x) {
    const ls_world *w = x->c.world;
    const ls_plan *p = x->c.plan;
    const ls_share *sh = &p->share;
    int n = ls_plan_nbuffers(p);
    x->copies = LS_NEW_ARRAY(int, (size_t)n);
    x->late = LS_NEW_ARRAY(bool, (size_t)n);
    for (int i = 0; i < n; i++) x->copies[i] = -1;
    for (int i = 0; i < p->nactions; i++) {
        const ls_action *a = &p->actions[i];
        bool comes = a->kind == LS_SEND && a->peer == x->c.worker;
        if (comes && ls_plan_arrives_late(p, a)) x->late[a->buffer] = true;
    }
    if (x->places.nbytes) ls_on_device_pin(&x->on, 2, x->arena, x->places.nbytes);
    if (sh->sums_on_device) return; /* few copies */
    ls_on_device_pin(&x->on, 0, w->params, sh->nbytes.params);
    ls_on_device_pin(&x->on, 1, w->grads,
                     (size_t)sh->workers[x->c.worker].all_slots * sh->nbytes.slot);
}
