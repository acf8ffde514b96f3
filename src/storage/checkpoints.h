/* checkpoints.h - the directory RUN/checkpoints: which checkpoints it has, and which of them stay. */
#ifndef LS_STORAGE_CHECKPOINTS_H
#define LS_STORAGE_CHECKPOINTS_H

#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

/* How the name of a checkpoint's directory begins while it is written. */
#define LS_CHECKPOINT_HIDDEN ".step-"

/* step-N -> N, or -1. */
int64_t ls_checkpoints_step_of(const char *name);
/* The newest step below `below` in the directory; -1: there is none. */
ls_status ls_checkpoints_below(const char *folder, int64_t below, int64_t *step_p, ls_error *);

/* After the checkpoint of `newest` got its name: `latest` and `best` (0: none is kept) lead to theirs;
 * what is half written, by programs that were killed, goes; of those up to `newest` all but `keep` (0:
 * all stay) and `best` go. What fails here is logged: the checkpoint is complete without it. */
void ls_checkpoints_tidy(const char *folder, int64_t newest, int64_t keep, int64_t best);

#endif
