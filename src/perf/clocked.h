/* clocked.h - predicts a step with bounded staleness (sync.mode: ssp): workers that compute
 * gradients ahead, and the main process that makes the steps (async/clocks.h). */
#ifndef LS_PERF_CLOCKED_H
#define LS_PERF_CLOCKED_H

#include "perf/forecast.h"

typedef struct ls_clocked {
    int nworkers, V;
    int64_t staleness, until;
    double gradient_s; /* of one virtual worker, by a worker */
    double slow;       /* factor of the time that worker 0 needs; 1: all workers are equal */
    double update_s;   /* from a step's last gradient to its new parameters */
} ls_clocked;

/* Seconds of a step: of the mean over all but the first staleness + 1. */
double ls_clocked_step_s(const ls_clocked *);

/* The seconds that each of n workers of a host needs for its parameters and the gradients of
 * nvirtual virtual workers, while the others compute, too. */
ls_status ls_clocked_gradient(const ls_config *, int n, int64_t nvirtual, const ls_forecast_world *,
                              double *s_p, ls_error *);
/* Prices the gradient and the update of a config with its plan of one worker, for n workers on a
 * machine. */
ls_status ls_clocked_forecast(const ls_config *, const ls_plan *, int nworkers,
                              const ls_forecast_world *, ls_clocked *k_p, ls_error *);

#endif
