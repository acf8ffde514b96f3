/* plan_forecast.h - the predictions of lockstep plan with --machine and --link. */
#ifndef LS_CLI_PLAN_FORECAST_H
#define LS_CLI_PLAN_FORECAST_H

#include "perf/clocked.h"
#include "perf/forecast.h"
#include "perf/pushed.h"

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
    bool json;         /* for programs (docs/reference/json.md) */
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

/* What is predicted of one plan. With sync.mode ssp and async the plan is that of one process, and
 * the prediction is for nworkers. */
typedef struct cli_predicted {
    ls_machine machine;
    ls_forecast_world world;
    int nworkers;
    double step_s, units_per_s;
    double run_s;                      /* of all steps */
    double phases_s[LS_CONFIG_PHASES]; /* of a step, where train.batch is a list */
    union {
        ls_forecast plan;
        ls_clocked clocked;
        ls_pushed pushed;
    } by; /* sync.mode */
} cli_predicted;

/* Predicts for the machine of the options, or, where no option asks for a prediction, for this one
 * as perf/estimate.h finds it. The caller calls cli_predicted_free(), also after an error. */
ls_status cli_predict(const cli_forecast *, const ls_config *, const ls_plan *, int nworkers,
                      cli_predicted *x_p, ls_error *);
void cli_predicted_free(cli_predicted *);
/* Do the options ask for more than an estimate? */
bool cli_forecast_predicts(const cli_forecast *);
/* Prints the prediction, after the memory table; or as JSON with the plan. */
void cli_predicted_print(const cli_forecast *, const ls_config *, const cli_predicted *);
void cli_predicted_print_json(const ls_config *, const ls_plan *, const cli_predicted *);
/* Writes the predicted timeline of all workers to o->trace. */
ls_status cli_predicted_draw(const cli_forecast *o, const ls_config *, const ls_plan *,
                             const cli_predicted *, ls_error *);

/* Prints a table over numbers of workers and strategies. */
ls_status cli_forecast_table(const cli_forecast *, const ls_config *, const int *counts, int n,
                             ls_error *);

#endif
