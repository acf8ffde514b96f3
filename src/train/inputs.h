/* inputs.h - what a worker reads while a run trains: the data set, and the file of frozen
 * parameters. Neither may change.
 *
 * Inputs are checked before each checkpoint and after each evaluation, so no checkpoint is written,
 * and no run succeeds, after one of them has changed:
 *
 *     tokens             each read is compared with hashes; here the file's state, then its hash
 *     files of records   their state; where several are images, each has its hash at each read
 *     frozen parameters  the file's state, then its hash
 *     what is mapped     truncated or lost pages (base/guard.h), also after each step
 */
#ifndef LS_TRAIN_INPUTS_H
#define LS_TRAIN_INPUTS_H

#include "dataset/dataset.h"
#include "storage/frozen_file.h"

/* Are all inputs still what was opened? Costs a stat() for each file if nothing has changed. data
 * NULL: the data set is the caller's. LS_EINVAL, LS_EIO: the message names the file. */
ls_status ls_inputs_check(ls_dataset *data, ls_frozen_file *, ls_error *);

#endif
