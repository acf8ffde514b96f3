/* evaluate.h - the loss on samples that are not trained on, divided among the workers. */
#ifndef LS_TRAIN_EVALUATE_H
#define LS_TRAIN_EVALUATE_H

#include "report/evaluation.h"
#include "train/member.h"

typedef struct ls_evaluate_request {
    const ls_dataset *data; /* its validation part */
    uint64_t nsamples;      /* of it, always the same ones; 0 or too many: all */
    int64_t steps; /* complete; with train.eval_weights ema, the average is evaluated once an update
                    * has made one */
} ls_evaluate_request;

/* Collective, between steps; the result has the same bits for any number of workers. records_p (or
 * NULL): the record of each sample (model/measure.h), in order; the caller frees it. If a sample
 * can't be read, all workers fail, and may continue. */
ls_status ls_evaluate(ls_member *, const ls_evaluate_request *, ls_evaluation *v_p,
                      double **records_p, ls_error *);

/* Collective, between steps: all workers have the weights that are evaluated while `use` runs, in
 * m->infer. */
typedef ls_status ls_use_weights(ls_member *, void *arg, ls_error *);
ls_status ls_with_evaluated_weights(ls_member *, int64_t steps, ls_use_weights *use, void *arg,
                                    ls_error *);

#endif
