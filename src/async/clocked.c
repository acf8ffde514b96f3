/* clocked.c - see clocked.h. */
#include "async/clocked.h"

#include <string.h>
#include <time.h>

#include "base/cores.h"

void *ls_clocked_grads(const ls_clocked_crew *w, int cell) {
    return w->grads + (size_t)cell * w->grads_nbytes;
}

double *ls_clocked_parts(const ls_clocked_crew *w, int cell) {
    return (double *)(w->parts + (size_t)cell * w->parts_nbytes);
}

float *ls_clocked_older(const ls_clocked_crew *w, int64_t version) {
    int first = ls_optim_older(&w->plan->share.optim);
    return w->world->flat.of[1 + first + (int)(version % w->clocks->staleness)];
}

long long ls_clocked_progress(const void *crew) {
    const ls_clocks *c = ((const ls_clocked_crew *)crew)->clocks;
    long long n = 0;
    for (int i = 0; i < c->nworkers; i++) n += atomic_load(&c->workers[i].ncomplete);
    return n;
}

typedef struct clocked {
    const ls_clocked_crew *crew;
    int worker;
    void *params;    /* [nfloats] of the compute type */
    int64_t version; /* of these; -1: none yet */
    ls_solo solo;
} clocked;

static bool has_task(void *arg) {
    const clocked *x = arg;
    return ls_clocks_has_task(x->crew->clocks, x->worker);
}

static void take(clocked *x, ls_clock_task *t_p) {
    ls_clocks *c = x->crew->clocks;
    while (!ls_clocks_claim(c, x->worker, t_p))
        ls_bell_wait(&c->workers[x->worker].bell, has_task, x, &x->crew->patience, -1);
}

static void copy_older(const ls_clocked_crew *w, int64_t version, void *to) {
    const ls_plan *p = w->plan;
    size_t n = p->share.model->nfloats;
    const float *from = ls_clocked_older(w, version);
    if (p->share.compute == LS_F32)
        memcpy(to, from, n * sizeof *from);
    else
        w->kernels->narrow(p->share.compute, n, from, to);
}

/* The newest parameters, unless they are being changed, or have been. */
void ls_clocked_pull(const ls_clocked_crew *w, int worker, int64_t version, void *to) {
    ls_clocks *c = w->clocks;
    while (!ls_clocks_begin_read(c, worker, version)) {
        if (atomic_load(&c->version) > version) {
            copy_older(w, version, to);
            return;
        }
        nanosleep(&(struct timespec){0, 100 * 1000}, NULL); /* they are being changed */
    }
    memcpy(to, w->world->params, w->plan->share.nbytes.params);
    ls_clocks_end_read(c, worker);
}

static void pull(clocked *x, int64_t version) {
    if (x->version != version) ls_clocked_pull(x->crew, x->worker, version, x->params);
    x->version = version;
}

static ls_solo_task solo_task(const clocked *x, const ls_clock_task *t) {
    return (ls_solo_task){.vw = t->vw,
                          .steps = t->clock,
                          .grads = ls_clocked_grads(x->crew, t->cell),
                          .parts = ls_clocked_parts(x->crew, t->cell)};
}

static ls_status open_solo(clocked *x, const ls_clock_task *t, ls_error *e) {
    const ls_clocked_crew *w = x->crew;
    int n = w->clocks->nlocal;
    LS_TRY(ls_map(w->plan->share.nbytes.params, "a worker's parameters", &x->params, e));
    const ls_solo_config how = {.plan = &w->solo,
                                .params = x->params,
                                .loader = w->loader,
                                .threads = w->threads,
                                .busy = n * w->threads,
                                .cores = ls_cores_among(n)};
    const ls_solo_task first = solo_task(x, t);
    LS_TRY(ls_solo_open(&x->solo, &how, &first, e));
    if (w->binds) ls_exec_bind(x->solo.exec, x->worker, n, w->threads);
    return w->prepare(w->prepare_arg, x->solo.exec, &x->solo.world.frozen, e);
}

static ls_status work(const ls_clocked_crew *crew, int worker, ls_error *e) {
    clocked x = {.crew = crew, .worker = worker, .version = -1};
    ls_clocks *c = x.crew->clocks;
    ls_clock_task t;
    ls_clocks_succeed(c, worker);
    take(&x, &t);
    LS_TRY(open_solo(&x, &t, e)); /* the process ends then */
    for (;;) {
        const ls_step_in in = {.step = t.clock, .updates = t.clock, .loss_scale = 1};
        pull(&x, t.version);
        LS_TRY(ls_exec_gradient(x.solo.exec, &in, e));
        ls_clocks_complete(c, worker, &t);
        take(&x, &t);
        const ls_solo_task next = solo_task(&x, &t);
        ls_solo_move(&x.solo, &next);
    }
}

ls_status ls_clocked_run_role(const void *crew, int role, ls_error *e) {
    const ls_clocked_crew *w = crew;
    if (role == w->clocks->nlocal) return ls_gate_guard(&w->gate, e);
    ls_gate_leave(&w->gate);
    return work(w, role, e);
}
