/* backup.c - see backup.h. */
#include "train/backup.h"

#include <stdlib.h>

#include "base/mem.h"
#include "state/store_backup.h"

struct ls_backup {
    const ls_member *m;
    ls_exec_helpers helpers;
    /* Made when the worker first helps, and retained, so that later steps allocate nothing. */
    ls_plan plan;
    ls_solo solo;
    bool has_plan, has_solo;
    int64_t helps;      /* the step in which it helps; -1: none */
    int worker, vw, at; /* the worker that it helps, its virtual worker, the progress there */
};

/* ---- slow workers ---- */

/* The number of virtual workers that a worker has not completed in this step. */
static int left_of(const ls_backup *b, int worker, int64_t step) {
    const ls_plan *p = &b->m->layout->plan;
    const ls_board_slot *slot = &b->m->host->survival.board->slots[worker];
    int action = atomic_load(&slot->action), n = p->share.workers[worker].nvws;
    int64_t at = atomic_load(&slot->step);
    if (at < step) return n;
    if (at > step || action < 0) return 0;
    const ls_action *a = &p->actions[action];
    if (a->kind == LS_LOAD) return n;
    if (a->kind != LS_FORWARD && a->kind != LS_RECOMPUTE && a->kind != LS_BACKWARD) return 0;
    return n - ls_share_vw_index(&p->share, worker, a->vw);
}

/* The last unclaimed virtual worker of the worker that has the most unclaimed ones left; -1: there
 * is none. */
static int next_to_claim(const ls_backup *b, int64_t step, int *worker_p) {
    const ls_host *h = b->m->host;
    const ls_plan *p = &h->layout.plan;
    const ls_view *v = &h->survival.view;
    int best = -1, most = 0;
    for (int w = v->first; w < v->first + v->n; w++) {
        int n = p->share.workers[w].nvws, free = 0, last = -1;
        int left = w == b->m->worker ? 0 : left_of(b, w, step);
        for (int i = n - left; i < n; i++) {
            int vw = ls_share_vw(&p->share, w, i);
            if (ls_store_backup_is_claimed(h->store, vw, step)) continue;
            free++;
            last = vw;
        }
        if (free <= most) continue;
        most = free;
        best = last;
        *worker_p = w;
    }
    return best;
}

/* ---- helping ---- */

static bool aim(ls_backup *b, int place, int64_t step) {
    ls_store *s = b->m->host->store;
    ls_error e;
    const ls_solo_config how = ls_member_solo(b->m, &b->plan);
    const ls_solo_task task = {.vw = b->vw,
                               .steps = step,
                               .grads = ls_store_backup_grads(s, place),
                               .parts = ls_store_backup_parts(s, place)};
    if (b->has_solo) {
        ls_solo_move(&b->solo, &task);
        return true;
    }
    b->has_solo = ls_solo_open(&b->solo, &how, &task, &e) == LS_OK;
    if (!b->has_solo) ls_solo_close(&b->solo); /* no memory to help with */
    return b->has_solo;
}

static bool take_up(ls_backup *b, const ls_step_in *in) {
    const ls_run *r = b->m->run;
    ls_error e;
    b->vw = next_to_claim(b, in->step, &b->worker);
    if (b->vw < 0) return false;
    if (!b->has_plan && ls_plan_solo(&b->m->layout->plan, &b->plan, &e) != LS_OK) return false;
    b->has_plan = true;
    int place = ls_store_backup_claim(b->m->host->store, b->vw, in->step,
                                      (int)r->config.survival.backup_workers);
    if (place < 0 || !aim(b, place, in->step)) return false;
    b->at = 0;
    b->helps = in->step;
    return true;
}

/* Has the worker that it helps completed this virtual worker itself? */
static bool is_late(const ls_backup *b, int64_t step) {
    const ls_plan *p = &b->m->layout->plan;
    int left = left_of(b, b->worker, step), n = p->share.workers[b->worker].nvws;
    return ls_share_vw_index(&p->share, b->worker, b->vw) < n - left;
}

static bool idle(void *arg, const ls_step_in *in) {
    ls_backup *b = arg;
    ls_error e;
    if (b->helps >= 0 && (b->helps != in->step || is_late(b, in->step))) b->helps = -1;
    if (b->helps < 0 && !take_up(b, in)) return false;
    if (ls_exec_gradient_next(b->solo.exec, in, &b->at, &e) != LS_OK) {
        b->helps = -1;
        return false;
    }
    if (b->at < 0) {
        ls_store_backup_finish(b->m->host->store, b->vw, in->step);
        b->helps = -1;
    }
    return true;
}

static const void *given(void *arg, int64_t step, int vw, const double **losses_p) {
    const ls_backup *b = arg;
    ls_store *s = b->m->host->store;
    int place = ls_store_backup_find(s, vw, step);
    if (place < 0) return NULL;
    *losses_p = ls_share_scalars(&b->m->layout->plan.share, ls_store_backup_parts(s, place)).losses;
    return ls_store_backup_grads(s, place);
}

/* ---- set-up ---- */

ls_backup *ls_backup_new(const ls_member *m) {
    ls_backup *b = LS_NEW(ls_backup);
    *b = (ls_backup){.m = m, .helps = -1};
    b->helpers = (ls_exec_helpers){.given = given, .idle = idle, .arg = b};
    return b;
}

void ls_backup_free(ls_backup *b) {
    if (!b) return;
    if (b->has_solo) ls_solo_close(&b->solo);
    if (b->has_plan) ls_plan_free(&b->plan);
    free(b);
}

const ls_exec_helpers *ls_backup_helpers(const ls_backup *b) { return &b->helpers; }
