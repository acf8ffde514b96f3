/* on_device.h - the memory of a worker's device, where layers run there, and its copies (plan/copies.c).
 *
 * Parameters and gradients are where the world has them, in buffers of the same length; samples and
 * losses likewise. Layers and copies to the device are queued; a copy from there is waited for, and with
 * it all that was queued before.
 */
#ifndef LS_EXEC_ON_DEVICE_H
#define LS_EXEC_ON_DEVICE_H

#include "plan/plan.h"
#include "tensor/compute.h"

typedef struct ls_on_device {
    ls_compute compute; /* the worker's, with its device; device NULL: the host runs the layers */
    char *arena, *work; /* as those of the executor */
    char *params, *grads, *samples, *losses; /* as the world's and the loader's */
    size_t grads_nbytes;                     /* of a slot */
    size_t samples_nbytes, losses_nbytes;
} ls_on_device;

typedef struct ls_on_device_sizes {
    size_t arena_nbytes, work_nbytes, params_nbytes, grads_nbytes, samples_nbytes, losses_nbytes;
    int slots; /* of grads */
} ls_on_device_sizes;

/* LS_ENOMEM: what does not fit. `compute` without a device is that of the host. */
ls_status ls_on_device_open(ls_on_device *, ls_device *, const ls_compute *host,
                            const ls_on_device_sizes *, ls_error *);
void ls_on_device_close(ls_on_device *); /* of {0}, too */

/* Queues a copy, for which layers that are queued later wait. It does not wait for those before: until
 * other samples or parameters come, the losses are copied back, for which all layers are waited for. */
void ls_on_device_send(const ls_on_device *, void *to, const void *from, size_t nbytes);
/* Copies, and waits. Reports the first error of what was queued before. */
ls_status ls_on_device_fetch(const ls_on_device *, void *to, const void *from, size_t nbytes,
                             ls_error *);

#endif
