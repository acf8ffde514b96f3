/* lora_merge.h - the weight and its adapter as one weight.
 */
#ifndef LS_LAYERS_LORA_MERGE_H
#define LS_LAYERS_LORA_MERGE_H

#include "model/layer.h"

/* A layer's adapter, in f32. */
typedef struct ls_lora_values {
    const ls_layer *layer;
    const float *a, *b, *magnitude; /* [rank, in], [out, rank], with DoRA [out] */
} ls_lora_values;

/* DoRA: inverse [out] = 1 / the norms of the rows of w + scale b . a, and g [out] = magnitude times
 * these. Uses all threads, each of which needs scratch [ls_lora_norms_scratch()]. */
void ls_lora_norms_find(const ls_lora_values *, const ls_compute *, ls_stored w, float *inverse,
                        float *g);
size_t ls_lora_norms_scratch(int64_t in, int64_t rank);
/* Adds scale b . a to rows [first, first + n), by thread 0; with DoRA each row is also divided by
 * its norm and multiplied by its magnitude. */
void ls_lora_merge(const ls_lora_values *, const ls_compute *, int64_t first, int64_t n,
                   float *rows);

#endif
