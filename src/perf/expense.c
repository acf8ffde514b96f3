/* expense.c - see expense.h. */
#include "perf/expense.h"

#include <math.h>
#include <string.h>

#include "base/escape.h"
#include "report/history.h"

static const double HOUR_S = 3600;

ls_expense ls_expense_of(const ls_machine_prices *p, double worker_seconds) {
    double hours = worker_seconds / HOUR_S;
    return (ls_expense){hours, hours * p->worker_hour, hours * p->watts / 1000};
}

ls_status ls_expense_run_s(const ls_config *c, int n, const ls_forecast_world *w, double step_s,
                           double *seconds_p, ls_error *e) {
    double phases[LS_CONFIG_PHASES], sum = 0;
    int64_t steps = c->train.steps;
    LS_TRY(ls_forecast_phases(c, n, w, phases, e));
    for (int i = 0; i < c->train.nphases; i++) {
        int64_t first = c->train.phases[i].step, end = steps;
        if (i + 1 < c->train.nphases && c->train.phases[i + 1].step < end)
            end = c->train.phases[i + 1].step;
        if (end > first) sum += phases[i] * (double)(end - first);
    }
    *seconds_p = c->train.nphases ? sum : step_s * (double)steps;
    return LS_OK;
}

void ls_expense_print(const ls_machine_prices *p, const ls_expense *c, ls_buf *out) {
    ls_buf_printf(out, "%.4g worker-hours", c->worker_hours);
    if (p->worker_hour > 0) ls_buf_put(out, ", %.4g %s", c->money, p->currency);
    if (p->watts > 0) ls_buf_printf(out, ", %.4g kWh", c->kwh);
}

ls_json *ls_expense_json(const ls_machine_prices *p, const ls_expense *c) {
    ls_json *o = ls_json_new_object();
    ls_json_set_number(o, "worker_hours", c->worker_hours);
    ls_json_set_number(o, "money", p->worker_hour > 0 ? c->money : NAN);
    ls_json_set_text(o, "currency", p->currency);
    ls_json_set_number(o, "kwh", p->watts > 0 ? c->kwh : NAN);
    return o;
}

static void add_line(void *arg, int64_t step, const ls_json *line) {
    ls_expense_used *u = arg;
    double seconds = 0;
    int64_t workers = 0;
    (void)step;
    if (!ls_json_number(ls_json_get(line, "seconds"), &seconds)) return;
    if (!ls_json_integer(ls_json_get(line, "workers"), &workers)) return;
    u->steps++;
    u->seconds += seconds;
    u->worker_seconds += seconds * (double)workers;
}

ls_status ls_expense_read(const char *run, ls_expense_used *u_p, ls_error *e) {
    *u_p = (ls_expense_used){0};
    return ls_history_scan(run, add_line, u_p, e);
}

/* ---- a budget ---- */

ls_status ls_offer_make(const ls_config *c, int n, const ls_forecast_world *w, double budget,
                        ls_offer *o, ls_error *e) {
    ls_config scaled, best;
    ls_forecast_list list;
    LS_TRY(ls_forecast_scale(c, 1, n, true, &scaled, e));
    scaled.train.nphases = c->train.nphases; /* the run's batches */
    memcpy(scaled.train.phases, c->train.phases, sizeof c->train.phases);
    LS_TRY(ls_forecast_rows(&scaled, n, w, &list, e));
    *o = (ls_offer){.fits_memory = list.best >= 0};
    o->forecast = list.rows[list.best >= 0 ? list.best : 0];
    best = scaled;
    best.parallel.zero = o->forecast.zero;
    best.parallel.recompute = o->forecast.recompute;
    LS_TRY(ls_expense_run_s(&best, n, w, o->forecast.step_s, &o->seconds, e));
    o->cost = ls_expense_of(&w->machine->prices, o->seconds * n);
    o->fits_budget = o->fits_memory && o->cost.money <= budget;
    double part = o->cost.money > budget ? budget / o->cost.money : 1;
    o->steps = (int64_t)(part * (double)c->train.steps);
    return LS_OK;
}
