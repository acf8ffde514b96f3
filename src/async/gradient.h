/* gradient.h - computes gradients of batches with a worker's own copy of the parameters, between a
 * pull and a push. */
#ifndef LS_ASYNC_GRADIENT_H
#define LS_ASYNC_GRADIENT_H

#include "exec/exec.h"

typedef struct ls_async_gradient_config {
    const ls_plan *plan;           /* of one worker; must outlive the gradient */
    const ls_frozen_value *frozen; /* [nparams]; NULL: there are none */
    ls_loader_config loader;
    int threads, busy, cores; /* as in exec.h */
    double clip;
    void *grads; /* [ls_share_grads_nbytes()] where gradients are computed */
} ls_async_gradient_config;

typedef struct ls_async_gradient {
    ls_async_gradient_config c;
    ls_world world;
    ls_board_slot slot;
    ls_exec *exec;
    int64_t next; /* the step whose samples the loader prepares */
} ls_async_gradient;

/* The first gradient may be that of `step`. Close it also after a failure. */
ls_status ls_async_gradient_open(ls_async_gradient *, const ls_async_gradient_config *,
                                 int64_t step, ls_error *);
void ls_async_gradient_close(ls_async_gradient *);

/* [nfloats] of the plan's compute type: set before each gradient. */
void *ls_async_gradient_params(const ls_async_gradient *);

/* Computes the gradient of the batch of `step`, into `grads`. */
ls_status ls_async_gradient_compute(ls_async_gradient *, int64_t step, ls_step_out *out_p,
                                    ls_optim_step *update_p, ls_error *);
/* [nfloats] of the plan's reduce type: the latest gradient. */
const void *ls_async_gradient_of_batch(const ls_async_gradient *);

#endif
