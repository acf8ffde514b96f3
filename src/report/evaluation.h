/* evaluation.h - the loss on a text, in comparable units. */
#ifndef LS_REPORT_EVALUATION_H
#define LS_REPORT_EVALUATION_H

#include <stdint.h>

typedef struct ls_evaluation {
    double loss;          /* mean, nats a token */
    double bits_per_byte; /* of the text that the tokens stand for */
    uint64_t nsamples;
} ls_evaluation;

/* From the sum of losses over samples [nsamples] of T tokens that stand for `nbytes` bytes. */
ls_evaluation ls_evaluation_of(double nats, double nbytes, uint64_t nsamples, int64_t T);

#endif
