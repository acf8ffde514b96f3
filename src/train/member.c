/* member.c - see member.h. */
#include "train/member.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "async/bounded.h"
#include "base/clock.h"
#include "coll/virtual.h"
#include "net/tcp/admission.h"
#include "optim/learning_rate.h"
#include "state/placement.h"
#include "table/step_rows.h"
#include "train/backup.h"
#include "train/member_state.h"
#include "train/replica_sync.h"

/* Refuses, before the first step, workers that would run different plans. */
static ls_status compare_plans(ls_member *m, ls_error *e) {
    ls_hash own = ls_plan_hash(&m->layout->plan);
    ls_hash *all = LS_NEW_ARRAY(ls_hash, (size_t)m->nworkers);
    ls_status s = ls_all_gather(m->group, &own, all, sizeof own, LS_U8, e);
    for (int i = 0; s == LS_OK && i < m->nworkers; i++)
        if (memcmp(&all[i], &own, sizeof own) != 0)
            s = ls_fail(e, LS_EINVAL,
                        "workers %d and %d have different plans; are the config and the "
                        "version of lockstep the same on all hosts?",
                        m->worker, i);
    free(all);
    return s;
}

ls_status ls_member_compare_settings(const ls_member *m, ls_error *e) {
    ls_buf own = {0};
    char us[32];
    int worker = ls_group_rank(m->group);
    ls_run_must_match(&m->run->config, &own);
    int64_t n = (int64_t)own.len;
    ls_status s = ls_broadcast(m->group, &n, 1, LS_I64, 0, e);
    char *first = LS_NEW_ARRAY(char, (size_t)n + 1);
    if (worker == 0) memcpy(first, own.data, own.len);
    if (s == LS_OK) s = ls_broadcast(m->group, first, (size_t)n, LS_U8, 0, e);
    snprintf(us, sizeof us, "worker %d", worker);
    if (s == LS_OK)
        s = ls_agree(m->group, ls_admission_compare(own.data, first, us, "worker 0", e), e);
    free(first);
    ls_buf_free(&own);
    return s;
}

int ls_member_played(const ls_member *m, int i) {
    return ls_run_is_sequential(m->run) ? i : m->worker;
}

/* What this member's workers have on their devices. */
static ls_status fetch_states(void *member, bool states, ls_error *e) {
    ls_member *m = member;
    for (int i = 0; i < m->nexecs; i++) LS_TRY(ls_exec_fetch_state(m->execs[i], states, e));
    return LS_OK;
}

static ls_status create_exec(ls_member *m, int i, ls_exec **x_p, ls_error *e) {
    const ls_plan *p = &m->layout->plan;
    int worker = ls_member_played(m, i);
    int threads = ls_member_threads(m);
    ls_exec_config x = {.plan = p,
                        .world = &m->worlds[i],
                        .slot = m->slot,
                        .device = m->device.name,
                        .worker = worker,
                        .threads = threads,
                        .busy = m->seat.sharing * threads,
                        .cores = m->seat.cores,
                        .overlap = ls_member_has_overlap(m),
                        .first_step = m->first_step,
                        .rows = ls_step_rows_of_layers(m->rows),
                        .loader = ls_dataset_loader(m->data, &m->run->config)};
    m->host->runtime->connect(m, &x);
    x.loader.step = p->share.vw_step;
    x.loader.a = ls_share_vw(&p->share, worker, 0);
    x.loader.b = ls_share_vw(&p->share, worker, p->share.workers[worker].nvws - 1) + 1;
    LS_TRY(ls_exec_create(&x, x_p, e));
    if (!p->share.state_on_device) return LS_OK;
    m->worlds[i].fetch = fetch_states;
    m->worlds[i].fetch_arg = m;
    return LS_OK;
}

