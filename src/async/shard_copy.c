/* shard_copy.c - see shard_copy.h. */
#include "async/shard_copy.h"

#include <stdlib.h>
#include <string.h>

#include "async/applications.h"
#include "async/async.h"
#include "model/types.h"
#include "tensor/kernels.h"
#include "tensor/sum_order.h"

ls_status ls_shard_copy_open(ls_shard_copy *c, const ls_config *config, const ls_plan *plan,
                             ls_world *world, ls_error *e) {
    *c = (ls_shard_copy){.config = config, .plan = plan, .steps = -1};
    c->mark = LS_NEW_ARRAY(atomic_uint, plan->share.model->nfloats / LS_BLOCK);
    c->parameters = ls_async_parameters_of(config, plan, world, c->mark);
    c->parameters.room_nbytes = plan->share.nbytes.room;
    LS_TRY(ls_map(LS_ASYNC_SHARDS * c->parameters.room_nbytes, "updates", &c->rooms, e));
    c->parameters.rooms = c->rooms;
    return ls_compute_init(&c->compute, 1, ls_model_scratch_floats(plan->share.model), e);
}

/* ---- the state ---- */

/* Parameters in 16 bits are made from the masters, as an update makes them. */
static ls_status make_params(const ls_shard_copy *c, ls_error *e) {
    const ls_kernels *k = NULL;
    const ls_async_parameters *p = &c->parameters;
    if (p->params_type == LS_F32) return LS_OK;
    LS_TRY(ls_kernels_pick(&k, e));
    k->narrow(p->params_type, p->model->nfloats, p->flat.of[0], p->params);
    return LS_OK;
}

static ls_status begin_shards(ls_shard_copy *c, int64_t steps, ls_error *e) {
    LS_TRY(ls_async_shards_begin(c->shards, c->nshards, c->parameters.model, e));
    for (int i = 0; i < c->nshards; i++) atomic_store(&c->shards[i].version, steps);
    for (size_t i = 0; i < c->parameters.model->nfloats / LS_BLOCK; i++)
        atomic_store(&c->mark[i], 0);
    c->n = 0;
    c->steps = steps;
    return make_params(c, e);
}

static ls_status take_state(ls_shard_copy *c, ls_conn *conn, const ls_frame *f, double silence_s,
                            ls_error *e) {
    const ls_flat *flat = &c->parameters.flat;
    ls_wire_state state;
    c->steps = -1; /* until all of it is here */
    LS_TRY(ls_wire_take(conn, f, LS_WIRE_STATE, &state, sizeof state, e));
    if (state.nflat != flat->n || state.nshards < 1 || state.nshards > LS_ASYNC_SHARDS ||
        state.steps < 0)
        return ls_fail(e, LS_EPEER, "a state of %d buffers and %d shards came", state.nflat,
                       state.nshards);
    c->nshards = state.nshards;
    for (int i = 0; i < flat->n; i++)
        LS_TRY(ls_wire_receive(conn, LS_WIRE_FLAT, silence_s, flat->of[i],
                               c->parameters.model->nfloats * sizeof(float), e));
    LS_TRY(begin_shards(c, state.steps, e));
    return ls_wire_send(conn, LS_WIRE_HAVE, 0, NULL, 0, e);
}

/* ---- gradients ---- */

static void make_room(ls_shard_copy *c, int n) {
    if (n <= c->nroom) return;
    c->grads = realloc(c->grads, (size_t)n * sizeof *c->grads);
    c->batch = realloc(c->batch, (size_t)n * sizeof *c->batch);
    if (!c->grads || !c->batch) abort();
    while (c->nroom < n) c->grads[c->nroom++] = ls_alloc(c->plan->share.nbytes.slot);
}

static void append(ls_shard_copy *c, const ls_mirror_message *m) {
    if (c->n == c->room) {
        c->room = c->room ? 2 * c->room : 64;
        c->list = realloc(c->list, c->room * sizeof *c->list);
        if (!c->list) abort();
    }
    c->list[c->n++] = *m;
}

/* Steps that the other host has written need not be written here. */
static void forget(ls_shard_copy *c, int64_t whole) {
    size_t n = 0;
    if (whole <= c->steps) return;
    for (size_t i = 0; i < c->n; i++)
        if (c->list[i].step >= whole) c->list[n++] = c->list[i];
    c->n = n;
    c->steps = whole;
}

static void apply_to(ls_shard_copy *c, int shard, const ls_mirror_message *m, const void *grads) {
    const ls_async_push push = {.grads = grads,
                                .grad_scale = m->result.update.grad_scale,
                                .samples = m->result.update.samples,
                                .base = m->base[shard]};
    ls_async_apply(&c->parameters, &c->shards[shard], &push, m->at[shard], &c->compute);
}

/* Shard after shard, in the order of its versions. */
static void apply_batch(ls_shard_copy *c, int n) {
    for (int k = 0; k < c->nshards; k++)
        for (int applied = 0; applied < n; applied++) {
            int64_t version = ls_async_version(&c->shards[k]);
            for (int i = 0; i < n; i++)
                if (c->batch[i].at[k] == version) apply_to(c, k, &c->batch[i], c->grads[i]);
        }
}

