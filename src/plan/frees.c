/* frees.c - the pass that ends the life of each transient buffer after its last use.
 *
 * It walks the plan from the end. A use of a buffer that no later action reads is its last use: a
 * Free follows it. A use that overwrites the buffer begins its life, so before that use the buffer
 * is dead again.
 */
#include <stdlib.h>
#include <string.h>

#include "plan/plan.h"

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

void ls_plan_add_frees(ls_plan *p) {
    ls_plan reversed = {0};
    walk w = {.p = p, .out = &reversed};
    w.live = LS_NEW_ARRAY(bool, (size_t)p->c.nworkers *(size_t)ls_plan_nbuffers(p));
    for (int i = p->nactions - 1; i >= 0; i--) {
        w.action = &p->actions[i];
        ls_worker_set of = ls_plan_concerned(p, w.action);
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
}
