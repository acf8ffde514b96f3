/* room.h - is there room on disk for what a run is about to write? */
#ifndef LS_STORAGE_ROOM_H
#define LS_STORAGE_ROOM_H

#include "model/gpt.h"

/* What a checkpoint of the model takes, at the most that was seen, with a config of so many bytes. */
double ls_room_checkpoint_nbytes(const ls_model *, size_t config_nbytes);

/* LS_EIO where the file system of `dir`, or of what exists above it, has no room for a checkpoint of
 * `nbytes` bytes and for `more` bytes of other files; the message has the numbers. File systems that
 * don't say what is free pass. */
ls_status ls_room_check(const char *dir, double nbytes, double more, ls_error *);

#endif
