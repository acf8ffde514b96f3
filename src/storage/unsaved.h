/* unsaved.h - a run without a checkpoint: whether it is being trained, how far it is, and when the
 * first one is due.
 *
 * Readers of a run ask here, so that none advises what would destroy a run that trains.
 */
#ifndef LS_STORAGE_UNSAVED_H
#define LS_STORAGE_UNSAVED_H

#include <stdbool.h>

#include "base/error.h"

/* Is this the directory of a run, whose training may only be about to begin? */
bool ls_unsaved_is_run(const char *dir);

/* LS_EIO: the run has no checkpoint, with the reason. Changes nothing. */
ls_status ls_unsaved_fail(const char *dir, ls_error *);

#endif
