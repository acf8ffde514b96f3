/* solo.h - the gradient of one virtual worker alone, computed by any worker: the same bits as where
 * it belongs.
 */
#ifndef LS_TRAIN_SOLO_H
#define LS_TRAIN_SOLO_H

#include "train/member.h"

typedef struct ls_solo {
    const ls_plan *plan;
    ls_world world;
    ls_board_slot slot;
    ls_exec *exec;
    size_t grads_nbytes, wide_nbytes, sums_nbytes; /* of memory of its own */
} ls_solo;

/* Of a run's virtual workers, as if there were V workers: for all ls_solo of a view. */
ls_status ls_solo_plan(const ls_run *, ls_plan *plan_p, ls_error *);

/* By ls_solo_plan()'s plan, which is needed until the close; for the step after `steps` others. The
 * gradient goes to `grads` [nfloats], norms and losses to `parts` [ls_plan_nscalars]; NULL: to
 * world.grads and world.parts, memory of its own. The member has all parameters, and has them as
 * long as this is used. Close it also after a failure. */
ls_status ls_solo_open(ls_solo *, const ls_member *, const ls_plan *, int vw, int64_t steps,
                       void *grads, double *parts, ls_error *);
void ls_solo_close(ls_solo *);

#endif
