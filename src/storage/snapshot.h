/* snapshot.h - checkpoints written beside training.
 *
 * Between an update and the next the state does not change. A worker asks for a snapshot of it and
 * goes on with the next step. Meanwhile a process of its own, the writer, copies the state and then
 * writes the copy; the process that starts workers starts it. An update waits for a copy that is not
 * complete.
 *
 * How far the snapshot is lies in memory that all processes of a host share and that outlives its
 * workers (ls_snapshot_state). One word, `mark`, has the phase and the steps complete in the state
 * that it is about:
 *
 *                 .<------------------- asked for ----------------------.
 *                 |                                                     |
 *     IDLE ---> WANTED ---> COPIED ---> WRITTEN ------------------------|
 *                 |           |                                         |
 *                 '-----------'-------> FAILED -------------------------'
 *
 *     from                    to       made by
 *     IDLE, WRITTEN, FAILED   WANTED   ls_snapshot_ask(), by worker 0; ls_snapshot_ask_share(), by the
 *                                      first worker of each host
 *     WANTED                  COPIED   write_beside(), in the writer
 *     COPIED                  WRITTEN  on_end(), when the writer has ended well
 *     WANTED, COPIED          FAILED   on_end(), when it has failed, or was killed: after it had copied,
 *                                      after it was given up, or for the MOST_TRIES-th time;
 *                                      start(), when there is no memory or no process for it;
 *                                      ls_snapshot_end_view(), when it was not started yet
 *
 * A writer that is killed before it has copied is followed by another: the phase stays WANTED. The
 * functions without a prefix are in snapshot.c, and the last two lines are of the process that starts
 * workers.
 *
 *  (1) While the phase is WANTED or COPIED, the snapshot is pending: only the writer, and when it has
 *      ended the process that started it, change the mark. Otherwise only workers do. So two processes
 *      never change it at once, and since it is one word, a process that dies leaves the old one or
 *      the new.
 *  (2) What belongs to a snapshot (with_others, attempt, peers) is set before it is WANTED.
 *  (3) A mark says nothing of other steps than its own: a run that goes on from an older checkpoint
 *      wants one of fewer steps than the one before.
 *
 * Where no host has all of the state, the first worker of each asks its own host, and the writers
 * write parts of the same files (checkpoint.h). What they have to know of each other their workers
 * say after each step, with what they agree on anyway (ls_snapshot_say(), ls_snapshot_hear()):
 *
 *     worker 0's host      has made the files, with the number `attempt` in their name
 *     worker 0             says the number to the others' first workers, which leave it to their writers
 *     the other writers    write their parts: WRITTEN
 *     their first workers  say that none is pending any more, or that one has FAILED
 *     worker 0's host      reads all back, gives the checkpoint its name: WRITTEN
 *
 * For that each host's writer waits for `peers`, which changes once in a snapshot:
 *
 *     SILENT ---> OPENED   the files are there; on hosts without worker 0 } ls_snapshot_hear()
 *       |-------> WRITTEN  all other parts are; on worker 0's host        }
 *       |-------> FAILED   a host could not write                         }
 *       '-------> GONE     the view has ended                             ls_snapshot_end_view()
 *
 * So a host that is lost needs no time limit: with it the view ends, and then the checkpoint is
 * given up, unless all parts were there.
 */
#ifndef LS_STORAGE_SNAPSHOT_H
#define LS_STORAGE_SNAPSHOT_H

#include <stdatomic.h>
#include <stdbool.h>

#include "config/config.h"
#include "exec/store.h"
#include "net/launch/process.h"
#include "storage/best.h"

typedef enum ls_snapshot_phase {
    LS_SNAPSHOT_IDLE,
    LS_SNAPSHOT_WANTED,
    LS_SNAPSHOT_COPIED,
    LS_SNAPSHOT_WRITTEN,
    LS_SNAPSHOT_FAILED
} ls_snapshot_phase;

typedef enum ls_snapshot_peers {
    LS_PEERS_SILENT,
    LS_PEERS_OPENED,
    LS_PEERS_WRITTEN,
    LS_PEERS_FAILED,
    LS_PEERS_GONE
} ls_snapshot_peers;

typedef struct ls_snapshot_mark {
    uint32_t phase; /* an ls_snapshot_phase */
    uint32_t steps;
} ls_snapshot_mark;

/* Zero at first. */
typedef struct ls_snapshot_state {
    _Atomic(ls_snapshot_mark) mark;
    atomic_int with_others; /* hosts */
    atomic_uint attempt;    /* 0: not known yet */
    atomic_int peers;       /* an ls_snapshot_peers */
    atomic_llong held_ns;   /* the longest that a worker was held up by one */
} ls_snapshot_state;

/* What it has to know of the run, in this view. All of it outlives the calls. */
typedef struct ls_snapshot_run {
    const char *dir;
    const ls_config *config;
    const ls_buf *config_text; /* as YAML */
    const ls_plan *plan;
    /* NULL, all of these: nothing is written beside training. */
    ls_store *store;
    ls_snapshot_state *state;
    const ls_best_state *best;
    ls_best_state *on_disk; /* what the last writer knew of the checkpoints on disk */
    int first, n;           /* workers of this host; n 0: none has begun */
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
 * waits for other hosts' parts is given up: then true, and a view that begins after the same step
 * asks again. */
bool ls_snapshot_end_view(ls_snapshot *, const ls_snapshot_run *, bool stateless);
/* The state after so many steps becomes a checkpoint, unless a good one is as new. By who starts
 * workers, when there are none. *newest_p: the steps of the newest then. */
ls_status ls_snapshot_now(ls_snapshot *, const ls_snapshot_run *, int64_t steps, int64_t *newest_p,
                          ls_error *);
/* Waits until a writer is done, and gives memory back. */
void ls_snapshot_close(ls_snapshot *, const ls_snapshot_run *);

/* By worker 0, when all workers have complete `steps`. False: the last one is still being written.
 */
bool ls_snapshot_ask(ls_snapshot_state *, int64_t steps);
/* Is nothing of the state still to be copied? */
bool ls_snapshot_is_copied(const ls_snapshot_state *);
/* By every worker, before it changes the state. */
void ls_snapshot_wait_copied(ls_snapshot_state *);
/* Until what was asked for is on disk. LS_EIO: it could not be written; the log says why. */
ls_status ls_snapshot_wait_written(const ls_snapshot_state *, ls_error *);

/* A worker was held up for so long, by a copy or by asking. */
void ls_snapshot_note_held(ls_snapshot_state *, int64_t ns);

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
bool ls_snapshot_is_written(const ls_snapshot_state *, int64_t steps);

#endif
