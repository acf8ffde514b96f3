/* layers.h - what layers of this room share with each other and with tests. The calls that add
 * layers to a model are in lockstep/model.h. */
#ifndef LS_LAYERS_LAYERS_H
#define LS_LAYERS_LAYERS_H

#include "model/builder.h"

/* A field as numbers, each times scale, plus shift. */
ls_value *ls_layers_input(ls_model *, const ls_value *field, float scale, float shift);

/* The measure behind accuracy; `ignored`: a class that does not count, as negative ones. */
ls_value *ls_layers_is_top(ls_model *, ls_value *logits, ls_value *label, int64_t k,
                           int32_t ignored);
/* The measure behind a confusion matrix, of samples with one label. */
ls_value *ls_layers_confusion(ls_model *, ls_value *logits, ls_value *label, int32_t ignored);

/* The metrics of a model that asks for none, and has one loss: a cross-entropy, or another one. */
void ls_layers_class_metrics(ls_model *, ls_value *logits, ls_value *label, int32_t ignored);
void ls_layers_number_metrics(ls_model *, bool binary, ls_value *x, ls_value *targets);

/* A later layer uses the weight of this embedding, of rows [width], too, and begins its gradient:
 * the parameter's number. -1: the model has failed. */
int ls_layers_tie_embedding(ls_model *, const ls_value *embedding, int64_t width);

/* For a layer that is not made by a call: y = the sum of `ninputs` values [T, C]. */
void ls_add_declare(ls_layer *, int64_t T, int64_t C, int ninputs);

#endif
