/* gemm_device.h - a matrix product, queued on a device. */
#ifndef LS_TENSOR_GEMM_DEVICE_H
#define LS_TENSOR_GEMM_DEVICE_H

#include "tensor/gemm.h"

/* In f32, with weights as b. */
void ls_gemm_device(const ls_compute *, const ls_gemm_job *);

#endif
