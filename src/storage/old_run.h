/* old_run.h - a run directory whose run is replaced by a new one.
 *
 * A run that failed or was stopped before its first checkpoint can be begun again under its name;
 * one with checkpoints is replaced only if that is asked for (train --overwrite). Only files that a
 * run writes are removed, by their names: others in the directory stay.
 */
#ifndef LS_STORAGE_OLD_RUN_H
#define LS_STORAGE_OLD_RUN_H

#include <stdbool.h>

#include "base/error.h"

/* Is there nothing to lose: does the directory have a run of this program without a checkpoint? */
bool ls_old_run_is_unsaved(const char *dir);
/* Removes the files of a run, with its checkpoints, but its lock. The caller holds that. */
ls_status ls_old_run_remove(const char *dir, ls_error *);

#endif
