/* notes.h - what workers leave for the workers of later views, beside the state.
 *
 * The notes lie in memory that outlives a host's workers (ls_store_carried()) and is zero at first.
 */
#ifndef LS_TRAIN_NOTES_H
#define LS_TRAIN_NOTES_H

#include <stdatomic.h>

#include "storage/folder.h"
#include "storage/frozen_file.h"
#include "storage/snapshot.h"

typedef struct ls_run_notes {
    ls_folder_state folder;
    ls_snapshot_state snapshot;
    ls_best_state best;
    ls_best_state best_on_disk; /* step and loss of the best checkpoint, noted by the last writer */
    /* The steps after which the model was last evaluated or saved; -1: not yet. Each worker of the
     * host writes the same value. */
    atomic_llong evaluated, saved;
    atomic_llong saved_ns;  /* by the clock of the host that has worker 0: ls_saver.due_ns */
    atomic_llong data;      /* a hash of the samples of the run; 0: not known yet */
    ls_frozen_note frozen;  /* the file of its frozen parameters */
    atomic_int has_frozen;  /* 1: the store has them (ls_store_frozen()) */
    atomic_int has_outputs; /* 1: worker 0 has opened what it writes (outputs.h) */
} ls_run_notes;

/* Before the first workers start. */
static inline void ls_run_notes_begin(ls_run_notes *n) {
    atomic_store(&n->evaluated, -1);
    atomic_store(&n->saved, -1);
}

/* Tables (table/row_tables.h) follow them, where a page begins. */
enum { LS_RUN_NOTES_NBYTES = (sizeof(ls_run_notes) + 4095) / 4096 * 4096 };

#endif
