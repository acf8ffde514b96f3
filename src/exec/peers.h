/* peers.h - sums over workers on their devices, and parameters from there (exec_state.h).
 *
 * On one host each device reads the others' memory, as workers read each other's in a shared arena
 * (coll/shared_reduce.c). A worker's sum needs that all have computed their gradients, and a gather
 * that all have updated their shards: each waits for its own device, and then for the others at a
 * barrier. What a device reads of another is written anew only after the next Decide, which all
 * devices precede with a Norm.
 *
 * By NCCL devices send each other what they would read; only the bytes, since NCCL's own sums
 * depend on the number of workers.
 */
#ifndef LS_EXEC_PEERS_H
#define LS_EXEC_PEERS_H

#include "device/device_nccl.h"
#include "exec/on_device.h"
#include "lockstep/group.h"

typedef struct ls_peers {
    int n; /* workers; 0: nothing is open yet */
    int own;
    ls_device_nccl *nccl;   /* NULL: memory is read */
    char **grads, **params; /* [n] where this device reads those of each worker */
} ls_peers;

/* Before all else that waits for the device: what it still sends to a worker that is lost is given
 * up. */
void ls_peers_close(ls_peers *, const ls_on_device *);

#endif
