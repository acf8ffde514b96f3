/* frozen_file.h - the frozen parameters of a run (model/frozen.h) in a file:
 * RUN/frozen.safetensors.
 *
 * They never change, so the file is written once, when the run begins. The first checkpoint has a
 * copy of it, the others links to that copy (on a file system without hard links each has a copy):
 * each checkpoint is complete by itself, and is not affected by what happens to the run's file.
 * Workers map the run's file: the processes of a host share one copy of its pages. The values of a
 * published model (model.from) have the types that its files have, those of another origin f32.
 *
 * The hash that is found when the run opens the file is that of all its checkpoints. Before each
 * save and at the end workers compare the file's state with that at opening (base/stamp.h), and the
 * writer of a checkpoint reads the run's file and the checkpoint's.
 */
#ifndef LS_STORAGE_FROZEN_FILE_H
#define LS_STORAGE_FROZEN_FILE_H

#include <stdatomic.h>

#include "base/hash.h"
#include "base/stamp.h"
#include "config/config.h"
#include "model/model.h"
#include "storage/state.h"

#define LS_FROZEN_FILE "frozen.safetensors"

typedef struct ls_frozen_file {
    ls_safetensors file;
    ls_frozen_value *values; /* [nparams] in the mapped file; NULL: not open */
    char *path;
    ls_hash hash;    /* of the file */
    ls_stamp opened; /* its state when it was opened */
} ls_frozen_file;

/* The hash of the file, in memory that several processes share. All processes that set it set the
 * same hash, so a process that reads `known` finds both halves. */
typedef struct ls_frozen_note {
    _Atomic uint64_t hi, lo;
    atomic_bool known;
} ls_frozen_note;
void ls_frozen_note_set(ls_frozen_note *, ls_hash);
/* Zero: not known yet, as in NULL. */
ls_hash ls_frozen_note_get(const ls_frozen_note *);

/* Maps the file of a run or a checkpoint. LS_EINVAL: it does not have the model's frozen
 * parameters. */
ls_status ls_frozen_file_open(const char *folder, const ls_model *, ls_frozen_file *f_p,
                              ls_error *);
void ls_frozen_file_close(ls_frozen_file *);
/* LS_EINVAL: the file is another one, or has another content, than when it was opened, or was
 * written to since. One stat() if nothing has happened; else the file is read. */
ls_status ls_frozen_file_verify(ls_frozen_file *, ls_error *);
/* The next ls_frozen_file_verify() reads the file in any case. */
void ls_frozen_file_doubt(ls_frozen_file *);

/* Does the run have its file, or does its model need none? */
bool ls_frozen_file_is_saved(const char *run, const ls_model *);
/* Writes the values, in their types, as the run's file, which is replaced. */
ls_status ls_frozen_file_save(const char *run, const ls_model *, const ls_frozen_value *,
                              ls_error *);
/* Saves the values with which a run of this config begins: drawn from its seed, or those of
 * train.from or model.from. Does nothing if the model has none. */
ls_status ls_frozen_file_make(const char *run, const ls_model *, const ls_config *, ls_error *);
/* For a run that continues from `checkpoint`, a good one (NULL: from none): restores the run's file
 * if it is missing, or is not that of the checkpoint, and logs it. */
ls_status ls_frozen_file_restore(const char *run, const char *checkpoint, const ls_model *,
                                 const ls_config *, ls_error *);
/* Gives the directory of a new checkpoint its file: a link to that of the newest one, or a copy of
 * the run's. want: the hash that it had at opening; zero: it was not opened. If the newest has a
 * damaged one, it and older ones get the new one, too. LS_EINVAL: the run's file has another
 * hash. */
ls_status ls_frozen_file_give(const char *run, const char *checkpoint, ls_hash want, ls_error *);
/* Before a run continues: gives checkpoints whose file is damaged or missing that of another
 * checkpoint or the run's, or one that is made again, if these have the hash that is listed; logs
 * it. */
void ls_frozen_file_repair(const char *run, const ls_model *, const ls_config *);

/* Sets a buffer [frozen_floats] to these values. */
ls_status ls_frozen_draw(const ls_model *, const ls_config *, float *buffer, ls_error *);
/* ls_state_write_weights() of a state without frozen values: with these in f32, or NULL: those with
 * which a run of this config begins. */
ls_status ls_frozen_write_all(const ls_train_state *, const ls_frozen_value *, const ls_config *,
                              const char *path, ls_error *);

#endif
