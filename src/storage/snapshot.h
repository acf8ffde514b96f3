/* snapshot.h - checkpoints written beside training.
 *
 * The state does not change between two updates. A worker asks for a snapshot of it and continues
 * with the next step. Meanwhile a separate process, the writer, copies the state and then writes
 * the copy; the process that starts workers also starts the writer. An update waits until the copy
 * is complete.
 *
 * The snapshot's progress lies in memory that all processes of a host share and that outlives its
 * workers (ls_snapshot_state). One word, `mark`, has the phase, and the steps complete in the state
 * that is saved:
 *
 *                 .<------------------- asked for ----------------------.
 *                 |                                                     |
 *     IDLE ---> WANTED ---> COPIED ---> WRITTEN ------------------------|
 *                 |           |                                         |
 *                 '-----------'-------> FAILED -------------------------'
 *
 *     from                    to       made by
 *     IDLE, WRITTEN, FAILED   WANTED   ls_snapshot_ask(), by worker 0;
 *                                      ls_snapshot_ask_share(), by the first worker of each host
 *     WANTED                  COPIED   write_beside(), in the writer
 *     COPIED                  WRITTEN  on_end(), when the writer has ended well
 *     WANTED, COPIED          FAILED   on_end(), when the writer has failed, or was killed and can
 *                                      not start again;
 *                                      start(), when there is no memory or no process for a writer;
 *                                      ls_snapshot_end_view(), when no writer was started yet
 *
 * If a writer is killed, another one is started and the phase stays: it copies, or writes the copy
 * that is there, up to MOST_TRIES times. There is none after the snapshot was given up; and once
 * the state is copied, none if other hosts write parts of it, or if the view has ended since. The
 * functions without a prefix are in snapshot.c. The process that starts workers makes the last two
 * transitions.
 *
 *  (1) While the phase is WANTED or COPIED, the snapshot is pending: only the writer changes the
 *      mark and, once the writer has ended, the process that started it. Otherwise only workers
 *      change it. So two processes never change it at once, and since it is one word, a process
 *      that dies leaves the old mark or the new one.
 *  (2) The fields of a snapshot (with_others, attempt, was_killed, peers) are set before it is
 *      WANTED.
 *  (3) A mark holds for its own step only: a run that resumes from an older checkpoint asks for
 *      snapshots of fewer steps than the last mark.
 *
 * If no host has the whole state, the first worker of each asks its own host, and the writers write
 * parts of the same files (checkpoint.h). Their workers exchange what the writers need to know
 * after each step, with the words that they agree on anyway (ls_snapshot_say(),
 * ls_snapshot_hear()):
 *
 *     worker 0's host      has made the files, with the number `attempt` in their name
 *     worker 0             sends the number to the other hosts' first workers, which pass it to
 *                          their writers
 *     the other writers    write their parts: WRITTEN
 *     their first workers  report that none is pending any more, or that one has FAILED
 *     worker 0's host      reads everything back and renames the checkpoint: WRITTEN
 *
 * For that, each host's writer waits for `peers`, which changes once per snapshot:
 *
 *     SILENT ---> OPENED   the files exist; on hosts without worker 0       } ls_snapshot_hear()
 *       |-------> WRITTEN  all other parts are written; on worker 0's host  }
 *       |-------> FAILED   a host could not write                           }
 *       '-------> GONE     the view has ended                               ls_snapshot_end_view()
 *
 * So a lost host needs no time limit: its loss ends the view, and then the checkpoint is given up,
 * unless all parts were written.
 */
#ifndef LS_STORAGE_SNAPSHOT_H
#define LS_STORAGE_SNAPSHOT_H

#include <stdatomic.h>
#include <stdbool.h>

#include "config/config.h"
#include "net/launch/child.h"
#include "state/store.h"
#include "storage/best.h"
#include "storage/frozen_file.h"

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

/* Initially zero. */
typedef struct ls_snapshot_state {
    _Atomic(ls_snapshot_mark) mark;
    atomic_int with_others; /* hosts */
    atomic_uint attempt;    /* 0: not known yet */
    atomic_int peers;       /* an ls_snapshot_peers */
    atomic_int failure;     /* LS_PEERS_FAILED: the word LS_SNAPSHOT_FAILURE */
    atomic_bool was_killed; /* FAILED: its writer was killed, so another attempt may succeed */
    atomic_llong held_ns;   /* the longest time that a snapshot delayed a worker */
} ls_snapshot_state;

