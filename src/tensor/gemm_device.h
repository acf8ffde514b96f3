/* gemm_device.h - a matrix product, queued on a device.
 *
 * Kernels have tiles of different sizes; which one computes a product does not change its bits.
 */
#ifndef LS_TENSOR_GEMM_DEVICE_H
#define LS_TENSOR_GEMM_DEVICE_H

#include "tensor/gemm.h"

/* Operands are in f32, and weights are b. */
void ls_gemm_device(const ls_compute *, const ls_gemm_job *);

/* The kernel that it chooses; and the same by one of them: gemm, gemm_small or, with up to four
 * rows, gemm_rows, with up to sixteen gemm_some; in bf16 gemm_blocks, gemm_rows_blocks or
 * gemm_some_blocks. */
ls_device_kernel ls_gemm_device_kernel(const ls_gemm_job *);
void ls_gemm_device_by(const ls_compute *, const ls_gemm_job *, ls_device_kernel);

/* What kernels of products share, also those of experts: a group has a tile of SMALL_TILE x
 * SMALL_TILE; with up to FEW_ROWS or SOME_ROWS rows it has FEW_COLUMNS columns. */
enum {
    LS_GEMM_SMALL_TILE = 64,
    LS_GEMM_FEW_ROWS = 4,
    LS_GEMM_SOME_ROWS = 16,
    LS_GEMM_FEW_COLUMNS = 32
};
/* Which of a (1), b (2) and c (4) are copied four numbers at a time (product.k). */
int64_t ls_gemm_device_wide(const ls_gemm_job *);

#endif
