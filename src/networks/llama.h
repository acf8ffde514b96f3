/* llama.h - kind llama: a decoder of the Llama family, from text.
 *
 * RMS norm, rotary positions, grouped-query attention, SwiGLU, no biases; parameters by the names and
 * in the layout of published weights (Hugging Face's). Touvron et al., "Llama 2", 2023; initial weights
 * N(0, 0.02^2) as in Hugging Face's.
 */
#ifndef LS_NETWORKS_LLAMA_H
#define LS_NETWORKS_LLAMA_H

#include "config/config.h"
#include "model/model.h"

/* A sample is tokens [model.context + 1], like GPT's. LS_EINVAL: sizes don't fit. */
ls_status ls_llama_create(const ls_config *, ls_model *m_p, ls_error *);

#endif
