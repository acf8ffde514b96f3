/* order.c - the plain order: a worker runs its virtual workers one after the other, each of these
 * its micro-batches one after the other, each micro-batch forward through all layers and backward.
 *
 * The head has no Forward: its Backward computes the loss. In the global order workers take turns.
 * A layer whose backward is whole runs it once, after the last micro-batch of the virtual worker.
 */
#include <stdlib.h>

#include "plan/plan.h"

static void add_micro(ls_plan *to, const ls_plan *p, ls_action base, int micro, int micros) {
    const ls_model *m = p->c.model;
    base.micro = micro;
    base.kind = LS_FORWARD;
    for (base.layer = 0; base.layer < m->nlayers; base.layer++)
        if (!m->layers[base.layer].loss) ls_plan_append(to, &base);
    base.kind = LS_BACKWARD;
    base.last = micro == micros - 1;
    bool start = base.start;
    base.start = start && micro == 0;
    for (base.layer = m->nlayers - 1; base.layer >= 0; base.layer--) {
        ls_action a = base;
        if (m->layers[a.layer].is_constant) continue;
        if (m->layers[a.layer].backward_whole) {
            if (!a.last) continue;
            a.micro = -1;
            a.start = start;
        }
        ls_plan_append(to, &a);
    }
}

/* Appends everything that `worker` computes to the scratch plan `to`. */
static void add_worker(ls_plan *to, const ls_plan *p, int worker) {
    int n = ls_plan_nvws(p, worker), micros = ls_plan_micros(p);
    ls_plan_append(to, &(ls_action){.kind = LS_LOAD, .worker = worker});
    for (int k = 0; k < n; k++) {
        ls_action base = {.worker = worker, .vw = ls_plan_vw(p, worker, k)};
        base.start = p->c.tree || ls_plan_reduces_rounds(p) || k == 0;
        ls_plan_fold(p, worker, k, &base.slot);
        for (int i = 0; i < micros; i++) add_micro(to, p, base, i, micros);
    }
}

void ls_plan_take_turns(ls_plan *p, ls_plan *lists) {
    int n = p->c.nworkers, most = 0;
    p->nactions = 0;
    for (int w = 0; w < n; w++)
        if (lists[w].nactions > most) most = lists[w].nactions;
    for (int i = 0; i < most; i++)
        for (int w = 0; w < n; w++)
            if (i < lists[w].nactions) ls_plan_append(p, &lists[w].actions[i]);
    for (int w = 0; w < n; w++) free(lists[w].actions);
}

void ls_plan_order_plain(ls_plan *p) {
    ls_plan *lists = LS_NEW_ARRAY(ls_plan, (size_t)p->c.nworkers);
    for (int w = 0; w < p->c.nworkers; w++) add_worker(&lists[w], p, w);
    ls_plan_take_turns(p, lists);
    free(lists);
}
