/* backup.h - a worker that waits computes the gradient of a slow one's virtual worker once more;
 * the first result counts.
 *
 * The bits are the same, so nobody has to agree on whose they are. Who waits for others before the
 * norm takes the last virtual worker of the one that is furthest behind on this host, then the one
 * before it, for as long as he waits. The slow one looks before each layer whether its work is
 * done. It takes nothing from others where they are just as busy, but their cores, memory and
 * caches: so it is for hosts with a core a worker.
 */
#ifndef LS_TRAIN_BACKUP_H
#define LS_TRAIN_BACKUP_H

#include "train/member.h"

/* What a worker has of it. */
typedef struct ls_backup ls_backup;

/* Of a run that has them (ls_layout_has_backups). */
ls_backup *ls_backup_new(const ls_member *);
void ls_backup_free(ls_backup *); /* NULL is fine */
/* For the executor of the member. */
const ls_exec_helpers *ls_backup_helpers(const ls_backup *);

#endif
