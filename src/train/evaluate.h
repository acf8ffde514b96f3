/* evaluate.h - loss on the validation part of a run's data, divided among the workers. */
#ifndef LS_TRAIN_EVALUATE_H
#define LS_TRAIN_EVALUATE_H

#include "report/evaluation.h"
#include "train/member.h"

/* Over `nsamples` samples of the validation part (0 or too many: all of it), always the same ones.
 * Collective; the same bits for any number of workers. records_p (or NULL): what is known of each
 * sample (model/measure.h), in their order; the caller frees it. */
ls_status ls_evaluate(ls_member *, uint64_t nsamples, ls_evaluation *v_p, double **records_p,
                      ls_error *);

#endif
