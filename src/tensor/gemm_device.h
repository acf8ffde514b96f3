/* gemm_device.h - a matrix product, queued on a device.
 *
 * Kernels have tiles of different sizes; which one computes a product does not change its bits.
 */
#ifndef LS_TENSOR_GEMM_DEVICE_H
#define LS_TENSOR_GEMM_DEVICE_H

#include "tensor/gemm.h"

/* Operands are in f32, and weights are b. */
void ls_gemm_device(const ls_compute *, const ls_gemm_job *);

/* The kernel that it chooses for a product in f32; and the same by one of them: gemm, gemm_small or, with up to four
 * rows, gemm_rows; in bf16 gemm_blocks or gemm_rows_blocks. */
ls_device_kernel ls_gemm_device_kernel(int64_t M, int64_t N);
void ls_gemm_device_by(const ls_compute *, const ls_gemm_job *, ls_device_kernel);

#endif
