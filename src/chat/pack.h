/* pack.h - samples of different lengths into rows of one length, as few as are easily found.
 *
 * Best fit decreasing: the longest sample first, each into the row that it leaves the least room
 * in; of equal ones the earliest. A function of the lengths alone. Source: Johnson, "Near-optimal
 * bin packing algorithms", MIT, 1973. */
#ifndef LS_CHAT_PACK_H
#define LS_CHAT_PACK_H

#include <stdbool.h>

#include "base/mem.h"

typedef struct ls_packing {
    uint64_t nrows;
    uint64_t *first;   /* [nrows + 1] a row has samples list[first[row]] to list[first[row + 1]] */
    uint64_t *samples; /* [nsamples] */
} ls_packing;

/* lengths [n], each from 1 to `room`. alone: each sample has a row of its own, in their order. */
ls_packing ls_pack(const uint32_t *lengths, uint64_t n, uint32_t room, bool alone);
void ls_packing_free(ls_packing *);

#endif
