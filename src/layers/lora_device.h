/* lora_device.h - the steps of an adapter (lora.c) that are no products, queued on a device, with
 * the bits of the host. */
#ifndef LS_LAYERS_LORA_DEVICE_H
#define LS_LAYERS_LORA_DEVICE_H

#include "tensor/compute.h"

/* x [n] = scale x */
void ls_lora_device_scale(const ls_compute *, int64_t n, float *x, float scale);

/* Rows of w + scale b . a: 1 / their norms, and magnitude times that. */
typedef struct ls_lora_norms {
    int64_t out, in, rank;
    float scale;
    const float *w, *a, *b, *magnitude; /* [out, in], [rank, in], [out, rank], [out] */
    float *inverse, *g;                 /* [out] */
} ls_lora_norms;
void ls_lora_device_norms(const ls_compute *, const ls_lora_norms *);

/* y = x [rows, C] with each column times its factor, times other (NULL: 1), plus bias (NULL: 0). */
typedef struct ls_lora_columns {
    int64_t rows, C;
    const float *x, *factors, *other, *bias;
    float *y;
} ls_lora_columns;
void ls_lora_device_columns(const ls_compute *, const ls_lora_columns *);

#endif
