/* batches.h - how many samples each step of a run takes (train.batch), and which.
 *
 * A run has phases; in each, steps have the same batch. Batches follow each other in the order of
 * an epoch (order.h) whatever their sizes are, so every epoch still takes each sample once; its
 * last batch has the rest.
 */
#ifndef LS_DATA_BATCHES_H
#define LS_DATA_BATCHES_H

#include "config/config.h"
#include "data/order.h"

typedef struct ls_batches {
    int n; /* phases, at least 1 */
    struct {
        uint64_t step, batch; /* the batch of the steps from `step` on; the first from 0 on */
    } phases[LS_CONFIG_PHASES];
} ls_batches;

ls_batches ls_batches_of(const ls_config *);

/* The batch of a step, as configured: at the end of an epoch a step has fewer samples. */
uint64_t ls_batches_size(const ls_batches *, uint64_t step);
/* The sum of these sizes over the first `steps` steps. */
uint64_t ls_batches_sum(const ls_batches *, uint64_t steps);

/* The first number of steps that take at least `want` samples of a data set of nsamples; with
 * nsamples 0 as if no step at the end of an epoch had fewer. At most `most`. */
int64_t ls_batches_steps(const ls_batches *, double want, uint64_t nsamples, int64_t most);

/* The samples of a step, of a data set of nsamples. */
ls_batch ls_batches_at(const ls_batches *, uint64_t step, uint64_t nsamples);

#endif
