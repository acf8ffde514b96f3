/* backup.h - a waiting worker also computes the gradient of a slow worker's virtual worker; the
 * first result counts.
 *
 * The bits are the same, so it does not matter whose result is used. A worker that waits for others
 * before the norm takes the last virtual worker of the worker that is furthest behind on this host,
 * then the one before it, for as long as it waits. Before each layer the slow worker checks whether
 * another has finished its work. Helping uses cores, memory and caches that the other workers may
 * need, so it suits hosts with a core for each worker.
 */
#ifndef LS_TRAIN_BACKUP_H
#define LS_TRAIN_BACKUP_H

#include "train/member.h"

/* Belongs to one worker that can help others. */
typedef struct ls_backup ls_backup;

/* For a run with backups (ls_layout_has_backups). */
ls_backup *ls_backup_new(const ls_member *);
void ls_backup_free(ls_backup *); /* NULL is fine */
/* For the member's executor. */
const ls_exec_helpers *ls_backup_helpers(const ls_backup *);

#endif
