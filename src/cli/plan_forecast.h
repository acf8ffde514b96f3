/* plan_forecast.h - lockstep plan with --machine, --link: what is predicted. */
#ifndef LS_CLI_PLAN_FORECAST_H
#define LS_CLI_PLAN_FORECAST_H

#include "perf/forecast.h"

enum { CLI_MAX_COUNTS = 16 };

/* As they stand on the command line; NULL: not given. */
typedef struct cli_forecast {
    const char *machine; /* a file; NULL: this machine is measured */
    const char *link;    /* "200Gb/s,3us" */
    const char *algorithm;
    int host_workers; /* 0: not given */
    bool strong;
    const char *trace; /* a file for the predicted timeline */
    bool json;         /* for programs (docs/json.md) */
} cli_forecast;

/* "8,64,512": *n_p numbers of workers. */
ls_status cli_forecast_counts(const char *text, int *counts, int *n_p, ls_error *);

/* One plan: lines behind its memory table; as JSON the plan with what is predicted. */
ls_status cli_forecast_print(const cli_forecast *, const ls_config *, const ls_plan *, ls_error *);

/* A table over numbers of workers and strategies. */
ls_status cli_forecast_table(const cli_forecast *, const ls_config *, const int *counts, int n,
                             ls_error *);

#endif
