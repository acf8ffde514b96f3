/* copies.c - the pass for devices: what a device runs uses its memory, and what both it and the
 * host use is copied before one of them reads what the other has written.
 *
 * The samples and a bucket's parameters go to the device before the first call that reads them; a
 * bucket's gradient comes back before the host reduces it, and the losses before the norm, with
 * which the gradient is complete. Where the optimizer's states are on the device, parameters stay
 * there; the sum over workers goes there before the norm, and the norms come back; the new
 * parameters that another stage has sent go there at the end.
 */
#include <stdlib.h>

#include "plan/plan.h"

typedef struct walk {
    const ls_plan *from;
    ls_plan *to;
    const ls_action *action;
    int worker;
    bool
        *stale[2]; /* [nworkers][nbuffers] by number of the host's: what the host, the device has */
} walk;

static bool *stale_at(const walk *w, bool device, int buffer) {
    return &w->stale[device][w->worker * ls_plan_nbuffers(w->from) + buffer];
}

static void use(walk *w, bool device, int buffer, ls_use how) {
    if (ls_plan_twin(w->from, buffer) == buffer) return;
    if ((how & LS_USE_READ) && *stale_at(w, device, buffer)) {
        ls_plan_append(w->to, &(ls_action){.kind = device ? LS_TO_DEVICE : LS_FROM_DEVICE,
                                           .worker = w->worker,
                                           .buffer = buffer});
        *stale_at(w, device, buffer) = false;
    }
    if (how & LS_USE_WRITE) {
        *stale_at(w, device, buffer) = false;
        *stale_at(w, !device, buffer) = true;
    }
}

static void on_use(int buffer, ls_use how, void *arg) {
    walk *w = arg;
    use(w, ls_action_on_device(&w->from->share, w->action), buffer, how);
}

static void add_before(walk *w, const ls_action *a) {
    ls_worker_set of = ls_action_concerned(a);
    w->action = a;
    for (w->worker = of.from; w->worker < of.to; w->worker += of.step) {
        if (a->kind == LS_NORM)
            use(w, false, ls_plan_buffer(w->from, LS_BUF_LOSSES, 0, 0), LS_USE_READ);
        ls_action_uses(w->from, a, w->worker, on_use, w);
    }
}

/* New parameters of another stage come to the host. */
static void add_end(walk *w) {
    const ls_plan *p = w->from;
    for (w->worker = 0; w->worker < p->share.nworkers; w->worker++)
        for (int k = 0; k < p->share.nbuckets; k++) {
            int params = ls_plan_buffer(p, LS_BUF_PARAM, k, 0);
            if (ls_plan_outlives(p, ls_plan_twin(p, params))) use(w, true, params, LS_USE_READ);
        }
}

void ls_plan_add_copies(ls_plan *p) {
    ls_plan to = *p;
    size_t n = (size_t)p->share.nworkers * (size_t)ls_plan_nbuffers(p);
    to.actions = NULL;
    to.nactions = to.capacity = 0;
    to.has_copies = true;
    walk w = {.from = p, .to = &to, .stale = {LS_NEW_ARRAY(bool, n), LS_NEW_ARRAY(bool, n)}};
    for (size_t i = 0; i < n; i++) {
        int twin = ls_plan_twin(p, (int)(i % (size_t)ls_plan_nbuffers(p)));
        w.stale[!ls_plan_outlives(p, twin)][i] = true;
    }
    for (int i = 0; i < p->nactions; i++) {
        add_before(&w, &p->actions[i]);
        ls_plan_append(&to, &p->actions[i]);
    }
    add_end(&w);
    free(w.stale[0]);
    free(w.stale[1]);
    free(p->actions);
    *p = to;
}