/* What a snapshot needs to know about the run in this view. All of it must outlive the calls. */
typedef struct ls_snapshot_run {
    const char *dir;
    const ls_config *config;
    const ls_buf *config_text; /* as YAML */
    const ls_plan *plan;
    /* All of these are NULL if nothing is written beside training. */
    ls_store *store;
    ls_snapshot_state *state;
    const ls_best_state *best;
    ls_best_state *on_disk; /* the best checkpoint on disk, by the last writer */
    const ls_frozen_note *frozen;
    int first, n; /* workers of this host; n 0: none has started */
    /* Tables of which parameters are windows, the blocks of them that are not 0 on this host, and
     * the steps that they have had; NULL: none. */
    const float *tables;
    const unsigned char *tables_here; /* [ls_table_blocks()] */
    const atomic_llong *tables_steps;
} ls_snapshot_run;

/* State of the process that starts the workers. */
typedef struct ls_snapshot {
    ls_child writer;  /* pid 0: none is running */
    ls_child warmer;  /* likewise; it touches the memory of the copy */
    int64_t began_ns; /* when workers had started */
    int64_t steps;
    int tries;     /* of this checkpoint */
    bool given_up; /* the view ended in which other hosts were to write parts of it */
    bool is_old;   /* the view has ended since it was asked for */
    float *copy;   /* of the state; shared with writers; retained, and warm, for the next one */
    size_t nbytes; /* of the copy */
} ls_snapshot;

/* Called once workers have started: prepares memory for the first copy beside them, if a checkpoint
 * is due before the last step. */
void ls_snapshot_prepare(ls_snapshot *, const ls_snapshot_run *);
/* Starts a writer if one is wanted, and monitors a running one: if it is killed or stopped, starts
 * another. */
void ls_snapshot_attend(ls_snapshot *, const ls_snapshot_run *);
/* Called when a view has ended, whether or not another follows. stateless: the next view begins
 * from an older checkpoint. Gives up a snapshot that waits for other hosts' parts and returns true;
 * a view that begins after the same step then asks again. */
bool ls_snapshot_end_view(ls_snapshot *, const ls_snapshot_run *, bool stateless);
/* Saves the state after `steps` steps as a checkpoint, unless a good one is as new. Called by the
 * process that starts workers, when there are none. *newest_p: the step of the newest checkpoint
 * afterwards. */
ls_status ls_snapshot_now(ls_snapshot *, const ls_snapshot_run *, int64_t steps, int64_t *newest_p,
                          ls_error *);
/* Waits until the writer has ended, and frees the memory. */
void ls_snapshot_close(ls_snapshot *, const ls_snapshot_run *);

/* Called by worker 0, when all workers have completed `steps`. False: the last snapshot is still
 * being written. */
bool ls_snapshot_ask(ls_snapshot_state *, int64_t steps);
/* Is one being written? */
bool ls_snapshot_is_pending(const ls_snapshot_state *);
/* Is no part of the state still to be copied? */
bool ls_snapshot_is_copied(const ls_snapshot_state *);
/* Called by every worker, before it changes the state. */
void ls_snapshot_wait_copied(ls_snapshot_state *);
/* Waits until the requested snapshot is on disk. LS_EIO: it could not be written; the log has the
 * reason. */
ls_status ls_snapshot_wait_written(const ls_snapshot_state *, ls_error *);

/* Records that a copy, or the request for one, delayed a worker by `ns`. */
void ls_snapshot_note_held(ls_snapshot_state *, int64_t ns);

/* ---- a snapshot that several hosts write ---- */

/* Is the state spread over several hosts, if worker 0's host has `n` workers? */
bool ls_snapshot_is_shared(const ls_plan *, int n);

enum { LS_SNAPSHOT_WORDS = 3, LS_SNAPSHOT_PENDING = 1, LS_SNAPSHOT_FAILURE = 2 };
enum { LS_SNAPSHOT_WAS_KILLED = 1 << 30 };

/* Called by every worker, when no host is writing any more. *asked_p is -1 when a view begins, and
 * an argument of the functions below: the steps, at the first worker of a host that has a part. */
void ls_snapshot_ask_share(const ls_snapshot_run *, int worker, int64_t steps, int64_t *asked_p);
/* say: the words that this worker sends after a step; hear: the maximum of each word over all
 * workers. The word LS_SNAPSHOT_PENDING is not 0 while any host is writing; LS_SNAPSHOT_FAILURE is
 * not 0 once one has failed: 1 + the first worker of the host, and LS_SNAPSHOT_WAS_KILLED if its
 * writer was killed. */
void ls_snapshot_say(const ls_snapshot_run *, int worker, int64_t asked, int32_t *words);
void ls_snapshot_hear(const ls_snapshot_run *, int worker, int64_t asked, const int32_t *words);
/* Called by worker 0: is the checkpoint of `steps` complete? */
bool ls_snapshot_is_written(const ls_snapshot_state *, int64_t steps);
/* Has the last snapshot failed? */
bool ls_snapshot_has_failed(const ls_snapshot_state *);

#endif
