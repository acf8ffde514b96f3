/* run.c - see run.h. */
#include "train/run.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "optim/schedule.h"

/* ---- the supervisor's side ---- */

static bool is_sequential(const ls_run *r) {
    return r->config.parallel.executor == LS_EXECUTOR_SEQUENTIAL;
}

static int processes_of(const ls_run *r) { return is_sequential(r) ? 1 : r->nworkers; }

int ls_run_workers(const ls_config *c, int asked) {
    int64_t V = c->train.virtual_workers, cores = ls_cores() / c->parallel.threads;
    if (cores < 1) cores = 1;
    return asked ? asked : (int)(cores < V ? cores : V);
}

ls_status ls_run_plan(const ls_config *c, int nworkers, ls_model *m_p, ls_plan *p_p, ls_error *e) {
    ls_gpt_config shape = ls_config_shape(c);
    LS_TRY(ls_gpt_create(&shape, m_p, e));
    ls_plan_config plan = {.model = m_p,
                           .nworkers = nworkers,
                           .V = (int)c->train.virtual_workers,
                           .batch = c->train.batch,
                           .micro_batch = c->train.micro_batch,
                           .tree = c->parallel.reduce == LS_REDUCE_TREE,
                           .bucket_nbytes = (size_t)(c->parallel.bucket_mb * 1e6)};
    ls_status s = ls_plan_make(&plan, p_p, e);
    if (s != LS_OK) ls_model_free(m_p);
    return s;
}

ls_status ls_run_build(ls_run *r, ls_error *e) {
    LS_TRY(ls_run_plan(&r->config, r->nworkers, &r->model, &r->plan, e));
    size_t val = (size_t)r->corpus.nval * sizeof(double), report = LS_REPORT_SIZE * sizeof(double);
    size_t arena = ls_world_cost(&r->plan) + ls_local_shared_cost(r->nworkers) +
                   ls_region_cost(val) + ls_region_cost(report);
    bool shared = r->config.parallel.transport == LS_TRANSPORT_SHM;
    LS_TRY(ls_region_create(r->nworkers, arena, shared, &r->region, e));
    ls_local_share(&r->region, r->nworkers, &r->local_shared);
    ls_world_take(&r->world, &r->plan, &r->region);
    r->val_losses = ls_region_take(&r->region, val);
    r->report = ls_region_take(&r->region, report);
    return LS_OK;
}

void ls_run_free(ls_run *r) {
    ls_world_free(&r->world);
    ls_region_close(&r->region);
    ls_plan_free(&r->plan);
    ls_model_free(&r->model);
    ls_corpus_free(&r->corpus);
    ls_buf_free(&r->config_text);
    *r = (ls_run){0};
}

static void where(int worker, void *arg, char *text, size_t nbytes) {
    const ls_run *r = arg;
    const ls_worker_slot *slot = &r->region.header->workers[worker];
    int action = atomic_load(&slot->action);
    if (action < 0 || action >= r->plan.nactions) {
        snprintf(text, nbytes, " between steps");
        return;
    }
    const ls_action *a = &r->plan.actions[action];
    bool layer = a->kind == LS_FORWARD || a->kind == LS_BACKWARD;
    snprintf(text, nbytes, " in step %lld, action %d (%s%s%s)",
             (long long)atomic_load(&slot->step) + 1, action, ls_action_kind_name(a->kind),
             layer ? " " : "", layer ? r->model.layers[a->layer].name : "");
}

ls_status ls_run_launch(ls_run *r, ls_worker_main *worker_main, ls_error *e) {
    ls_launch l = {.nworkers = processes_of(r),
                   .main = worker_main,
                   .where = where,
                   .arg = r,
                   .region = &r->region};
    bool shm = r->config.parallel.transport == LS_TRANSPORT_SHM;
    return (shm ? &ls_spawn_processes : &ls_spawn_threads)->run(&l, e);
}

ls_step_in ls_run_step(const ls_run *r, int64_t step) {
    const ls_config *c = &r->config;
    ls_schedule s = {c->optim.lr, c->optim.min_lr, c->optim.warmup, c->train.steps};
    return (ls_step_in){
        .step = step,
        .lr = ls_schedule_rate(&s, step),
        .clip = c->optim.clip,
        .adamw = {c->optim.beta1, c->optim.beta2, c->optim.eps, c->optim.weight_decay}};
}

/* ---- the workers' side ---- */

