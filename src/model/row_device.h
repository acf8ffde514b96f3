/* row_device.h - the steps of row_ops.h, queued on the call's device, in f32. */
#ifndef LS_MODEL_ROW_DEVICE_H
#define LS_MODEL_ROW_DEVICE_H

#include "model/layer.h"
#include "tensor/gemm.h"

void ls_row_device_norm(const ls_layer *, const ls_layer_call *, float *h, float *mean,
                        float *rstd);
/* residual [rows, C] is added to dx; NULL: none. */
void ls_row_device_norm_back(const ls_layer *, const ls_layer_call *, const float *mean,
                             const float *rstd, const float *dh, const float *residual);
void ls_row_device_gelu(const ls_compute *, int64_t n, const float *x, float *y);
void ls_row_device_gelu_back(const ls_compute *, int64_t n, const float *x, float *d, float *y);
void ls_row_device_add(const ls_compute *, int64_t n, const float *x, const float *a, float *y);
/* adds: to what sum has; else it begins. */
void ls_row_device_column_sum(const ls_compute *, int64_t rows, ls_matrix x, bool adds, float *sum);

#endif
