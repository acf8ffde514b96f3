/* action.c - runs each kind of action (exec_state.h). */
#include <string.h>

#include "base/clock.h"
#include "coll/virtual.h"
#include "exec/decode.h"
#include "exec/exec_state.h"
#include "exec/replicas.h"
#include "model/mixed_device.h"
#include "model/row_device.h"
#include "model/split.h"
#include "share/codes.h"
#include "state/errors.h"
#include "state/round.h"
#include "state/store_step.h"
#include "state/update_bucket.h"
#include "tensor/dtype.h"

/* The buffer of a layer for an action's micro-batch, where the layer runs. */
static char *buffer(const ls_exec *x, ls_buffer_kind kind, const ls_action *a, int layer) {
    const ls_plan *p = x->c.plan;
    int id = ls_plan_layer_buffer(p, kind, a, layer);
    return ls_exec_buffer(x, p->has_copies ? ls_plan_twin(p, id) : id);
}

/* The weights of this worker's samples. */
static ls_status weigh(ls_exec *x, ls_error *e) {
    const ls_share *sh = &x->c.plan->share;
    const ls_loader_config *c = &x->c.loader;
    double *weights = ls_share_scalars(sh, x->c.world->parts).weights;
    if (!weights) return LS_OK;
    memset(weights, 0, (size_t)sh->batch * sizeof *weights);
    for (int vw = c->a; vw < c->b; vw += c->step ? c->step : 1) {
        uint64_t first = 0, end = 0, place = ls_loader_place(c, x->batch.count, vw);
        ls_batch_share(x->batch.count, sh->V, vw, vw + 1, &first, &end);
        for (uint64_t i = first; i < end; i++, place++)
            LS_TRY(ls_weigh(&sh->model->weighing,
                            (const char *)x->samples + place * c->sample_nbytes, &weights[i], e));
    }
    return LS_OK;
}

ls_status ls_exec_load(ls_exec *x, ls_error *e) {
    const ls_share *sh = &x->c.plan->share;
    LS_TRY(ls_on_device_await(&x->on, e)); /* of a step that was given up */
    LS_TRY(ls_loader_next(x->loader, &x->batch, &x->samples, e));
    x->next_load = x->in->step + 1;
    ls_exec_send_state(x);
    double *losses = ls_share_scalars(sh, x->c.world->parts).losses;
    const ls_model *m = sh->model;
    size_t nlosses = (size_t)((m->nlosses + m->nnotes) * sh->batch);
    if (x->on.compute.device)
        LS_TRY(
            ls_held_open(&x->held, &x->on.compute, m, x->c.world->frozen, x->on.nbytes.weights, e));
    if (x->has == LS_HAS_ALL) return LS_OK;
    memset(losses, 0, nlosses * sizeof *losses);
    if (sh->noise)
        memset(ls_share_scalars(sh, x->c.world->parts).noise, 0,
               (size_t)sh->V * LS_NOISE_SUMS * sizeof *losses);
    return weigh(x, e);
}

/* The loss is the mean over the batch; a replica's, over its part of the batch. */
static float loss_scale_of(const ls_exec *x, int vw) {
    double count = (double)ls_exec_island_count(x, ls_share_island_of(&x->c.plan->share, vw));
    if (count == 0) return 0; /* nothing of the batch is left for it */
    return (float)(x->in->loss_scale / (count * (double)x->c.plan->share.model->targets));
}

static int vw_of(const ls_exec *x, const ls_action *a) { return x->aim >= 0 ? x->aim : a->vw; }

/* The samples of a Forward or Backward, as places in the batch. If the batch is short, they are
 * fewer than a micro-batch, or none. */
