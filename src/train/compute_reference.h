/* compute_reference.h - the reference of a run that learns from preferences (train.loss: dpo).
 *
 * The reference is the model as the run begins: with adapters it is the base without them. Its
 * log-probabilities of all answers are computed before the first step, by all workers, and are kept
 * in the run directory (dataset/reference.h). So there is no second copy of the weights.
 */
#ifndef LS_TRAIN_COMPUTE_REFERENCE_H
#define LS_TRAIN_COMPUTE_REFERENCE_H

#include "train/loop.h"

/* Collective, before the first step: computes the reference of all pairs of the member's data set,
 * with the weights that the member has; c: the pairs of that data set. */
ls_status ls_reference_compute(ls_member *, ls_chats *c, ls_error *);

/* Collective, before the first step of a view: the data set gets the reference, from the run
 * directory, from the copy in a checkpoint, or by computing it. Nothing happens without pairs.
 * LS_EINVAL: steps are done, and it is missing or damaged. */
ls_status ls_reference_begin(ls_loop *, ls_error *);

#endif
