/* replay.h - repeats an asynchronous run with one worker, bit for bit, from its log
 * (applications.h).
 *
 * Each gradient is computed again, with the versions of the shards that the log names, and applied
 * to each shard in the order of the log. Versions that gradients still need are retained: about as
 * many as the run had workers.
 */
#ifndef LS_ASYNC_REPLAY_H
#define LS_ASYNC_REPLAY_H

#include "async/applications.h"
#include "async/async.h"

typedef struct ls_async_replay_config {
    const ls_config *config;
    const ls_plan *plan;   /* of one worker */
    const ls_world *world; /* with the state at the beginning; afterwards at the end */
    const ls_frozen_value *frozen;
    ls_loader_config loader;
    const ls_applications_read *log;
    void (*done)(void *arg, int64_t steps); /* called after each step */
    void *arg;
} ls_async_replay_config;

/* LS_EINVAL: the log is in no possible order. */
ls_status ls_async_replay(const ls_async_replay_config *, ls_error *);

#endif
