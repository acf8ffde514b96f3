/* errors.h - the error feedback of each virtual worker: what encoding its gradients has lost so
 * far.
 *
 * A virtual worker's errors after an even number of steps are in the first half of the memory, and
 * after an odd number in the second half. A step reads one half and writes the other, so an
 * interrupted step can be repeated. A worker touches only the errors of the virtual workers that it
 * runs, and errors that no worker touches take no memory. Where gradients are sent as factors
 * (share/codes.h), each virtual worker's errors end with the second factors, which are the same for
 * all.
 */
#ifndef LS_STATE_ERRORS_H
#define LS_STATE_ERRORS_H

#include "state/world.h"

/* errors [2][V][ls_share.error_floats], clear at first. */
ls_status ls_errors_map(const ls_share *, float **errors_p, ls_error *);
void ls_errors_unmap(const ls_share *, float *errors);

/* [ls_share.error_floats] the errors of a virtual worker after `steps` steps; those of the next
 * virtual worker follow. */
static inline float *ls_errors_of(float *errors, const ls_share *sh, int64_t steps, int vw) {
    size_t row = (size_t)(steps % 2) * (size_t)sh->V + (size_t)vw;
    return errors + row * sh->error_floats;
}

/* Records that a virtual worker's errors after `steps` steps are complete in the world's store, or
 * (good false) no longer complete. Without a store it does nothing. */
void ls_errors_mark(const ls_world *, const ls_share *, int64_t steps, int vw, bool good);
/* Records that the errors of all virtual workers that the worker runs are complete. */
void ls_errors_mark_own(const ls_world *, const ls_share *, int64_t steps);
/* Does the store have the errors of a virtual worker after `steps` steps? Those of the warm-up are
 * clear on every host. */
bool ls_errors_are_in(ls_store *, const ls_share *, int64_t steps, int vw);
/* Collective, when a view begins: each worker gets the errors of its virtual workers that its host
 * does not have, from the first worker whose host has them. LS_EPEER: no host has the errors of
 * some virtual worker; all stores record that (LS_STORE_LOST). */
ls_status ls_errors_adopt(const ls_world *, const ls_share *, ls_error *);

/* Collective: worker 0 gets all errors after `steps` steps. */
ls_status ls_errors_collect(ls_group *, const ls_share *, int64_t steps, float *errors, ls_error *);
/* Returns the memory of errors of other workers' virtual workers to the system. */
void ls_errors_drop(const ls_share *, int worker, float *errors);

#endif
