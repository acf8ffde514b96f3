/* mesh_trial.c - see mesh_trial.h. */
#include "perf/mesh_trial.h"

#include <math.h>

#include "coll/algo/tree.h"
#include "config/needs.h"
#include "config/phases.h"
#include "config/relations.h"
#include "plan/memory.h"
#include "share/mesh.h"
#include "tensor/dtype.h"
#include "train/layout.h"

/* Workers that have a model together. */
static int ranks_of(const ls_mesh *m) { return (int)(m->pipe * ls_mesh_beside(m)); }

static bool has_chunks(const ls_config *c) {
    return c->parallel.context_virtual * c->parallel.expert_virtual > 1;
}

/* The number of workers of each rank that are planned: one. If there is only one rank, two, or the
 * least number that divides them all, since a single worker would communicate with no other;
 * likewise if the model has chunks, whose sums would otherwise be added up by one worker that has
 * all virtual workers. */
static int planned_data(const ls_config *c, const ls_mesh *m) {
    bool several = ranks_of(m) == 1 || has_chunks(c);
    for (int d = 2; d <= m->data && several; d++)
        if (m->data % d == 0) return d;
    return 1;
}

/* At least n virtual workers, and at most `most`; a power of two, if the model has chunks. */
static int64_t vws_of(const ls_config *c, int64_t n, int64_t most) {
    int64_t power = 1;
    while (has_chunks(c) && power < n) power *= 2;
    if (power > n) n = power;
    return n < most ? n : most;
}

/* What a pipeline runs in a step: virtual workers, and micro-batches of each. */
typedef struct amount {
    int64_t vws, micros;
} amount;

static int64_t passes_of(amount a) { return a.vws * a.micros; }

static int64_t samples_of(const ls_config *c) { return c->train.batch / c->train.virtual_workers; }

static int64_t up(int64_t a, int64_t b) { return (a + b - 1) / b; }

static amount amount_of(const ls_config *c, const ls_mesh *m) {
    return (amount){up(c->train.virtual_workers, m->data), up(samples_of(c), m->micro_batch)};
}

/* As much of it as has about `times` * `few` micro-batches, of several virtual workers if there
 * are. */
static amount less_of(const ls_config *c, amount all, int64_t times, int64_t few) {
    int64_t micros = times * few, each = all.micros < few ? all.micros : few;
    int64_t vws = vws_of(c, up(micros, each), INT64_MAX);
    if (vws <= all.vws) return (amount){vws, each};
    return (amount){all.vws, up(micros, all.vws)};
}

/* The config of the part that is planned. */
static void set_part(const ls_config *c, const ls_mesh *m, amount a, int data, ls_config *with_p) {
    int64_t most = a.micros * m->micro_batch, samples = samples_of(c);
    *with_p = *c;
    ls_mesh_set(with_p, m);
    with_p->parallel.mesh_data = data;
    with_p->train.virtual_workers = vws_of(c, a.vws * data, c->train.virtual_workers);
    ls_config_set_batch(with_p, (most < samples ? most : samples) * with_p->train.virtual_workers);
}

static ls_site site_of(const ls_config *c, const ls_plan *p, int n, const ls_forecast_world *w) {
    ls_site site = ls_forecast_site(c, p, w);
    int host = w->host_workers && w->host_workers < n ? w->host_workers : n;
    site.threads = ls_forecast_threads(c, host, w->machine);
    site.copies = n / p->share.nworkers;
    site.host_workers = host;
    site.shared = ls_layout_shares_memory(c, n, host);
    site.one = ls_layout_memory_config(c, n, host).one;
    return site;
}

/* ---- memory ---- */

/* What is gathered or not summed yet is all of a bucket but the own shard, which is smaller among
 * all that share the batch. */
static double more_transient(const ls_plan *p, const ls_memory *m, double copies) {
    double planned = p->share.data, part = 1 - 1 / planned, whole = 1 - 1 / (planned * copies);
    return planned > 1 ? (double)(m->extra[0] + m->extra[1]) * (whole / part - 1) : 0;
}

/* Bytes that the worker's shards need less. */
static size_t less_sharded(const ls_plan *p, const ls_memory_config *how, int worker,
                           size_t copies) {
    const ls_share *sh = &p->share;
    size_t less = ls_share_shards_count(&p->share, worker) / copies * (copies - 1), nbytes = 0;
    if (sh->shards_moments && !how->in_file) nbytes += less * (size_t)sh->nflats * sizeof(float);
    if (how->one || sh->shards_params) nbytes += less * ls_dtype_size(sh->compute);
    if (ls_plan_transient(p, (ls_buffer){.kind = LS_BUF_GRAD}))
        nbytes += less * (size_t)sh->nsums * ls_dtype_size(sh->reduce);
    return nbytes;
}

