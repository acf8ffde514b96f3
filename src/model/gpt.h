/* gpt.h - GPT-2's architecture: parameters by their published names, and layers in order.
 *
 * Layers: embedding; for each block attention and MLP; head. The flat buffer of parameters has the
 * tensors in that order, each at a multiple of 16 floats; its end is padded to a multiple of
 * LS_BLOCK. Backward fills the gradient from its end.
 *
 * Source: Radford, Wu, Child, Luan, Amodei & Sutskever, "Language models are unsupervised multitask
 * learners", 2019; initial weights as there, with 0.02 / sqrt(2 layers) for the products that add
 * to the residual stream.
 */
#ifndef LS_MODEL_GPT_H
#define LS_MODEL_GPT_H

#include "model/layer.h"

enum { LS_BLOCK = 1024 }; /* floats; sums of norms and shards begin at multiples of it */

typedef struct ls_gpt_config {
    int64_t layers, width, heads, context, vocab;
} ls_gpt_config;

typedef struct ls_model {
    ls_gpt_config config;
    ls_param *params; /* [nparams] */
    int nparams;
    ls_layer *layers; /* [nlayers] */
    int nlayers;
    size_t nfloats; /* of a flat buffer, padding included */
    size_t count;   /* of parameters, without padding */
} ls_model;

/* LS_EINVAL: heads don't divide the width, or sizes overflow. */
ls_status ls_gpt_create(const ls_gpt_config *, ls_model *m_p, ls_error *);
void ls_model_free(ls_model *);

/* Sets the elements [first, end) of the flat buffer to their initial weights, a function of the
 * seed alone. */
void ls_model_init(const ls_model *, uint64_t seed, size_t first, size_t end, float *params);

/* Floating-point operations of forward and backward for one sample. */
double ls_model_flops(const ls_model *);

/* The largest scratch_floats of its layers. */
size_t ls_model_scratch_floats(const ls_model *);

#endif
