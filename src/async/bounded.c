/* bounded.c - see bounded.h. */
#include "async/bounded.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "async/clocked.h"
#include "base/cores.h"
#include "base/round_up.h"

struct ls_bounded {
    ls_clocked_crew crew;
    ls_nursery nursery;
    ls_exec_helpers helpers;
};

/* ---- set-up ---- */

static ls_status take_memory(ls_clocked_crew *w, ls_error *e) {
    const ls_clocks *c = w->clocks;
    size_t ncells = (size_t)(c->staleness + 1) * (size_t)c->V;
    void *grads = NULL, *parts = NULL;
    w->grads_nbytes = w->solo.share.nbytes.slot;
    w->parts_nbytes = ls_round_up(w->solo.share.nbytes.scalars, 64);
    LS_TRY(ls_map_shared(ncells * w->grads_nbytes, "gradients", &grads, e));
    w->grads = grads;
    LS_TRY(ls_map_shared(ncells * w->parts_nbytes, "norms and losses", &parts, e));
    w->parts = parts;
    return ls_board_open(1, &w->errors, e);
}

static ls_status open_gate(ls_clocked_crew *w, const ls_async_config *o, ls_error *e) {
    w->gate = (ls_gate){.ops = &ls_gate_clocks,
                        .crew = w,
                        .settings = o->settings,
                        .silence_s = LS_GATE_SILENCE * o->config->survival.heartbeat_s,
                        .nlocal = o->nworkers,
                        .params_nbytes = o->plan->share.nbytes.params,
                        .result_nbytes = w->solo.share.nbytes.scalars,
                        .grads_nbytes = w->solo.share.nbytes.slot};
    return ls_gate_open(&w->gate, o->listen, e);
}

static ls_status set_up(ls_bounded *b, const ls_async_config *o, ls_error *e) {
    ls_clocked_crew *w = &b->crew;
    const ls_config *c = o->config;
    const ls_clocks_config clocks = {.nlocal = o->nworkers,
                                     .nguests = o->listen ? LS_ASYNC_GUESTS : 0,
                                     .V = o->plan->share.V,
                                     .staleness = c->sync.staleness,
                                     .until = c->train.steps,
                                     .drawn = c->sync.staleness_drawn,
                                     .seed = (uint64_t)c->train.seed};
    int threads = ls_config_threads(c, o->nworkers, ls_cores());
    *w = (ls_clocked_crew){
        .gate.listen_fd = -1,
        .plan = o->plan,
        .world = o->world,
        .prepare = o->prepare,
        .prepare_arg = o->prepare_arg,
        .loader = o->loader,
        .threads = threads,
        .binds = ls_config_binds(c, o->nworkers, threads, ls_cores(), ls_cores_nodes()),
        .patience = ls_patience_for(o->nworkers * threads + 1, ls_cores())};
    LS_TRY(ls_kernels_pick(&w->kernels, e));
    LS_TRY(ls_plan_solo(o->plan, &w->solo, e));
    LS_TRY(ls_clocks_open(&clocks, &w->clocks, e));
    LS_TRY(take_memory(w, e));
    LS_TRY(open_gate(w, o, e));
    const ls_nursery_roles roles = {.n = o->nworkers + (w->gate.listen_fd >= 0),
                                    .nworkers = o->nworkers,
                                    .run = ls_clocked_run_role,
                                    .progress = ls_clocked_progress,
                                    .crew = w,
                                    .errors = w->errors,
                                    .bell = &w->clocks->bell,
                                    .heartbeat_s = c->survival.heartbeat_s};
    return ls_nursery_open(&b->nursery, &roles, e);
}

ls_status ls_bounded_open(const ls_async_config *o, ls_bounded **b_p, ls_error *e) {
    ls_bounded *b = LS_NEW(ls_bounded);
    ls_status s = set_up(b, o, e);
    if (s == LS_OK)
        *b_p = b;
    else
        ls_bounded_close(b, false);
    return s;
}

/* The gate says it to the workers of other hosts. */
static void say_over(ls_clocks *c) {
    enum { LOOKS = 2000 };
    atomic_store(&c->over, 1);
    for (int i = c->nlocal; i < c->nworkers; i++) {
        ls_bell_ring(&c->workers[i].bell);
        for (int k = 0; k < LOOKS && atomic_load(&c->workers[i].present); k++) usleep(1000);
    }
}

