/* save.h - checkpoints of a run, by its workers.
 *
 * Where the state outlives the workers, other processes write checkpoints (snapshot.h); else worker 0
 * does, while the others wait for it without a time limit.
 */
#ifndef LS_TRAIN_SAVE_H
#define LS_TRAIN_SAVE_H

#include "train/loop.h"

/* How much a checkpoint matters: it is left out where the one before is still being written; it
 * waits for that; it is waited for itself, and must succeed. */
typedef enum ls_urgency { LS_SAVE_IF_IDLE, LS_SAVE_FOR_SURE, LS_SAVE_LAST } ls_urgency;

/* Collective, between steps. */
ls_status ls_save(ls_loop *, ls_urgency, ls_error *);

/* By worker 0: what was taken away of the run's folder is made again. */
ls_status ls_save_mend_folder(ls_loop *, ls_error *);

#endif
