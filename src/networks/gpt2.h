/* gpt2.h - GPT-2's architecture: parameters by their published names, and layers in order.
 *
 * Layers (layers/gpt.h): embedding; for each block attention and MLP; head.
 *
 * Source: Radford, Wu, Child, Luan, Amodei & Sutskever, "Language models are unsupervised multitask
 * learners", 2019; initial weights as there, with 0.02 / sqrt(2 layers) for the products that add
 * to the residual stream.
 */
#ifndef LS_NETWORKS_GPT2_H
#define LS_NETWORKS_GPT2_H

#include "model/model.h"

typedef struct ls_gpt_config {
    int64_t layers, width, heads, context, vocab;
} ls_gpt_config;

/* LS_EINVAL: heads don't divide the width, or sizes overflow. */
ls_status ls_gpt_create(const ls_gpt_config *, ls_model *m_p, ls_error *);

/* The model gets dropout of its embedding, of attention's probabilities, and of what its blocks add
 * to the residual stream. rate is above 0 and below 1. */
void ls_gpt_drop(ls_model *, float rate);

#endif
