/* room.h - checks that the disk has space for the files that a run is about to write. */
#ifndef LS_STORAGE_ROOM_H
#define LS_STORAGE_ROOM_H

#include "plan/plan.h"

/* An upper estimate of the bytes of a plan's checkpoint, with a config of config_nbytes, and a
 * tokenizer of `ntokens` (0: without one). Frozen parameters, which are saved once, are not in it. */
double ls_room_checkpoint_nbytes(const ls_plan *, int64_t ntokens, size_t config_nbytes);

/* LS_EIO if the file system of `dir`, or of its nearest existing parent, has no space for a
 * checkpoint of `nbytes` bytes and `more` bytes of other files; the message has the numbers. File
 * systems that don't report their free space pass. */
ls_status ls_room_check(const char *dir, double nbytes, double more, ls_error *);

#endif
