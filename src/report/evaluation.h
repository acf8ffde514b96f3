/* evaluation.h - the loss on samples, in comparable units. */
#ifndef LS_REPORT_EVALUATION_H
#define LS_REPORT_EVALUATION_H

#include <stdint.h>

typedef struct ls_evaluation {
    double loss;          /* mean, nats a target */
    double bits_per_byte; /* of the text that the targets stand for; 0: they are no text */
    uint64_t nsamples;
} ls_evaluation;

/* From the sum of losses over samples [nsamples], each with this number of targets, which stand for
 * `nbytes` bytes of text; nbytes 0: for none. */
ls_evaluation ls_evaluation_of(double nats, double nbytes, uint64_t nsamples, int64_t targets);

#endif
