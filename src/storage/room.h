/* room.h - checks that the disk has space for the files that a run is about to write. */
#ifndef LS_STORAGE_ROOM_H
#define LS_STORAGE_ROOM_H

#include "plan/plan.h"

/* An upper estimate of the bytes of a plan's checkpoint, with a config of config_nbytes, and a
 * tokenizer of `ntokens` (0: without one). Frozen parameters, which are saved once, are not in
 * it. */
double ls_room_checkpoint_nbytes(const ls_plan *, int64_t ntokens, size_t config_nbytes);

/* A lower bound for the bytes of the largest file of such a checkpoint. */
double ls_room_file_nbytes(const ls_plan *);

/* What is about to be written; bytes. */
typedef struct ls_room_wanted {
    double checkpoint;   /* of each checkpoint */
    int64_t checkpoints; /* that are on disk at one time */
    double frozen;       /* of frozen parameters */
    double more;         /* of the tokens of a text */
    double file;         /* a lower bound for the largest file */
} ls_room_wanted;

/* LS_EIO if the file system of `dir`, or of its nearest existing parent, has no space for that, or
 * if this process may not write such a file (RLIMIT_FSIZE); the message has the numbers. File
 * systems that don't report their free space pass, and all where a filter of system calls refuses
 * the question. */
ls_status ls_room_check(const char *dir, const ls_room_wanted *, ls_error *);

#endif