static ls_status lend_arena(ls_member *m, ls_error *e) {
    size_t nbytes = 0;
    if (m->infer.model) return LS_OK;
    int64_t n = m->run->config.train.micro_batch;
    ls_dtype type = m->layout->plan.share.compute;
    const ls_model *model = ls_layout_evaluated(m->layout);
    m->infer =
        (ls_infer){.model = model,
                   .dtype = type,
                   .compute = ls_exec_compute(m->execs[0]),
                   .params = m->worlds[0].params,
                   .frozen = m->frozen.values,
                   .rows = ls_step_rows_of_layers(m->rows),
                   .fetch = ls_step_rows_are_distributed(m->rows) ? ls_step_rows_fetch : NULL,
                   .fetch_arg = m->rows,
                   .memory = ls_exec_arena(m->execs[0], &nbytes),
                   .n = n};
    while (m->infer.n > 1 && ls_infer_nbytes(model, type, m->infer.n) > nbytes) m->infer.n--;
    if (ls_infer_nbytes(model, type, m->infer.n) <= nbytes) return LS_OK;
    m->infer_nbytes = ls_infer_nbytes(model, type, 1);
    void *p = NULL;
    LS_TRY(ls_map(m->infer_nbytes, "evaluation", &p, e));
    m->infer.memory = p;
    return LS_OK;
}

/* The directory for the file with the optimizer's state; NULL: the state is in memory. */
static const char *state_dir(const ls_run *r) {
    if (r->config.parallel.optimizer_state != LS_STATE_FILE) return NULL;
    if (*r->config.parallel.state_dir) return r->config.parallel.state_dir;
    return r->dir ? r->dir : ".";
}

static ls_status open_worlds(ls_member *m, ls_error *e) {
    const ls_run *r = m->run;
    bool opened = m->worlds && m->worlds[0].params;
    if (opened) return ls_world_rejoin(m->worlds, &m->layout->plan.share, m->group, e);
    free(m->worlds); /* left by a view that ended before it opened the worlds */
    free(m->execs);
    m->nexecs = ls_run_is_sequential(r) ? r->nworkers : 1;
    m->worlds = LS_NEW_ARRAY(ls_world, (size_t)m->nexecs);
    m->execs = LS_NEW_ARRAY(ls_exec *, (size_t)m->nexecs);
    if (!ls_run_is_sequential(r))
        return ls_world_open(m->worlds, &m->layout->plan.share, m->group, m->host->store,
                             state_dir(r), e);
    m->groups = LS_NEW_ARRAY(ls_group *, (size_t)m->nexecs);
    ls_group_options o = {.arena_nbytes = ls_share_group_nbytes(&m->layout->plan.share)};
    LS_TRY(ls_group_open_threads(m->nexecs, &o, m->groups, e));
    const ls_share *sh = &m->layout->plan.share; /* a checkpoint has what the first world has */
    bool shares = sh->shards_moments || sh->divides || sh->islands;
    return ls_world_open_all(m->worlds, sh, m->groups, shares, e);
}

ls_member ls_member_of(const ls_host *h, ls_group *g, ls_board_slot *slot, const ls_dataset *d) {
    return (ls_member){
        .host = h, .run = h->run, .layout = &h->layout, .group = g, .slot = slot, .data = d};
}

bool ls_member_has_overlap(const ls_member *m) {
    return ls_layout_has_overlap(&m->run->config, &m->layout->plan, m->host->runtime->survives,
                                 m->seat.sharing, m->seat.cores);
}

static int threads_at(const ls_member *m, const ls_cores_seat *s) {
    int n = ls_layout_threads(&m->run->config, &m->layout->plan, m->host->runtime->survives,
                              s->sharing, s->cores);
    bool own = m->run->started || m->run->config.parallel.threads != LS_AUTO;
    return own || n < m->host->threads ? n : m->host->threads;
}

int ls_member_threads(const ls_member *m) { return threads_at(m, &m->seat); }

static bool talks_at(const ls_member *m, const ls_cores_seat *s) {
    return ls_layout_has_overlap(&m->run->config, &m->layout->plan, m->host->runtime->survives,
                                 s->sharing, s->cores) &&
           (threads_at(m, s) + 1) * s->sharing <= s->cores;
}

static void count_near(ls_member *m, const ls_cores_seen *all) {
    m->near = (ls_member_near){.talks = true};
    for (int i = 0; i < m->nworkers; i++) {
        if (all[i].machine != all[m->worker].machine) continue;
        ls_cores_seat s = ls_cores_seat_of(all, m->nworkers, i);
        int computing = threads_at(m, &s), n = computing + talks_at(m, &s);
        if (!m->near.fewest || n < m->near.fewest) m->near.fewest = n;
        if (n > m->near.most) m->near.most = n;
        m->near.computing += computing;
        m->near.all += n;
        m->near.talks &= n > computing;
    }
}

/* Workers compare their cores: a launcher may have bound them, and several hosts of a run may be
 * one machine. */
