/* gemm_device.h - a matrix product, queued on a device.
 *
 * Kernels have tiles of different sizes; which one computes a product does not change its bits.
 */
#ifndef LS_TENSOR_GEMM_DEVICE_H
#define LS_TENSOR_GEMM_DEVICE_H

#include "tensor/gemm.h"

/* In f32, with weights as b. */
void ls_gemm_device(const ls_compute *, const ls_gemm_job *);

/* The kernel that it chooses; and the same by one of them: gemm or gemm_small. */
ls_device_kernel ls_gemm_device_kernel(int64_t M, int64_t N);
void ls_gemm_device_by(const ls_compute *, const ls_gemm_job *, ls_device_kernel);

#endif
