/* takeover.h - with sync.copies 2: a host that has the copy of the shards takes the place of the first
 * one (async/shard_copy.h). It leaves the run directory as if that one had stopped after the last step
 * that was applied: with its log, its metrics, and a checkpoint, from which the run goes on. */
#ifndef LS_TRAIN_TAKEOVER_H
#define LS_TRAIN_TAKEOVER_H

#include "async/shard_copy.h"
#include "train/alone.h"

/* The gradient computes steps that are missing. Nothing is written if a checkpoint is as new. */
ls_status ls_takeover(ls_alone *, ls_shard_copy *, ls_async_gradient *, ls_error *);

#endif
