/* frees.c - the pass that ends the life of each transient buffer after its last use.
 *
 * It walks the plan from the end. A use of a buffer that no later action reads is its last use: a
 * Free follows it. A use that overwrites the buffer begins its life, so before that use the buffer
 * is dead again.
 *
 * A Free of what was sent waits until the receiver has read it. Workers that divide slices or
 * chunks would wait so for each other at every message. There such a Free comes later: after the
 * worker has read what another one has sent since, which it waits for in any case.
 */
#include <stdlib.h>
#include <string.h>

#include "plan/plan.h"
#include "share/mesh.h"

typedef struct walk {
    const ls_plan *p;
    const ls_action *action;
    bool *live;   /* [nworkers][nbuffers] used by a later action */
    ls_plan *out; /* actions in reverse */
    int worker;
} walk;

static bool *live_of(const walk *w, int buffer) {
    return &w->live[(size_t)w->worker * (size_t)ls_plan_nbuffers(w->p) + (size_t)buffer];
}

static void on_last_use(int buffer, ls_use how, void *arg) {
    walk *w = arg;
    (void)how;
    if (!ls_plan_transient(w->p, ls_plan_buffer_of(w->p, buffer)) || *live_of(w, buffer)) return;
    *live_of(w, buffer) = true;
    ls_plan_append(w->out, &(ls_action){.kind = LS_FREE, .worker = w->worker, .buffer = buffer});
}

static void on_first_use(int buffer, ls_use how, void *arg) {
    if (how == LS_USE_WRITE) *live_of(arg, buffer) = false;
}

static void reverse(ls_action *actions, int n) {
    for (int i = 0, j = n - 1; i < j; i++, j--) {
        ls_action a = actions[i];
        actions[i] = actions[j];
        actions[j] = a;
    }
}

/* ---- what was sent ---- */

/* Frees [n] of a worker that come later. */
typedef struct later {
    int *buffers;
    int n;
} later;

typedef struct delay {
    const ls_plan *p;
    ls_plan to;
    later *of; /* [nworkers] */
    int worker;
    bool used; /* the action uses a buffer of its worker's list */
} delay;

static void end_later(delay *d, int worker) {
    later *l = &d->of[worker];
    for (int i = 0; i < l->n; i++)
        ls_plan_append(&d->to,
                       &(ls_action){.kind = LS_FREE, .worker = worker, .buffer = l->buffers[i]});
    l->n = 0;
}

static void note_use(int buffer, ls_use how, void *arg) {
    delay *d = arg;
    const later *l = &d->of[d->worker];
    (void)how;
    for (int i = 0; i < l->n; i++) d->used = d->used || l->buffers[i] == buffer;
}

/* Does the layer read what another worker has sent? */
static bool reads_message(const ls_plan *p, const ls_action *a) {
    const ls_share *sh = &p->share;
    const ls_layer *l = &sh->model->layers[a->layer];
    if (!ls_action_calls_layer(a)) return false;
    if (a->kind == LS_BACKWARD && !l->traits.loss) return ls_share_crosses(sh, a->layer);
    for (int k = 0; k < l->ninputs; k++)
        if (ls_share_crosses(sh, l->inputs[k])) return true;
    return false;
}

/* The workers that the action concerns, and whose lists it uses, free them before it. */
static void end_used(delay *d, const ls_action *a) {
    ls_worker_set of = ls_action_concerned(a);
    for (d->worker = of.from; d->worker < of.to; d->worker += of.step) {
        d->used = a->kind == LS_NORM;
        ls_action_uses(d->p, a, d->worker, note_use, d);
        if (d->used) end_later(d, d->worker);
    }
}

static bool follows_send(const ls_plan *p, int i) {
    const ls_action *a = &p->actions[i], *before = a;
    while (before > p->actions && before->kind == LS_FREE) before--;
    if (a->kind != LS_FREE || before->kind != LS_SEND || before->worker != a->worker) return false;
    return before->buffer == a->buffer || ls_plan_scores(p, before) == a->buffer;
}

static void delay_frees(ls_plan *p) {
    delay d = {.p = p, .to = *p, .of = LS_NEW_ARRAY(later, (size_t)p->share.nworkers)};
    d.to.actions = NULL;
    d.to.nactions = d.to.capacity = 0;
    for (int i = 0; i < p->nactions; i++) {
        const ls_action *a = &p->actions[i];
        if (follows_send(p, i)) {
            later *l = &d.of[a->worker];
            l->buffers = ls_grow(l->buffers, (size_t)l->n, sizeof *l->buffers);
            l->buffers[l->n++] = a->buffer;
            continue;
        }
        end_used(&d, a);
        ls_plan_append(&d.to, a);
        if (reads_message(p, a)) end_later(&d, a->worker);
    }
    for (int w = 0; w < p->share.nworkers; w++) {
        end_later(&d, w);
        free(d.of[w].buffers);
    }
    free(d.of);
    free(p->actions);
    *p = d.to;
}

void ls_plan_add_frees(ls_plan *p) {
    const ls_share *sh = &p->share;
    ls_plan reversed = {0};
    walk w = {.p = p, .out = &reversed};
    w.live = LS_NEW_ARRAY(bool, (size_t)sh->nworkers *(size_t)ls_plan_nbuffers(p));
    for (int i = p->nactions - 1; i >= 0; i--) {
        w.action = &p->actions[i];
        ls_worker_set of = ls_action_concerned(w.action);
        for (w.worker = of.from; w.worker < of.to; w.worker += of.step) {
            ls_action_uses(p, w.action, w.worker, on_last_use, &w);
            ls_action_uses(p, w.action, w.worker, on_first_use, &w);
        }
        ls_plan_append(&reversed, w.action);
    }
    free(w.live);
    free(p->actions);
    p->actions = reversed.actions;
    p->nactions = reversed.nactions;
    p->capacity = reversed.capacity;
    reverse(p->actions, p->nactions);
    if (sh->beside > 1) delay_frees(p);
}
