/* recompute.c - the pass that trades time for memory: it computes what a layer saves for Backward
 * again, just before it is needed (Chen et al., "Training Deep Nets with Sublinear Memory Cost",
 * 2016).
 *
 * Layers are cut into segments of `recompute` layers, from the first after the embedding to the
 * last before the head. From Forward to Backward only the input of a segment stays in memory;
 * before the Backward of the segment's last layer all its layers run again (Recompute).
 * `recompute_layers` limits segments to the first layers, whose memory is needed longest. No other
 * pass is concerned: a Recompute writes what Forward wrote, so between the two the buffers are dead
 * (frees.c).
 */
#include <stdlib.h>

#include "plan/plan.h"

/* The segment of a layer, [*first_p, *end_p); false: it is in none. */
static bool segment_of(const ls_plan *p, int layer, int *first_p, int *end_p) {
    int last = p->c.model->nlayers - 1; /* the head has no Forward */
    if (p->c.recompute_layers && 1 + p->c.recompute_layers < last) last = 1 + p->c.recompute_layers;
    if (layer < 1 || layer >= last) return false;
    *first_p = 1 + (layer - 1) / p->c.recompute * p->c.recompute;
    *end_p = *first_p + p->c.recompute < last ? *first_p + p->c.recompute : last;
    return true;
}

/* Appends an action of a worker's list, after the Recomputes that it needs. */
static void add_action(ls_plan *list, const ls_plan *p, const ls_action *a) {
    int first = 0, end = 0;
    bool segment = a->kind == LS_BACKWARD && segment_of(p, a->layer, &first, &end);
    for (int l = first; segment && a->layer == end - 1 && l < end; l++) {
        ls_action again = {.kind = LS_RECOMPUTE, .worker = a->worker, .layer = l};
        again.vw = a->vw;
        again.micro = a->micro;
        ls_plan_append(list, &again);
    }
    ls_plan_append(list, a);
}

void ls_plan_add_recompute(ls_plan *p) {
    ls_plan *lists = LS_NEW_ARRAY(ls_plan, (size_t)p->c.nworkers);
    for (int i = 0; i < p->nactions; i++)
        add_action(&lists[p->actions[i].worker], p, &p->actions[i]);
    ls_plan_take_turns(p, lists);
    free(lists);
}
