/* print_model.h - a model as a table of its layers, for people. */
#ifndef LS_MODEL_PRINT_MODEL_H
#define LS_MODEL_PRINT_MODEL_H

#include "model/model.h"

/* The number of the layer's parameters, including those that it shares with an earlier layer. */
size_t ls_layer_count(const ls_layer *);
size_t ls_layer_frozen_count(const ls_layer *);
/* Bytes that forward leaves for backward, for a sample: its output, and what it saves. */
size_t ls_layer_saved_nbytes(const ls_layer *, ls_dtype compute);

/* Appends a line a layer: name, kind, output, inputs that are not the layer before, parameters, and
 * if the model has any, frozen ones among these, floating-point operations of a sample's forward,
 * bytes that a sample's forward leaves for backward with activations of this type. */
void ls_model_print(const ls_model *, ls_dtype compute, ls_buf *out);

#endif
