/* decode.h - sums what the codes of all virtual workers hold. */
#ifndef LS_EXEC_DECODE_H
#define LS_EXEC_DECODE_H

#include "exec/codes.h"
#include "exec/encode.h"

/* A worker's part of one bucket. */
typedef struct ls_code_sum {
    const ls_codes *codes; /* that have arrived */
    int bucket;
    int64_t step;
    float *sum; /* [nfloats] its part is written, but for what is no parameter */
    const ls_encode_room *room;
} ls_code_sum;

void ls_decode_bucket(const ls_code_sum *, const ls_compute *);

#endif
