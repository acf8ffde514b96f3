/* room.h - is there room on disk for what a run is about to write? */
#ifndef LS_STORAGE_ROOM_H
#define LS_STORAGE_ROOM_H

#include "train/run.h"

/* LS_EIO where the file system of `dir`, or of what exists above it, has no room for one more
 * checkpoint of the run and for `more` bytes of other files; the message has the numbers. File
 * systems that don't say what is free pass. */
ls_status ls_room_check(const ls_run *, const char *dir, double more, ls_error *);

#endif