static ls_status take_seat(ls_member *m, ls_error *e) {
    ls_cores_seen own, *all = LS_NEW_ARRAY(ls_cores_seen, (size_t)m->nworkers);
    ls_cores_see(&own);
    ls_status s = ls_all_gather(m->group, &own, all, sizeof own, LS_U8, e);
    if (s == LS_OK) m->seat = ls_cores_seat_of(all, m->nworkers, m->worker);
    if (s == LS_OK) count_near(m, all);
    free(all);
    return s;
}

/* That are bound to cores of their own. */
static int cores_of(const ls_member *m) { return threads_at(m, &m->seat) + talks_at(m, &m->seat); }

/* Before this thread touches memory, and starts others: these and the memory are where it is. The
 * threads of executors stay from one view to the next, but other workers may have come. */
static void bind_worker(ls_member *m) {
    const ls_cores_seat *s = &m->seat;
    int threads = ls_member_threads(m), nodes = ls_cores_nodes();
    bool binds = m->host->binds && s->equal && s->sharing * threads <= s->cores &&
                 ls_config_binds(&m->run->config, s->sharing, threads, s->cores, nodes);
    if (m->bound) ls_cores_unbind();
    if (binds) ls_cores_bind_worker(s->index, s->sharing, cores_of(m));
    for (int i = 0; m->bound && !binds && i < m->nexecs; i++)
        if (m->execs[i]) ls_exec_bind(m->execs[i], -1, 1, 0);
    m->bound = binds;
}

bool ls_member_spans_nodes(const ls_member *m) { return m->bound && ls_cores_nodes() > 1; }

/* NCCL refuses GPUs that two of its ranks have, and says little. */
static ls_status choose_device(ls_member *m, ls_error *e) {
    const char *name = m->run->config.parallel.device;
    LS_TRY(ls_worker_device_choose(m->group, name, &m->device, e));
    if (!m->layout->plan.share.receives || m->device.sharing <= 1) return LS_OK;
    return ls_fail(
        e, LS_EINVAL,
        "parallel.device_link: nccl: %d workers have device %s, and NCCL needs a GPU for "
        "each; use --device cuda, or host",
        m->device.sharing, name);
}

ls_status ls_member_join(ls_member *m, ls_error *e) {
    m->worker = ls_group_rank(m->group);
    m->nworkers = ls_group_size(m->group);
    LS_TRY(take_seat(m, e));
    bind_worker(m);
    LS_TRY(ls_agree(m->group, compare_plans(m, e), e));
    if (m->layout->plan.share.on_device) LS_TRY(ls_agree(m->group, choose_device(m, e), e));
    bool opened = m->worlds && m->worlds[0].params; /* by an earlier view */
    ls_status s = open_worlds(m, e);
    if (s == LS_OK && !opened && ls_member_spans_nodes(m))
        ls_place_world(&m->worlds[0], &m->layout->plan.share);
    if (s == LS_OK) s = ls_sync_check(&m->layout->plan, m->worlds[0].shares_state, e);
    return ls_agree(m->group, s, e);
}

/* Workers that read nothing get the scale from worker 0. */
static ls_status agree_on_scaler(ls_member *m, ls_error *e) {
    return ls_broadcast(m->group, &m->scaler, sizeof m->scaler, LS_U8, 0, e);
}

/* Collective. own: this worker's status so far. */
static ls_status open_frozen(ls_member *m, ls_status own, ls_error *e) {
    LS_TRY(ls_member_wait(m, own, e));
    LS_TRY(ls_frozen_values_open(m, &m->frozen, e));
    for (int i = 0; i < m->nexecs; i++) m->worlds[i].frozen = m->frozen.values;
    return LS_OK;
}

/* Workers of one host share its store; those of other runtimes share nothing. */
static ls_status open_rows(ls_member *m, ls_error *e) {
    const ls_host *h = m->host;
    const ls_step_rows_config c = {.plan = &m->layout->plan,
                                   .flat = &m->worlds[0].flat,
                                   .group = m->group,
                                   .seed = (uint64_t)m->run->config.train.seed,
                                   .batch = ls_dataset_loader(m->data, &m->run->config),
                                   .memory = ls_host_tables(h),
                                   .first = h->store ? h->survival.view.first : m->worker,
                                   .distributed =
                                       h->store ? h->survival.view.nhosts > 1 : m->nworkers > 1};
    return ls_step_rows_open(&c, &m->rows, e);
}

