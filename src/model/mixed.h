/* mixed.h - calls of layers whose parameters, activations or gradients are stored in 16 bits.
 *
 * Layers compute in f32, except for matrix products, which are in bf16 if that is the type
 * (ls_layer_in_bf16()). Operands in 16 bits are widened before a call and results are rounded after
 * it, except for operands in bf16 that a layer takes as they are stored (as_stored). So "compute
 * bf16" means: parameters, activations between layers and most of the values that a layer saves are
 * representable in bf16; every sum is in f32. Micikevicius et al., "Mixed precision training", ICLR
 * 2018, with f32 master weights (optim). Saved means, maxima and logits stay in f32.
 *
 * A gradient in 16 bits is one f32 chain over a virtual worker's samples, rounded once at its end.
 * With several micro-batches the chain is stored in `wide` between them, so their size does not
 * affect the bits. The tied embedding is rounded twice: after the head's part and after its own.
 *
 * If all operands are in f32 these functions just call the layer's own.
 */
#ifndef LS_MODEL_MIXED_H
#define LS_MODEL_MIXED_H

#include "model/layer.h"

void ls_mixed_forward(const ls_layer *, const ls_layer_call *);
void ls_mixed_backward(const ls_layer *, const ls_layer_call *);

/* What the call's forward saved, as the layer's own functions wrote it, before anything was
 * converted for storage. Valid until `work` or `saved` is used again. */
const void *ls_mixed_shown(const ls_layer *, const ls_layer_call *);

/* Sizes for n samples. wide: calls have `wide`, if gradients are in 16 bits. */
size_t ls_mixed_saved_nbytes(const ls_layer *, int64_t n, ls_dtype compute);
size_t ls_mixed_work_nbytes(const ls_layer *, int64_t n, ls_dtype compute, ls_dtype grads,
                            bool wide);
/* Does the call round gradients that it sums? Else they are in f32, or `wide` has the sums. */
bool ls_mixed_rounds(const ls_layer_call *);

/* The floats that a forward or backward for n samples widens and rounds, for prices: around the
 * layer's own functions; and inside them, some at a time (`parts`). dx: whether the gradients of
 * inputs are wanted; last: the call computes the virtual worker's last micro-batch. */
typedef struct ls_mixed_floats {
    size_t widened, narrowed;
    size_t widened_parts, narrowed_parts;
} ls_mixed_floats;

ls_mixed_floats ls_mixed_forward_floats(const ls_layer *, int64_t n, ls_dtype compute);
ls_mixed_floats ls_mixed_backward_floats(const ls_layer *, int64_t n, ls_dtype compute,
                                         ls_dtype grads, bool dx, bool last);

#endif