static void samples_of(const ls_exec *x, const ls_action *a, uint64_t *first_p, uint64_t *end_p) {
    uint64_t micro = (uint64_t)x->c.plan->share.micro_batch, end = 0;
    int vw = vw_of(x, a);
    ls_batch_share(x->batch.count, x->c.plan->share.V, vw, vw + 1, first_p, &end);
    *end_p = end;
    if (a->micro < 0) return;
    *first_p += micro * (uint64_t)a->micro;
    if (*first_p > end) *first_p = end;
    if (*first_p + micro < end) *end_p = *first_p + micro;
}

/* The samples of a layer's call, of n of the data's. */
static int64_t samples_in_call(const ls_model *m, const ls_layer *l, int64_t n) {
    bool one = m->together > 1 && !l->spans;
    int sample = one ? l->chunk / (m->nchunks / m->together) : 0;
    return one ? ls_chunk_samples(n, m->together, sample) : ls_model_samples(m, n);
}

/* The operands that the device has. Those in the arena are there already. */
static void run_there(const ls_exec *x, const ls_action *a, size_t base, ls_layer_call *c) {
    const ls_share *sh = &x->c.plan->share;
    const ls_on_device *on = &x->on;
    const char *losses = (const char *)ls_share_scalars(sh, x->c.world->parts).losses;
    c->compute = &on->compute;
    c->work = (float *)(void *)on->work;
    c->params = on->params + base * sizeof(float);
    c->grads = ls_exec_sum_there(x, a->slot, base);
    c->frozen = x->held.frozen;
    c->constants = x->held.constants;
    if (c->weights)
        c->weights =
            x->held.weights + (c->weights - ls_share_scalars(sh, x->c.world->parts).weights);
    c->host_samples = c->samples;
    c->samples = on->samples + ((const char *)c->samples - (const char *)x->samples);
    c->losses = (double *)(void *)(on->losses + ((const char *)c->losses - losses));
    c->notes = (double *)(void *)(on->losses + ((const char *)c->notes - losses));
}

static ls_layer_call call_of(const ls_exec *x, const ls_action *a) {
    const ls_share *sh = &x->c.plan->share;
    uint64_t first = 0, end = 0;
    samples_of(x, a, &first, &end);
    const ls_layer *l = &sh->model->layers[a->layer];
    size_t nbytes = x->c.loader.sample_nbytes, together = (size_t)sh->model->together;
    int vw = vw_of(x, a);
    uint64_t start = 0, stop = 0, place = ls_loader_place(&x->c.loader, x->batch.count, vw);
    ls_batch_share(x->batch.count, sh->V, vw, vw + 1, &start, &stop);
    place += first - start;
    size_t base = (size_t)ls_share_island_of(sh, vw) * sh->segment_floats;
    ls_layer_call call = {
        .compute = &x->compute,
        .type = sh->compute,
        .grads_type = sh->reduce,
        .params = ls_flat_at(sh->compute, x->c.world->params, base),
        .frozen = x->c.world->frozen,
        .rows = x->c.rows,
        .grads = ls_exec_sum_at(x, a->slot, base),
        .first = a->micro <= 0,
        .last = a->last,
        .n = samples_in_call(sh->model, l, (int64_t)(end - first)),
        .ndata = l->spans ? (int64_t)(end - first) : 0,
        .T = l->T,
        .samples = (const char *)x->samples + place * nbytes,
        .sample_nbytes = together > 1 ? together * nbytes : nbytes,
        .grads_start = a->start,
        .y = buffer(x, LS_BUF_ACT, a, a->layer),
        .saved = buffer(x, LS_BUF_SAVED, a, a->layer),
        .work = x->work,
        .loss_scale = loss_scale_of(x, vw),
        .training = true,
        .seed = x->c.loader.order.seed,
        .step = x->in->step,
        .first_sample = first,
        .losses =
            ls_share_scalars(sh, x->c.world->parts).losses + l->link.loss_at * sh->batch + first,
        .notes = ls_share_scalars(sh, x->c.world->parts).notes + first,
        .notes_stride = sh->batch,
    };
    const double *weights = ls_share_scalars(sh, x->c.world->parts).weights;
    if (x->c.world->wide)
        call.wide = x->c.world->wide + ls_share_wide_at(sh, x->c.worker, a->layer);
    if (weights) call.weights = weights + first;
    for (int k = 0; k < l->ninputs; k++) call.x[k] = buffer(x, LS_BUF_ACT, a, l->inputs[k]);
    if (x->on.compute.device) run_there(x, a, base, &call);
    return call;
}