static ls_status take_up_rows(ls_member *m, int64_t steps, bool found, ls_error *e) {
    bool lost = false;
    const ls_step_rows_view v = {.group = m->group,
                                 .number = m->host->survival.view.id.number,
                                 .steps = steps,
                                 .found = found,
                                 .lost_p = &lost};
    ls_status s = ls_step_rows_take_up(m->rows, &v, e);
    if (lost && m->host->store) ls_store_set_finding(m->host->store, LS_STORE_LOST);
    return s;
}

/* ---- parts of a step that only some runs have ---- */

static ls_status nothing_before(ls_member *m, ls_step_in *in, ls_error *e) {
    (void)m, (void)in, (void)e;
    return LS_OK;
}

static ls_status before_rows(ls_member *m, ls_step_in *in, ls_error *e) {
    bool all = m->backup != NULL; /* it may compute others' samples */
    return ls_step_rows_begin(m->rows, in->step, all, e);
}

static ls_status after_rows(ls_member *m, const ls_step_in *in, const ls_step_out *out,
                            ls_error *e) {
    (void)out;
    return ls_step_rows_end(m->rows, in->step, e);
}

static ls_status after_scaled(ls_member *m, const ls_step_in *in, const ls_step_out *out,
                              ls_error *e) {
    ls_scaler_config scaler = ls_run_scaler(m->run);
    if (ls_scaler_next(&m->scaler, &scaler, out->skipped)) return LS_OK;
    return ls_fail(e, LS_EINVAL,
                   "step %lld: %s overflows in f16, with a loss scale of %g, which is the lowest; "
                   "use train.compute=bf16 or f32, or a lower optim.lr or optim.loss_scale_min",
                   (long long)in->step + 1, ls_exec_overflow(m->execs[0]), in->loss_scale);
}

static ls_status after_bounded(ls_member *m, const ls_step_in *in, const ls_step_out *out,
                               ls_error *e) {
    (void)out;
    LS_TRY(ls_bounded_check(m->bounded, e));
    ls_bounded_stepped(m->bounded, in->step + 1);
    return LS_OK;
}

static void choose_parts(ls_member *m) {
    static const ls_step_part rows = {before_rows, after_rows},
                              scaled = {nothing_before, after_scaled},
                              bounded = {nothing_before, after_bounded};
    m->nparts = 0;
    if (m->rows) m->parts[m->nparts++] = &rows;
    if (ls_run_has_scale(m->run)) m->parts[m->nparts++] = &scaled;
    if (m->layout->plan.share.islands) m->parts[m->nparts++] = &ls_sync_part;
    if (m->bounded) m->parts[m->nparts++] = &bounded;
}

/* ---- beginning ---- */

ls_status ls_member_begin(ls_member *m, int64_t first_step, const char *path, ls_error *e) {
    const ls_runtime *runtime = m->host->runtime;
    bool found = ls_host_has_state(m->host);
    ls_status s = LS_OK;
    m->first_step = first_step;
    m->rest = 0;
    if (found) m->rest = (int)(ls_store_steps(m->host->store) % m->layout->plan.share.changes);
    if (m->rest) m->first_step++; /* of the executor, whose part of the step is done */
    m->schedule = ls_schedule_of(&m->run->config, m->data->ntrain);
    if (m->layout->model.table_floats && !m->rows) LS_TRY(open_rows(m, e));
    for (int i = 0; s == LS_OK && i < m->nexecs; i++)
        if (!m->execs[i]) s = create_exec(m, i, &m->execs[i], e);
    for (int i = 0; s == LS_OK && m->bound && i < m->nexecs; i++)
        ls_exec_bind(m->execs[i], m->seat.index, m->seat.sharing, cores_of(m));
    if (m->layout->model.frozen_count) LS_TRY(open_frozen(m, s, e));
    if (s == LS_OK && !found) s = ls_member_make_state(m, path, e);
    if (s == LS_OK && !found) runtime->has_made(m);
    if (s == LS_OK) s = lend_arena(m, e);
    LS_TRY(ls_member_wait(m, s, e));
    LS_TRY(runtime->take_up(m, found, e));
    for (int i = 0; i < m->nexecs; i++)
        LS_TRY(ls_world_spread(&m->worlds[i], &m->layout->plan.share, e));
    LS_TRY(take_up_rows(m, first_step, found, e));
    choose_parts(m);
    return agree_on_scaler(m, e);
}

