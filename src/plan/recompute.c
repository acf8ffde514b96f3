/* recompute.c - the pass that trades time for memory: it computes what a layer saves for Backward
 * again, just before it is needed (Chen et al., "Training Deep Nets with Sublinear Memory Cost",
 * 2016).
 *
 * Layers are cut into segments of at least `recompute` layers, from the first after the embedding
 * to the last before the head; a segment begins where one value is all that later layers read of
 * earlier ones, or one of each slice or chunk (ls_model_cut()), and ends with a layer that has a
 * Backward. From Forward to Backward only these values stay in memory; before the Backward of the
 * segment's last layer all its layers run again (Recompute). `recompute_layers` limits segments to
 * the first layers, whose memory is needed longest. A frozen layer without a Backward is not
 * computed again: segments begin after the last such layer, or one whose backward is whole. In a
 * pipeline a segment also ends with its stage. No other pass is concerned: a Recompute writes what
 * Forward wrote, so between the two the buffers are dead (frees.c).
 *
 * Workers that divide the slices, or chunks, of a segment each compute their own layers again. What
 * they have sent each other stays in memory, and what only others read is not computed again.
 */
#include <stdlib.h>

#include "plan/plan.h"
#include "share/mesh.h"

/* Returns first [nlayers]: for the last layer of a segment, the segment's first; else NONE. The
 * head has no Forward; the slices of one, which have the model's largest products, are not computed
 * twice. */
enum { NONE = -1 };
static int *find_segments(const ls_plan *p) {
    const ls_share *sh = &p->share;
    const ls_model *m = sh->model;
    int *first = LS_NEW_ARRAY(int, (size_t)m->nlayers), begin = 1, last = m->nlayers - 1;
    if (sh->config->recompute_layers && 1 + sh->config->recompute_layers < last)
        last = 1 + sh->config->recompute_layers;
    for (int l = 0; l < last; l++)
        if (m->layers[l].traits.has_logits) last = l;
    for (int l = 0; l < m->nlayers; l++) first[l] = NONE;
    for (int l = begin; l < last; l++)
        if ((m->layers[l].link.is_constant && m->layers[l].nparams) ||
            m->layers[l].traits.backward_whole)
            begin = l + 1;
    while (begin < last && !ls_model_cut(m, begin, NULL)) begin++;
    for (int end = begin + 1; end <= last; end++) {
        bool meets = sh->stage_of && end < m->nlayers && sh->stage_of[end] != sh->stage_of[end - 1];
        if (end < last && end - begin < sh->config->recompute && !meets) continue;
        if (!ls_model_cut(m, end, NULL) || m->layers[end - 1].link.is_constant) continue;
        first[end - 1] = begin;
        begin = end;
    }
    return first;
}

/* Returns begins [cells][nlayers]: for the layer of a cell whose Backward is its first of a
 * segment, the segment's first layer. first: of find_segments(). */
static int *find_begins(const ls_plan *p, const int *first) {
    const ls_share *sh = &p->share;
    const ls_model *m = sh->model;
    int cells = sh->ncells, *begins = LS_NEW_ARRAY(int, (size_t)(cells * m->nlayers));
    bool *seen = LS_NEW_ARRAY(bool, (size_t)cells);
    for (int i = 0; i < cells * m->nlayers; i++) begins[i] = NONE;
    for (int end = 0; end < m->nlayers; end++) {
        if (first[end] == NONE) continue;
        for (int r = 0; r < cells; r++) seen[r] = false;
        for (int l = end; l >= first[end]; l--) {
            int r = ls_share_cell_of(sh, l);
            if (seen[r] || m->layers[l].link.is_constant) continue;
            seen[r] = true;
            begins[r * m->nlayers + l] = first[end];
        }
    }
    free(seen);
    return begins;
}

/* Appends an action of a worker's list, after the Recomputes that it needs. */
static void add_action(ls_plan *list, const ls_plan *p, const int *begins, const ls_action *a) {
    const ls_share *sh = &p->share;
    const ls_model *m = sh->model;
    int first = NONE, cell = sh->workers[a->worker].cell;
    if (a->kind == LS_BACKWARD && a->back != LS_BACK_PARAMS)
        first = begins[cell * m->nlayers + a->layer];
    for (int l = first; first != NONE && l <= a->layer; l++) {
        bool sent = ls_share_crosses(sh, l) && !m->layers[l].memory.saved;
        if (m->layers[l].traits.loss || ls_share_cell_of(sh, l) != cell || sent) continue;
        ls_action again = {.kind = LS_RECOMPUTE, .worker = a->worker, .layer = l};
        again.vw = a->vw;
        again.micro = a->micro;
        ls_plan_append(list, &again);
    }
    ls_plan_append(list, a);
}

void ls_plan_add_recompute(ls_plan *p) {
    ls_plan *lists = LS_NEW_ARRAY(ls_plan, (size_t)p->share.nworkers);
    int *first = find_segments(p), *begins = find_begins(p, first);
    for (int i = 0; i < p->nactions; i++)
        add_action(&lists[p->actions[i].worker], p, begins, &p->actions[i]);
    ls_plan_take_turns(p, lists);
    free(lists);
    free(begins);
    free(first);
}