/* ---- gradients that another worker has computed ---- */

static void copy_given(const ls_exec *x, const ls_action *a, const char *grads,
                       const double *losses) {
    const ls_share *sh = &x->c.plan->share;
    const ls_layer *l = &sh->model->layers[a->layer];
    size_t size = ls_dtype_size(sh->reduce);
    uint64_t first = 0, end = 0;
    for (int k = 0; k < l->nparams; k++)
        if (!l->link.frozen[k])
            memcpy(ls_exec_sum_at(x, a->slot, l->link.offsets[k]),
                   grads + l->link.offsets[k] * size, l->counts[k] * size);
    ls_batch_share(x->batch.count, sh->V, a->vw, a->vw + 1, &first, &end);
    double *own = ls_share_scalars(sh, x->c.world->parts).losses;
    int n = sh->model->nlosses + sh->model->nnotes;
    for (int i = 0; i < n; i++, own += sh->batch, losses += sh->batch)
        memcpy(own + first, losses + first, (end - first) * sizeof *losses);
}

/* If another worker has computed the virtual worker's gradient, it is copied from there, layer by
 * layer, and no more is computed here. */
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
    const ls_layer *l = &x->c.plan->share.model->layers[a->layer];
    ls_layer_call call = call_of(x, a);
    ls_mixed_forward(l, &call);
    return LS_OK;
}

/* If the layer that computes an input runs Backward on all micro-batches at once, its output
 * gradient is collected part by part. */
static ls_status run_backward(ls_exec *x, const ls_action *a) {
    if (is_given_by_another(x, a)) return LS_OK;
    const ls_model *m = x->c.plan->share.model;
    const ls_layer *l = &m->layers[a->layer];
    ls_layer_call call = call_of(x, a);
    call.dy = buffer(x, LS_BUF_DACT, a, a->layer);
    for (int k = 0; k < l->ninputs; k++) {
        const ls_layer *below = &m->layers[l->inputs[k]];
        if (below->link.is_constant) continue;
        bool there = x->on.compute.device;
        size_t sample = below->y_floats * ls_dtype_size(there ? LS_F32 : call.type);
        int64_t before = ls_model_samples(m, a->micro * x->c.plan->share.micro_batch);
        size_t part = below->traits.backward_whole ? (size_t)before : 0;
        call.dx[k] = buffer(x, LS_BUF_DACT, a, l->inputs[k]) + part * sample;
    }
    if (a->back == LS_BACK_INPUTS)
        ls_split_inputs(l, &call);
    else if (a->back == LS_BACK_PARAMS)
        ls_split_params(l, &call);
    else
        ls_mixed_backward(l, &call);
    return LS_OK;
}

static ls_factors_job factors_job(ls_exec *x, const ls_action *a) {
    return (ls_factors_job){.factors = &x->factors,
                            .bucket = a->bucket,
                            .step = x->in->step,
                            .errors = x->c.world->errors,
                            .bad = &x->not_finite};
}

static void encode_factor(ls_exec *x, const ls_action *a) {
    const ls_factors_job j = factors_job(x, a);
    if (a->start) ls_errors_mark(x->c.world, &x->c.plan->share, j.step + 1, a->vw, false);
    if (a->round > 0)
        ls_factors_second(&j, &x->compute, a->vw);
    else
        ls_factors_first(&j, &x->compute, a->vw, (float *)(void *)ls_exec_sum_at(x, a->slot, 0));
}

