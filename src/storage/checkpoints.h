/* checkpoints.h - the directory RUN/checkpoints: which checkpoints it has, and which are
 * retained. */
#ifndef LS_STORAGE_CHECKPOINTS_H
#define LS_STORAGE_CHECKPOINTS_H

#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

/* The prefix of a checkpoint's directory while it is written. */
#define LS_CHECKPOINT_HIDDEN ".step-"

/* step-N -> N, or -1. */
int64_t ls_checkpoints_step_of(const char *name);
/* The newest step below `below` in the directory; -1: there is none. */
ls_status ls_checkpoints_below(const char *folder, int64_t below, int64_t *step_p, ls_error *);

/* Called once the checkpoint of `newest` has its name. Sets the links `latest` and `best` (0: none
 * is retained); removes the partly written checkpoints of killed programs; removes those up to
 * `newest` except the newest `keep` (0: all) and `best`. The checkpoint is complete even if this
 * fails. */
void ls_checkpoints_tidy(const char *folder, int64_t newest, int64_t keep, int64_t best);

#endif
