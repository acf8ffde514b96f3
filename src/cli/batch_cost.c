/* batch_cost.c - see batch_cost.h. */
#include "cli/batch_cost.h"

#include <math.h>
#include <stdlib.h>

#include "base/print.h"
#include "config/phases.h"
#include "perf/expense.h"
#include "train/layout.h"

struct cli_batch_cost {
    const cli_batch_machine *o;
    ls_machine machine;
};

ls_status cli_batch_cost_open(const cli_batch_machine *o, cli_batch_cost **c_p, ls_error *e) {
    ls_machine m = {0};
    LS_TRY(ls_machine_read(o->file, &m, e));
    *c_p = LS_NEW(cli_batch_cost);
    **c_p = (cli_batch_cost){o, m};
    return LS_OK;
}

void cli_batch_cost_close(cli_batch_cost *x) {
    if (!x) return;
    ls_machine_free(&x->machine);
    free(x);
}

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

void cli_batch_cost_predict(const cli_batch_cost *x, const ls_config *c, int64_t batch,
                            cli_batch_row *row) {
    row->batch = batch;
    for (int k = 0; k < x->o->ncounts; k++)
        row->step_s[k] = step_s(&x->machine, c, batch, x->o->counts[k]);
}

/* Of all steps; NAN: not possible. */
static double seconds_of(const cli_batch_row *row, int k) {
    return isfinite(row->steps) ? row->step_s[k] * row->steps : NAN;
}

static ls_expense expense_of(const cli_batch_cost *x, const cli_batch_row *row, int k) {
    return ls_expense_of(&x->machine.prices, seconds_of(row, k) * x->o->counts[k]);
}

static void print_number(double value, bool known) {
    if (known && isfinite(value))
        ls_print(" %10.4g", value);
    else
        ls_print(" %10s", "-");
}

static void print_row(const cli_batch_cost *x, const cli_batch_row *row, int k) {
    const ls_machine_prices *p = &x->machine.prices;
    const ls_expense cost = expense_of(x, row, k);
    ls_print("%7d %8lld", x->o->counts[k], (long long)row->batch);
    if (isfinite(row->steps))
        ls_print(" %8.1f", row->steps);
    else
        ls_print(" %8s", "-");
    print_number(row->step_s[k], true);
    print_number(seconds_of(row, k) / 3600, true);
    print_number(cost.worker_hours, true);
    print_number(cost.money, p->worker_hour > 0);
    print_number(cost.kwh, p->watts > 0);
    ls_print("\n");
}

void cli_batch_cost_print(const cli_batch_cost *x, const cli_batch_row *rows, int n) {
    const ls_machine_prices *p = &x->machine.prices;
    ls_print("\npredicted for machines as in %s", x->o->file);
    if (p->worker_hour > 0) ls_print(", at %.4g %s a worker-hour", p->worker_hour, p->currency);
    ls_print("\n\nworkers    batch    steps     step s      hours   w.-hours %10s        kWh\n",
             p->worker_hour > 0 && p->currency[0] ? p->currency : "money");
    for (int k = 0; k < x->o->ncounts; k++)
        for (int i = 0; i < n; i++) print_row(x, &rows[i], k);
}

void cli_batch_cost_json(const cli_batch_cost *x, const cli_batch_row *row, ls_json *one) {
    const ls_machine_prices *p = &x->machine.prices;
    ls_json *steps = ls_json_new_array(), *seconds = ls_json_new_array();
    ls_json *money = ls_json_new_array(), *kwh = ls_json_new_array();
    for (int k = 0; k < x->o->ncounts; k++) {
        const ls_expense cost = expense_of(x, row, k);
        ls_json_push(steps, ls_json_new_number(row->step_s[k]));
        ls_json_push(seconds, ls_json_new_number(seconds_of(row, k)));
        ls_json_push(money, ls_json_new_number(p->worker_hour > 0 ? cost.money : NAN));
        ls_json_push(kwh, ls_json_new_number(p->watts > 0 ? cost.kwh : NAN));
    }
    ls_json_set(one, "step_s", steps);
    ls_json_set(one, "seconds", seconds);
    ls_json_set(one, "money", money);
    ls_json_set(one, "kwh", kwh);
}