static void decode_factors(ls_exec *x, const ls_action *a) {
    const ls_factors_job j = factors_job(x, a);
    ls_factors_decode(&j, &x->compute, (float *)(void *)ls_exec_sum_at(x, 0, 0));
    if (a->last) ls_errors_mark_own(x->c.world, &x->c.plan->share, j.step + 1);
}

static ls_status run_squares(ls_exec *x, const ls_action *a) {
    const ls_share *sh = &x->c.plan->share;
    double *bins = ls_share_scalars(sh, x->c.world->parts).noise + a->vw * LS_NOISE_SUMS;
    const ls_squares_input in = {.share = sh,
                                 .grads = ls_exec_sum_at(x, a->slot, 0),
                                 .seed = x->c.loader.order.seed,
                                 .step = x->in->step};
    ls_squares_bucket(&x->squares, &x->compute, &in, a->bucket, bins);
    return LS_OK;
}

static ls_status run_encode(ls_exec *x, const ls_action *a) {
    const ls_share *sh = &x->c.plan->share;
    if (sh->has_factors) {
        encode_factor(x, a);
        return LS_OK;
    }
    ls_encode n = {.share = sh,
                   .bucket = a->bucket,
                   .step = x->in->step,
                   .grads = (float *)(void *)ls_exec_sum_at(x, a->slot, 0),
                   .room = &x->encodes,
                   .bad = &x->not_finite};
    if (sh->has_errors) {
        if (a->start) ls_errors_mark(x->c.world, sh, n.step + 1, a->vw, false);
        n.errors = ls_errors_of(x->c.world->errors, sh, n.step, a->vw);
        n.next = ls_errors_of(x->c.world->errors, sh, n.step + 1, a->vw);
    }
    if (ls_share_sums_momentum(sh, n.step)) n.moment = x->c.world->flat.of[1];
    if (sh->sends_codes) n.code = ls_codes_of(&x->codes, a->bucket, a->vw);
    ls_encode_bucket(&n, &x->compute);
    if (a->last && n.errors) ls_errors_mark(x->c.world, sh, n.step + 1, a->vw, true);
    return LS_OK;
}

/* The sum takes the place of the worker's part of its lowest sum. */
static ls_status run_decode(ls_exec *x, const ls_action *a) {
    if (x->c.plan->share.has_factors) {
        decode_factors(x, a);
        return LS_OK;
    }
    const ls_code_sum d = {.codes = &x->codes,
                           .bucket = a->bucket,
                           .step = x->in->step,
                           .sum = (float *)(void *)ls_exec_sum_at(x, 0, 0),
                           .room = &x->encodes};
    ls_decode_bucket(&d, &x->compute);
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
    ls_dtype type = j->x->c.plan->share.reduce;
    size_t at = (size_t)a * ls_dtype_size(type);
    j->x->compute.k->combine(type, LS_SUM, (size_t)(b - a), j->to + at, j->from + at, j->to + at);
}

/* Copies a part of a bucket from the inbox to a sum. */
static ls_status run_take(ls_exec *x, const ls_action *a, ls_error *e) {
    const ls_share *sh = &x->c.plan->share;
    const void *from = ls_exec_inbox_at(x, a->buffer, a->part.first);
    size_t nbytes = (a->part.end - a->part.first) * ls_dtype_size(sh->reduce);
    if (ls_action_on_device(sh, a)) return ls_exec_take_there(x, a, from, e);
    memcpy(ls_exec_sum_at(x, a->slot, a->part.first), from, nbytes);
    return LS_OK;
}

