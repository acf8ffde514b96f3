/* mirror.h - the servers' side of the copy of the shards on another host (sync.copies 2).
 *
 * A thread of the gate sends the whole state once, while no gradient is on its way, and from then
 * on each gradient that was applied, with the versions to which it was applied. A step is complete
 * only when the copy has its gradient: then it is logged, and its worker is free. So all logged
 * steps can be taken over.
 *
 * Gradients are sent in batches, such that each shard's next versions are those of the batch,
 * without a gap. Two gradients may be applied in different orders to two shards, so a single
 * gradient might never satisfy this. The copy therefore has the same version of all shards after
 * each batch.
 */
#ifndef LS_ASYNC_MIRROR_H
#define LS_ASYNC_MIRROR_H

#include "async/crew.h"

/* The content of APPLIED (wire.h). */
typedef struct ls_mirror_message {
    int64_t step;
    int64_t
        whole; /* steps of which nothing can be lost any more: the log and the metrics have them */
    int32_t worker;
    int32_t left; /* further messages of the batch */
    ls_async_result result;
    int64_t base[LS_ASYNC_SHARDS], at[LS_ASYNC_SHARDS];
} ls_mirror_message;

/* Serves the host with the copy until the run is over (LS_OK), or the connection is lost. False:
 * another host has the copy, or is to have it. */
bool ls_async_mirror(const void *crew, ls_conn *, double silence_s, ls_status *s_p, ls_error *);
/* An earlier gate's connection to the copy ended with it. */
void ls_async_mirror_reset(const void *crew);

#endif