void ls_bounded_close(ls_bounded *b, bool over) {
    if (!b) return;
    ls_clocked_crew *w = &b->crew;
    if (over && w->clocks) say_over(w->clocks);
    if (over) ls_gate_dismiss(&w->gate);
    ls_gate_close(&w->gate);
    ls_nursery_close(&b->nursery);
    ls_board_close(w->errors);
    if (w->clocks) {
        size_t ncells = (size_t)(w->clocks->staleness + 1) * (size_t)w->clocks->V;
        ls_unmap(w->grads, ncells * w->grads_nbytes);
        ls_unmap(w->parts, ncells * w->parts_nbytes);
    }
    ls_clocks_close(w->clocks);
    ls_plan_free(&w->solo);
    free(b);
}

/* ---- steps ---- */

ls_status ls_bounded_check(ls_bounded *b, ls_error *e) {
    ls_board *errors = b->crew.errors;
    if (ls_board_failed(errors, e) || ls_board_lost(errors, e)) return e->code;
    ls_status s = ls_nursery_check(&b->nursery, e);
    if (s != LS_OK) ls_board_fail(errors, e); /* it is known from here on */
    return s;
}

typedef struct wanted {
    const ls_clocks *clocks;
    const ls_board *errors;
    int64_t clock;
    int vw, cell;
} wanted;

static bool is_there(void *arg) {
    wanted *w = arg;
    ls_error none;
    w->cell = ls_clocks_find(w->clocks, w->clock, w->vw);
    return w->cell >= 0 || ls_board_failed(w->errors, &none);
}

/* Waits for the gradient. Where no worker can compute it any more, the executor gives the step up,
 * and any gradient serves until then. */
static const void *given(void *arg, int64_t step, int vw, const double **losses_p) {
    enum { LOOK_NS = 100 * 1000 * 1000 };
    ls_bounded *b = arg;
    const ls_clocked_crew *w = &b->crew;
    wanted x = {.clocks = w->clocks, .errors = w->errors, .clock = step, .vw = vw};
    ls_error none = {0};
    while (!ls_bell_wait(&w->clocks->bell, is_there, &x, &w->patience, LOOK_NS))
        if (ls_bounded_check(b, &none) != LS_OK) break;
    int cell = x.cell >= 0 ? x.cell : 0;
    *losses_p = ls_share_scalars(&w->solo.share, ls_clocked_parts(w, cell)).losses;
    return ls_clocked_grads(w, cell);
}

static bool idle(void *arg, const ls_step_in *in) {
    (void)arg;
    (void)in;
    return false;
}

/* The processes that read have ended with the one that started them: the next check says so. */
static bool are_lost(void *arg) {
    ls_error none = {0};
    return ls_bounded_check(arg, &none) != LS_OK;
}

/* All gradients of the step are here. Its parameters become older ones before they change. */
static void decided(void *arg, const ls_store_note *note) {
    ls_bounded *b = arg;
    const ls_clocked_crew *w = &b->crew;
    int64_t version = atomic_load(&w->clocks->version);
    const ls_flat *flat = &w->world->flat;
    (void)note;
    ls_clocks_begin_change(w->clocks, are_lost, b);
    if (w->clocks->staleness > 0)
        memcpy(ls_clocked_older(w, version), flat->of[0],
               w->plan->share.model->nfloats * sizeof(float));
}

void ls_bounded_connect(ls_bounded *b, ls_exec_config *x) {
    b->helpers = (ls_exec_helpers){.given = given, .idle = idle, .arg = b};
    x->helpers = &b->helpers;
    x->decided = decided;
    x->decided_arg = b;
}

void ls_bounded_stepped(ls_bounded *b, int64_t steps) {
    ls_clocks_end_change(b->crew.clocks, steps);
}

void ls_bounded_shares(const ls_bounded *b, ls_buf *out) {
    const ls_clocks *c = b->crew.clocks;
    long long others = 0;
    for (int i = 0; i < c->nworkers; i++) {
        long long n = atomic_load(&c->workers[i].ncomplete);
        if (i >= c->nlocal)
            others += n;
        else
            ls_buf_printf(out, "%s%lld", i ? ", " : "", n);
    }
    if (c->nworkers > c->nlocal) ls_buf_printf(out, "; workers of other hosts: %lld", others);
}
