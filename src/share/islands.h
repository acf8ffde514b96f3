/* share/islands.h - how ls_share_make() places replicas that are trained side by side. */
#ifndef LS_SHARE_ISLANDS_H
#define LS_SHARE_ISLANDS_H

#include "share/share.h"

/* Sets the islands of each worker, and the ranges of virtual workers that follow from them. */
void ls_share_place_islands(ls_share *);
/* The workers of an island, numbered from 1. */
ls_worker_set ls_share_workers_of_island(const ls_share *, int island);
/* As ls_share_fold(), in the tree of the island of the worker's i-th virtual worker. */
int ls_share_fold_island(const ls_share *, int worker, int i, int *slot_p);

#endif
