/* forecast.h - predicts how a config would train on a machine, with any number of workers. */
#ifndef LS_PERF_FORECAST_H
#define LS_PERF_FORECAST_H

#include "base/json.h"
#include "config/config.h"
#include "perf/sim.h"

/* The machines, and the links between them. */
typedef struct ls_forecast_world {
    const ls_machine *machine;
    int host_workers;         /* 0: all workers on one host */
    double latency_s, byte_s; /* of a host's network card */
    const char *algorithm;    /* of collectives between hosts; NULL: the group chooses */
} ls_forecast_world;

typedef struct ls_forecast {
    int nworkers, nhosts;
    int64_t zero, recompute;
    double step_s, units_per_s;
    const char *unit;  /* "tokens" or "samples" */
    double efficiency; /* time of one worker's step with the same work per worker, over step_s */
    double exposed_s, comm_s;
    /* Parts of a step in which a worker does not compute: of the worker that waits least, and of
     * the one that waits most. */
    double least_wait, most_wait;
    double sync_s;      /* in step_s: bringing replicas together, a step on average */
    double reference_s; /* of each pair, by all workers, before the first step (train.loss: dpo) */
    double kinds_s[LS_NACTION_KINDS];
    size_t memory_nbytes;  /* of the worker that needs most */
    size_t device_nbytes;  /* of its device; 0: it has none */
    bool fits_host;        /* into parallel.memory_limit_mb */
    bool fits_device;      /* into the device's memory, as far as the machine's file has it */
    bool fits;             /* both */
    const char *algorithm; /* of the largest communication; "none" for one worker */
} ls_forecast;

/* The threads of each of a machine's workers. */
int ls_forecast_threads(const ls_config *, int workers, const ls_machine *);

/* The site on which a plan of the config would run. */
ls_site ls_forecast_site(const ls_config *, const ls_plan *, const ls_forecast_world *);

/* The forecast for a plan that was made from this config. */
ls_status ls_forecast_plan(const ls_config *, const ls_plan *, const ls_forecast_world *,
                           ls_forecast *f_p, ls_error *);

/* The seconds of a step in each phase of train.batch (config/phases.h): step_s [nphases]. */
ls_status ls_forecast_phases(const ls_config *, int nworkers, const ls_forecast_world *,
                             double *step_s, ls_error *);

/* Copies *c with batch and virtual workers scaled so that each of n workers has the work that each
 * of `base` workers has in the config; or (strong) with the config's batch and enough virtual
 * workers for n. */
ls_status ls_forecast_scale(const ls_config *c, int base, int n, bool strong, ls_config *scaled_p,
                            ls_error *);

enum { LS_FORECAST_MAX_ROWS = 8 };

typedef struct ls_forecast_list {
    ls_forecast rows[LS_FORECAST_MAX_ROWS];
    int n;
    int best; /* the fastest row that fits; -1: none does */
} ls_forecast_list;

/* Makes a row for each parallel.zero, and another with recompute if memory_limit_mb is exceeded
 * without it. */
ls_status ls_forecast_rows(const ls_config *, int nworkers, const ls_forecast_world *,
                           ls_forecast_list *list_p, ls_error *);

/* A forecast for programs; the caller frees it. */
ls_json *ls_forecast_json(const ls_forecast *);

#endif
