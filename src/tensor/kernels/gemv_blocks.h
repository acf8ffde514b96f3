/* gemv_blocks.h - products of one row with rows of blocks of 32 elements, for gemv_table.c. */
#ifndef LS_TENSOR_KERNELS_GEMV_BLOCKS_H
#define LS_TENSOR_KERNELS_GEMV_BLOCKS_H

#include "tensor/kernels/variant.h"

/* Computes sixteen rows of a table [., C], or 32. sum: where their chains start, then their values. */
typedef void ls_gemv_rows(int64_t C, const float *x, const uint8_t *w, float *sum);

ls_gemv_rows LS_K(gemv_16_q8_0), LS_K(gemv_32_q8_0), LS_K(gemv_16_q4_0), LS_K(gemv_32_q4_0),
    LS_K(gemv_16_q4_1), LS_K(gemv_32_q4_1);

#endif
