/* plan_json.h - lockstep plan --json: what it prints, for programs (docs/json.md). */
#ifndef LS_CLI_PLAN_JSON_H
#define LS_CLI_PLAN_JSON_H

#include "base/json.h"
#include "perf/forecast.h"
#include "train/fit.h"

/* Sizes of the plan and its memory; what is predicted is set beside them by the caller, who frees
 * it. */
ls_json *cli_plan_json(const ls_config *, const ls_plan *);

/* Of one number of workers and one strategy. */
ls_json *cli_forecast_json(const ls_forecast *);

/* Prints a line for each setting that fits. */
void cli_fits_json(const ls_fit *fits, int n, int workers);

#endif
