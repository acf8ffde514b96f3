/* inputs.h - what a worker reads while a run trains: the data set, and the file of frozen
 * parameters. Neither may change.
 *
 * Checked before each checkpoint and after each evaluation, so none is written, and no run ends
 * well, after something has changed:
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

/* Is all of it still what was opened? A stat() for each file if nothing has happened. data NULL: it
 * is the caller's. LS_EINVAL, LS_EIO: the message names the file. */
ls_status ls_inputs_check(ls_dataset *data, ls_frozen_file *, ls_error *);

#endif
