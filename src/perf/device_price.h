/* device_price.h - the time of what a worker's device does, by the device's figures in a machine's
 * file.
 *
 * A device is taken to be as fast as its large products, or as its memory, and each kernel to take
 * at least as long as one that does next to nothing. Small products are slower than that on a GPU:
 * the times are the least that can be hoped for.
 */
#ifndef LS_PERF_DEVICE_PRICE_H
#define LS_PERF_DEVICE_PRICE_H

#include "perf/machine.h"

/* Seconds of a work for n samples of T rows. bf16: products are in bf16, unless they are always in
 * f32. */
double ls_device_work_s(const ls_machine_device *, const ls_work *, double T, double n, bool bf16);
/* Of a pass over `elements` elements. */
double ls_device_pass_s(const ls_machine_device *, ls_work_kind, double elements);
/* Of kernels that round `elements` elements in place, together (model/mixed_device.h). */
double ls_device_round_s(const ls_machine_device *, double elements, int kernels);
/* Of a copy from the host, and to it. */
double ls_device_to_s(const ls_machine_device *, double nbytes);
double ls_device_from_s(const ls_machine_device *, double nbytes);

#endif
