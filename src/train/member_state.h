/* member_state.h - a worker's state: drawn, read from a checkpoint, or written to one. */
#ifndef LS_TRAIN_MEMBER_STATE_H
#define LS_TRAIN_MEMBER_STATE_H

#include "storage/best.h"
#include "train/member.h"

/* The state after m->first_step steps, in the member's buffers, and its loss scale: drawn, or read
 * from the checkpoint at `path` or from a published model. */
ls_status ls_member_make_state(ls_member *, const char *path, ls_error *);

/* What worker 0 saves after `steps` steps, once it has collected it (state/world.h). */
ls_train_state ls_member_state(const ls_member *, int64_t steps);
/* Writes this state as a checkpoint in the run directory. known: as in ls_checkpoint_extra. */
ls_status ls_member_write(const ls_member *, int64_t steps, const ls_best *best,
                          ls_checkpoint_known *known, ls_error *);

#endif
