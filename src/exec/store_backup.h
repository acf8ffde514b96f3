/* store_backup.h - virtual workers whose gradient is computed twice (train/backup.h). */
#ifndef LS_EXEC_STORE_BACKUP_H
#define LS_EXEC_STORE_BACKUP_H

#include "exec/store.h"

/* Of one of the `most` that are computed twice in a step: [nfloats] of the plan's reduce type; and
 * norms and losses. */
void *ls_store_backup_grads(ls_store *, int place);
double *ls_store_backup_parts(ls_store *, int place);
/* The caller alone computes it again in this step, and puts it there; -1: another does, or `most`
 * are already. */
int ls_store_backup_claim(ls_store *, int vw, int64_t step, int most);
bool ls_store_backup_is_claimed(const ls_store *, int vw, int64_t step);
/* It is there. */
void ls_store_backup_finish(ls_store *, int vw, int64_t step);
/* Its place; -1: it is not there. */
int ls_store_backup_find(const ls_store *, int vw, int64_t step);
/* How often that was so. */
int64_t ls_store_nbackups(const ls_store *);

#endif
