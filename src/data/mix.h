/* mix.h - how often an epoch takes the samples of each of several ranges: a mixture by weights.
 *
 * A weight says how many times an epoch takes a sample, on average: 1 is every sample once, 0.5
 * every other one, 3 each three times. A range of n samples with weight w has exactly n w samples
 * in each epoch, rounded to the nearest whole number; the epoch has the sum of these.
 *
 * Nothing is lost or repeated beyond that, over any number of epochs: the samples that a range
 * gives are those of its own sequence of passes, each of which has every sample once. An epoch
 * takes what follows in that sequence. If passes and epochs end together (whole weights), a pass is
 * in the range's order; else it is shuffled, so that what an epoch takes of a pass is a random
 * part.
 *
 * Which sample it is follows from the seed, the epoch and the number within the epoch alone. The
 * order in which an epoch takes these numbers is that of order.h.
 */
#ifndef LS_DATA_MIX_H
#define LS_DATA_MIX_H

#include "data/order.h"

enum { LS_MIX_PARTS = 16 };

typedef struct ls_mix {
    int nparts; /* 0: no mixture */
    double weights[LS_MIX_PARTS];
    uint64_t begins[LS_MIX_PARTS + 1]; /* ranges of samples: [begins[k], begins[k + 1]) */
    uint64_t firsts[LS_MIX_PARTS + 1]; /* the same of an epoch's numbers; set by ls_mix_count() */
} ls_mix;

/* Sets firsts, and returns the samples of an epoch. */
uint64_t ls_mix_count(ls_mix *);

/* The sample with number i of the epoch: i < order->n, the mixture's count. Passes are shuffled by
 * blocks if the order is by blocks. */
uint64_t ls_mix_at(const ls_mix *, const ls_order *, uint64_t epoch, uint64_t i);

#endif
