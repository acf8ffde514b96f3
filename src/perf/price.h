/* price.h - what an action of a plan costs on a machine, by itself.
 *
 * Computations: the works that a layer declares (model/work.h), at the machine's speeds.
 * Communications: through shared memory each worker adds and copies its part; over a network the
 * algorithm is chosen, or forced, as a group would do it, and priced by the chooser's model
 * (coll/choose.h), with all workers of a host at one network card.
 */
#ifndef LS_PERF_PRICE_H
#define LS_PERF_PRICE_H

#include "perf/fabric.h"
#include "perf/machine.h"
#include "plan/plan.h"

/* Where a plan runs. */
typedef struct ls_site {
    const ls_machine *machine; /* of each host */
    int host_workers;          /* on each host; 0: all are on one */
    bool shared;               /* the workers of one host have shared memory; of one host only */
    bool one;                  /* parameters and moments are one copy for all of them */
    int threads;               /* of each worker */
    bool overlap;              /* a thread for the communication lane */
    double latency_s, byte_s;  /* of a host's network card: where there are several hosts */
    const char *algorithm;     /* forced where it can do a call; NULL: the cheapest */
} ls_site;

/* A plan on a site, and what all its prices need. */
typedef struct ls_pricer {
    const ls_plan *plan;
    const ls_site *site;
    ls_fabric fabric;
    int busy;    /* threads of a host */
    int nleaves; /* partial sums of a bucket, over all workers */
} ls_pricer;

typedef struct ls_price {
    double cpu_s;  /* a thread is at work */
    double wire_s; /* what is on its way needs none */
} ls_price;

/* LS_EINVAL: host_workers does not divide the number of workers. */
ls_status ls_pricer_open(const ls_plan *, const ls_site *, ls_pricer *p_p, ls_error *);

ls_price ls_price_action(const ls_pricer *, const ls_action *, int worker);

/* Which algorithm a communication takes; "shared" through shared memory. */
const char *ls_price_algorithm(const ls_pricer *, const ls_action *);

#endif
