/* far.h - bytes that the workers of one machine read from the memory of other NUMA nodes in a step.
 *
 * What is counted: layers read their parameters in each Forward, Recompute and Backward, from the
 * one copy of the workers, which is spread over all nodes page by page (state/placement.h); workers
 * read each other's gradients and parameters in communications, evenly of all others. Caches are
 * not counted: a node's caches may have what a worker of the node has read before.
 */
#ifndef LS_PERF_FAR_H
#define LS_PERF_FAR_H

#include "config/config.h"
#include "plan/plan.h"

typedef struct ls_far {
    int nodes;                /* of this machine that have workers; 1: nothing is far */
    double parameters, moved; /* bytes of a step, of all workers */
} ls_far;

/* nodes 1, too, if the plan's workers are not all on this machine, or their threads are not
 * bound. */
ls_far ls_far_of(const ls_config *, const ls_plan *);

#endif
