/* layers.h - what layers of this room share with each other and with tests. The calls that add
 * layers to a model are in lockstep/model.h. */
#ifndef LS_LAYERS_LAYERS_H
#define LS_LAYERS_LAYERS_H

#include "model/builder.h"

/* A field as numbers, each times scale, plus shift. */
ls_value *ls_layers_input(ls_model *, const ls_value *field, float scale, float shift);

/* For a layer that is not made by a call: y = the sum of `ninputs` values [T, C]. */
void ls_add_declare(ls_layer *, int64_t T, int64_t C, int ninputs);

#endif
