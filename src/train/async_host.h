/* async_host.h - with sync.mode async and ssp, a host that joins another one: its workers compute gradients
 * for the servers there. */
#ifndef LS_TRAIN_ASYNC_HOST_H
#define LS_TRAIN_ASYNC_HOST_H

#include "train/host.h"

/* Runs the workers, as processes, until the run is over. A worker that is killed is replaced. */
ls_status ls_async_host_run(const ls_host *, ls_error *);

#endif
