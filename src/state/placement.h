/* placement.h - on which NUMA nodes of a machine the memory lies that its workers share.
 *
 * A page is on the node whose core first touches it. That is right for what one worker writes
 * first, such as its gradients and activations, but parameters and states of a run that continues
 * are written first by the worker that reads the checkpoint. All workers read all parameters, at
 * about the same time: these are spread over all nodes, page by page. Masters and states are read
 * by their owner alone: they are on its node.
 */
#ifndef LS_STATE_PLACEMENT_H
#define LS_STATE_PLACEMENT_H

#include "state/world.h"

/* For a worker that is bound to its cores: before anything touches the new memory. Where the system
 * refuses, pages are where they are touched first. */
void ls_place_world(const ls_world *, const ls_share *);

#endif
