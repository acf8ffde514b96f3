/* plan_json.h - the output of lockstep plan --json, for programs (docs/reference/json.md). */
#ifndef LS_CLI_PLAN_JSON_H
#define LS_CLI_PLAN_JSON_H

#include "base/json.h"
#include "perf/forecast.h"
#include "train/fit.h"

/* The sizes of the plan and its memory. The caller may add a prediction, and frees the object. */
ls_json *cli_plan_json(const ls_config *, const ls_plan *);

/* The prediction for one number of workers and one strategy. */
ls_json *cli_forecast_json(const ls_forecast *);

/* Prints a line for each fit. */
void cli_fits_json(const ls_fit *fits, int n, int workers);

#endif
