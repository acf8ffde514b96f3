/* snapshot.h - checkpoints written beside training.
 *
 * Between an update and the next the state does not change. A worker asks for a snapshot of it and
 * goes on with the next step; a process of its own copies the state meanwhile, and writes the copy
 * at leisure. An update waits for a copy that is not complete yet.
 *
 *     worker 0             asks: LS_STORE_WANTED
 *     who starts workers   starts the writer
 *     the writer           has copied: LS_STORE_COPIED; has written, or failed: LS_STORE_WRITTEN
 *
 * Each is 1 + the steps complete in the state that it is about.
 */
#ifndef LS_TRAIN_SNAPSHOT_H
#define LS_TRAIN_SNAPSHOT_H

#include "net/process.h"
#include "plan/store.h"
#include <stdbool.h>

struct ls_run;

/* Of who starts the workers. */
typedef struct ls_snapshot {
    ls_child writer; /* pid 0: none is at work */
    int64_t steps;
    int tries; /* of this checkpoint */
} ls_snapshot;

/* Starts a writer where one is wanted, and looks after one that works: killed, or stopped, before
 * it has copied all, it is followed by another. */
void ls_snapshot_attend(ls_snapshot *, const struct ls_run *);
/* The state after so many steps becomes a checkpoint, unless there is one. By who starts workers,
 * when there are none. */
ls_status ls_snapshot_now(const struct ls_run *, int64_t steps, ls_error *);
/* Waits until a writer is done. */
void ls_snapshot_close(ls_snapshot *, const struct ls_run *);

/* By worker 0, when all workers have complete `steps`. False: the last one is still being written.
 */
bool ls_snapshot_ask(ls_store *, int64_t steps);
/* By every worker, before it changes the state. */
void ls_snapshot_wait_copied(const ls_store *);
/* Until what was asked for is on disk. LS_EIO: it could not be written; the log says why. */
ls_status ls_snapshot_wait_written(const ls_store *, ls_error *);

#endif
