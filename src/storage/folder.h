/* folder.h - a run directory: found or made, locked, filled, and removed again if the start fails.
 *
 * Only the holder of the lock (lock.h) changes the directory; other processes read from it, so
 * hosts need a shared file system. Nothing is written before it is clear that the directory belongs
 * to this run: it is missing, or empty, or this run's own. Only a start that fails removes files:
 * those that it made itself.
 *
 *     opened by                         open      take up  follow  begin_training, stay  close
 *     the process that starts workers   first                                            last
 *       its worker 0                    inherits  view 1   later   each view
 *     worker 0 of several hosts, or     itself    view 1   later   each view            at its end
 *       of a launcher's workers
 *
 * The last process that closes it releases the lock.
 */
#ifndef LS_STORAGE_FOLDER_H
#define LS_STORAGE_FOLDER_H

#include <stdatomic.h>
#include <sys/types.h>

#include "dataset/dataset.h"
#include "plan/plan.h"
#include "state/store.h"
#include "storage/lock.h"

/* The file of what the run has printed (base/transcript.h); older lines are in log.txt.1. */
#define LS_FOLDER_LOG "log.txt"

/* The state of the directory across views, in memory that outlives a host's workers; initially
 * zero. The phase never goes back.
 *
 *     UNTOUCHED ----> BEGUN ----> MADE
 *         '--------------------------^
 *
 *     BEGUN  in an earlier view, another host may have made the directory, or a part of it
 *            (set by ls_folder_set_begun(): the process that starts workers, before a view)
 *     MADE   the directory is complete, for `step` (set by ls_folder_set_made(): each worker, once
 *            worker 0 has taken it up; the process that starts workers, if an earlier view did)
 *
 * `step` is written before MADE; all workers of the host write the same value.
 */
typedef enum ls_folder_phase {
    LS_FOLDER_UNTOUCHED,
    LS_FOLDER_BEGUN,
    LS_FOLDER_MADE
} ls_folder_phase;
typedef struct ls_folder_state {
    atomic_int phase;     /* an ls_folder_phase */
    atomic_llong step;    /* steps complete when the run began; 0: it was new */
    atomic_ullong device; /* of the directory; 0: not known */
} ls_folder_state;

ls_folder_phase ls_folder_phase_of(const ls_folder_state *);
void ls_folder_set_begun(ls_folder_state *);
void ls_folder_set_made(ls_folder_state *);

/* What a directory needs to know about its run, which must outlive it. */
typedef struct ls_folder_run {
    const char *dir;
    const ls_config *config;
    const ls_buf *config_text; /* as YAML */
    const ls_model *model;
    const ls_plan *plan;
    ls_store *store;        /* } NULL unless the run survives lost workers */
    ls_folder_state *state; /* } */
    ls_corpus *made;        /* that of a new run, if it was made already: taken over when it is
                             * written; NULL, or without samples: it was not */
    bool resumes;           /* the directory may exist already */
    bool overwrites;        /* a run in it is replaced, although it has checkpoints */
} ls_folder_run;

/* Shared with the processes of this host that are forked later; one process at a time writes it. */
typedef struct ls_folder_notes {
    unsigned made; /* files that this run made */
    bool made_checkpoints;
    bool fresh;   /* the directory was empty when it was locked, or had a run that is replaced */
    bool old;     /* that run's files are still there (old_run.h) */
    bool stays;   /* training has begun: nothing is removed from here on */
    int64_t step; /* steps complete at the newest checkpoint; 0: none; -1: not known yet */
    dev_t device; /* } of the directory */
    ino_t inode;  /* } */
} ls_folder_notes;

typedef struct ls_folder {
    ls_folder_run run;
    ls_lock lock;
    char *made_from;  /* the topmost directory that this process made; NULL: none */
    ls_buf published; /* the text of published.json when it was taken up; empty: there is none */
    ls_folder_notes *notes;
} ls_folder;

/* For a process that does not open the directory: checks that it can be written and has space.
 * Changes nothing. */
ls_status ls_folder_check(const ls_folder_run *, ls_error *);
/* LS_EIO: the directory has no room for this number of further checkpoints. */
ls_status ls_folder_check_room(const ls_folder *, int64_t checkpoints, ls_error *);
/* Locks the directory. It must be missing or empty, or, with --resume, that of a run whose config
 * is compatible. A run without a checkpoint has nothing to lose: a new run replaces it, as with
 * --overwrite it replaces any run; the old files are removed once all of the new run is known.
 * follows: an earlier view began the directory, maybe on another host, whose worker 0 may still
 * hold the lock. */
ls_status ls_folder_open(const ls_folder_run *, bool follows, ls_folder **f_p, ls_error *);
/* Before workers start: writes the files of a new run whose corpus was made already. */
ls_status ls_folder_fill(ls_folder *, ls_error *);
/* Writes the config and the files of the data set that are missing, or finds the newest good
 * checkpoint and sets notes->step. Can be repeated after an interruption. */
ls_status ls_folder_take_up(ls_folder *, ls_error *);
/* As ls_folder_take_up(), for a run whose workers were lost: uses the state in memory, if there is
 * any. */
ls_status ls_folder_follow(ls_folder *, ls_error *);
/* Takes only the lock, for the end of a run on this host. Waits a few seconds for another host. */
ls_status ls_folder_hold(const ls_folder_run *, ls_folder **f_p, ls_error *);
/* Before a checkpoint: restores the files that were deleted from the directory, except metrics and
 * checkpoints, and small ones that were changed. frozen [nparams]: in f32; NULL: the model has
 * none. */
ls_status ls_folder_repair(ls_folder *, const ls_dataset *, const ls_frozen_value *frozen,
                           ls_error *);
/* Does the directory have the data set, and the frozen parameters of the model? */
bool ls_folder_has_data(const char *dir, const ls_config *, const ls_model *);
/* Training begins: an old directory gets the new config. *old_p: it may have earlier metrics. */
ls_status ls_folder_begin_training(ls_folder *, bool *old_p, ls_error *);
/* All files that training needs are written: from here on a new directory is not removed. */
void ls_folder_stay(ls_folder *);
/* Releases the lock, unless another process shares it. abandon: the start has failed, so the files
 * that it made are removed, unless training had begun. NULL is fine. */
void ls_folder_close(ls_folder *, bool abandon);

#endif