static ls_status run_add(ls_exec *x, const ls_action *a) {
    const ls_share *sh = &x->c.plan->share;
    ls_range b = ls_share_range(sh, a->bucket);
    if (a->summed) b = ls_share_shard(sh, a->bucket, x->c.worker);
    int base = a->summed ? ls_exec_sum_slot(x, a->bucket) : 0;
    if (ls_action_on_device(sh, a)) {
        float *sum = (float *)(void *)ls_exec_sum_there(x, a->slot, b.first);
        const float *from = (const float *)(const void *)ls_exec_sum_there(x, a->from, b.first);
        ls_row_device_add(&x->on.compute, (int64_t)(b.end - b.first), sum, from, sum);
        if (ls_dtype_is_half(sh->reduce))
            ls_device_round(&x->on.compute, sh->reduce, b.end - b.first, sum);
        return LS_OK;
    }
    add_job j = {x, ls_exec_sum_at(x, base + a->slot, b.first),
                 ls_exec_sum_at(x, base + a->from, b.first), b.end - b.first};
    ls_pool_run_sized(x->compute.pool, (int64_t)j.n, add_run, &j);
    return LS_OK;
}

int64_t ls_exec_changes(const ls_exec *x) {
    return x->in->changes ? x->in->changes : x->in->step + 1;
}

/* Does another worker update the bucket, in the copy that all workers of this thread have? */
static bool is_updated_elsewhere(const ls_exec *x, const ls_action *a) {
    const ls_world *w = x->c.world;
    const ls_share *sh = &x->c.plan->share;
    bool one = w->in_one_thread && w->shares_state && !sh->shards_moments;
    return one && !ls_action_on_device(sh, a) && sh->buckets[a->bucket].workers.from != x->c.worker;
}

static ls_status run_update(ls_exec *x, const ls_action *a) {
    const ls_world *w = x->c.world;
    if (is_updated_elsewhere(x, a)) return LS_OK;
    ls_update u = {.share = &x->c.plan->share,
                   .worker = x->c.worker,
                   .grads = w->grads,
                   .params = w->params,
                   .flat = w->flat,
                   .journal = w->store ? &w->journal : NULL,
                   .room = w->room,
                   .step = x->update,
                   .islands = x->islands,
                   .skipped = x->out.skipped && x->c.plan->share.task == LS_TASK_TRAIN,
                   .apart = x->in->apart,
                   .steps = ls_exec_changes(x)};
    bool there = ls_action_on_device(u.share, a);
    if (there) {
        u.there = true;
        u.grads = x->on.grads;
        u.params = x->on.params;
        u.flat = ls_exec_flat_there(x, a->bucket);
        x->on.params_are_newer = x->on.states_are_newer = true;
    }
    ls_update_bucket(&u, there ? &x->on.compute : &x->compute, a->bucket);
    return LS_OK;
}

/* ---- a step that is given up ---- */

void ls_exec_begin(ls_exec *x, const ls_step_in *in) {
    x->in = in;
    x->knows_norm = false;
    x->gave_up = false;
    atomic_store(&x->gives_up, false);
    atomic_store(&x->not_finite, false);
    if (x->c.plan->share.task == LS_TASK_MIX && x->c.world->store)
        ls_store_set_ready(x->c.world->store, x->c.worker, NULL, 0);
}

/* The gradients computed so far must not be taken for the whole. */
static bool gives_up(ls_exec *x) {
    if (x->knows_norm || x->in->certain) return x->gave_up;
    if (atomic_load(&x->gives_up)) return true;
    if (!x->c.gives_up || !x->c.gives_up(x->c.gives_up_arg)) return false;
    x->at_step = -1;
    atomic_store(&x->gives_up, true);
    return true;
}

/* Other workers may still compute for long: waits have no limit. */
static void be_patient(const ls_exec *x) {
    ls_group *const groups[] = {x->c.world->group, x->c.world->shards, x->c.world->chunks,
                                x->c.world->replicas, x->c.world->island};
    for (int i = 0; i < 5; i++)
        if (groups[i]) ls_group_set_patience(groups[i], -1, -1);
}

