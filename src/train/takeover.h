/* takeover.h - with sync.copies 2: a host that has the copy of the shards takes the place of the
 * first host (async/shard_copy.h). It leaves the run directory as if the first host had stopped
 * after the last step that was applied: with its log, its metrics, and a checkpoint, from which the
 * run continues. */
#ifndef LS_TRAIN_TAKEOVER_H
#define LS_TRAIN_TAKEOVER_H

#include "async/shard_copy.h"
#include "train/alone.h"

/* Steps that are missing are computed with the gradient. Nothing is written if there is a
 * checkpoint of the same step. */
ls_status ls_takeover(ls_alone *, ls_shard_copy *, ls_async_gradient *, ls_error *);

#endif
