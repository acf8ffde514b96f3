/* split.h - which samples are trained on, and which are held out for validation.
 *
 * Consecutive samples form groups, and each group gives one sample to the validation part. Its
 * place in the group is a pseudo-random function of the group alone. So data that are sorted
 * (images by class) have validation samples of all classes, training reads neighbouring samples,
 * and both directions are O(1) without stored state. The seed is fixed: all runs on the same data
 * hold out the same samples.
 *
 *     fraction f   there are nval = n f groups, at least 1. The first n mod nval of them have one
 *                  sample more than the others.
 *     k folds      a group has k samples; the last one may have fewer. Fold i holds out place
 *                  (r + i) mod k, where r is the group's random number. Over all folds each sample
 *                  is held out exactly once.
 */
#ifndef LS_DATA_SPLIT_H
#define LS_DATA_SPLIT_H

#include <stdint.h>

#include "base/error.h"

/* Constant once it is made: any threads may use it. Fields are those of split.c. */
typedef struct ls_split {
    uint64_t n, ntrain, nval;
    uint64_t ngroups, size; /* samples of a group */
    uint64_t nlonger;       /* the first groups, which have one sample more */
    uint64_t folds, fold;   /* folds 0: by a fraction */
} ls_split;

/* Splits n samples; `what` names them in messages. LS_EINVAL: a part would have no sample. */
ls_status ls_split_by_fraction(uint64_t n, double fraction, const char *what, ls_split *s_p,
                               ls_error *);
/* 2 <= folds, fold < folds. */
ls_status ls_split_by_folds(uint64_t n, uint64_t folds, uint64_t fold, const char *what,
                            ls_split *s_p, ls_error *);
/* All n samples are trained on. */
ls_split ls_split_nothing(uint64_t n);

/* The sample with this number in the training part: i < ntrain; in the validation part: i < nval.
 * Both ascend with i. */
uint64_t ls_split_train(const ls_split *, uint64_t i);
uint64_t ls_split_val(const ls_split *, uint64_t i);

#endif
