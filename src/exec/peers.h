/* peers.h - sums over workers on their devices, and parameters from there (exec_state.h): each device reads
 * the others' memory, as workers read each other's in a shared arena (coll/shared_reduce.c). All are on
 * one host.
 *
 * A worker's sum needs that all have computed their gradients, and a gather that all have updated their
 * shards: each waits for its own device, and then for the others at a barrier. What a device reads of
 * another is written anew only after the next Decide, which all devices precede with a Norm.
 */
#ifndef LS_EXEC_PEERS_H
#define LS_EXEC_PEERS_H

#include "exec/on_device.h"
#include "lockstep/group.h"

typedef struct ls_peers {
    int n; /* workers; 0: their memory is not open yet */
    int own;
    char **grads, **params; /* [n] where this device has those of each worker */
} ls_peers;

void ls_peers_close(ls_peers *, const ls_on_device *);

#endif
