/* belongs.h - does a checkpoint belong to the run in whose directory it is?
 *
 * It does if its config.yaml is compatible with the run's (ls_config_compatible()), and the files
 * that record what it was trained on (data_files.h) are the run's. A file that the run or the
 * checkpoint lacks is not compared. So neither a checkpoint of another run nor a file of the run
 * that was edited or exchanged is trained on.
 *
 * A branch (`lockstep batch --at`, `lockstep tune`) begins with a checkpoint of another config: it
 * has a copy of that config in began.yaml, and a checkpoint with this very text belongs to it, too.
 */
#ifndef LS_STORAGE_BELONGS_H
#define LS_STORAGE_BELONGS_H

#include "base/error.h"

#define LS_BEGAN_FILE "began.yaml"

/* run, checkpoint: their directories. LS_EINVAL: it does not belong to the run; the message names
 * the file, or the key with both values. */
ls_status ls_belongs_check(const char *run, const char *checkpoint, ls_error *);
/* Checks a checkpoint at RUN/checkpoints/step-N, or a link to it, against RUN; LS_OK for one that
 * is in no run's directory. */
ls_status ls_belongs_check_place(const char *checkpoint, ls_error *);

#endif
