/* save.h - workers save checkpoints while they train. */
#ifndef LS_TRAIN_SAVE_H
#define LS_TRAIN_SAVE_H

#include "train/loop.h"

/* Collective, between steps. A checkpoint that can't be written is logged, and the next one is
 * attempted when it is due; the last must succeed. Fails before it saves if something that a worker
 * reads has changed. */
ls_status ls_save(ls_loop *, ls_urgency, ls_error *);

/* For runtime.h. Plain: worker 0 writes while the others wait, without a time limit.
 * Supervised: another process writes (storage/snapshot.h). */
ls_status ls_save_plain(ls_loop *, ls_urgency, ls_error *);
ls_status ls_save_supervised(ls_loop *, ls_urgency, ls_error *);

/* By worker 0: restores files that were removed from the run directory. */
ls_status ls_save_restore_folder(ls_loop *, ls_error *);

#endif
