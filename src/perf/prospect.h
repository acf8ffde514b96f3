/* prospect.h - the predictions for one plan, in any sync.mode; and the world that they are for, as
 * a command line names it. */
#ifndef LS_PERF_PROSPECT_H
#define LS_PERF_PROSPECT_H

#include "perf/clocked.h"
#include "perf/forecast.h"
#include "perf/pushed.h"

/* NULL, 0: not given. */
typedef struct ls_forecast_world_options {
    const char *machine; /* a file; NULL: this machine is measured */
    const char *link;    /* "200Gb/s,3us" */
    const char *algorithm;
    int host_workers;
} ls_forecast_world_options;

/* The machine, which the caller frees, and the world of predictions on it. */
ls_status ls_forecast_world_open(const ls_forecast_world_options *, ls_machine *m_p,
                                 ls_forecast_world *w_p, ls_error *);
/* The world without its machine. */
ls_status ls_forecast_world_read(const ls_forecast_world_options *, ls_forecast_world *w_p,
                                 ls_error *);
/* LS_EINVAL: n workers don't fill whole hosts. */
ls_status ls_forecast_world_check(const ls_forecast_world *, int n, ls_error *);

/* Logs that times are those of cores where the config has a device whose speed the machine's file
 * lacks. */
void ls_forecast_note_device(const ls_config *, const ls_machine *);

/* With sync.mode ssp and async the plan is that of one process, and the prediction is for
 * nworkers. */
typedef struct ls_prospect {
    int nworkers; /* set by the caller */
    ls_machine machine;
    ls_forecast_world world;
    double step_s, units_per_s;
    double run_s;                      /* of all steps */
    double phases_s[LS_CONFIG_PHASES]; /* of a step, where train.batch is a list */
    union {
        ls_forecast plan;
        ls_clocked clocked;
        ls_pushed pushed;
    } by; /* sync.mode */
} ls_prospect;

/* estimate: for this machine, as perf/estimate.h finds it, in place of the one that the options
 * name. The caller calls ls_prospect_free(), also after an error. */
ls_status ls_prospect_make(const ls_forecast_world_options *, bool estimate, const ls_config *,
                           const ls_plan *, ls_prospect *x_p, ls_error *);
void ls_prospect_free(ls_prospect *);
/* Writes the predicted timeline of all workers. */
ls_status ls_prospect_draw(const ls_prospect *, const ls_config *, const ls_plan *,
                           const char *path, ls_error *);

#endif
