/* pairs.h - a map from pairs of token ids to numbers.
 *
 * One owner, one writer, any number of readers. A zero-initialised map is empty. Nothing is
 * removed.
 */
#ifndef LS_DATA_PAIRS_H
#define LS_DATA_PAIRS_H

#include <stddef.h>
#include <stdint.h>

#define LS_PAIRS_NONE UINT32_MAX /* the value of a pair that is not there */

typedef struct ls_pairs_slot {
    uint32_t a, b, value; /* value LS_PAIRS_NONE: the slot is free */
} ls_pairs_slot;

typedef struct ls_pairs {
    ls_pairs_slot *slots; /* [nslots] a power of two; at most half are in use */
    size_t n, nslots;
} ls_pairs;

/* The pair's value, or LS_PAIRS_NONE. */
uint32_t ls_pairs_get(const ls_pairs *, uint32_t a, uint32_t b);

/* The pair's value. A pair without one gets `value`, which must not be LS_PAIRS_NONE. */
uint32_t ls_pairs_add(ls_pairs *, uint32_t a, uint32_t b, uint32_t value);

void ls_pairs_free(ls_pairs *);

#endif
