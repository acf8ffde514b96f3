/* run.c - see run.h. */
#include "train/run.h"

#include <stdio.h>

#include "base/cores.h"
#include "base/plural.h"
#include "optim/schedule.h"
#include "plan/memory.h"
#include "train/host_memory.h"

bool ls_run_is_sequential(const ls_run *r) {
    return r->config.parallel.executor == LS_EXECUTOR_SEQUENTIAL;
}

static ls_status check_workers(const ls_config *c, int n, ls_error *e) {
    int64_t V = c->train.virtual_workers;
    if (n <= V) return LS_OK;
    return ls_fail(
        e, LS_EINVAL,
        "%d workers for train.virtual_workers %lld; use -n %lld or fewer (only a new run can "
        "have more virtual workers)",
        n, (long long)V, (long long)V);
}

ls_status ls_run_workers_here(const ls_config *c, int asked, int *n_p, ls_error *e) {
    int64_t V = c->train.virtual_workers, cores = ls_cores() / c->parallel.threads;
    if (cores < 1) cores = 1;
    *n_p = asked ? asked : (int)(cores < V ? cores : V);
    return check_workers(c, *n_p, e);
}

ls_status ls_run_workers(const ls_config *c, int asked, int *n_p, bool *started_p, ls_error *e) {
    LS_TRY(ls_workers_started(started_p, n_p, e));
    if (*started_p && asked && asked != *n_p)
        return ls_fail(e, LS_EINVAL, "-n %d: the launcher has started %d worker%s; leave out -n",
                       asked, *n_p, ls_plural(*n_p));
    if (*started_p && c->parallel.executor == LS_EXECUTOR_SEQUENTIAL)
        return ls_fail(e, LS_EINVAL,
                       "parallel.executor sequential plays all workers in one process; start it "
                       "without a launcher");
    return *started_p ? check_workers(c, *n_p, e) : ls_run_workers_here(c, asked, n_p, e);
}

/* The workers of other hosts are not known yet: the first view makes another plan. */
static ls_status plan_own(ls_run *r, ls_error *e) {
    const ls_config *c = &r->config;
    return ls_layout_make_nearest(c, r->nworkers, (int)c->parallel.shard_group, NULL, &r->layout,
                                  e);
}

ls_status ls_run_build(ls_run *r, ls_error *e) {
    if (!r->started) LS_TRY(ls_host_memory_for_model(&r->config, e));
    if (r->listen || r->join)
        LS_TRY(plan_own(r, e));
    else
        LS_TRY(ls_layout_make(&r->config, r->nworkers, NULL, &r->layout, e));
    bool copy = !r->started && r->dir && ls_run_can_survive(&r->config);
    return ls_host_memory_for_plan(&r->config, &r->layout.plan, r->started ? 1 : r->nworkers, copy,
                                   e);
}

void ls_run_free(ls_run *r) {
    ls_run_drop(r);
    ls_layout_free(&r->layout);
    ls_buf_free(&r->config_text);
    ls_buf_free(&r->alike);
    *r = (ls_run){0};
}

const char *ls_run_workers_name(const ls_run *r) {
    if (ls_run_is_sequential(r)) return "sequential";
    if (r->started) return "started by a launcher";
    return r->config.parallel.transport == LS_TRANSPORT_THREAD ? "threads" : "processes";
}

/* Told of a worker that was killed. */
static void where(const ls_board_slot *slot, const void *arg, char *text, size_t nbytes) {
    const ls_run *r = arg;
    const char *after =
        r->store ? "" : "; the run ends. Go on from the last checkpoint with --resume";
    int action = atomic_load(&slot->action);
    if (action < 0 || action >= r->layout.plan.nactions) {
        snprintf(text, nbytes, " between steps%s", after);
        return;
    }
    const ls_action *a = &r->layout.plan.actions[action];
    bool layer = a->kind == LS_FORWARD || a->kind == LS_RECOMPUTE || a->kind == LS_BACKWARD;
    bool bucket = !layer && a->kind != LS_FREE && a->bucket > 0;
    char what[64] = "";
    if (layer) snprintf(what, sizeof what, " %.60s", r->layout.model.layers[a->layer].name);
    if (bucket) snprintf(what, sizeof what, " bucket %d", a->bucket);
    snprintf(text, nbytes, " in step %lld, action %d (%s%s)%s",
             (long long)atomic_load(&slot->step) + 1, action, ls_action_kind_name(a->kind), what,
             after);
}

