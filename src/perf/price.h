/* price.h - the time that an action of a plan takes on a machine, by itself.
 *
 * Computation: the work that a layer declares (model/work.h), at the machine's speeds.
 * Communication: through shared memory each worker adds and copies its part. Over a network the
 * algorithm is chosen as a group would choose it, or forced, and priced by the chooser's model
 * (coll/choose.h); all workers of a host share one network card.
 */
#ifndef LS_PERF_PRICE_H
#define LS_PERF_PRICE_H

#include "perf/fabric.h"
#include "perf/machine.h"
#include "plan/plan.h"

/* Where a plan runs. */
typedef struct ls_site {
    const ls_machine *machine; /* of each host */
    int host_workers;          /* on each host; 0: all workers are on one */
    bool shared;               /* workers share memory; only if all are on one host */
    bool one;                  /* parameters and moments are one copy for all of them */
    int threads;               /* of each worker */
    bool overlap;              /* the communication lane has a thread of its own */
    double latency_s, byte_s;  /* of a host's network card, if there are several hosts */
    const char *algorithm;     /* used wherever it can make a call; NULL: the cheapest */
    bool apart;                /* of a step that islands decide alone (state/apart.h) */
    int copies; /* the number of workers for each worker of the plan, which share the batch: the
                 * plan is a part of a larger one (mesh_trial.h); 0: 1 */
} ls_site;

/* A plan on a site, with the numbers that all its prices need. */
typedef struct ls_pricer {
    const ls_plan *plan;
    const ls_site *site;
    ls_fabric fabric;
    int busy;   /* threads that compute on a host */
    int copies; /* ls_site.copies, at least 1 */
} ls_pricer;

typedef struct ls_price {
    double cpu_s;  /* a thread works */
    double wire_s; /* data is on the wire, and no thread works */
} ls_price;

/* LS_EINVAL: host_workers does not divide the number of workers. */
ls_status ls_pricer_open(const ls_plan *, const ls_site *, ls_pricer *p_p, ls_error *);

ls_price ls_price_action(const ls_pricer *, const ls_action *, int worker);

/* Seconds in which the rows of tables that hosts divide go to workers and back, before and after
 * the plan's actions: five exchanges, on a network card that all workers of a host share. */
double ls_price_rows(const ls_pricer *);

/* Seconds in which a worker computes the losses of one sample, without gradients. */
double ls_price_losses(const ls_pricer *);

/* The algorithm that a communication uses; "shared" through shared memory. */
const char *ls_price_algorithm(const ls_pricer *, const ls_action *);

#endif
