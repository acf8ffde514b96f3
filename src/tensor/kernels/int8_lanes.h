/* int8_lanes.h - sixteen rows of weights in blocks, a row a lane, for products with int8. */
#ifndef LS_TENSOR_KERNELS_INT8_LANES_H
#define LS_TENSOR_KERNELS_INT8_LANES_H

#include "tensor/kernels/gemv_inline.h"

enum { LS_INT8_WORDS = LS_INT8_GROUP / 4, LS_INT8_GROUPS = LS_BLOCK_MOST / LS_INT8_GROUP };

/* 32 elements of each row: their numbers as words of four bytes, and scales. */
typedef struct ls_int8_lanes {
    uint8_t words[LS_INT8_WORDS][4 * LS_LANES];
    /* the second: of the second half, where it has its own (Q6_K, Q3_K, Q2_K) */
    float d[2][LS_LANES], m[2][LS_LANES];
} ls_int8_lanes;

/* The groups of a block of sixteen rows, whose blocks begin at p + i * stride. */
typedef void ls_int8_unpack(const uint8_t *p, int64_t stride, ls_int8_lanes *out);

ls_int8_unpack LS_K(int8_lanes_q8_0), LS_K(int8_lanes_q4_0), LS_K(int8_lanes_q4_1),
    LS_K(int8_lanes_q5_0), LS_K(int8_lanes_q5_1), LS_K(int8_lanes_q4_k), LS_K(int8_lanes_q5_k),
    LS_K(int8_lanes_q6_k), LS_K(int8_lanes_q3_k), LS_K(int8_lanes_q2_k), LS_K(int8_lanes_iq4_nl),
    LS_K(int8_lanes_iq4_xs);

#endif
