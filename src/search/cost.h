/* cost.h - what the trials of `lockstep batch` would take with other numbers of workers: a step by
 * the simulator (perf/forecast.h), and the time, money and energy of all steps by the prices in the
 * machine's file (perf/expense.h). Evaluations and checkpoints are not counted.
 */
#ifndef LS_SEARCH_COST_H
#define LS_SEARCH_COST_H

#include "perf/expense.h"

enum { LS_COST_COUNTS = 16, LS_COST_ROWS = 16 };

typedef struct ls_cost_request {
    const char *file;           /* of the machine; NULL: nothing is predicted */
    int counts[LS_COST_COUNTS]; /* [ncounts] workers */
    int ncounts;
} ls_cost_request;

/* A trial. */
typedef struct ls_cost_row {
    int64_t batch;
    double steps;                  /* INFINITY: it does not end */
    double step_s[LS_COST_COUNTS]; /* NAN: not possible */
} ls_cost_row;

typedef struct ls_costs {
    const ls_cost_request *asked;
    ls_machine machine;
    ls_cost_row rows[LS_COST_ROWS]; /* [n] */
    int n;
} ls_costs;

/* Reads the machine's file; ls_machine_free() its machine. */
ls_status ls_costs_open(const ls_cost_request *, ls_costs *c_p, ls_error *);
/* Adds a row: the config with this batch. Where there are more workers than virtual workers, there
 * are as many of these. Nothing if nothing is predicted. */
void ls_costs_add(ls_costs *, const ls_config *, int64_t batch, double steps);
/* Seconds of all steps with counts[k] workers; NAN: not possible. And what they cost. */
double ls_costs_seconds(const ls_cost_row *, int k);
ls_expense ls_costs_of(const ls_costs *, const ls_cost_row *, int k);

#endif
