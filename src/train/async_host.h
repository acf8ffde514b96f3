/* async_host.h - with sync.mode async and ssp, a host that joins another one: its workers compute
 * gradients for the servers there. One that listens as well can take the first host's place. */
#ifndef LS_TRAIN_ASYNC_HOST_H
#define LS_TRAIN_ASYNC_HOST_H

#include "train/host.h"

/* Runs the workers, as processes, until the run is over. A worker that is killed is replaced.
 * *lost_p: the first host is lost, and this one, which listens, is to take its place. */
ls_status ls_async_host_run(const ls_host *, bool *lost_p, ls_error *);

#endif
