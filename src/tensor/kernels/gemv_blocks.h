/* gemv_blocks.h - products of one row with rows of blocks of 32 elements, for gemv_table.c. */
#ifndef LS_TENSOR_KERNELS_GEMV_BLOCKS_H
#define LS_TENSOR_KERNELS_GEMV_BLOCKS_H

#include "tensor/kernels/variant.h"

/* Strips of sixteen rows that are computed together: at least as many as hide the time of a
 * multiply-add, whose chains they are. */
#if defined(LS_VARIANT_avx512) || defined(LS_VARIANT_avx512bf16)
enum { LS_GEMV_STRIPS = 4 };
#else
enum { LS_GEMV_STRIPS = 2 };
#endif

/* Computes the rows of 2 or LS_GEMV_STRIPS strips of a table [., C]. sum: where their chains start, then their values. */
typedef void ls_gemv_rows(int strips, int64_t C, const float *x, const uint8_t *w, float *sum);

ls_gemv_rows LS_K(gemv_rows_q8_0), LS_K(gemv_rows_q4_0), LS_K(gemv_rows_q4_1);

#endif
