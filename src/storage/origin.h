/* origin.h - a new run can begin with the weights and the tokenizer of another run (train.from)
 * instead of random weights, e.g. to fine-tune it with another learning rate.
 *
 * The optimizer's state, the step and the samples' order are the new run's own.
 */
#ifndef LS_STORAGE_ORIGIN_H
#define LS_STORAGE_ORIGIN_H

#include "config/config.h"

/* Replaces train.from, a run or a checkpoint, by the absolute path of one good checkpoint, so that
 * all workers, now and after an interruption, use the same one. A resumed run (`run` already has a
 * config) retains the origin that it began with. Does nothing if train.from is empty.
 *
 * Errors: LS_EIO, LS_EINVAL: there is no good checkpoint, or its model differs (the message names
 * the key). */
ls_status ls_origin_resolve(ls_config *, const char *run, ls_error *);

/* Sets what the config leaves open of its model: as its published model (pretrained.h) and its data
 * (samples.h) have it, and a resumed run's config. LS_EINVAL, LS_EIO: they can't be read. */
ls_status ls_origin_complete(ls_config *, const char *run, ls_error *);

#endif
