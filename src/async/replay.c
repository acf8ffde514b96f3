/* replay.c - see replay.h. */
#include "async/replay.h"

#include <stdlib.h>
#include <string.h>

#include "async/gradient.h"
#include "base/cores.h"
#include "tensor/dtype.h"

/* A gradient that was computed, and that not all shards have. */
typedef struct pending {
    void *grads; /* NULL: not computed */
    ls_optim_step update;
    int left; /* shards */
} pending;

/* An earlier version of a shard's parameters. */
typedef struct version {
    int64_t users; /* gradients that are still to be computed with it */
    void *params;  /* NULL: it is the shard's present version, or was not reached yet */
} version;

typedef struct replay {
    const ls_async_replay_config *c;
    ls_async_parameters parameters;
    atomic_uint *mark;
    ls_async_gradient gradient;
    ls_compute compute; /* of one thread: for applications */
    void *grads;        /* where it computes */
    int64_t steps;
    /* the part in progress: */
    const ls_applications_part *part;
    ls_async_shard shards[LS_ASYNC_SHARDS];
    size_t *order[LS_ASYNC_SHARDS];     /* [n] by version: the line */
    version *versions[LS_ASYNC_SHARDS]; /* [n] */
    pending *pending;                   /* [n] by line */
} replay;

static size_t nbytes_of(const replay *r, int shard) {
    const ls_async_shard *s = &r->shards[shard];
    return (s->end - s->first) * ls_dtype_size(r->parameters.params_type);
}

static version *version_of(replay *r, int shard, int64_t number) {
    return &r->versions[shard][number - r->part->begins];
}

/* ---- gradients ---- */

static bool can_compute(replay *r, const ls_application *a) {
    for (int i = 0; i < r->part->nshards; i++)
        if (a->base[i] > ls_async_version(&r->shards[i])) return false;
    return true;
}

static void take_params(replay *r, int shard, int64_t base) {
    ls_async_shard *s = &r->shards[shard];
    void *params = ls_async_gradient_params(&r->gradient);
    version *v = version_of(r, shard, base);
    if (v->params)
        memcpy(ls_flat_at_mut(r->parameters.params_type, params, s->first), v->params,
               nbytes_of(r, shard));
    else
        ls_async_pull(&r->parameters, s, params);
    if (--v->users > 0) return;
    free(v->params);
    v->params = NULL;
}

static ls_status compute(replay *r, size_t line, ls_error *e) {
    const ls_application *a = &r->part->list[line];
    pending *p = &r->pending[line];
    ls_step_out out;
    for (int i = 0; i < r->part->nshards; i++) take_params(r, i, a->base[i]);
    LS_TRY(ls_async_gradient_compute(&r->gradient, a->step, &out, &p->update, e));
    size_t nbytes = r->c->plan->share.nbytes.slot;
    p->grads = ls_alloc(nbytes);
    memcpy(p->grads, ls_async_gradient_of_batch(&r->gradient), nbytes);
    p->left = r->part->nshards;
    return LS_OK;
}

/* ---- applications ---- */

static void retain(replay *r, int shard) {
    ls_async_shard *s = &r->shards[shard];
    version *v = version_of(r, shard, ls_async_version(s));
    if (!v->users) return;
    v->params = ls_alloc(nbytes_of(r, shard));
    memcpy(v->params, ls_flat_at(r->parameters.params_type, r->parameters.params, s->first),
           nbytes_of(r, shard));
}

static void apply(replay *r, int shard, size_t line) {
    const ls_application *a = &r->part->list[line];
    pending *p = &r->pending[line];
    const ls_async_push push = {p->grads, p->update.grad_scale, p->update.samples, a->base[shard]};
    retain(r, shard);
    ls_async_apply(&r->parameters, &r->shards[shard], &push, a->at[shard], &r->compute);
    if (--p->left > 0) return;
    free(p->grads);
    p->grads = NULL;
    r->steps++;
    if (r->c->done) r->c->done(r->c->arg, r->steps);
}

/* Advances a shard as far as the gradients that it needs can be computed now. */
static ls_status advance(replay *r, int shard, bool *moved_p, ls_error *e) {
    const ls_applications_part *part = r->part;
    for (;;) {
        size_t at = (size_t)(ls_async_version(&r->shards[shard]) - part->begins);
        if (at == part->n) return LS_OK;
        size_t line = r->order[shard][at];
        if (!r->pending[line].grads) {
            if (!can_compute(r, &part->list[line])) return LS_OK;
            LS_TRY(compute(r, line, e));
        }
        apply(r, shard, line);
        *moved_p = true;
    }
}

