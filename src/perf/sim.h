/* sim.h - simulates a step of a plan on a machine, without running it.
 *
 * Each worker's two lanes (project.c) are simulated from event to event. An action begins when
 * progress.h says that it may, and a communication when all its workers have begun it. A
 * communication lane with a thread of its own runs beside computation; if there are not enough
 * cores, both share one, each at half speed. Without such a thread a worker communicates between
 * two computations and while it can't compute, as exec.c does.
 *
 * Workers with the same number of virtual workers and of sums behave the same. One of each such
 * kind is simulated, so a plan of thousands of workers takes no longer than one of a few.
 */
#ifndef LS_PERF_SIM_H
#define LS_PERF_SIM_H

#include "exec/span.h"
#include "perf/price.h"

typedef struct ls_sim {
    double step_s;
    double compute_s;       /* computation of the simulated worker that ends last */
    double exposed_s;       /* the rest of its step: it waits for the other lane or for workers */
    double least_s, most_s; /* computation of the worker that computes least, and most */
    double comm_s;          /* its communications, including those hidden by computation */
    double kinds_s[LS_NACTION_KINDS];
    ls_span *spans; /* [nspans] of the simulated workers, by worker, then by begin */
    int nspans;
    int nfollowed; /* simulated workers */
} ls_sim;

/* every: simulate every worker, so that there are spans of all; else one worker of each kind. */
ls_status ls_sim_run(const ls_plan *, const ls_site *, bool every, ls_sim *s_p, ls_error *);
void ls_sim_free(ls_sim *);

#endif
