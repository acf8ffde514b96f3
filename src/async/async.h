/* async.h - asynchronous training (sync.mode: async): the coordinator.
 *
 * A step is one application: the gradient that one worker computes from one batch, with the
 * parameters that it pulled, applied by all servers. Batches are given out in their order, each to
 * the next worker that is free; they are applied in the order in which they are complete. Workers
 * run ahead of each other without a limit until the next stop, where all gradients are applied: the
 * run is evaluated and saved there.
 */
#ifndef LS_ASYNC_ASYNC_H
#define LS_ASYNC_ASYNC_H

#include "async/crew.h"
#include "async/staleness.h"

typedef struct ls_async ls_async;

/* A step that is complete. */
typedef struct ls_async_step {
    int64_t step; /* from 0 */
    int worker;
    double data_wait_s;
    double lr; /* the first shard's learning rate */
    ls_step_out out;
    int nshards;
    int64_t staleness[LS_ASYNC_SHARDS];
} ls_async_step;

typedef struct ls_async_watch {
    /* Called for each step, in their order, soon after it is complete. */
    ls_status (*step)(void *arg, const ls_async_step *, ls_error *);
    /* Is the run to stop early? No more batches are given out then. */
    bool (*stops)(void *arg);
    void *arg;
} ls_async_watch;

/* Starts workers and servers, by forks: before this process starts threads, since one of them could
 * hold a lock that the children need. What the config names must outlive it; the state may be set
 * until ls_async_begin(). */
ls_status ls_async_open(const ls_async_config *, ls_async **a_p, ls_error *);
/* The state is complete. Cuts RUN/applications.jsonl off at the config's steps, and appends from
 * there on. */
ls_status ls_async_begin(ls_async *, ls_error *);
/* Ends workers and servers; over: workers of other hosts learn that the run is over. NULL is
 * fine. */
void ls_async_close(ls_async *, bool over);

/* Trains until `until` steps are complete, or fewer if the watch stops it; *steps_p: the number of
 * complete steps. Then all gradients are applied, and the parameters no longer change. */
ls_status ls_async_run(ls_async *, int64_t until, const ls_async_watch *, int64_t *steps_p,
                       ls_error *);

/* The staleness of all gradients applied so far, by shard. */
const ls_staleness *ls_async_staleness_of(const ls_async *);
/* The parameters as servers see them. For a replay, the world may be in private memory. */
ls_async_parameters ls_async_parameters_of(const ls_config *, const ls_plan *, const ls_world *,
                                           atomic_uint *mark);

#endif
