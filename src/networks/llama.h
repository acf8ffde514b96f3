/* llama.h - kind llama: a decoder of the Llama family.
 *
 * RMS norm, rotary positions, grouped-query attention, SwiGLU; with biases, norms of queries and
 * keys, a window, layers without a rotation, or a block as in Gemma 3 where the architecture has
 * them: Llama, SmolLM3, Mistral, Qwen 2 and 3, Gemma 3, Phi-3 (weights/architecture.h).
 * Parameters have the names and the layout of published weights (Hugging Face's). Touvron et al.,
 * "Llama 2", 2023; initial weights N(0, 0.02^2) as in Hugging Face's.
 */
#ifndef LS_NETWORKS_LLAMA_H
#define LS_NETWORKS_LLAMA_H

#include "config/config.h"
#include "model/model.h"
#include "weights/architecture.h"

/* A sample is tokens [model.context + 1], like GPT's. cut: into the config's chunks (chunked.h).
 * LS_EINVAL: sizes don't fit. */
ls_status ls_llama_create(const ls_config *, bool cut, ls_model *m_p, ls_error *);

/* What the keys of a config describe. */
ls_architecture ls_llama_architecture(const ls_config *);

/* out [pairs] = the numbers of model.rope_short or model.rope_long; false: they are others. */
bool ls_llama_read_divisors(const char *text, int64_t pairs, float *out);

/* Sets the keys of a new run as its model.from has them, if it has one: of this kind, or of gpt2.
 * model.context remains if the model allows it, and so do keys of the experts' auxiliary loss that
 * are written. LS_EINVAL: no such model is there, or a key is written that it has otherwise. */
ls_status ls_llama_adopt(ls_config *, ls_error *);

#endif
