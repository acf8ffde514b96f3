/* pick.h - random settings from a seed. */
#ifndef LS_TEST_PICK_H
#define LS_TEST_PICK_H

#include "base/random.h"

/* Draw `which` of a seed: 0 .. n-1. */
static inline int pick(uint64_t seed, uint64_t which, int n) {
    uint32_t r[4];
    ls_random_words(seed, LS_STREAM_FAKE, 1, which, r);
    return (int)(r[0] % (uint32_t)n);
}

#endif
