/* dropout.h - zeros at random, for layers that have a mask of their own (dropout.c). */
#ifndef LS_LAYERS_DROPOUT_H
#define LS_LAYERS_DROPOUT_H

#include "model/builder.h"

/* number: of the mask; each one of a model differs. Layers of kind dropout have those below
 * this. */
enum { LS_DROPOUT_OWN = 1 << 16 };

/* y = x [samples of the call][count] with zeros at random, the rest times 1 / (1 - rate); y = x
 * outside of training. */
void ls_dropout_run(const ls_layer_call *, uint32_t number, float rate, int64_t count,
                    const float *x, float *y);

#endif
