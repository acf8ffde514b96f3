/* room.h - checks that the disk has space for the files that a run is about to write. */
#ifndef LS_STORAGE_ROOM_H
#define LS_STORAGE_ROOM_H

#include "optim/optimizer.h"

/* An upper estimate of a checkpoint's bytes, with a config of config_nbytes, and a tokenizer of
 * `ntokens` (0: without one). */
double ls_room_checkpoint_nbytes(const ls_model *, const ls_optim *, int64_t ntokens,
                                 size_t config_nbytes);

/* LS_EIO if the file system of `dir`, or of its nearest existing parent, has no space for a
 * checkpoint of `nbytes` bytes and `more` bytes of other files; the message has the numbers. File
 * systems that don't report their free space pass. */
ls_status ls_room_check(const char *dir, double nbytes, double more, ls_error *);

#endif
