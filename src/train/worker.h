/* worker.h - the life of a worker in a training run. */
#ifndef LS_TRAIN_WORKER_H
#define LS_TRAIN_WORKER_H

#include <stdatomic.h>

#include "report/tracer.h"
#include "train/host.h"

/* The argument of ls_train_worker(), the same for all workers. */
typedef struct ls_train_job {
    ls_host host; /* first */
    ls_trace_request trace;
    const struct ls_mllog_request *mllog; /* NULL: no log */
    atomic_int *unfinished;               /* set by workers that stop before the last step */
    struct ls_loop *loop; /* of a worker that rests (cluster/rest.h); NULL: none does */
} ls_train_job;

/* An ls_worker_main; arg is the ls_train_job. A worker that rests leaves its loop there for its
 * next view. */
ls_status ls_train_worker(ls_group *, ls_board_slot *me, void *arg, ls_error *);

#endif
