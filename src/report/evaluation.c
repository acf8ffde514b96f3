/* evaluation.c - see evaluation.h. */
#include "report/evaluation.h"

static const double LN2 = 0.69314718055994530942;

ls_evaluation ls_evaluation_of(double nats, double nbytes, uint64_t nsamples, int64_t T) {
    return (ls_evaluation){.loss = nats / ((double)nsamples * (double)T),
                           .bits_per_byte = nats / LN2 / nbytes,
                           .nsamples = nsamples};
}
