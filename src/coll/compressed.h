/* compressed.h - sums whose contributions are encoded (compress/codec.h); lockstep/compress.h has
 * the contract. */
#ifndef LS_COLL_COMPRESSED_H
#define LS_COLL_COMPRESSED_H

#include "lockstep/compress.h"

typedef struct ls_compressed_sum {
    const float *in; /* [own contributions, count] */
    float *out;      /* [count] */
    size_t count;
    const ls_compression *how;
    const int *first; /* [size + 1] ranges of contributions (algo/tree.h); NULL: even ones */
    ls_compression_state *state;
} ls_compressed_sum;

ls_status ls_compressed_sum_run(ls_group *, const ls_compressed_sum *, ls_error *);

#endif
