/* forecast.h - how a config would train on a machine, with any number of workers, predicted. */
#ifndef LS_PERF_FORECAST_H
#define LS_PERF_FORECAST_H

#include "config/config.h"
#include "perf/sim.h"

/* Machines and what is between them. */
typedef struct ls_forecast_world {
    const ls_machine *machine;
    int host_workers;         /* 0: all workers on one host */
    double latency_s, byte_s; /* of a host's network card */
    const char *algorithm;    /* of collectives between hosts; NULL: as a group chooses */
} ls_forecast_world;

typedef struct ls_forecast {
    int nworkers, nhosts;
    int64_t zero, recompute;
    double step_s, tokens_per_s;
    double efficiency; /* one worker's step with the same work a worker, over this one's */
    double exposed_s, comm_s;
    double kinds_s[LS_NACTION_KINDS];
    size_t memory_nbytes;  /* of the worker that needs most */
    bool fits;             /* in parallel.memory_limit_mb */
    const char *algorithm; /* of the largest communication; "none" where there is one worker */
} ls_forecast;

/* What a plan of the config runs on. */
ls_site ls_forecast_site(const ls_config *, const ls_plan *, const ls_forecast_world *);

/* Of a plan that is there, made of that config. */
ls_status ls_forecast_plan(const ls_config *, const ls_plan *, const ls_forecast_world *,
                           ls_forecast *f_p, ls_error *);

/* *c with batch and virtual workers such that each of n workers has what each of `base` workers has
 * in the config; or (strong) with the config's batch and virtual workers enough for n. */
ls_status ls_forecast_scale(const ls_config *c, int base, int n, bool strong, ls_config *scaled_p,
                            ls_error *);

enum { LS_FORECAST_MAX_ROWS = 8 };

typedef struct ls_forecast_list {
    ls_forecast rows[LS_FORECAST_MAX_ROWS];
    int n;
    int best; /* the fastest row that fits; -1: none does */
} ls_forecast_list;

/* A row for each parallel.zero, and one with recompute where memory_limit_mb is exceeded without. */
ls_status ls_forecast_rows(const ls_config *, int nworkers, const ls_forecast_world *,
                           ls_forecast_list *list_p, ls_error *);

#endif