/* Initial weights are drawn by all, a part each; a checkpoint's are in shared memory already. */
static void draw_params(ls_member *m) {
    ls_run *r = m->run;
    if (r->first_step > 0) return;
    size_t n = (size_t)m->local.size, w = (size_t)m->worker, all = r->model.nfloats;
    ls_model_init(&r->model, (uint64_t)r->config.train.seed, all * w / n, all * (w + 1) / n,
                  r->world.params);
}

/* A worker that would run another plan is refused before the first step. */
static ls_status compare_plans(ls_member *m, ls_error *e) {
    ls_hash own = ls_plan_hash(&m->run->plan);
    ls_hash *all = LS_NEW_ARRAY(ls_hash, (size_t)m->local.size);
    ls_status s = ls_local_all_gather(&m->local, &own, sizeof own, all, e);
    for (int i = 0; s == LS_OK && i < m->local.size; i++)
        if (memcmp(&all[i], &own, sizeof own) != 0)
            s = ls_fail(e, LS_EINVAL, "workers %d and %d have different plans", m->worker, i);
    free(all);
    return s;
}

static ls_status create_exec(ls_member *m, int worker, ls_exec **x_p, ls_error *e) {
    ls_run *r = m->run;
    const ls_config *c = &r->config;
    int busy = r->nworkers * (int)c->parallel.threads;
    bool room = 2 * busy <= ls_cores() && r->nworkers > 1;
    ls_exec_config x = {.plan = &r->plan,
                        .world = &r->world,
                        .region = &r->region,
                        .local = &m->local,
                        .worker = worker,
                        .threads = (int)c->parallel.threads,
                        .first_step = r->first_step,
                        .loader = {.tokens = r->corpus.train,
                                   .nsamples = r->corpus.ntrain,
                                   .seed = (uint64_t)c->train.seed,
                                   .batch = (uint64_t)c->train.batch,
                                   .T = c->model.context,
                                   .V = (int)c->train.virtual_workers}};
    x.overlap = !is_sequential(r) && (c->parallel.overlap == LS_OVERLAP_ON ||
                                      (c->parallel.overlap == LS_OVERLAP_AUTO && room));
    ls_plan_range(&r->plan, worker, &x.loader.a, &x.loader.b);
    return ls_exec_create(&x, x_p, e);
}

static ls_status lend_arena(ls_member *m, ls_error *e) {
    size_t nbytes = 0;
    int64_t n = m->run->config.train.micro_batch;
    m->infer = (ls_infer){.model = &m->run->model,
                          .compute = ls_exec_compute(m->execs[0]),
                          .params = m->run->world.params,
                          .memory = ls_exec_arena(m->execs[0], &nbytes),
                          .n = n};
    while (m->infer.n > 1 && ls_infer_nbytes(&m->run->model, m->infer.n) > nbytes) m->infer.n--;
    if (ls_infer_nbytes(&m->run->model, m->infer.n) <= nbytes) return LS_OK;
    m->infer_nbytes = ls_infer_nbytes(&m->run->model, 1);
    void *p = NULL;
    LS_TRY(ls_map(m->infer_nbytes, "evaluation", &p, e));
    m->infer.memory = p;
    return LS_OK;
}

ls_status ls_member_join(ls_member *m, ls_run *r, int worker, ls_error *e) {
    *m = (ls_member){.run = r, .worker = worker};
    const ls_kernels *k = NULL;
    LS_TRY(ls_kernels_pick(&k, e));
    int size = processes_of(r), busy = r->nworkers * (int)r->config.parallel.threads;
    ls_local_join(&m->local, &r->region, &r->local_shared, k, worker, size, busy,
                  r->config.parallel.timeout_s);
    m->execs = LS_NEW_ARRAY(ls_exec *, (size_t)r->nworkers);
    for (int i = 0; i < (is_sequential(r) ? r->nworkers : 1); i++)
        LS_TRY(create_exec(m, is_sequential(r) ? i : worker, &m->execs[m->nexecs++], e));
    LS_TRY(lend_arena(m, e));
    draw_params(m);
    LS_TRY(compare_plans(m, e));
    return ls_local_barrier(&m->local, e);
}

void ls_member_leave(ls_member *m) {
    for (int i = 0; i < m->nexecs; i++) ls_exec_free(m->execs[i]);
    free(m->execs);
    if (m->infer_nbytes) ls_unmap(m->infer.memory, m->infer_nbytes);
    *m = (ls_member){0};
}

ls_status ls_member_step(ls_member *m, const ls_step_in *in, ls_step_out *out_p, ls_error *e) {
    return is_sequential(m->run) ? ls_exec_step_all(m->execs, in, out_p, e)
                                 : ls_exec_step(m->execs[0], in, out_p, e);
}
