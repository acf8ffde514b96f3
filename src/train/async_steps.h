/* async_steps.h - the steps of a run with sync.mode async, from one stop to the next; and the start
 * of workers, also with sync.mode ssp. */
#ifndef LS_TRAIN_ASYNC_STEPS_H
#define LS_TRAIN_ASYNC_STEPS_H

#include "train/loop.h"

/* Starts workers and servers: when the member has joined, and before it begins. */
ls_status ls_async_steps_open(ls_loop *, ls_error *);
/* Trains until something is due, or until the run is asked to stop: then all gradients are applied,
 * and l->steps of them are complete. */
ls_status ls_async_steps(ls_loop *, ls_error *);

#endif
