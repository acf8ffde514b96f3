/* worker.h - the life of a worker in a training run. */
#ifndef LS_TRAIN_WORKER_H
#define LS_TRAIN_WORKER_H

#include "train/run.h"

/* An ls_worker_main; arg is the ls_run. */
ls_status ls_train_worker(int worker, void *arg, ls_error *);

#endif
