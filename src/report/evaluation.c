/* evaluation.c - see evaluation.h. */
#include "report/evaluation.h"

static const double LN2 = 0.69314718055994530942;

ls_evaluation ls_evaluation_of(double nats, double nbytes, uint64_t nsamples, int64_t targets) {
    return (ls_evaluation){.loss = nats / ((double)nsamples * (double)targets),
                           .bits_per_byte = nbytes > 0 ? nats / LN2 / nbytes : 0,
                           .nsamples = nsamples};
}
