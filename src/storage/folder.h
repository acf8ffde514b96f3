/* folder.h - a run directory: found or made, locked, filled, and removed again if the start fails.
 *
 * The holder of its lock (lock.h) alone changes it; the others read from it, so hosts need a file
 * system that they share. Nothing is written before it is clear that the directory is this run's:
 * it is missing, or empty, or the directory of this run. Only a start that fails removes
 * something: those files that it made itself.
 *
 *     opened by                           open       take up   follow   keep, stay   close
 *     the process that starts workers     first                                      last: the lock ends
 *       worker 0 of these                 inherits   view 1    later    each view
 *     worker 0 of several hosts,          itself     view 1    later    each view    with its process
 *       or of a launcher's workers
 */
#ifndef LS_STORAGE_FOLDER_H
#define LS_STORAGE_FOLDER_H

#include <stdatomic.h>
#include <sys/types.h>

#include "exec/store.h"
#include "storage/corpus.h"
#include "storage/lock.h"

/* What becomes of the directory from view to view, in memory that outlives a host's workers; zero at
 * first. A state is never taken back.
 *
 *     UNTOUCHED ----> BEGUN ----> MADE
 *         '--------------------------^
 *
 *     BEGUN  another host, in a view before this one, may have made it, or a part of it
 *            (ls_folder_set_begun(): the process that starts workers, before a view)
 *     MADE   it is complete, for `step` (ls_folder_set_made(): each worker, when worker 0 has taken it
 *            up; the process that starts workers, where a view before this one has)
 *
 * `step` is written before MADE, by each worker of the host with the same value.
 */
typedef enum ls_folder_phase {
    LS_FOLDER_UNTOUCHED,
    LS_FOLDER_BEGUN,
    LS_FOLDER_MADE
} ls_folder_phase;
typedef struct ls_folder_state {
    atomic_int phase;  /* an ls_folder_phase */
    atomic_llong step; /* steps complete when the run began; 0: it was new */
} ls_folder_state;

ls_folder_phase ls_folder_phase_of(const ls_folder_state *);
void ls_folder_set_begun(ls_folder_state *);
void ls_folder_set_made(ls_folder_state *);

/* What a directory has to know of its run, which outlives it. */
typedef struct ls_folder_run {
    const char *dir;
    const ls_config *config;
    const ls_buf *config_text; /* as YAML */
    const ls_model *model;
    ls_store *store;        /* } where workers can be lost, and others follow them; else NULL */
    ls_folder_state *state; /* } */
    bool resumes;           /* the directory may be there already */
} ls_folder_run;

/* Shared by the processes of this host that are forked later; one at a time writes it. */
typedef struct ls_folder_notes {
    unsigned made; /* files that this run made */
    bool made_checkpoints;
    bool fresh;   /* there was nothing when it was locked */
    bool stays;   /* training has begun: nothing is removed any more */
    int64_t step; /* steps complete at the newest checkpoint; 0: none; -1: not known yet */
    dev_t device; /* } of the directory */
    ino_t inode;  /* } */
} ls_folder_notes;

typedef struct ls_folder {
    ls_folder_run run;
    ls_lock lock;
    char *made_from; /* the uppermost directory that this process made; NULL: none */
    ls_folder_notes *notes;
} ls_folder;

/* Where this process does not open it: can the directory be written, and is there room? Changes nothing. */
ls_status ls_folder_check(const ls_folder_run *, ls_error *);
/* Locks it. A new run needs one that is missing or empty; --resume also takes that of a run whose
 * config is compatible. follows: a view before this one has begun it, maybe on another host, whose
 * worker 0 may still have the lock. */
ls_status ls_folder_open(const ls_folder_run *, bool follows, ls_folder **f_p, ls_error *);
/* Writes what is missing of config, tokenizer and tokens, or finds the newest good checkpoint:
 * notes->step. Can be done again where it was interrupted. */
ls_status ls_folder_take_up(ls_folder *, ls_error *);
/* The same for a run whose workers were lost: with their state in memory, if there is any. */
ls_status ls_folder_follow(ls_folder *, ls_error *);
/* The lock alone, where a run ends on this host; another host may have it for a few seconds. */
ls_status ls_folder_hold(const ls_folder_run *, ls_folder **f_p, ls_error *);
/* Before a checkpoint: restores what was deleted from the directory, as far as it is known. */
ls_status ls_folder_repair(ls_folder *, const ls_corpus *, ls_error *);
/* Training begins: an old one gets the new config. *old_p: it may have metrics from before. */
ls_status ls_folder_begin_training(ls_folder *, bool *old_p, ls_error *);
/* ... and all is written that it needs: from here on a fresh one stays. */
void ls_folder_stay(ls_folder *);
/* The lock ends, unless another process shares it. abandon: the start has failed, so what it made
 * is removed, unless training had begun. NULL is fine. */
void ls_folder_close(ls_folder *, bool abandon);

#endif
