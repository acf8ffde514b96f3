/* placed.h - the weights of a model on a device, in f32, copied there once. */
#ifndef LS_INFER_PLACED_H
#define LS_INFER_PLACED_H

#include "infer/infer.h"
#include "model/held.h"

typedef struct ls_placed {
    ls_compute compute; /* the host's, with the device; device NULL: there is none */
    void *params;
    ls_held held;
} ls_placed;

/* Opens a device (ls_device_open()), or takes the one that is open already, and sends what the
 * infer of the host has; the infer then computes there, and needs memory (ls_infer_open_memory()).
 * The ls_placed stays where it is.
 *
 * Errors   LS_EINVAL: a device does not do what the infer does, e.g. compute in 16 bits, or a layer
 *          has no kernels. LS_ENOMEM: what does not fit. LS_EIO: the device fails. */
ls_status ls_placed_open(ls_placed *, const char *device, ls_infer *, ls_error *);
void ls_placed_close(ls_placed *); /* after the memory; of {0}, too */

#endif
