/* embedding_device.h - the sums of a token's and a position's rows (gpt_embedding.c), queued on the
 * call's device, with the bits of the host. In f32, without dropout. */
#ifndef LS_LAYERS_EMBEDDING_DEVICE_H
#define LS_LAYERS_EMBEDDING_DEVICE_H

#include "model/layer.h"

/* y = wte[tokens] + wpe[positions] */
void ls_embedding_device_forward(const ls_layer *, const ls_layer_call *, const float *wte,
                                 const float *wpe);
/* The gradients of both from dy; NULL: the table is frozen. Sums of dwte continue from what it has. */
void ls_embedding_device_backward(const ls_layer *, const ls_layer_call *, float *dwte,
                                  float *dwpe);

#endif
