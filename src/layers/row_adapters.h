/* row_adapters.h - adapters that the model does not have, for some rows of a call: of texts that
 * are computed together each may have its own.
 *
 * The product with a layer's weight is computed once, for all rows. The bits of a row are those of
 * the model that has its adapter (ls_lora_add()): one chain over the inputs, then over the
 * adapter's numbers. On a device the adapters' numbers and their room are its memory.
 */
#ifndef LS_LAYERS_ROW_ADAPTERS_H
#define LS_LAYERS_ROW_ADAPTERS_H

#include "model/layer.h"

/* Adds to y, the product of a linear layer [out, in] with its bias, what the adapters of its rows
 * add. */
void ls_row_adapters_add(const ls_layer *, const ls_layer_call *, float *y);

#endif
