/* part.h - one worker's part of a checkpoint that several hosts write at the same time.
 *
 * The files exist already, with headers and with zeros for data. Each host's writer writes the data
 * that its workers own in its place. Once that is synced, the writer adds a small file for each
 * worker, part-W, with the hash of the data that was in memory. The host that reads everything back
 * compares these hashes, so it detects data that was lost or mixed up, even by hosts that write to
 * the same page of a file.
 */
#ifndef LS_STORAGE_PART_H
#define LS_STORAGE_PART_H

#include "plan/plan.h"
#include "storage/state.h"

enum { LS_PART_FILES = 2 };

/* A file of tensors. */
typedef struct ls_part_file {
    const char *path;
    const ls_state_tensors *tensors;
} ls_part_file;

/* The number of first workers that together hold all parameters and states; other workers have
 * copies of these. Each worker also holds the compression errors of its virtual workers, and blocks
 * of tables. */
int ls_part_nholders(const ls_plan *);

/* Writes the data that workers first to end - 1 own by the plan, from the tensors, to the files
 * [LS_PART_FILES] in `folder`. On failure the files stay, since other hosts may be writing to them:
 * the host that made them removes them. */
ls_status ls_part_write(const char *folder, const ls_part_file *, const ls_plan *, int first,
                        int end, ls_error *);

/* Checks that the files hold the parts of workers 0 to end - 1 as they were written; if so, removes
 * the files part-W. The tensors' data in memory is not used. */
ls_status ls_part_check(const char *folder, const ls_part_file *, const ls_plan *, int end,
                        ls_error *);

#endif
