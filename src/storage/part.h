/* part.h - one worker's part of a checkpoint that several hosts write at the same time.
 *
 * The files are there, with headers and with zeros for data. The writer of each host puts what its
 * workers own at its place. When that is synced it leaves, for each worker, the hash of what it had
 * in memory, in a small file beside them: part-W. Whoever reads all back compares: nothing that is
 * lost or mixed up on the way, be it by hosts that write to the same page of a file, goes unseen.
 */
#ifndef LS_STORAGE_PART_H
#define LS_STORAGE_PART_H

#include "model/safetensors.h"
#include "plan/plan.h"

enum { LS_PART_FILES = 2 };

/* A file of tensors. */
typedef struct ls_part_file {
    const char *path;
    const ls_tensor *tensors; /* [each * nparams], in the order of the model's parameters */
    int each;                 /* so many of a parameter */
} ls_part_file;

/* Writes what workers first to end - 1 own by the plan, from the tensors' data, to the files
 * [LS_PART_FILES] in `folder`. On failure a file may be gone. */
ls_status ls_part_write(const char *folder, const ls_part_file *, const ls_plan *, int first,
                        int end, ls_error *);

/* Is the part of each of workers 0 to end - 1 in the files as it was written? Then part-W go. The
 * tensors' data is not looked at. */
ls_status ls_part_check(const char *folder, const ls_part_file *, const ls_plan *, int end,
                        ls_error *);

#endif
