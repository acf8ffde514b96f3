/* chosen.c - messages of rows of which the receiver needs some (ls_chosen_rows): those of the
 * experts among workers that divide samples or chunks.
 *
 * A worker sends the rows of a value, or of its gradient, that are not zeros. In one of the two
 * directions, rows that are not chosen may have any values; there the sender uses the scores that
 * it has to leave them out. The receiver sets the rows that did not come to 0. So memory is
 * reserved for all rows, and the action's nbytes are the most that may travel. Of what a device has
 * computed, all rows are sent.
 */
#include "layers/routing.h"
#include "plan/plan.h"
#include "share/mesh.h"
#include "tensor/dtype.h"

const ls_chosen_rows *ls_plan_chosen(const ls_plan *p, const ls_action *a) {
    const ls_share *sh = &p->share;
    if (a->kind != LS_SEND || sh->task != LS_TASK_TRAIN || a->micro < 0 || sh->on_device)
        return NULL;
    const ls_chosen_rows *c = &sh->model->layers[a->layer].chosen;
    return c->width ? c : NULL;
}

int ls_plan_scores(const ls_plan *p, const ls_action *a) {
    const ls_chosen_rows *c = ls_plan_chosen(p, a);
    bool gradient = ls_plan_buffer_of(p, a->buffer).kind == LS_BUF_DACT;
    if (!c || gradient != c->gradient) return -1;
    return ls_plan_layer_buffer(p, LS_BUF_ACT, a, c->scores);
}

size_t ls_plan_chosen_nbytes(const ls_plan *p, const ls_chosen_rows *c) {
    return (size_t)c->width * ls_dtype_size(p->share.compute);
}

double ls_plan_sent_nbytes(const ls_plan *p, const ls_action *a) {
    const ls_chosen_rows *c = ls_plan_chosen(p, a);
    double nbytes = (double)a->comm.nbytes;
    if (!c) return nbytes;
    double bits = nbytes / (double)ls_plan_chosen_nbytes(p, c) / 8;
    double chosen = nbytes * ls_routing_part(c) + bits;
    return chosen < nbytes ? chosen : nbytes;
}

/* Does the worker have what the layer computes, for the same virtual workers: it runs the layer, or
 * one that reads it? */
static bool has_output(const ls_plan *p, int worker, int layer) {
    const ls_share *sh = &p->share;
    return ls_share_runner(sh, worker, layer) == worker ||
           (ls_share_crosses(sh, layer) &&
            ls_share_runner(sh, worker, sh->crossings[layer].reader) == worker);
}

bool ls_plan_chooses_well(const ls_plan *p, const ls_action *a) {
    const ls_chosen_rows *c = ls_plan_chosen(p, a);
    const ls_model *m = p->share.model;
    if (!c) return true;
    size_t width = (size_t)c->width, rows = m->layers[a->layer].y_floats / width;
    bool divides = rows * width == m->layers[a->layer].y_floats;
    bool scored = m->layers[c->scores].y_floats == rows * (size_t)c->experts;
    bool some = c->first >= 0 && c->first < c->end && c->end <= c->experts && c->k <= c->experts;
    bool own = ls_plan_scores(p, a) < 0 || has_output(p, a->worker, c->scores);
    return divides && scored && some && own;
}
