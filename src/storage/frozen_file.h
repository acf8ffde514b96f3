/* frozen_file.h - the frozen parameters of a run (model/frozen.h) in a file:
 * RUN/frozen.safetensors.
 *
 * They never change, so the file is written once, when the run begins. Every checkpoint has a link
 * to it, and so is complete by itself; on a file system without hard links it has a copy. Workers
 * map the file: the processes of a host share one copy of its pages. Those of a published model
 * (model.from) have the types that its files have, those of another origin f32.
 */
#ifndef LS_STORAGE_FROZEN_FILE_H
#define LS_STORAGE_FROZEN_FILE_H

#include <sys/stat.h>

#include "base/hash.h"
#include "config/config.h"
#include "model/model.h"
#include "storage/state.h"

#define LS_FROZEN_FILE "frozen.safetensors"

typedef struct ls_frozen_file {
    ls_safetensors file;
    ls_frozen_value *values; /* [nparams] in the mapped file; NULL: not open */
    char *path;
    ls_hash hash;       /* of the file */
    struct stat opened; /* as it was when it was opened */
} ls_frozen_file;

/* Maps the file of a run or a checkpoint. LS_EINVAL: it has not the model's frozen parameters. */
ls_status ls_frozen_file_open(const char *folder, const ls_model *, ls_frozen_file *f_p,
                              ls_error *);
void ls_frozen_file_close(ls_frozen_file *);
/* LS_EINVAL: the file is another one, or has another content, than when it was opened. */
ls_status ls_frozen_file_verify(ls_frozen_file *, ls_error *);

/* Has the run its file, if its model needs one? */
bool ls_frozen_file_is_saved(const char *run, const ls_model *);
/* Writes the values, in their types, as the run's file, which is replaced. */
ls_status ls_frozen_file_save(const char *run, const ls_model *, const ls_frozen_value *,
                              ls_error *);
/* The same, with the values with which a run of this config begins: drawn from its seed, or those
 * of train.from or model.from. Does nothing if the model has none. */
ls_status ls_frozen_file_make(const char *run, const ls_model *, const ls_config *, ls_error *);
/* For a run that continues from `checkpoint` (NULL: from none): restores the run's file if it is
 * missing. LS_EINVAL: it is not that of the checkpoint. */
ls_status ls_frozen_file_restore(const char *run, const char *checkpoint, const ls_model *,
                                 const ls_config *, ls_error *);
/* Gives the directory `to` a link to the file in `from`, or a copy. */
ls_status ls_frozen_file_link(const char *from, const char *to, ls_error *);

/* Sets a buffer [frozen_floats] to these values. */
ls_status ls_frozen_draw(const ls_model *, const ls_config *, float *buffer, ls_error *);
/* ls_state_write_weights() of a state without frozen values: with these in f32, or NULL: those with
 * which a run of this config begins. */
ls_status ls_frozen_write_all(const ls_train_state *, const ls_frozen_value *, const ls_config *,
                              const char *path, ls_error *);

#endif