static ls_status run_compute(ls_exec *x, const ls_action *a, ls_error *e) {
    if (a->kind != LS_LOAD && gives_up(x)) return LS_OK;
    switch (a->kind) {
    case LS_LOAD: return ls_exec_load(x, e);
    case LS_FORWARD:
    case LS_RECOMPUTE: return run_forward(x, a);
    case LS_BACKWARD: return run_backward(x, a);
    case LS_SQUARES: return run_squares(x, a);
    case LS_ENCODE: return run_encode(x, a);
    case LS_DECODE: return run_decode(x, a);
    case LS_ADD: return run_add(x, a);
    case LS_DELTA: return ls_replicas_delta(x, a);
    case LS_COPY: return ls_replicas_copy(x, a);
    case LS_MIX: return ls_replicas_mix(x, a);
    case LS_NORM: /* then the host's copies of what layers read may change */
        LS_TRY(ls_on_device_await(&x->on, e));
        return ls_exec_norm(x);
    case LS_UPDATE: return run_update(x, a);
    case LS_TAKE: return run_take(x, a, e);
    case LS_TO_DEVICE: return ls_exec_send(x, a, e);
    case LS_FROM_DEVICE: return ls_exec_fetch(x, a, e);
    default: return ls_fail(e, LS_EINVAL, "%s is not a computation", ls_action_kind_name(a->kind));
    }
}

/* A buffer in the arena has a fixed place, and needs no Free but for copies of it. The pages of
 * others are dropped, and read as zeros: copies of them to the device must have ended. */
static ls_status run_free(ls_exec *x, const ls_action *a, ls_error *e) {
    const ls_world *w = x->c.world;
    ls_buffer b = ls_plan_buffer_of(x->c.plan, a->buffer);
    if (ls_buffer_in_arena(b.kind)) ls_exec_end_copy(x, a->buffer);
    if (b.kind != LS_BUF_PARAM && b.kind != LS_BUF_GRAD) return LS_OK;
    if (ls_on_device_pins(&x->on, b.kind == LS_BUF_PARAM ? w->params : w->grads)) return LS_OK;
    LS_TRY(ls_on_device_await_copies(&x->on, e));
    if (b.kind == LS_BUF_PARAM) ls_world_drop_gathered(w, &x->c.plan->share, b.index);
    if (b.kind == LS_BUF_GRAD) ls_world_drop_sum(w, &x->c.plan->share, b.index, b.slot);
    return LS_OK;
}

/* ---- communication ---- */

static ls_group *group_of(const ls_exec *x, const ls_action *a) {
    const ls_world *w = x->c.world;
    switch (a->comm.axis) {
    case LS_AXIS_ALL: return w->group;
    case LS_AXIS_REPLICAS: return w->replicas;
    default: return ls_world_sharers(w, &x->c.plan->share, a->bucket);
    }
}

/* The sum of a bucket over virtual workers, from and to the worker's lowest sum. */
static ls_virtual_sum sum_of(const ls_exec *x, const ls_action *a) {
    const ls_share *sh = &x->c.plan->share;
    bool island = a->comm.axis == LS_AXIS_ISLAND; /* its workers have the same leaves */
    ls_tree_parts parts = sh->buckets[a->bucket].leaves;
    size_t first = sh->buckets[a->bucket].first;
    int lowest = ls_share_first_slot(sh, a->bucket, x->c.worker);
    char *sum = ls_exec_sum_at(x, lowest, first);
    return (ls_virtual_sum){.V = a->comm.V,
                            .first = island ? NULL : sh->ranges,
                            .chunks = island ? 0 : parts.chunks,
                            .context = parts.context,
                            .in = sum,
                            .stride = sh->floats,
                            .out = sum,
                            .dtype = a->comm.dtype,
                            .count = a->comm.count};
}

/* The worker's shard of the sum over all workers, which replaces that of its own lowest sum: no
 * other worker reads it. */
static char *own_sum(const ls_exec *x, const ls_action *a, ls_range own) {
    return ls_exec_sum_at(x, ls_exec_sum_slot(x, a->bucket) + a->slot, own.first);
}

