/* partition.h - hosts whose workers can't reach each other, though the leader reaches both.
 *
 * The leader learns of such a cut from the ends of a view: a worker that loses another one by the
 * network's fault blames it. Of the two hosts of a cut one is left out of the next view. After a
 * while, and then again and again, both are asked to try whether they reach each other; when both
 * do, the cut is open, and the host that was left out may join again. A cut that was blamed again
 * is tried later each time: what lets a connection be made need not let a step through.
 *
 * This code uses no clocks and no sockets; the leader calls it (leader.c).
 */
#ifndef LS_CLUSTER_PARTITION_H
#define LS_CLUSTER_PARTITION_H

#include <stdbool.h>
#include <stdint.h>

enum { LS_PARTITIONS_MAX = 64, LS_PARTITION_WHY = 200 };

typedef struct ls_partition {
    uint64_t hosts[2];          /* hosts[0] has blamed hosts[1] */
    int32_t number;             /* what messages call it; from 1 */
    int blames;                 /* views that ended by it, without a long time between them */
    bool open;                  /* both have reached each other since, or it could not be tried */
    bool reached[2];            /* hosts[i] has reached the other one since they were last asked */
    int64_t blamed_ns, due_ns;  /* due_ns: when they are asked next */
    char why[LS_PARTITION_WHY]; /* what the worker of hosts[0] has reported */
} ls_partition;

typedef struct ls_partitions {
    int n;
    int32_t numbers; /* the latest number */
    ls_partition all[LS_PARTITIONS_MAX];
} ls_partitions;

/* A worker of `by` could not reach one of `of`. retry_ns: hosts are asked after this time, doubled
 * with each blame. */
void ls_partitions_blame(ls_partitions *, const uint64_t by_of[2], const char *why, int64_t now,
                         int64_t retry_ns);
/* The cut between two hosts; NULL: none is known, or it is open. */
const ls_partition *ls_partitions_find(const ls_partitions *, uint64_t a, uint64_t b);
/* A cut whose hosts are to be asked now, and will be again later; NULL: there is none. */
ls_partition *ls_partitions_due(ls_partitions *, int64_t now, int64_t retry_ns);
/* A host has reached the other one of this cut. True: the cut is open now. */
bool ls_partitions_reached(ls_partitions *, int32_t number, uint64_t by);

/* A host that could be in the next view. */
typedef struct ls_partition_host {
    uint64_t host;
    int workers;
    bool newest; /* it has the newest state */
    bool out;    /* set: it is left out */
} ls_partition_host;

/* Decides which hosts are left out, so that none of the others are cut from each other. The first
 * host, which leads, stays. Of all choices it takes one that leaves a host with the newest state;
 * of these the one with the most workers; then the one with the most such hosts; then the hosts
 * that came first stay. (With very many cuts the choice is good, not the best.) */
void ls_partitions_choose(const ls_partitions *, ls_partition_host *hosts, int n);

#endif
