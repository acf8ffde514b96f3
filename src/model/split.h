/* split.h - a layer's backward in two calls: one for the gradients of its inputs, and a later one
 * for those of its parameters.
 *
 * The first is the call of the layer as if all its parameters were frozen, the second as if its
 * inputs were constant: each layer leaves out what is not wanted, so no layer knows that it is
 * split. Both calls compute what both need: in attention the gradients of the heads, in an MLP that
 * of the activation, in the head the logits. A layer that is one product computes nothing twice.
 */
#ifndef LS_MODEL_SPLIT_H
#define LS_MODEL_SPLIT_H

#include "model/mixed.h"
#include "model/model.h"

/* Does the layer have gradients of inputs and of parameters, and can it leave out either? A layer
 * with gradients of parameters alone takes one call. */
bool ls_split_can(const ls_model *, const ls_layer *);
/* Calls with the operands of ls_mixed_backward(): the first writes dx, the second adds to gradients
 * of parameters. Both compute a loss's losses. */
void ls_split_inputs(const ls_layer *, const ls_layer_call *);
void ls_split_params(const ls_layer *, const ls_layer_call *);
/* Work memory of the first, for n samples. */
size_t ls_split_work_nbytes(const ls_layer *, int64_t n, ls_dtype compute, ls_dtype grads,
                            bool wide);

#endif
