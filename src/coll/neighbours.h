/* neighbours.h - how workers of one host that `lockstep run` did not start share memory.
 *
 * They meet over a transport (TCP, MPI). On each host the first worker makes the memory and sends
 * the others its place, a descriptor of its process; they open it through /proc, which the kernel
 * allows among processes of one user. If a worker can't, its host does without shared memory.
 */
#ifndef LS_COLL_NEIGHBOURS_H
#define LS_COLL_NEIGHBOURS_H

#include "coll/endpoint.h"

enum { LS_SET_UP = 0xffff }; /* the group number of messages that come before all groups */

/* Collective over the endpoint's transport; timeout_ns is for each message. The first fills in
 * hosts, by the `number` of each worker's host; the second, where hosts is known, commons and
 * local. */
ls_status ls_neighbours_find(ls_endpoint *, uint64_t number, int64_t timeout_ns, ls_error *);
ls_status ls_neighbours_share(ls_endpoint *, size_t arena_nbytes, int64_t timeout_ns, ls_error *);

/* Starts the thread that answers for this worker (net/tcp/watch.h) where the transport has none: it
 * listens at an address and with a key that workers exchange over the transport. Collective. */
ls_status ls_neighbours_watch(ls_endpoint *, int64_t timeout_ns, ls_error *);

#endif
