/* expense.h - what a run costs: worker-hours, money and energy, by the prices in a machine's
 * file. */
#ifndef LS_PERF_EXPENSE_H
#define LS_PERF_EXPENSE_H

#include "base/json.h"
#include "perf/forecast.h"

typedef struct ls_expense {
    double worker_hours;
    double money, kwh; /* 0: the machine's file has no price, or no watts */
} ls_expense;

ls_expense ls_expense_of(const ls_machine_prices *, double worker_seconds);

/* The predicted seconds of all steps of a run whose step takes step_s; with train.batch as a list,
 * of the steps of each phase. Evaluations and checkpoints are not counted. */
ls_status ls_expense_run_s(const ls_config *, int nworkers, const ls_forecast_world *,
                           double step_s, double *seconds_p, ls_error *);

/* Appends "12.3 worker-hours, 4.56 USD, 0.789 kWh". */
void ls_expense_print(const ls_machine_prices *, const ls_expense *, ls_buf *out);
/* worker_hours, money (null: no price), currency, kwh (null: no watts). */
ls_json *ls_expense_json(const ls_machine_prices *, const ls_expense *);

/* What a run has used so far: the sum over the steps in metrics.jsonl of their seconds times their
 * workers. Steps that were repeated count once. LS_EIO: it can't be read. */
typedef struct ls_expense_used {
    int64_t steps;
    double seconds, worker_seconds;
} ls_expense_used;
ls_status ls_expense_read(const char *run, ls_expense_used *u_p, ls_error *);

/* A number of workers, with its fastest parallel.zero. */
typedef struct ls_offer {
    ls_forecast forecast;
    bool fits_memory, fits_budget;
    double seconds;
    ls_expense cost;
    int64_t steps; /* that the budget pays for, at most the run's */
} ls_offer;

/* What the whole run would take and cost with n workers, beside a budget. */
ls_status ls_offer_make(const ls_config *, int n, const ls_forecast_world *, double budget,
                        ls_offer *o_p, ls_error *);

#endif
