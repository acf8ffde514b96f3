/* cost.c - see cost.h. */
#include "search/cost.h"

#include <math.h>

#include "config/phases.h"
#include "train/layout.h"

static double step_s(const ls_machine *m, const ls_config *given, int64_t batch, int nworkers) {
    const ls_forecast_world world = {.machine = m};
    ls_config c = *given;
    ls_layout l;
    ls_forecast f;
    ls_config_set_batch(&c, batch);
    if (nworkers > c.train.virtual_workers &&
        ls_forecast_scale(&c, 1, nworkers, true, &c, NULL) != LS_OK)
        return NAN;
    if (ls_layout_make(&c, nworkers, NULL, &l, NULL) != LS_OK) return NAN;
    ls_status s = ls_forecast_plan(&c, &l.plan, &world, &f, NULL);
    ls_layout_free(&l);
    return s == LS_OK && f.fits ? f.step_s : NAN;
}

ls_status ls_costs_open(const ls_cost_request *q, ls_costs *c_p, ls_error *e) {
    *c_p = (ls_costs){.asked = q};
    return q->file ? ls_machine_read(q->file, &c_p->machine, e) : LS_OK;
}

void ls_costs_add(ls_costs *x, const ls_config *c, int64_t batch, double steps) {
    if (!x->asked->file) return;
    ls_cost_row *row = &x->rows[x->n++];
    *row = (ls_cost_row){.batch = batch, .steps = steps};
    for (int k = 0; k < x->asked->ncounts; k++)
        row->step_s[k] = step_s(&x->machine, c, batch, x->asked->counts[k]);
}

double ls_costs_seconds(const ls_cost_row *row, int k) {
    return isfinite(row->steps) ? row->step_s[k] * row->steps : NAN;
}

ls_expense ls_costs_of(const ls_costs *x, const ls_cost_row *row, int k) {
    return ls_expense_of(&x->machine.prices, ls_costs_seconds(row, k) * x->asked->counts[k]);
}
