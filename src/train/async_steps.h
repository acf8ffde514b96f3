/* async_steps.h - the steps of a run with sync.mode async, from one stop to the next; and the start
 * of workers, also with sync.mode ssp. */
#ifndef LS_TRAIN_ASYNC_STEPS_H
#define LS_TRAIN_ASYNC_STEPS_H

#include <stdbool.h>

#include "base/error.h"
#include "base/mem.h"

struct ls_loop;

typedef struct ls_async_side {
    struct ls_async *run; /* sync.mode async: what makes the steps; else NULL */
    ls_buf settings;      /* that must match on hosts that join it */
    int64_t latest_ns;    /* when the latest step was complete */
} ls_async_side;

/* Starts workers and servers: when the member has joined, and before it begins. */
ls_status ls_async_steps_open(struct ls_loop *, ls_error *);
/* The member has begun: they may go on. */
ls_status ls_async_steps_begin(struct ls_loop *, ls_error *);
/* over: the run is. */
void ls_async_steps_close(struct ls_loop *, bool over);
/* Trains until something is due, or until the run is asked to stop: then all gradients are applied,
 * and l->steps of them are complete. */
ls_status ls_async_steps(struct ls_loop *, ls_error *);

#endif
