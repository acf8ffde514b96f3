/* solo.h - the gradient of one virtual worker alone. Any worker can compute it, with the same
 * bits as the worker that runs this virtual worker. */
#ifndef LS_EXEC_SOLO_H
#define LS_EXEC_SOLO_H

#include "exec/exec.h"

/* What several tasks have in common. All of it is needed until the close. */
typedef struct ls_solo_config {
    const ls_plan *plan;           /* ls_plan_solo()'s */
    void *params;                  /* [nfloats] of the plan's compute type; only read */
    const ls_frozen_value *frozen; /* [nparams]; NULL: there are none */
    const ls_layer_rows *rows;     /* of tables; NULL: there are none */
    ls_loader_config loader;       /* of any share of the batch */
    int threads, busy, cores;      /* as in exec.h */
} ls_solo_config;

typedef struct ls_solo {
    const ls_plan *plan;
    ls_world world;
    ls_board_slot slot;
    ls_exec *exec;
    size_t grads_nbytes, wide_nbytes, sums_nbytes; /* of memory of its own */
} ls_solo;

/* What to compute, and where to put it. */
typedef struct ls_solo_task {
    int vw;
    int64_t steps; /* complete before this one */
    void *grads;   /* [nfloats] } NULL: memory of ls_solo's own, world.grads and world.parts */
    double *parts; /* [ls_share.nscalars] norms and losses } */
} ls_solo_task;

/* Close it also after a failure. */
ls_status ls_solo_open(ls_solo *, const ls_solo_config *, const ls_solo_task *, ls_error *);
/* Switches to another task of the same plan, with grads and parts. Allocates nothing. */
void ls_solo_move(ls_solo *, const ls_solo_task *);
void ls_solo_close(ls_solo *);

#endif
