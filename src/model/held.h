/* held.h - what a device has beside parameters and operands: the model's frozen parameters, in
 * f32, and its layers' constants, which are sent once; and the weights of a step's samples.
 */
#ifndef LS_MODEL_HELD_H
#define LS_MODEL_HELD_H

#include "model/model.h"

typedef struct ls_held {
    char *memory;            /* floats of ls_model_held_floats(); NULL: nothing has been sent */
    ls_frozen_value *frozen; /* [nparams] in it */
    const float **constants; /* [] in it */
    double *weights;         /* [batch] on the device; NULL: samples have none */
} ls_held;

/* Sends the frozen values, which are any types' that the host has, and the constants to the
 * compute's device; does nothing if they are there. weights: bytes of those. */
ls_status ls_held_open(ls_held *, const ls_compute *, const ls_model *,
                       const ls_frozen_value *frozen, size_t weights, ls_error *);
/* Sends numbers of any type, as f32, to the compute's device, and waits. */
ls_status ls_held_send(const ls_compute *, ls_stored, size_t count, float *to, ls_error *);
void ls_held_close(ls_held *, const ls_compute *); /* before the device's; of {0}, too */

#endif