ls_status ls_run_launch(ls_run *r, ls_worker_main *worker_main, void *arg, ls_error *e) {
    static const char *const names[] = {[LS_TRANSPORT_AUTO] = NULL,
                                        [LS_TRANSPORT_SHM] = "shm",
                                        [LS_TRANSPORT_THREAD] = "thread",
                                        [LS_TRANSPORT_TCP] = "tcp",
                                        [LS_TRANSPORT_MPI] = "mpi"};
    ls_workers w = {.n = ls_run_is_sequential(r) ? 1 : r->nworkers,
                    .transport =
                        ls_run_is_sequential(r) ? "thread" : names[r->config.parallel.transport],
                    .arena_nbytes = ls_plan_group_nbytes(&r->layout.plan),
                    .timeout_s = r->config.parallel.timeout_s,
                    .where = where,
                    .survival = r->store ? &r->survival : NULL};
    if (r->config.parallel.transport == LS_TRANSPORT_MPI && !r->started)
        return ls_fail(e, LS_EINVAL,
                       "parallel.transport mpi: start it with mpirun, e.g. mpirun -n %d lockstep "
                       "train ...",
                       r->nworkers);
    if (r->config.parallel.transport == LS_TRANSPORT_THREAD && r->started)
        return ls_fail(e, LS_EINVAL,
                       "parallel.transport thread: the workers are processes that a launcher has "
                       "started; leave it out");
    return ls_workers_run(&w, worker_main, arg, e);
}

ls_scaler_config ls_run_scaler(const ls_run *r) {
    const ls_config *c = &r->config;
    return (ls_scaler_config){.initial = c->optim.loss_scale,
                              .lowest = c->optim.loss_scale_min,
                              .window = c->optim.loss_scale_window,
                              .hysteresis = c->optim.loss_scale_hysteresis};
}

bool ls_run_has_scale(const ls_run *r) {
    return r->layout.plan.c.compute == LS_F16 || r->layout.plan.c.reduce == LS_F16;
}

ls_step_in ls_run_step(const ls_run *r, int64_t step, const ls_scaler *scaler) {
    const ls_config *c = &r->config;
    ls_schedule s = {c->optim.lr, c->optim.min_lr, c->optim.warmup, c->train.steps};
    return (ls_step_in){
        .step = step,
        .updates = step - scaler->skipped,
        .loss_scale = ls_run_has_scale(r) ? scaler->scale : 1,
        .skips = ls_run_has_scale(r),
        .lr = ls_schedule_rate(&s, step),
        .clip = c->optim.clip,
        .adamw = {c->optim.beta1, c->optim.beta2, c->optim.eps, c->optim.weight_decay}};
}

ls_loader_config ls_run_loader(const ls_run *r, const ls_corpus *corpus) {
    const ls_config *c = &r->config;
    return (ls_loader_config){.tokens = &corpus->tokens,
                              .nsamples = corpus->ntrain,
                              .seed = (uint64_t)c->train.seed,
                              .batch = (uint64_t)c->train.batch,
                              .T = c->model.context,
                              .V = (int)c->train.virtual_workers};
}

ls_run_notes *ls_run_notes_of(const ls_run *r) {
    return r->store ? ls_store_carried(r->store) : NULL;
}

ls_folder_run ls_run_folder(const ls_run *r) {
    ls_run_notes *notes = ls_run_notes_of(r);
    return (ls_folder_run){.dir = r->dir,
                           .config = &r->config,
                           .config_text = &r->config_text,
                           .model = &r->layout.model,
                           .store = r->store,
                           .state = notes ? &notes->folder : NULL,
                           .resumes = r->resumes};
}

ls_snapshot_run ls_run_snapshot(const ls_run *r) {
    ls_run_notes *notes = ls_run_notes_of(r);
    return (ls_snapshot_run){.dir = r->dir,
                             .config = &r->config,
                             .config_text = &r->config_text,
                             .plan = &r->layout.plan,
                             .store = r->store,
                             .state = notes ? &notes->snapshot : NULL,
                             .best = notes ? &notes->best : NULL,
                             .first = r->survival.view.first,
                             .n = r->survival.view.n};
}