/* Bytes of one sum of the worker's gradients. */
static size_t sum_nbytes(const ls_plan *p, int worker) {
    const ls_share *sh = &p->share;
    size_t floats = 0;
    for (int k = 0; k < sh->nbuckets; k++)
        if (ls_share_has(sh, k, worker) ||
            (sh->ncells > 1 && ls_share_touches(sh, k, sh->workers[worker].cell)))
            floats += sh->buckets[k].end - sh->buckets[k].first;
    return floats * ls_dtype_size(sh->reduce);
}

/* Bytes of the sums, samples and losses that the whole step has and the part has not. */
static size_t more_of_step(const ls_config *c, const ls_plan *p, const ls_memory *m, amount all) {
    const ls_share *sh = &p->share;
    const ls_model *model = sh->model;
    size_t slots = (size_t)sh->workers[m->worker].nslots, nbytes = 0;
    size_t whole = (size_t)ls_tree_slots((int)c->train.virtual_workers, 0, (int)all.vws);
    const ls_worker_share *x = &sh->workers[m->worker];
    whole *= (size_t)(x->end_chunk - x->first_chunk);
    size_t losses = (size_t)(model->nlosses + model->nnotes) + ls_weighing_is_on(&model->weighing);
    size_t own = (size_t)sh->workers[m->worker].nvws * (size_t)(sh->batch / sh->V);
    if (sh->config->tree && whole > slots) nbytes += (whole - slots) * sum_nbytes(p, m->worker);
    nbytes += 2 * ((size_t)(all.vws * samples_of(c)) - own) * model->sample_nbytes;
    return nbytes + 2 * losses * (size_t)(c->train.batch - sh->batch) * sizeof(double);
}

/* ---- bytes that are read ---- */

/* Bytes of a bucket that a worker reads from others that share the batch with it. */
static double read_of_bucket(const ls_plan *p, const ls_action *a, const ls_mesh *m) {
    const ls_share *sh = &p->share;
    ls_bucket b = sh->buckets[a->bucket];
    int planned = ls_worker_set_count(sh->buckets[a->bucket].workers);
    double members = (double)planned / sh->data * (double)m->data;
    double floats = (double)(b.end - b.first) * (members - 1) / members;
    double reduce = floats * (double)ls_dtype_size(sh->reduce);
    if (a->kind == LS_ALL_GATHER) return floats * (double)ls_dtype_size(sh->compute);
    return reduce * (ls_share_sums(sh, a->bucket, 0) + (a->kind == LS_ALL_REDUCE));
}

static double received_by(const ls_plan *p, int worker, const ls_mesh *m) {
    double sum = 0;
    for (int i = 0; i < p->nactions; i++) {
        const ls_action *a = &p->actions[i];
        if (a->kind == LS_SEND)
            sum += a->peer == worker ? ls_plan_sent_nbytes(p, a) : 0;
        else if (a->worker == LS_ALL_WORKERS && ls_action_concerns(a, worker))
            sum += a->kind == LS_DECIDE ? 2 * (double)p->share.nbytes.scalars
                                        : read_of_bucket(p, a, m);
    }
    return sum;
}

static double most_received(const ls_plan *p, const ls_mesh *m) {
    double most = 0;
    for (int rank = 0; rank < ranks_of(m); rank++) {
        double x = received_by(p, ls_share_worker(&p->share, rank, 0), m);
        if (x > most) most = x;
    }
    return most;
}

/* ---- simulating ---- */

/* Seconds in which the first worker of a rank passes another rank's parameters on to the workers
 * that share the batch with it; the planned part has none of these. */
static double passing_s(const ls_plan *p, const ls_site *site, const ls_mesh *m, int rank) {
    const ls_machine *machine = site->machine;
    double host = fmax(1, site->host_workers / (double)ls_mesh_beside(m));
    double near = fmin((double)m->data, host) - 1;
    double far = (double)m->data - 1 - near, sum = 0;
    for (int i = 0; i < p->nactions && !site->one; i++) {
        const ls_action *a = &p->actions[i];
        if (a->kind != LS_SEND || a->peer != rank ||
            ls_plan_buffer_of(p, a->buffer).kind != LS_BUF_PARAM)
            continue;
        double nbytes = (double)a->comm.nbytes;
        sum += near * (site->shared ? machine->shared_start_s + nbytes * machine->shared_copy_byte_s
                                    : machine->link.latency_s + nbytes * machine->link.byte_s);
        sum += far * (site->latency_s + nbytes * site->byte_s);
    }
    return sum;
}

static double most_passing_s(const ls_plan *p, const ls_site *site, const ls_mesh *m) {
    double most = 0;
    for (int rank = 0; rank < ranks_of(m) && ranks_of(m) > 1; rank++) {
        double x = passing_s(p, site, m, rank);
        if (x > most) most = x;
    }
    return most;
}

/* What a part of a step takes. */
typedef struct measured {
    double step_s, compute_s, received;
    double memory;
} measured;

typedef struct trial {
    const ls_config *c;
    int nworkers;
    const ls_forecast_world *w;
    const ls_mesh *mesh;
    amount all;
} trial;

