/* backup.c - see backup.h. */
#include "train/backup.h"

#include <stdlib.h>

#include "base/mem.h"
#include "train/solo.h"

struct ls_backup {
    const ls_member *m;
    ls_exec_helpers helpers;
    ls_solo solo;
    int64_t step;       /* that was last helped in; -1: none */
    int64_t opened;     /* step for which `solo` is open; -1: it is not */
    int worker, vw, at; /* whose, which, and how far it is */
};

/* Parameters that are sharded come and go within a step. */
bool ls_backup_can(const ls_run *r) {
    const ls_plan_config *p = &r->plan.c;
    return r->store && r->config.survival.backup_workers > 0 && p->tree && !p->early &&
           p->zero < 3 && r->nworkers > 1;
}

/* ---- who is slow ---- */

/* How many of its virtual workers are not complete: of a worker in this step. */
static int left_of(const ls_backup *b, int worker, int64_t step) {
    const ls_plan *p = &b->m->run->plan;
    const ls_board_slot *slot = &b->m->run->survival.board->slots[worker];
    int action = atomic_load(&slot->action), n = ls_plan_nvws(p, worker);
    int64_t at = atomic_load(&slot->step);
    if (at < step) return n;
    if (at > step || action < 0) return 0;
    const ls_action *a = &p->actions[action];
    if (a->kind == LS_LOAD) return n;
    if (a->kind != LS_FORWARD && a->kind != LS_RECOMPUTE && a->kind != LS_BACKWARD) return 0;
    return n - ls_plan_vw_index(p, worker, a->vw);
}

static int slowest(const ls_backup *b, int64_t step) {
    const ls_view *v = &b->m->run->survival.view;
    int best = -1, most = 0;
    for (int w = v->first; w < v->first + v->n; w++) {
        int left = w == b->m->worker ? 0 : left_of(b, w, step);
        if (left > most) best = w;
        if (left > most) most = left;
    }
    return best;
}

/* ---- helping ---- */

static void put_down(ls_backup *b) {
    if (b->opened >= 0) ls_solo_close(&b->solo);
    b->opened = -1;
}

/* One virtual worker a step: its gradient has to stay until it has been taken. */
static bool take_up(ls_backup *b, const ls_step_in *in) {
    ls_store *s = b->m->run->store;
    const ls_plan *p = &b->m->run->plan;
    ls_error e;
    if (b->step == in->step) return false;
    int w = slowest(b, in->step), most = (int)b->m->run->config.survival.backup_workers;
    if (w < 0) return false;
    int vw = ls_plan_vw(p, w, ls_plan_nvws(p, w) - 1);
    b->step = in->step;
    if (!ls_store_claim(s, vw, in->step, b->m->worker, most)) return false;
    b->worker = w;
    b->vw = vw;
    b->at = 0;
    b->opened = in->step;
    if (ls_solo_open(&b->solo, b->m, vw, in->step, ls_store_backup_grads(s, b->m->worker),
                     ls_store_backup_parts(s, b->m->worker), &e) == LS_OK)
        return true;
    put_down(b); /* no memory to help with */
    return false;
}

static bool idle(void *arg, const ls_step_in *in) {
    ls_backup *b = arg;
    ls_error e;
    if (b->opened >= 0 && b->opened != in->step) put_down(b);
    if (b->opened < 0 && !take_up(b, in)) return false;
    if (left_of(b, b->worker, in->step) == 0 ||
        ls_exec_gradient_next(b->solo.exec, in, &b->at, &e) != LS_OK) {
        put_down(b);
        return false;
    }
    if (b->at < 0) {
        ls_store_back(b->m->run->store, b->vw, in->step);
        put_down(b);
    }
    return true;
}

static const void *given(void *arg, int64_t step, int vw, const double **losses_p) {
    const ls_backup *b = arg;
    ls_store *s = b->m->run->store;
    int by = ls_store_backed_by(s, vw, step);
    if (by < 0) return NULL;
    *losses_p = ls_world_losses(&b->m->run->plan, ls_store_backup_parts(s, by));
    return ls_store_backup_grads(s, by);
}

/* ---- the whole ---- */

ls_backup *ls_backup_new(const ls_member *m) {
    ls_backup *b = LS_NEW(ls_backup);
    *b = (ls_backup){.m = m, .step = -1, .opened = -1};
    b->helpers = (ls_exec_helpers){.given = given, .idle = idle, .arg = b};
    return b;
}

void ls_backup_free(ls_backup *b) {
    if (!b) return;
    put_down(b);
    free(b);
}

const ls_exec_helpers *ls_backup_helpers(const ls_backup *b) { return &b->helpers; }
