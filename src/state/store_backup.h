/* store_backup.h - gradients of virtual workers that a second worker computes (train/backup.h). */
#ifndef LS_STATE_STORE_BACKUP_H
#define LS_STATE_STORE_BACKUP_H

#include "state/store.h"

/* The memory of such a gradient, [nfloats] of the plan's reduce type, and of its norms and losses.
 * A step has `most` places for them. */
void *ls_store_backup_grads(ls_store *, int place);
double *ls_store_backup_parts(ls_store *, int place);
/* Claims virtual worker vw in this step: the caller alone computes its gradient again, at the place
 * that is returned. -1: another worker has claimed it, or no place is free. */
int ls_store_backup_claim(ls_store *, int vw, int64_t step, int most);
bool ls_store_backup_is_claimed(const ls_store *, int vw, int64_t step);
/* The gradient is complete. */
void ls_store_backup_finish(ls_store *, int vw, int64_t step);
/* The place of a complete gradient; -1: there is none. */
int ls_store_backup_find(const ls_store *, int vw, int64_t step);
/* The number of gradients that were completed so. */
int64_t ls_store_nbackups(const ls_store *);

#endif
