/* row_adapter.h - adapters of rows of a call, which the model does not have
 * (layers/row_adapters.h). */
#ifndef LS_MODEL_ROW_ADAPTER_H
#define LS_MODEL_ROW_ADAPTER_H

#include <stdint.h>

/* The adapter of a linear layer, in f32; of a call on a device, which has its numbers. */
typedef struct ls_row_adapter {
    int64_t rank; /* 0: the layer has none */
    float scale;
    const float *a, *b; /* [rank, in], [out, rank] */
    const float *g;     /* [out] DoRA: factors of the product; NULL: none */
} ls_row_adapter;

/* Rows [first, end) of a call, with one adapter of the model. */
typedef struct ls_adapted_rows {
    int64_t first, end;
    const ls_row_adapter *of; /* [nparams] by the number of the layer's weight */
} ls_adapted_rows;

/* Those of a call (ls_layer_call.adapters). */
typedef struct ls_row_adapters {
    const ls_adapted_rows *list; /* [n] */
    int n;
    int64_t T;   /* rows of the call */
    float *room; /* [rows of a layer times the largest rank] */
} ls_row_adapters;

#endif
