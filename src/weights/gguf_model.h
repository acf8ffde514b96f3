/* gguf_model.h - an architecture in the metadata of a GGUF file.
 *
 * Source: llama.cpp's gguf-py/gguf/constants.py (keys), src/llama-model.cpp (what they mean, and
 * the defaults of missing ones), conversion/{base,llama,gpt2}.py (what they are made from). A key
 * of the architecture that is not understood is refused by its name. Mistral's and Mixtral's models
 * are of architecture llama there.
 *
 * GGUF has no rope_type llama3 but the divisors that follow from it, in the tensor
 * rope_freqs.weight. They are read if they are those of Llama 3.1 to 3.3 (low_freq_factor 1,
 * high_freq_factor 4, 8192 positions), for any factor.
 */
#ifndef LS_WEIGHTS_GGUF_MODEL_H
#define LS_WEIGHTS_GGUF_MODEL_H

#include "weights/architecture.h"
#include "weights/gguf.h"
#include "weights/gguf_write.h"

#define LS_GGUF_DIVISORS "rope_freqs.weight"
/* longrope's lists [pairs], f32: that of contexts up to the original one, and of longer ones. */
#define LS_GGUF_SHORT "rope_factors_short.weight"
#define LS_GGUF_LONG  "rope_factors_long.weight"
/* A key of ours: the elements of all tensors of LS_ROWS_PLUS_ONE, one after the other, in f32, in
 * which 1 + an element has fewer bits of it. */
#define LS_GGUF_NORMS "lockstep.norms"
enum { LS_GGUF_ENDS = 3 }; /* tokens that end a text, for which there are keys */

/* LS_EINVAL: it is no model of a family that is supported. */
ls_status ls_gguf_read_architecture(const ls_gguf *, ls_architecture *a_p, ls_error *);

/* Appends general.* and the architecture's keys, not those of the tokenizer but the ids of its
 * tokens; of ends the first LS_GGUF_ENDS. `type`: that of most tensors. GGUF has no key for a
 * window, but Gemma 3's and Phi-3's: the context is written no longer than it, which is logged. */
void ls_gguf_put_architecture(ls_gguf_writer *, const ls_architecture *, ls_block_type type);

/* LS_EINVAL: a reader can't tell the architecture's rotation, or how attention divides scores, from
 * what GGUF has of it, or computes the weights of experts in another way: llama.cpp gives those of
 * a token the sum 1. */
ls_status ls_gguf_check(const ls_architecture *, ls_error *);
/* "qwen3moe" */
const char *ls_gguf_family_name(ls_family);

/* Is it a tensor of the rotation? */
bool ls_gguf_is_rotation(const char *name);
/* Lists LS_GGUF_DIVISORS, or longrope's lists, as F32, if the architecture has them; returns the
 * number of elements of one. */
int64_t ls_gguf_put_divisors(ls_gguf_writer *, const ls_architecture *);

#endif
