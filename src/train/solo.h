/* solo.h - the gradient of one virtual worker alone. Any worker can compute it, with the same
 * bits as the worker that runs this virtual worker. */
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

/* A plan with a worker for each virtual worker; all ls_solo of a view share it. */
ls_status ls_solo_plan(const ls_member *, ls_plan *plan_p, ls_error *);

/* What to compute, and where to put it. */
typedef struct ls_solo_task {
    const ls_plan *plan; /* ls_solo_plan()'s; needed until the close */
    int vw;
    int64_t steps; /* complete before this one */
    void *grads;   /* [nfloats] } NULL: memory of ls_solo's own, world.grads and world.parts */
    double *parts; /* [ls_plan_nscalars] norms and losses } */
} ls_solo_task;

/* The member has all parameters, and retains them while *x is in use. Close it also after a
 * failure. */
ls_status ls_solo_open(ls_solo *, const ls_member *, const ls_solo_task *, ls_error *);
/* Switches to another task of the same plan, with grads and parts. Allocates nothing. */
void ls_solo_move(ls_solo *, const ls_solo_task *);
void ls_solo_close(ls_solo *);

#endif