/* ---- parts ---- */

static ls_status begin_part(replay *r, ls_error *e) {
    const ls_applications_part *p = r->part;
    LS_TRY(ls_async_shards_begin(r->shards, p->nshards, r->parameters.model, e));
    r->parameters.schedule.steps = p->of;
    r->pending = LS_NEW_ARRAY(pending, p->n);
    for (int i = 0; i < p->nshards; i++) {
        r->shards[i].first = i ? p->ends[i - 1] : 0;
        r->shards[i].end = p->ends[i];
        atomic_store(&r->shards[i].version, p->begins);
        r->order[i] = LS_NEW_ARRAY(size_t, p->n);
        r->versions[i] = LS_NEW_ARRAY(version, p->n);
        for (size_t k = 0; k < p->n; k++) {
            r->order[i][p->list[k].at[i] - p->begins] = k;
            version_of(r, i, p->list[k].base[i])->users++;
        }
    }
    return LS_OK;
}

static void end_part(replay *r) {
    const ls_applications_part *p = r->part;
    for (size_t k = 0; r->pending && k < p->n; k++) free(r->pending[k].grads);
    free(r->pending);
    r->pending = NULL;
    for (int i = 0; i < p->nshards; i++) {
        for (size_t k = 0; r->versions[i] && k < p->n; k++) free(r->versions[i][k].params);
        free(r->versions[i]);
        free(r->order[i]);
        r->versions[i] = NULL;
        r->order[i] = NULL;
    }
}

static ls_status run_part(replay *r, ls_error *e) {
    const ls_applications_part *p = r->part;
    int64_t end = p->begins + (int64_t)p->n;
    for (;;) {
        bool moved = false, whole = true;
        for (int i = 0; i < p->nshards; i++) LS_TRY(advance(r, i, &moved, e));
        for (int i = 0; i < p->nshards; i++)
            whole = whole && ls_async_version(&r->shards[i]) == end;
        if (whole) return LS_OK;
        if (!moved)
            return ls_fail(e, LS_EINVAL,
                           "the log of applications is in no possible order after step %lld",
                           (long long)r->steps);
    }
}

static ls_status take_rooms(replay *r, ls_error *e) {
    void *rooms = NULL;
    r->parameters.room_nbytes = r->c->plan->share.nbytes.room;
    LS_TRY(ls_map(LS_ASYNC_SHARDS * r->parameters.room_nbytes, "updates", &rooms, e));
    r->parameters.rooms = rooms;
    return LS_OK;
}

static ls_status open_gradient(replay *r, ls_error *e) {
    const ls_async_replay_config *c = r->c;
    int threads = ls_config_threads(c->config, 1, ls_cores());
    LS_TRY(ls_map(ls_share_grads_nbytes(&c->plan->share, 0), "gradients", &r->grads, e));
    const ls_async_gradient_config g = {.plan = c->plan,
                                        .frozen = c->frozen,
                                        .loader = c->loader,
                                        .threads = threads,
                                        .busy = threads,
                                        .cores = ls_cores(),
                                        .clip = c->config->optim.clip,
                                        .grads = r->grads};
    return ls_async_gradient_open(&r->gradient, &g, 0, e);
}

ls_status ls_async_replay(const ls_async_replay_config *c, ls_error *e) {
    replay *r = LS_NEW(replay);
    r->c = c;
    r->mark = LS_NEW_ARRAY(atomic_uint, c->plan->share.model->nfloats / LS_BLOCK);
    r->parameters = ls_async_parameters_of(c->config, c->plan, c->world, r->mark);
    ls_status s = take_rooms(r, e);
    if (s == LS_OK) s = open_gradient(r, e);
    if (s == LS_OK)
        s = ls_compute_init(&r->compute, 1, ls_model_scratch_floats(c->plan->share.model), e);
    for (size_t i = 0; s == LS_OK && i < c->log->n; i++) {
        r->part = &c->log->parts[i];
        s = begin_part(r, e);
        if (s == LS_OK) s = run_part(r, e);
        end_part(r);
    }
    ls_compute_close(&r->compute);
    ls_async_gradient_close(&r->gradient);
    ls_unmap(r->grads, ls_share_grads_nbytes(&c->plan->share, 0));
    ls_unmap(r->parameters.rooms, LS_ASYNC_SHARDS * r->parameters.room_nbytes);
    free(r->mark);
    free(r);
    return s;
}