static ls_status measure_plan(const trial *t, const ls_config *with, const ls_plan *p, measured *x,
                              ls_error *e) {
    ls_site site = site_of(with, p, t->nworkers, t->w);
    ls_memory_config how = ls_layout_memory_config(with, t->nworkers, site.host_workers);
    how.threads = site.threads;
    ls_memory m;
    ls_sim sim;
    LS_TRY(ls_sim_run(p, &site, false, &sim, e));
    ls_plan_memory(p, &how, &m);
    size_t nbytes = m.peak + more_of_step(t->c, p, &m, t->all);
    nbytes += (size_t)more_transient(p, &m, site.copies);
    *x = (measured){.step_s = sim.step_s + most_passing_s(p, &site, t->mesh),
                    .compute_s = sim.compute_s,
                    .received = most_received(p, t->mesh),
                    .memory =
                        (double)(nbytes - less_sharded(p, &how, m.worker, (size_t)site.copies))};
    ls_sim_free(&sim);
    return LS_OK;
}

static ls_status measure(const trial *t, amount a, measured *x, bool *possible_p, ls_error *e) {
    int data = planned_data(t->c, t->mesh);
    ls_config with;
    set_part(t->c, t->mesh, a, data, &with);
    ls_layout l;
    ls_config_forget_written(&with); /* it is not as it was written */
    *possible_p = ls_config_check(&with, "mesh", e) == LS_OK &&
                  ls_layout_make(&with, data * ranks_of(t->mesh), NULL, &l, e) == LS_OK;
    if (!*possible_p) return LS_OK;
    ls_status s = measure_plan(t, &with, &l.plan, x, e);
    ls_layout_free(&l);
    return s;
}

/* What `times` times the difference between two parts adds to the second. Memory stays: as many
 * micro-batches are in flight. */
static measured extend(const measured *x, const measured *y, double times) {
    return (measured){.step_s = y->step_s + times * (y->step_s - x->step_s),
                      .compute_s = y->compute_s + times * (y->compute_s - x->compute_s),
                      .received = y->received + times * (y->received - x->received),
                      .memory = y->memory};
}

/* A step of many micro-batches repeats itself in the middle: two parts show by how much. */
ls_status ls_mesh_try(const ls_config *c, int n, const ls_forecast_world *w, ls_mesh *m,
                      bool *possible_p, ls_error *e) {
    trial t = {c, n, w, m, amount_of(c, m)};
    int64_t few = m->pipe > 1 && m->pipe < 4 ? 4 : m->pipe;
    amount some = less_of(c, t.all, 2, few), more = less_of(c, t.all, 3, few);
    int64_t all = passes_of(t.all);
    bool repeats = passes_of(more) > passes_of(some);
    bool whole = !repeats || all <= passes_of(some) + passes_of(more); /* costs no more than both */
    measured x, y;
    LS_TRY(measure(&t, whole ? t.all : more, &y, possible_p, e));
    if (!*possible_p) return LS_OK;
    if (!whole) {
        LS_TRY(measure(&t, some, &x, possible_p, e));
        double step = (double)(passes_of(more) - passes_of(some));
        y = extend(&x, &y, (double)(all - passes_of(more)) / step);
    }
    m->step_s = y.step_s;
    m->compute_s = y.compute_s;
    m->exposed_s = y.step_s - y.compute_s;
    m->received = y.received;
    m->memory_nbytes = (size_t)y.memory;
    return LS_OK;
}

double ls_mesh_trial_calls(const ls_config *c, const ls_model *model, const ls_mesh *m) {
    int64_t all = passes_of(amount_of(c, m)), most = 5 * m->pipe;
    return 2.0 * (double)(all < most ? all : most) * model->nlayers * planned_data(c, m);
}

ls_status ls_mesh_plan(const ls_config *c, int n, const ls_forecast_world *w, ls_mesh *m,
                       bool *possible_p, ls_error *e) {
    ls_config with = *c;
    ls_forecast f;
    ls_layout l;
    ls_mesh_set(&with, m);
    *possible_p = ls_config_check(&with, "mesh", e) == LS_OK &&
                  ls_layout_make(&with, n, NULL, &l, e) == LS_OK;
    if (!*possible_p) return LS_OK;
    ls_status s = ls_forecast_plan(&with, &l.plan, w, &f, e);
    if (s == LS_OK) {
        m->step_s = f.step_s;
        m->exposed_s = f.exposed_s;
        m->compute_s = f.step_s - f.exposed_s;
        m->received = most_received(&l.plan, m);
        m->memory_nbytes = f.memory_nbytes;
    }
    ls_layout_free(&l);
    return s;
}

double ls_mesh_plan_calls(const ls_config *c, const ls_model *model, const ls_mesh *m) {
    int64_t micros = up(samples_of(c), m->micro_batch);
    return 2.0 * (double)(c->train.virtual_workers * micros) * model->nlayers;
}
