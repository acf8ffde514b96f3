/* plan_print.h - what lockstep plan prints of predictions (with --machine and --link), budgets and
 * meshes. */
#ifndef LS_CLI_PLAN_PRINT_H
#define LS_CLI_PLAN_PRINT_H

#include "perf/prospect.h"

enum { CLI_MAX_COUNTS = 16 };

/* Command-line options; NULL, 0: not given. */
typedef struct cli_forecast {
    ls_forecast_world_options world;
    bool strong;
    const char *trace; /* a file for the predicted timeline */
    double budget;     /* --budget */
    bool json;         /* for programs (docs/reference/json.md) */
} cli_forecast;

/* Reads a list such as "8,64,512": *n_p numbers of workers. */
ls_status cli_forecast_counts(const char *text, int *counts, int *n_p, ls_error *);
/* Prints what the prediction is for. */
void cli_forecast_print_world(const ls_forecast_world_options *, const ls_machine *);

/* Do the options ask for more than an estimate? */
bool cli_forecast_predicts(const cli_forecast *);
/* Predicts for the machine of the options, or, where no option asks for a prediction, for this one.
 * The caller calls ls_prospect_free(), also after an error. */
ls_status cli_predict(const cli_forecast *, const ls_config *, const ls_plan *, int nworkers,
                      ls_prospect *x_p, ls_error *);
/* Prints the prediction, after the memory table; or as JSON with the plan. */
void cli_predicted_print(const cli_forecast *, const ls_config *, const ls_prospect *);
void cli_predicted_print_json(const ls_config *, const ls_plan *, const ls_prospect *);

/* The first lines of lockstep plan, at most eight: does it fit, what does a step take, and the run?
 * why: the reason why x has no step; NULL: it has one. */
void cli_answers_print(const cli_forecast *, const ls_config *, const ls_plan *,
                       const ls_prospect *x, const ls_error *why);

/* A table over numbers of workers and strategies. */
ls_status cli_forecast_table(const cli_forecast *, const ls_config *, const int *counts, int n,
                             ls_error *);
/* --budget: for each number of workers, what the whole run would take and cost, and whether that is
 * within the budget. LS_EINVAL: the machine's file has no price, or no number fits. */
ls_status cli_budget_print(const cli_forecast *, const ls_config *, const int *counts, int n,
                           ls_error *);
/* --mesh auto: a table of the fastest meshes. fit: megabytes of memory that a worker may have; 0:
 * parallel.memory_limit_mb. Without a machine's file the speeds are those of a typical one. */
ls_status cli_mesh_print(const cli_forecast *, const ls_config *, int workers, double fit,
                         ls_error *);

#endif
