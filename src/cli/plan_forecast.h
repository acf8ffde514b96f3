/* plan_forecast.h - the predictions of lockstep plan with --machine and --link. */
#ifndef LS_CLI_PLAN_FORECAST_H
#define LS_CLI_PLAN_FORECAST_H

#include "perf/forecast.h"

enum { CLI_MAX_COUNTS = 16 };

/* Command-line options; NULL: not given. */
typedef struct cli_forecast {
    const char *machine; /* a file; NULL: this machine is measured */
    const char *link;    /* "200Gb/s,3us" */
    const char *algorithm;
    int host_workers; /* 0: not given */
    bool strong;
    const char *trace; /* a file for the predicted timeline */
    double budget;     /* --budget; 0: not given */
    bool json;         /* for programs (docs/json.md) */
} cli_forecast;

/* Reads a list such as "8,64,512": *n_p numbers of workers. */
ls_status cli_forecast_counts(const char *text, int *counts, int *n_p, ls_error *);

/* The machine, which the caller frees, and the world of predictions on it. */
ls_status cli_forecast_open_world(const cli_forecast *, ls_machine *m_p, ls_forecast_world *w_p,
                                  ls_error *);
/* The world without its machine. */
ls_status cli_forecast_read_world(const cli_forecast *, ls_forecast_world *w_p, ls_error *);
/* Prints what the prediction is for. */
void cli_forecast_print_world(const cli_forecast *, const ls_machine *);
/* Do n workers fill whole hosts? */
ls_status cli_forecast_check_hosts(const ls_forecast_world *, int n, ls_error *);

/* Prints the prediction for one plan, after its memory table; as JSON with the plan. */
ls_status cli_forecast_print(const cli_forecast *, const ls_config *, const ls_plan *, ls_error *);

/* The same with sync.mode ssp, for n workers; the plan is that of the main process. */
ls_status cli_forecast_print_clocked(const cli_forecast *, const ls_config *, const ls_plan *,
                                     int nworkers, ls_error *);

/* The same with sync.mode async; the plan is that of a worker. */
ls_status cli_forecast_print_pushed(const cli_forecast *, const ls_config *, const ls_plan *,
                                    int nworkers, ls_error *);

/* Prints a table over numbers of workers and strategies. */
ls_status cli_forecast_table(const cli_forecast *, const ls_config *, const int *counts, int n,
                             ls_error *);

#endif