static const size_t *counts_of(const ls_exec *x, int bucket) {
    return x->counts + (size_t)bucket * (size_t)x->c.plan->share.nshards;
}

/* If this step is interrupted, the mark shows what was summed. */
static void mark_sum(const ls_exec *x, const ls_action *a) {
    bool second = a->comm.axis == LS_AXIS_REPLICAS;
    ls_group_mark_next(group_of(x, a), ls_store_sum_mark(x->c.world->store, x->c.worker, a->bucket,
                                                         second, x->in->step));
}

static ls_status start_reduction(ls_exec *x, const ls_action *a, ls_request **r_p, ls_error *e) {
    ls_range own = ls_share_shard(&x->c.plan->share, a->bucket, x->c.worker);
    ls_group *g = group_of(x, a);
    if (x->restarts) mark_sum(x, a);
    if (a->comm.axis == LS_AXIS_REPLICAS) {
        char *shard = own_sum(x, a, own);
        return ls_all_reduce_virtual_start(g,
                                           &(ls_virtual_sum){.V = a->comm.V,
                                                             .in = shard,
                                                             .out = shard,
                                                             .dtype = a->comm.dtype,
                                                             .count = own.end - own.first},
                                           r_p, e);
    }
    ls_virtual_sum sum = sum_of(x, a);
    if (a->kind == LS_ALL_REDUCE) return ls_all_reduce_virtual_start(g, &sum, r_p, e);
    sum.out = own_sum(x, a, own);
    sum.counts = counts_of(x, a->bucket);
    return ls_reduce_scatter_virtual_start(g, &sum, r_p, e);
}

/* Parameters; where replicas adopt the common ones, these are laid beside the state. */
static ls_status start_gather(ls_exec *x, const ls_action *a, ls_request **r_p, ls_error *e) {
    const ls_share *sh = &x->c.plan->share;
    const ls_world *w = x->c.world;
    ls_range all = ls_share_range(sh, a->bucket), own = ls_share_shard(sh, a->bucket, x->c.worker);
    const void *from = ls_flat_at(a->comm.dtype, w->params, own.first);
    void *to = ls_flat_at_mut(a->comm.dtype, w->params, all.first);
    if (sh->task == LS_TASK_ADOPT && sh->buckets[a->bucket].island == 0) {
        from = w->flat.of[0] + own.first;
        to = own_sum(x, a, all);
    }
    return ls_all_gather_v_start(group_of(x, a), from, to, counts_of(x, a->bucket), a->comm.dtype,
                                 r_p, e);
}

ls_status ls_exec_start_comm(ls_exec *x, const ls_action *a, ls_request **r_p, ls_error *e) {
    const ls_world *w = x->c.world;
    if (atomic_load(&x->gives_up)) be_patient(x);
    if (ls_action_on_device(&x->c.plan->share, a))
        return ls_exec_start_peers(x, group_of(x, a), r_p, e);
    LS_TRY(ls_exec_await_copies(x, a, e));
    switch (a->kind) {
    case LS_SEND: return ls_exec_start_message(x, a, r_p, e);
    case LS_REPLICA_NORM: return ls_exec_start_norm(x, a, r_p, e);
    case LS_DECIDE: return ls_exec_start_decision(x, a, r_p, e);
    case LS_EXCHANGE: return ls_codes_exchange_start(&x->codes, w->group, a->bucket, r_p, e);
    case LS_SUM_FACTORS: return ls_factors_sum_start(&x->factors, w->group, a, r_p, e);
    case LS_REDUCE_SCATTER:
    case LS_ALL_REDUCE: return start_reduction(x, a, r_p, e);
    case LS_ALL_GATHER: return start_gather(x, a, r_p, e);
    default:
        return ls_fail(e, LS_EINVAL, "%s is not a communication", ls_action_kind_name(a->kind));
    }
}

