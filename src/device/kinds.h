/* kinds.h - the kinds of devices. */
#ifndef LS_DEVICE_KINDS_H
#define LS_DEVICE_KINDS_H

#include "device/device.h"

extern const ls_device_ops ls_device_c, ls_device_opencl, ls_device_cuda;

#endif
