/* evaluate.h - loss on the validation part of a corpus, shared among workers. */
#ifndef LS_TRAIN_EVALUATE_H
#define LS_TRAIN_EVALUATE_H

#include "train/member.h"

typedef struct ls_evaluation {
    double loss;          /* mean, nats a token */
    double bits_per_byte; /* of the text that the tokens stand for */
    uint64_t nsamples;
} ls_evaluation;

/* Over `nsamples` samples of the validation part (0 or too many: all of it), always the same ones.
 * Collective; the same bits for any number of workers. */
ls_status ls_evaluate(ls_member *, uint64_t nsamples, ls_evaluation *v_p, ls_error *);

/* From the sum of losses over samples [nsamples] of T tokens that stand for `nbytes` bytes. */
ls_evaluation ls_evaluation_of(double nats, double nbytes, uint64_t nsamples, int64_t T);

#endif
