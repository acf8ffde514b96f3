/* device_cuda.h - what another library of CUDA needs of a device `cuda`. */
#ifndef LS_DEVICE_DEVICE_CUDA_H
#define LS_DEVICE_DEVICE_CUDA_H

#include "device/cuda.h"
#include "device/device.h"

/* Between these two the thread's context is the device's. */
ls_status ls_device_cuda_enter(ls_device *, ls_error *);
void ls_device_cuda_leave(ls_device *);
ls_cuda_stream ls_device_cuda_stream(ls_device *, ls_device_stream);

#endif
