/* plan_budget.h - lockstep plan --budget */
#ifndef LS_CLI_PLAN_BUDGET_H
#define LS_CLI_PLAN_BUDGET_H

#include "cli/plan_forecast.h"

/* Prints, for each number of workers, what the whole run would take and cost, and whether that is
 * within the budget. LS_EINVAL: the machine's file has no price, or no number fits. */
ls_status cli_budget_print(const cli_forecast *, const ls_config *, const int *counts, int n,
                           ls_error *);

#endif
