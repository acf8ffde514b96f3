/* local.h - the workers of one host, and their collectives over shared memory.
 *
 * Each worker has an ls_local of its own; what they share lies in the region. All functions are
 * collective: every worker calls the same ones in the same order with the same sizes.
 * Blocking. One caller a worker at a time. Alone they only copy.
 *
 * Errors: LS_EABORT when another worker failed, LS_ETIMEOUT when one did not come within the time
 * limit (the message names it and the action it was in). It can then only be left.
 *
 * Buffers that don't lie in shared memory go through staging memory, LS_LOCAL_STAGE bytes a worker.
 */
#ifndef LS_COLL_LOCAL_H
#define LS_COLL_LOCAL_H

#include "coll/tree.h"
#include "net/region.h"

enum { LS_LOCAL_STAGE = 256 * 1024, LS_LOCAL_MAX = 4096 };

typedef struct ls_local_shared {
    unsigned char *stage; /* [size][LS_LOCAL_STAGE] */
} ls_local_shared;

typedef struct ls_local {
    ls_region *region;
    const ls_local_shared *shared;
    const ls_kernels *k;
    int rank, size;
    unsigned arrivals; /* barriers so far */
    ls_waiter waiter;
} ls_local;

/* Once, before workers start. */
size_t ls_local_shared_cost(int size);
void ls_local_share(ls_region *, int size, ls_local_shared *s_p);

/* In each worker. busy_threads: of all workers together, to choose how to wait. */
void ls_local_join(ls_local *, ls_region *, const ls_local_shared *, const ls_kernels *, int rank,
                   int size, int busy_threads, double timeout_s);

/* Returns when all have come. What a worker wrote to shared memory before, all can read after. */
ls_status ls_local_barrier(ls_local *, ls_error *);

/* buf [nbytes] of `root` to all. */
ls_status ls_local_broadcast(ls_local *, void *buf, size_t nbytes, int root, ls_error *);

/* out [size][nbytes] = every worker's in [nbytes]. in may be the own place in out. */
ls_status ls_local_all_gather(ls_local *, const void *in, size_t nbytes, void *out, ls_error *);

/* out [count] = sum over workers of in [count], by the fixed tree over workers; in == out is
 * allowed. Bytes moved a worker: its share of each chunk is read from all, the sum from the owners.
 */
ls_status ls_local_all_reduce(ls_local *, const float *in, float *out, size_t count, ls_error *);

/* The direct reduce-scatter of buffers that lie in shared memory: after all have come, this worker
 * adds elements [first, first + count) of all leaves into out. No copies, (size - 1) / size of the
 * bytes of a ring's first half are read. out is not to be read by others before the next barrier.
 */
typedef struct ls_local_reduce {
    ls_tree_sum sum;
    bool tree; /* false: in the order of the leaves */
} ls_local_reduce;
ls_status ls_local_reduce_scatter(ls_local *, const ls_local_reduce *, size_t first, size_t count,
                                  float *out, ls_error *);

#endif
