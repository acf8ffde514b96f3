/* run_c.h - the kernels of devices, run on the host. */
#ifndef LS_DEVICE_RUN_C_H
#define LS_DEVICE_RUN_C_H

#include "device/device.h"

/* Runs all groups, in the calling thread. last_first: the last group and the last item first; the
 * result must be the same. */
void ls_run_c(const ls_device_call *, bool last_first);

#endif
