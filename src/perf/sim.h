/* sim.h - how long a step of a plan takes on a machine, without running it.
 *
 * Each worker's two lanes (project.c) are followed from event to event: an action begins when the
 * one before it in its lane is done, and what it waits for in the other lane; a communication
 * when all workers have come to it. With a thread of its own the communication lane goes on beside
 * computing; where there are not enough cores for that, the two share one, each at half the speed.
 * Without one, a worker looks after communication between two computations, and while it can't
 * compute: as exec.c does.
 *
 * Workers with the same number of virtual workers and of sums do the same; one of each such kind
 * is followed, so a plan of thousands of workers takes no longer than one of a few.
 */
#ifndef LS_PERF_SIM_H
#define LS_PERF_SIM_H

#include "exec/span.h"
#include "perf/price.h"

typedef struct ls_sim {
    double step_s;
    double compute_s; /* of the worker that is followed and ends last: its lane of computing */
    double exposed_s; /* the rest of the step: it stands still, for the other lane or for others */
    double comm_s;    /* its communications, with those that computing hides */
    double kinds_s[LS_NACTION_KINDS];
    ls_span *spans; /* [nspans] of the workers that were followed; by worker, then by begin */
    int nspans;
    int nfollowed; /* workers */
} ls_sim;

/* every: all workers are followed, each by itself, so that there are spans of all; else one of each
 * kind. */
ls_status ls_sim_run(const ls_plan *, const ls_site *, bool every, ls_sim *s_p, ls_error *);
void ls_sim_free(ls_sim *);

#endif
