/* mixed.h - calls of a layer whose parameters, activations or gradients are kept in 16 bits.
 *
 * Layers compute in f32. What they are given and leave is widened before and rounded after, so
 * "compute bf16" means: parameters, activations between layers and most of what a layer saves have
 * bf16's values; every sum is f32. Micikevicius et al., "Mixed precision training", ICLR 2018, with
 * f32 masters of the weights (optim). What is saved of means, maxima and logits stays f32.
 *
 * A gradient kept in 16 bits is one f32 chain over a virtual worker's samples, rounded once at its
 * end. Where that takes several micro-batches the chain waits in `wide`; so their size does not
 * touch the bits. The tied embedding is rounded twice: after the head's part, and after its own.
 *
 * Where all is f32 these functions are the layer's own.
 */
#ifndef LS_MODEL_MIXED_H
#define LS_MODEL_MIXED_H

#include "model/layer.h"

void ls_mixed_forward(const ls_layer *, const ls_layer_call *);
void ls_mixed_backward(const ls_layer *, const ls_layer_call *);

/* What the call's forward has saved, in f32 and before it was rounded; until `work` or `saved` is
 * used again. */
const float *ls_mixed_unrounded(const ls_layer *, const ls_layer_call *);

/* For n samples. */
size_t ls_mixed_saved_nbytes(const ls_layer *, int64_t n, ls_dtype compute);
size_t ls_mixed_work_nbytes(const ls_layer *, int64_t n, ls_dtype compute, ls_dtype grads);

#endif
