/* plan.c - makes a plan: runs the passes, and appends to its list of actions. */
#include "plan/plan.h"

#include <stdlib.h>

#include "share/config.h"

static ls_status order_passes(ls_plan *p, bool apart, ls_error *e) {
    const ls_share *sh = &p->share;
    ls_plan_order_plain(p, apart);
    if (sh->config->recompute > 0) ls_plan_add_recompute(p);
    return sh->ncells > 1 ? ls_plan_add_messages(p, e) : LS_OK;
}

/* A worker that puts passes off, to keep virtual workers apart, gives its parts of sums to others
 * later: these may then have to put passes off, too. */
static ls_status order_training(ls_plan *p, ls_error *e) {
    if (order_passes(p, false, NULL) != LS_OK) LS_TRY(order_passes(p, true, e));
    if (p->share.shards_params) ls_plan_add_gathers(p);
    LS_TRY(ls_plan_verify(p, LS_STAGE_ORDER, e));
    ls_plan_add_reduction(p);
    LS_TRY(ls_plan_verify(p, LS_STAGE_REDUCTION, e));
    ls_plan_add_update(p);
    LS_TRY(ls_plan_verify(p, LS_STAGE_UPDATE, e));
    if (p->share.on_device) ls_plan_add_copies(p);
    ls_plan_add_frees(p);
    return ls_plan_verify(p, LS_STAGE_WHOLE, e);
}

static ls_status order(ls_plan *p, ls_error *e) {
    const ls_share *sh = &p->share;
    if (sh->task == LS_TASK_TRAIN) return order_training(p, e);
    if (ls_task_is_common(sh->task))
        ls_plan_order_outer(p);
    else if (sh->task == LS_TASK_MIX)
        ls_plan_order_mix(p);
    else
        ls_plan_order_adopt(p);
    return ls_plan_verify_sync(p, e);
}

ls_status ls_plan_make(const ls_share_config *c, ls_plan *p_p, ls_error *e) {
    ls_plan p = {.in_flight = 1};
    LS_TRY(ls_share_make(c, &p.share, e));
    ls_plan_count_buffers(&p);
    ls_status s = order(&p, e);
    if (s == LS_OK)
        *p_p = p;
    else
        ls_plan_free(&p);
    return s;
}

ls_status ls_plan_solo(const ls_plan *p, ls_plan *solo_p, ls_error *e) {
    ls_share_config c = *p->share.config;
    c.nworkers = c.V;
    c.zero = c.shards = 0;
    c.early = false;
    c.first = NULL;
    c.compress.on = false;
    c.pipe = c.tensor = c.context = c.chunks = 0;
    c.schedule = LS_PIPE_1F1B;
    c.stages = NULL;
    c.on_device = c.state_on_device = c.sums_on_device = c.receives = false;
    return ls_plan_make(&c, solo_p, e);
}

ls_phase ls_plan_values_phase(const ls_plan *p) {
    return p->share.sends_codes ? LS_PHASE_VALUES : LS_PHASE_ALL;
}

void ls_plan_free(ls_plan *p) {
    ls_share_free(&p->share);
    free(p->actions);
    *p = (ls_plan){0};
}

void ls_plan_append(ls_plan *p, const ls_action *a) {
    if (p->nactions == p->capacity) {
        p->capacity = p->capacity ? 2 * p->capacity : 256;
        p->actions = ls_realloc(p->actions, (size_t)p->capacity * sizeof *p->actions);
    }
    p->actions[p->nactions++] = *a;
}
