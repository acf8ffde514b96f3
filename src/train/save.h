/* save.h - checkpoints of a run, by its workers.
 *
 * Where the state outlives the workers, other processes write checkpoints (snapshot.h); else worker 0
 * does, while the others wait for it without a time limit.
 */
#ifndef LS_TRAIN_SAVE_H
#define LS_TRAIN_SAVE_H

#include "train/loop.h"

/* Collective, between steps. A checkpoint that can't be written is logged, and the next one is
 * attempted when it is due; the last must succeed. */
ls_status ls_save(ls_loop *, ls_urgency, ls_error *);

/* For runtime.h: worker 0 writes, and the others wait for it; another process writes. */
ls_status ls_save_plain(ls_loop *, ls_urgency, ls_error *);
ls_status ls_save_supervised(ls_loop *, ls_urgency, ls_error *);

/* By worker 0: what was taken away of the run's folder is made again. */
ls_status ls_save_mend_folder(ls_loop *, ls_error *);

#endif
