/* store_repair.h - makes the state consistent when a view has ended and its workers are dead. */
#ifndef LS_STATE_STORE_REPAIR_H
#define LS_STATE_STORE_REPAIR_H

#include "state/store.h"

/* Workers first to first + n - 1 of the plan's view, those of this host, are dead: restores the
 * blocks that they were changing, then finishes what was decided, here or on other hosts. May be
 * killed, and called again. LS_EINVAL: the state can't be made consistent (a bug, or damaged
 * memory). */
ls_status ls_store_repair(ls_store *, const ls_share *, int first, int n, const ls_store_decided *,
                          ls_error *);
/* Finds what workers first to first + n - 1 have decided. */
void ls_store_find_decided(const ls_store *, const ls_share *, int first, int n,
                           ls_store_decided *d_p);

/* Prepares a view of other workers, which begins after `steps` steps: blocks that have had another
 * number of steps come from other hosts. -1: discards all state. */
void ls_store_restart(ls_store *, int64_t steps, const ls_scaler *);

#endif
