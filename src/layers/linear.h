/* linear.h - what the adapter of a linear layer (lora.c) shares with the layer itself. The weight
 * is [out, in]. */
#ifndef LS_LAYERS_LINEAR_H
#define LS_LAYERS_LINEAR_H

#include "layers/dropout.h"
#include "model/builder.h"
#include "tensor/gemm.h"

/* The layer's own options. Numbers of its parameters: the weight is number 0; 0: there is none. */
typedef struct ls_linear_own {
    int bias, a, b, magnitude;
    int64_t rank;
    float scale;          /* of the adapter's product */
    ls_dropout_mask mask; /* of its input */
} ls_linear_own;

int64_t ls_linear_outputs(const ls_layer *);
int ls_linear_bias(const ls_layer *); /* its number; 0: there is none */
/* Can its rows have adapters that it does not have itself (row_adapters.h)? */
bool ls_linear_takes_adapters(const ls_layer *);

/* y = x . w^T, plus the bias if it is wanted and there is one. */
void ls_linear_product(const ls_layer *, const ls_layer_call *, bool with_bias, float *y);
/* dx = dy . w */
void ls_linear_product_dx(const ls_layer *, const ls_layer_call *, ls_matrix dy, float *dx);
/* The gradients of the weight and the bias, unless they are frozen. */
void ls_linear_product_dw(const ls_layer *, const ls_layer_call *, ls_matrix dy);
void ls_linear_bias_back(const ls_layer *, const ls_layer_call *);

bool ls_lora_is(const ls_layer *); /* does the layer have an adapter? */
/* Numbers among the layer's parameters of a, b and the magnitude (0: none); false: it has no
 * adapter. */
bool ls_lora_find(const ls_layer *, int params_p[3]);

/* Makes the layer, which has its weight and bias, one with an adapter. NULL: an option is not
 * possible, and the model has failed. */
ls_layer *ls_lora_add(ls_model *, ls_layer *, const ls_lora *);

#endif
