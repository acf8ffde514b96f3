/* plan_budget.c - see plan_print.h. */
#include "cli/plan_print.h"

#include "base/json.h"
#include "base/print.h"
#include "perf/expense.h"

static void print_json(const ls_offer *o, const ls_machine_prices *p, bool best) {
    ls_json *j = ls_expense_json(p, &o->cost);
    ls_json_set_integer(j, "workers", o->forecast.nworkers);
    ls_json_set_integer(j, "zero", o->forecast.zero);
    ls_json_set_number(j, "step_s", o->forecast.step_s);
    ls_json_set_number(j, "seconds", o->seconds);
    ls_json_set_integer(j, "steps", o->steps);
    ls_json_set_bool(j, "fits", o->fits_budget);
    ls_json_set_bool(j, "best", best);
    ls_print_json(j);
}

static void print_row(const ls_offer *o, const ls_machine_prices *p, bool best) {
    ls_print("%c %5d %5lld %10.5f %10.4g %10.4g %10.4g ",
             best             ? '*'
             : o->fits_budget ? ' '
                              : '!',
             o->forecast.nworkers, (long long)o->forecast.zero, o->forecast.step_s,
             o->seconds / 3600, o->cost.worker_hours, o->cost.money);
    if (p->watts > 0)
        ls_print("%9.4g", o->cost.kwh);
    else
        ls_print("%9s", "-");
    if (o->fits_memory)
        ls_print(" %9lld\n", (long long)o->steps);
    else
        ls_print("    memory\n");
}

static ls_status print_offers(const cli_forecast *f, const ls_config *c, const ls_machine *m,
                              const ls_offer *offers, int n, ls_error *e) {
    const ls_machine_prices *p = &m->prices;
    int best = -1, cheapest = 0;
    for (int i = 0; i < n; i++) {
        if (offers[i].fits_budget && (best < 0 || offers[i].seconds < offers[best].seconds))
            best = i;
        if (offers[i].cost.money < offers[cheapest].cost.money) cheapest = i;
    }
    if (!f->json)
        ls_print("predicted for %lld steps on machines as in %s,\nat %.4g %s a worker-hour; "
                 "budget %.4g %s\n\nworkers zero     step s      hours   w.-hours %10s       kWh   "
                 "  steps\n",
                 (long long)c->train.steps, f->world.machine ? f->world.machine : "this one",
                 p->worker_hour, p->currency, f->budget, p->currency, p->currency);
    for (int i = 0; i < n; i++)
        if (f->json)
            print_json(&offers[i], p, i == best);
        else
            print_row(&offers[i], p, i == best);
    if (best < 0)
        return ls_fail(e, LS_EINVAL,
                       "--budget %.4g: no number of workers fits; the cheapest, %d, needs %.4g %s "
                       "for %lld steps",
                       f->budget, offers[cheapest].forecast.nworkers, offers[cheapest].cost.money,
                       p->currency, (long long)c->train.steps);
    if (!f->json)
        ls_print("\n*: the fastest that fits; !: over the budget, or over "
                 "parallel.memory_limit_mb.\nsteps: that the budget pays for. Evaluations and "
                 "checkpoints are not counted.\n");
    return LS_OK;
}

ls_status cli_budget_print(const cli_forecast *f, const ls_config *c, const int *counts, int n,
                           ls_error *e) {
    ls_machine m = {0};
    ls_forecast_world w;
    ls_offer offers[CLI_MAX_COUNTS];
    ls_status s = ls_forecast_world_open(&f->world, &m, &w, e);
    if (s == LS_OK) ls_forecast_note_device(c, &m);
    if (s == LS_OK && m.prices.worker_hour <= 0)
        s = ls_fail(e, LS_EINVAL,
                    "%s: has no cost.worker_hour, so --budget can't be compared; `lockstep bench "
                    "machine --price P --save FILE` writes it, or add it by hand",
                    f->world.machine ? f->world.machine : "this machine");
    for (int i = 0; i < n && s == LS_OK; i++) {
        s = ls_forecast_world_check(&w, counts[i], e);
        if (s == LS_OK) s = ls_offer_make(c, counts[i], &w, f->budget, &offers[i], e);
    }
    if (s == LS_OK) s = print_offers(f, c, &m, offers, n, e);
    ls_machine_free(&m);
    return s;
}