ls_solo_config ls_member_solo(const ls_member *m, const ls_plan *solo) {
    return (ls_solo_config){.plan = solo,
                            .params = m->worlds[0].params,
                            .frozen = m->worlds[0].frozen,
                            .rows = ls_step_rows_of_layers(m->rows),
                            .loader = ls_dataset_loader(m->data, &m->run->config),
                            .threads = ls_member_threads(m),
                            .busy = 1};
}

void ls_member_part(ls_member *m) {
    if (m->worlds && m->worlds[0].store) ls_world_part(m->worlds);
    ls_sync_free(m->sync);
    m->sync = NULL;
    m->group = NULL;
}

void ls_member_leave(ls_member *m) {
    if (m->bound) ls_cores_unbind(); /* of a program's thread that was a worker */
    ls_sync_free(m->sync);
    for (int i = 0; i < m->nexecs; i++) {
        if (m->execs && m->failed) ls_exec_fail(m->execs[i]);
        if (m->execs) ls_exec_free(m->execs[i]);
        if (m->worlds) ls_world_close(&m->worlds[i], &m->layout->plan.share);
        if (m->groups) ls_group_close(m->groups[i]);
    }
    ls_backup_free(m->backup);
    ls_step_rows_free(m->rows);
    free(m->execs);
    free(m->worlds);
    free(m->groups);
    ls_frozen_values_close(&m->frozen);
    if (m->infer_nbytes) ls_unmap(m->infer.memory, m->infer_nbytes);
    *m = (ls_member){0};
}

ls_status ls_member_finish_step(ls_member *m, ls_step_in *in, ls_step_out *out_p, ls_error *e) {
    ls_store_note last = {0};
    int rest = m->rest;
    m->rest = 0;
    m->step_began_ns = ls_clock_ns();
    if (ls_store_last_note(m->host->store, &last)) {
        in->updates = last.updates;
        in->loss_scale = last.loss_scale;
    }
    *out_p = last.out;
    return ls_sync_after(m, in, out_p, in->step * m->layout->plan.share.changes + rest, e);
}

/* ---- steps ---- */

ls_step_in ls_member_inputs(const ls_member *m, int64_t step) {
    bool scales = ls_run_has_scale(m->run);
    return (ls_step_in){.step = step,
                        .changes = step + 1,
                        .updates = step - m->scaler.skipped,
                        .loss_scale = scales ? m->scaler.scale : 1,
                        .skips = scales,
                        .lr = ls_schedule_rate(&m->schedule, step),
                        .clip = m->run->config.optim.clip};
}

ls_status ls_member_step(ls_member *m, const ls_step_in *given, ls_step_out *out_p, ls_error *e) {
    ls_step_in in = *given;
    m->step_began_ns = ls_clock_ns();
    for (int i = 0; i < m->nparts; i++) LS_TRY(m->parts[i]->before(m, &in, e));
    LS_TRY(ls_run_is_sequential(m->run) ? ls_exec_step_all(m->execs, &in, out_p, e)
                                        : ls_exec_step(m->execs[0], &in, out_p, e));
    if (ls_exec_gave_up(m->execs[0])) return m->bounded ? ls_bounded_check(m->bounded, e) : LS_OK;
    for (int i = 0; i < m->nparts; i++) LS_TRY(m->parts[i]->after(m, &in, out_p, e));
    return LS_OK;
}

int64_t ls_member_data_wait_ns(const ls_member *m) {
    int64_t sum = 0;
    for (int i = 0; i < m->nexecs; i++) sum += ls_exec_data_wait_ns(m->execs[i]);
    return sum;
}

ls_traced_workers ls_member_traced(const ls_member *m) {
    return (ls_traced_workers){.group = m->group,
                               .plan = &m->layout->plan,
                               .execs = m->execs,
                               .nexecs = m->nexecs,
                               .timeout_s = m->run->config.parallel.timeout_s};
}

ls_status ls_member_wait(ls_member *m, ls_status own, ls_error *e) {
    ls_group_set_patience(m->group, -1, -1);
    ls_status s = ls_agree(m->group, own, e);
    ls_group_set_patience(m->group, m->run->config.parallel.timeout_s, 0);
    return s;
}