ls_status ls_exec_finish_comm(ls_exec *x, const ls_action *a, ls_error *e) {
    if (a->kind == LS_SEND) return ls_exec_finish_message(x, a, e);
    if (ls_action_on_device(&x->c.plan->share, a)) return ls_exec_finish_peers(x, a, e);
    if (a->kind == LS_REPLICA_NORM) ls_exec_finish_norm(x, a);
    if (a->kind == LS_DECIDE) ls_exec_finish_decision(x);
    return LS_OK;
}

int64_t ls_exec_enter(ls_exec *x, int index) {
    atomic_store_explicit(&x->c.slot->action, index, memory_order_relaxed);
    return ls_clock_ns();
}

void ls_exec_leave(ls_exec *x, int index, int64_t begin, bool complete) {
    const ls_action *a = &x->c.plan->actions[index];
    ls_lane lane = ls_plan_lane(x->c.plan, a);
    int64_t end = ls_clock_ns();
    x->times[lane][a->kind] += end - begin;
    if (x->trace) ls_trace_add(x->trace, lane, index, begin, end, complete);
}

void ls_exec_spend(ls_exec *x, int index, int64_t begin) {
    const ls_action *a = &x->c.plan->actions[index];
    x->times[ls_plan_lane(x->c.plan, a)][a->kind] += ls_clock_ns() - begin;
}

void ls_exec_leave_comm(ls_exec *x, int index, int64_t begin, int64_t end) {
    if (x->trace) ls_trace_add(x->trace, LS_LANE_COMM, index, begin, end, true);
}

/* The island that an action is for; 0: all, or none. */
static int island_of(const ls_plan *p, const ls_action *a) {
    const ls_share *sh = &p->share;
    switch (a->kind) {
    case LS_FORWARD:
    case LS_RECOMPUTE:
    case LS_BACKWARD:
    case LS_SQUARES:
    case LS_ENCODE: return ls_share_island_of(sh, a->vw);
    case LS_REPLICA_NORM: return a->island;
    case LS_ALL_REDUCE:
    case LS_ADD:
    case LS_REDUCE_SCATTER:
    case LS_SEND:
    case LS_MIX:
    case LS_UPDATE:
    case LS_ALL_GATHER: return sh->buckets[a->bucket].island;
    default: return 0;
    }
}

bool ls_exec_runs(const ls_exec *x, const ls_action *a) {
    const ls_plan *p = x->c.plan;
    const ls_share *sh = &p->share;
    if (x->runs_all) return true;
    if (!ls_plan_runs(p, a, x->in->step)) return false;
    bool mixes = sh->task == LS_TASK_MIX;
    if (!sh->islands || (sh->task != LS_TASK_TRAIN && !mixes)) return true;
    if (mixes && a->kind == LS_DECIDE)
        return ls_round_islands(x->c.world, sh, x->c.worker, ls_exec_changes(x)) != 0;
    int island = island_of(p, a);
    return !island || x->c.world->ahead[island - 1] < ls_exec_changes(x);
}

ls_status ls_exec_run_action(ls_exec *x, int index, ls_error *e) {
    const ls_action *a = &x->c.plan->actions[index];
    int64_t begin = ls_exec_enter(x, index);
    ls_status s = LS_OK;
    if (!ls_exec_runs(x, a)) {
        ls_exec_leave(x, index, begin, true); /* a trace has a span of each action */
        return LS_OK;
    }
    if (a->kind == LS_FREE) {
        s = run_free(x, a, e);
    } else if (a->worker != LS_ALL_WORKERS && a->kind != LS_SEND) {
        s = run_compute(x, a, e);
    } else {
        ls_request *r = NULL;
        s = ls_exec_start_comm(x, a, &r, e);
        if (s == LS_OK) s = ls_wait(&r, -1, e);
        if (s == LS_OK) s = ls_exec_finish_comm(x, a, e);
    }
    ls_exec_leave(x, index, begin, true);
    return s;
}
