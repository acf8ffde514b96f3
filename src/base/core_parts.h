/* core_parts.h - which cores of a machine each of several workers has.
 *
 * Cores of a node (a NUMA node of a package) reach the node's memory in less time than that of
 * others, and share caches. So a worker has cores of one node wherever the nodes have room for all
 * workers, and workers are spread over the nodes in proportion to their cores. Workers of a node
 * have consecutive numbers, since neighbours exchange most.
 */
#ifndef LS_BASE_CORE_PARTS_H
#define LS_BASE_CORE_PARTS_H

/* Sets worker_p [ncores]: the worker, 0 to workers - 1, that has each core; -1: none. Each has
 * `threads` cores or more; workers * threads <= ncores. node [ncores]: numbers from 0, less than
 * ncores, that do not descend. */
void ls_core_parts(const int *node, int ncores, int workers, int threads, int *worker_p);

#endif
