/* order.h - which samples a step takes: a function of (seed, epoch, place), without stored state.
 *
 * An epoch takes every sample exactly once. Its order is a keyed permutation, which can be
 * evaluated at any place. The last batch of an epoch has the rest of the samples.
 */
#ifndef LS_DATA_ORDER_H
#define LS_DATA_ORDER_H

#include <stdint.h>

/* A sample as it is taken in an epoch. Whatever is done to it at random is a function of these
 * numbers. */
typedef struct ls_draw {
    uint64_t seed, epoch;
    uint64_t sample; /* its number in the data set */
} ls_draw;

/* The sample at `place` of the epoch's order; place < n. A Feistel network of 4 rounds over the
 * smallest even number of bits that can hold n, applied until the value is below n. Source: Black &
 * Rogaway, "Ciphers with arbitrary finite domains", CT-RSA 2002. */
uint64_t ls_order_at(uint64_t seed, uint64_t epoch, uint64_t n, uint64_t place);

typedef struct ls_batch {
    uint64_t epoch, first; /* place of its first sample in the epoch's order */
    uint64_t count;        /* samples: `batch`, or fewer at the end of an epoch */
} ls_batch;

ls_batch ls_batch_of(uint64_t step, uint64_t nsamples, uint64_t batch);

/* The range [*first_p, *end_p) of the batch's `count` samples that virtual workers [a, b) of V
 * take. */
void ls_batch_share(uint64_t count, int V, int a, int b, uint64_t *first_p, uint64_t *end_p);

#endif
