/* origin.h - what a new run begins with, where that is not drawn at random: the weights and the
 * tokenizer of another run (train.from), e.g. to fine-tune it with another learning rate.
 *
 * The optimizer's state, the step and the samples' order are the new run's own.
 */
#ifndef LS_STORAGE_ORIGIN_H
#define LS_STORAGE_ORIGIN_H

#include "config/config.h"

/* Replaces train.from, a run or a checkpoint, by the absolute path of one good checkpoint, so that
 * all workers, now and after an interruption, mean the same one. A run that goes on (`run` has a
 * config already) has the origin that it began with. Nothing to do where train.from is empty.
 *
 * Errors: LS_EIO, LS_EINVAL: there is no good checkpoint, or its model is another one (the key is
 * named). */
ls_status ls_origin_resolve(ls_config *, const char *run, ls_error *);

/* The tokenizer.json of a resolved origin: free() it. NULL: there is no origin. */
char *ls_origin_tokenizer(const ls_config *);

#endif
