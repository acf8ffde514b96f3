/* node_rates.h - how fast the cores of each NUMA node of this machine read the memory of each.
 *
 * All cores of one node read at once, one thread each; the other nodes are idle. So a rate is that
 * of the node's memory, or of the path to it, not of one core.
 */
#ifndef LS_PERF_NODE_RATES_H
#define LS_PERF_NODE_RATES_H

#include "base/error.h"

typedef struct ls_node_rates {
    int nodes;    /* 1: nothing was measured */
    double *rate; /* [nodes][nodes] bytes a second: of this one's cores from that one's memory */
} ls_node_rates;

/* LS_EINVAL: the system does not let this process choose the node of memory, as in some containers;
 * LS_ENOMEM. The caller frees *r_p with ls_node_rates_free(). */
ls_status ls_node_rates_measure(ls_node_rates *r_p, ls_error *);
void ls_node_rates_free(ls_node_rates *);

#endif
