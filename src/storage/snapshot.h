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
 *
 * Where no host has all of the state, the first worker of each asks its own host
 * (LS_STORE_TOGETHER), and the writers write parts of the same files (checkpoint.h). What they have
 * to know of each other their workers say after each step, with what they agree on anyway:
 *
 *     worker 0's host      has made the files: LS_STORE_OPENED, the attempt's number
 *     worker 0             tells the others' first workers, who set it for their own writers
 *     the other writers    write their parts: LS_STORE_WRITTEN
 *     their first workers  say that they are there, or that one failed: LS_STORE_PARTS at worker 0
 *     worker 0's host      reads all back, gives the checkpoint its name: LS_STORE_WRITTEN
 *
 * So a host that is lost needs no time limit: with it the view ends, and then the checkpoint is
 * given up, unless all parts were there.
 */
#ifndef LS_STORAGE_SNAPSHOT_H
#define LS_STORAGE_SNAPSHOT_H

#include <stdbool.h>

#include "config/config.h"
#include "exec/store.h"
#include "net/launch/process.h"

/* What it has to know of the run, in this view. All of it outlives the calls. */
typedef struct ls_snapshot_run {
    const char *dir;
    const ls_config *config;
    const ls_buf *config_text; /* as YAML */
    const ls_plan *plan;
    ls_store *store; /* NULL: the run has none, and nothing is written beside it */
    int first, n;    /* workers of this host; n 0: none has begun */
} ls_snapshot_run;

/* Of who starts the workers. */
typedef struct ls_snapshot {
    ls_child writer; /* pid 0: none is at work */
    ls_child warmer; /* likewise; it touches the memory of the copy */
    int64_t steps;
    int tries;     /* of this checkpoint */
    bool given_up; /* the view has ended in which other hosts would have written parts of it */
    float *copy;   /* [3 nfloats] shared with writers; stays for the next, which finds it warm */
    size_t nbytes; /* of it */
} ls_snapshot;

/* When workers have begun: memory for the first copy is made ready beside them, where a checkpoint
 * is to come before the last one. */
void ls_snapshot_prepare(ls_snapshot *, const ls_snapshot_run *);
/* Starts a writer where one is wanted, and looks after one that works: killed, or stopped, before
 * it has copied all, it is followed by another. */
void ls_snapshot_attend(ls_snapshot *, const ls_snapshot_run *);
/* The view has ended, and the next one begins, or none. stateless: with an older checkpoint. What
 * waits for other hosts' parts is given up. */
void ls_snapshot_end_view(ls_snapshot *, const ls_snapshot_run *, bool stateless);
/* The state after so many steps becomes a checkpoint, unless a good one is as new. By who starts
 * workers, when there are none. *newest_p: the steps of the newest then. */
ls_status ls_snapshot_now(ls_snapshot *, const ls_snapshot_run *, int64_t steps, int64_t *newest_p,
                          ls_error *);
/* Waits until a writer is done, and gives memory back. */
void ls_snapshot_close(ls_snapshot *, const ls_snapshot_run *);

/* By worker 0, when all workers have complete `steps`. False: the last one is still being written.
 */
bool ls_snapshot_ask(ls_store *, int64_t steps);
/* Is nothing of the state still to be copied? */
bool ls_snapshot_is_copied(const ls_store *);
/* By every worker, before it changes the state. */
void ls_snapshot_wait_copied(ls_store *);
/* Until what was asked for is on disk. LS_EIO: it could not be written; the log says why. */
ls_status ls_snapshot_wait_written(const ls_store *, ls_error *);

/* ---- where several hosts write one ---- */

/* Does the state lie on several hosts, if worker 0's has `n` workers? */
bool ls_snapshot_is_shared(const ls_plan *, int n);

enum { LS_SNAPSHOT_WORDS = 3, LS_SNAPSHOT_PENDING = 1 };

/* By every worker, when no host writes any more. *asked_p, which is 0 when a view begins, is for
 * those below: not 0 at the first worker of a host that has a part. */
void ls_snapshot_ask_share(const ls_snapshot_run *, int worker, int64_t steps, int64_t *asked_p);
/* What this worker says after a step; then what all have said, the highest of each word. It is not
 * 0 at LS_SNAPSHOT_PENDING while any host writes. */
void ls_snapshot_say(const ls_snapshot_run *, int worker, int64_t asked, int32_t *words);
void ls_snapshot_hear(const ls_snapshot_run *, int worker, int64_t asked, const int32_t *words);
/* By worker 0: is the checkpoint of so many steps complete? */
bool ls_snapshot_is_written(const ls_store *, int64_t steps);

#endif
