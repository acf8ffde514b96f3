/* order.h - which samples a step takes: a function of (seed, epoch, place), without stored state.
 *
 * An epoch takes every sample exactly once. Its order is a keyed permutation, which can be
 * evaluated at any place. The last batch of an epoch has the rest of the samples.
 *
 * Two kinds of order:
 *   - global: one permutation of all samples.
 *   - by blocks: reads stay local. Samples are cut into blocks of consecutive ones. The blocks are
 *     permuted, and `window` blocks in a row of that order are a window (the last one has up to
 *     twice as many). The samples of a window are permuted, and taken before those of the next.
 *     Up to 2 window - 1 blocks are one window: then the order is a permutation of all samples.
 *
 * A permutation is a Feistel network of 4 rounds over the smallest even number of bits that can
 * hold n, applied until the value is below n. Source: Black & Rogaway, "Ciphers with arbitrary
 * finite domains", CT-RSA 2002. Any place costs a few permutations, whatever n is. Only the last
 * block may be short; where the inverse permutation puts it decides where each window begins.
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

typedef struct ls_order {
    uint64_t n, seed; /* samples of an epoch */
    uint64_t block;   /* samples of a block; 0: the order is global */
    uint64_t window;  /* blocks of a window, at least 1; of no use in a global order */
} ls_order;

/* The sample at `place` of the epoch's order; place < n. */
uint64_t ls_order_at(const ls_order *, uint64_t epoch, uint64_t place);

typedef struct ls_batch {
    uint64_t epoch, first; /* place of its first sample in the epoch's order */
    uint64_t count;        /* samples: `batch`, or fewer at the end of an epoch */
} ls_batch;

ls_batch ls_batch_of(uint64_t step, uint64_t nsamples, uint64_t batch);

/* The range [*first_p, *end_p) of the batch's `count` samples that virtual workers [a, b) of V
 * take. */
void ls_batch_share(uint64_t count, int V, int a, int b, uint64_t *first_p, uint64_t *end_p);

#endif
