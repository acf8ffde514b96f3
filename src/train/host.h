/* host.h - the process that starts a run's workers, or that is one of those a launcher has started.
 *
 *     run      never changes
 *     layout   of the view; replaced between views, when no worker runs
 *     runtime  what the workers are, and whether their state outlives them (runtime.h)
 *
 * The other fields belong to a host that supervises its workers (ls_host_supervise); else they are
 * zero.
 *
 * Workers read a host and change nothing in it. Worker processes have a copy, as it was when they
 * were forked. Memory that they share with the process that started them is behind `store` and
 * `notes`.
 */
#ifndef LS_TRAIN_HOST_H
#define LS_TRAIN_HOST_H

#include "cluster/control.h"
#include "cluster/workers.h"
#include "train/layout.h"
#include "train/notes.h"
#include "train/ranges.h"
#include "train/run.h"
#include "train/runtime.h"
#include "train/worker_states.h"

typedef struct ls_host {
    const ls_run *run;
    int threads; /* of a worker, at most: the store has room for these */
    bool binds;  /* workers may bind their threads to cores: they are this program's alone */
    ls_layout layout;
    const ls_runtime *runtime;
    ls_run_notes *notes;    /* for the workers of later views: the store's, else own_notes */
    ls_run_notes own_notes; /* used if no workers follow these */
    ls_folder *folder;      /* opened for all workers; NULL: worker 0 opens it */
    ls_corpus *made;        /* of a new run whose samples were counted (storage/folder.h) */
    ls_store *store;        /* also with sync.mode async: for workers and servers */
    ls_supervisor survival;
    ls_buf must_match; /* what all hosts must have in common */
    ls_ranges ranges;
    ls_control *control; /* NULL: not open yet */
    ls_snapshot snapshot;
    ls_worker_states states;
} ls_host;

/* Makes the layout, and compares the memory that it needs with the machine's; on one host a
 * train.micro_batch that the program has chosen is lowered for it. *h_p must not move afterwards;
 * free it also after a failure. The run must outlive it. */
ls_status ls_host_open(ls_host *h_p, ls_run *, ls_error *);
/* If this process starts the workers as processes, their state outlives them from here on: a lost
 * worker does not end the run. Otherwise nothing changes. */
ls_status ls_host_supervise(ls_host *, ls_error *);
/* Runs `main` in each worker, and returns when all have ended. With the sequential executor one
 * process plays all workers. arg begins with the ls_host. */
ls_status ls_host_launch(ls_host *, ls_worker_main *main, void *arg, ls_error *);
/* Waits for a checkpoint that is being written, and ends the control socket and the store. */
void ls_host_close(ls_host *);
void ls_host_free(ls_host *);

/* Memory for tables of which parameters are windows, in the store; NULL: there is no store. */
void *ls_host_tables(const ls_host *);

/* Have earlier workers left their state in memory? */
bool ls_host_has_state(const ls_host *);

/* What the run directory, and the checkpoints beside training, need to know about the run now. */
ls_folder_run ls_host_folder_run(const ls_host *);
ls_snapshot_run ls_host_snapshot_run(const ls_host *);

#endif