/* Do the messages lead each shard from its version, step by step? */
static bool is_possible(const ls_shard_copy *c, int n) {
    for (int k = 0; k < c->nshards; k++) {
        int64_t version = ls_async_version(&c->shards[k]);
        for (int v = 0; v < n; v++) {
            int found = 0;
            for (int i = 0; i < n; i++) found += c->batch[i].at[k] == version + v;
            if (found != 1) return false;
        }
    }
    return true;
}

/* A batch that is lost on its way was never here. */
static ls_status take_batch(ls_shard_copy *c, ls_conn *conn, ls_frame *f, double silence_s,
                            int *n_p, ls_error *e) {
    int n = 0;
    for (bool more = true; more; n++) {
        make_room(c, n + 1);
        ls_mirror_message *m = &c->batch[n];
        if (n > 0) LS_TRY(ls_wire_next(conn, silence_s, f, e));
        LS_TRY(ls_wire_take(conn, f, LS_WIRE_APPLIED, m, sizeof *m, e));
        LS_TRY(ls_wire_receive(conn, LS_WIRE_GRADIENT, silence_s, c->grads[n],
                               c->plan->share.nbytes.slot, e));
        more = m->left > 0;
    }
    if (!is_possible(c, n))
        return ls_fail(e, LS_EPEER, "gradients came that do not follow the copy's versions");
    *n_p = n;
    return LS_OK;
}

static ls_status one_batch(ls_shard_copy *c, ls_conn *conn, ls_frame *f, double silence_s,
                           ls_beats *beats, ls_error *e) {
    int n = 0;
    LS_TRY(take_batch(c, conn, f, silence_s, &n, e));
    forget(c, c->batch[0].whole);
    for (int i = 0; i < n; i++) append(c, &c->batch[i]);
    ls_status s = ls_wire_send(conn, LS_WIRE_HAVE, 0, NULL, 0, e);
    ls_beats_set(beats, s == LS_OK ? conn : NULL);
    apply_batch(c, n);
    ls_beats_set(beats, NULL);
    return s;
}

ls_status ls_shard_copy_serve(ls_shard_copy *c, ls_conn *conn, double silence_s, ls_beats *beats,
                              ls_error *e) {
    for (;;) {
        ls_frame f;
        LS_TRY(ls_wire_next(conn, silence_s, &f, e));
        if (f.kind == LS_WIRE_END) return LS_OK;
        if (f.kind == LS_WIRE_STATE)
            LS_TRY(take_state(c, conn, &f, silence_s, e));
        else if (c->steps < 0)
            return ls_fail(e, LS_EPEER, "a frame of kind %d came before the state", f.kind);
        else
            LS_TRY(one_batch(c, conn, &f, silence_s, beats, e));
    }
}

/* ---- taking over ---- */

const ls_mirror_message *ls_shard_copy_find(const ls_shard_copy *c, int64_t step) {
    for (size_t i = 0; i < c->n; i++)
        if (c->list[i].step == step) return &c->list[i];
    return NULL;
}

int64_t ls_shard_copy_steps(const ls_shard_copy *c) { return c->steps + (int64_t)c->n; }

double ls_shard_copy_rate(const ls_shard_copy *c, const ls_mirror_message *m) {
    return ls_async_rate(&c->parameters, m->base[0], m->at[0]);
}

/* With the present parameters: no other gradient is on its way. */
static ls_status compute(ls_shard_copy *c, ls_async_gradient *g, int64_t step, ls_error *e) {
    ls_mirror_message m = {.step = step};
    for (int k = 0; k < c->nshards; k++)
        m.base[k] = m.at[k] =
            ls_async_pull(&c->parameters, &c->shards[k], ls_async_gradient_params(g));
    LS_TRY(ls_async_gradient_compute(g, step, &m.result.out, &m.result.update, e));
    for (int k = 0; k < c->nshards; k++) apply_to(c, k, &m, ls_async_gradient_of_batch(g));
    append(c, &m);
    return LS_OK;
}

ls_status ls_shard_copy_fill(ls_shard_copy *c, ls_async_gradient *g, ls_error *e) {
    int64_t last = c->steps;
    for (size_t i = 0; i < c->n; i++)
        if (c->list[i].step >= last) last = c->list[i].step + 1;
    for (int64_t step = c->steps; step < last; step++)
        if (!ls_shard_copy_find(c, step)) LS_TRY(compute(c, g, step, e));
    return LS_OK;
}

ls_status ls_shard_copy_log(const ls_shard_copy *c, const char *run, ls_error *e) {
    ls_applications *a = NULL;
    const ls_applications_begin begin = {.shards = c->shards,
                                         .nshards = c->nshards,
                                         .nworkers = 1,
                                         .steps = c->steps,
                                         .of = c->config->train.steps,
                                         .sum = ls_sum_order(ls_config_compute(c->config))};
    if (!c->n) return LS_OK;
    LS_TRY(ls_applications_cut(run, c->steps, e));
    LS_TRY(ls_applications_open(run, &begin, &a, e));
    ls_status s = LS_OK;
    for (size_t i = 0; s == LS_OK && i < c->n; i++) {
        const ls_mirror_message *m = &c->list[i];
        const ls_applications_line line = {m->step, m->worker, c->nshards, m->base, m->at};
        s = ls_applications_add(a, &line, e);
    }
    if (s == LS_OK) s = ls_applications_sync(a, e);
    ls_applications_close(a);
    return s;
}
