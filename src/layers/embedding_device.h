/* embedding_device.h - rows of tables that ids and positions choose (embedding.c, gpt_embedding.c),
 * queued on the call's device, with the bits of the host. In f32.
 *
 * ids: those of sample 0, [T]; each sample has its own, sample_nbytes apart. One that is not among
 * the V of the table from `first` on stands for none. */
#ifndef LS_LAYERS_EMBEDDING_DEVICE_H
#define LS_LAYERS_EMBEDDING_DEVICE_H

#include "model/layer.h"

typedef struct ls_device_ids {
    const void *p;
    int64_t first; /* the table's first row has this id */
} ls_device_ids;

/* y = wte[ids] + wpe[positions]; wpe NULL: there is none */
void ls_embedding_device_forward(const ls_layer *, const ls_layer_call *, const ls_device_ids *ids,
                                 const float *wte, const float *wpe);
/* The gradients of both from dy; NULL: they are not wanted. Sums of dwte continue from what it
 * has. */
void ls_embedding_device_backward(const ls_layer *, const ls_layer_call *, const ls_device_ids *ids,
                                  const float *dy, float *dwte, float *dwpe);

#endif
