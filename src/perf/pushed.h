/* pushed.h - predicts the time between two steps with sync.mode: async: workers that push gradients
 * to parameter servers (async/crew.h). */
#ifndef LS_PERF_PUSHED_H
#define LS_PERF_PUSHED_H

#include "perf/forecast.h"

typedef struct ls_pushed {
    int nworkers;
    int nservers;      /* processes; 0: each worker serves a shard */
    double gradient_s; /* of a batch, by a worker */
    double update_s;   /* of a gradient, on one core */
    double link_s;     /* of its bytes, through the card of the servers' host; 0: none pass it */
} ls_pushed;

/* Mean seconds from one application to the next: those of the workers, of the servers or of the
 * link, whichever are the slowest. */
double ls_pushed_step_s(const ls_pushed *);

/* Prices the gradient and the update of a config with its plan of one worker, for n workers on a
 * machine; with a network card, as if all of them were on other hosts than the servers. */
ls_status ls_pushed_forecast(const ls_config *, const ls_plan *, int nworkers,
                             const ls_forecast_world *, ls_pushed *k_p, ls_error *);

#endif
