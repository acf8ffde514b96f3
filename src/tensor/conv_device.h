/* conv_device.h - convolutions, queued on a device: the calls of conv.h. */
#ifndef LS_TENSOR_CONV_DEVICE_H
#define LS_TENSOR_CONV_DEVICE_H

#include "tensor/conv.h"

void ls_conv_device_forward(const ls_compute *, const ls_conv *, const ls_conv_job *);
void ls_conv_device_back_x(const ls_compute *, const ls_conv *, const ls_conv_job *);
void ls_conv_device_back_w(const ls_compute *, const ls_conv *, const ls_conv_job *);
void ls_conv_device_back_bias(const ls_compute *, const ls_conv *, const ls_conv_job *);

#endif
