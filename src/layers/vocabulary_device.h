/* vocabulary_device.h - losses and the gradients of logits (vocabulary.h), queued on the call's
 * device, with the bits of the host. In f32. */
#ifndef LS_LAYERS_VOCABULARY_DEVICE_H
#define LS_LAYERS_VOCABULARY_DEVICE_H

#include "layers/vocabulary.h"

/* Of a slice: what it knows of each row. */
void ls_vocabulary_device_losses(const ls_vocabulary *);
/* Replaces the logits by their gradients. */
void ls_vocabulary_device_dlogits(const ls_vocabulary *);
/* Adds the losses of the block's rows to those of their samples, [n] of the device; a sample's sum
 * begins with its first row. */
void ls_vocabulary_device_sum(const ls_vocabulary *, double *losses);

#endif
