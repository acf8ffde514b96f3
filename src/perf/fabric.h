/* fabric.h - predicts the time of a collective among hosts whose workers share a network card.
 *
 * The algorithm is the one that a group would choose for such links (choose.h), or a forced one.
 * Its price comes from the chooser's model, in which a busy link carries the bytes that the host's
 * card carries for all its workers.
 */
#ifndef LS_PERF_FABRIC_H
#define LS_PERF_FABRIC_H

#include <stdbool.h>

#include "coll/link.h"

typedef struct ls_fabric {
    int nworkers, host_workers; /* the same on each host */
    int cores;                  /* of a host */
    ls_link link;             /* inside a host; a worker needs at least as much over the network */
    double latency_s, byte_s; /* of the network card, if there are several hosts */
    const char *algorithm;    /* used wherever it can make the call; NULL: the cheapest */
} ls_fabric;

typedef enum ls_fabric_what {
    LS_FABRIC_SUM_TO_ALL,
    LS_FABRIC_SUM,
    LS_FABRIC_GATHER
} ls_fabric_what;

typedef struct ls_fabric_call {
    ls_fabric_what what; /* all-reduce, reduce-scatter, all-gather */
    ls_dtype dtype;
    size_t count; /* elements of the whole vector */
    int V;        /* as in ls_call */
    int nleaves;  /* partial sums of all workers */
} ls_fabric_call;

typedef struct ls_fabric_price {
    double cpu_s, wire_s; /* time in which a thread works; the rest */
    const char *algorithm;
} ls_fabric_price;

/* Is there an algorithm of that name? */
bool ls_fabric_knows(const char *algorithm);

ls_fabric_price ls_fabric_price_of(const ls_fabric *, const ls_fabric_call *);

#endif
