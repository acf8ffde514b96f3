/* int8_block.h - operands of products with activations in int8 (int8.h): what kernels read. */
#ifndef LS_TENSOR_INT8_BLOCK_H
#define LS_TENSOR_INT8_BLOCK_H

#include <stdbool.h>
#include <stdint.h>

#include "tensor/block.h"

enum {
    LS_INT8_GROUP = 32, /* activations that share a scale */
    LS_INT8_ROWS = 64   /* the most rows of a panel */
};

/* 32 activations of a row: about d q. */
typedef struct ls_int8_block {
    int8_t q[LS_INT8_GROUP]; /* -127 to 127 */
    float d;
    float shift;        /* d times the sum of q, rounded once */
    int32_t sum, first; /* of q; of its first half */
} ls_int8_block;

/* y [R, V] = x [R, C] . w [V, C]^T, for a panel of at most LS_INT8_ROWS rows. The rows of w are
 * whole blocks; strips are as in ls_gemv_table_job. */
typedef struct ls_int8_job {
    ls_stored w;
    int64_t V, C, R;
    const ls_int8_block *x; /* [C / 32][R] */
    const float *bias;      /* [V]: where chains start; NULL: at 0, or at y */
    bool add;               /* without a bias: chains continue from y */
    float *y;               /* rows ldy apart; at R = 1 it may be the bias */
    int64_t ldy;
} ls_int8_job;

#endif
