/* gpt.h - GPT-2's fused layers: each begins with its norm, and adds what it computes to its input.
 *
 * networks/gpt2.c makes a model of them. They are faster, and save less, than the same model of the
 * other layers here; a model that is cut into slices or chunks has those (networks/cut_gpt.c).
 */
#ifndef LS_LAYERS_GPT_H
#define LS_LAYERS_GPT_H

#include "model/layer.h"
#include "tensor/gemm.h"

/* Kinds, sizes and cost for T positions; the model adds inputs, and parameters in the order that
 * each file says. */
void ls_gpt_embedding_declare(ls_layer *, int64_t T, int64_t C, int64_t V);
void ls_gpt_attention_declare(ls_layer *, int64_t T, int64_t C, int64_t heads);
void ls_gpt_mlp_declare(ls_layer *, int64_t T, int64_t C);
void ls_gpt_head_declare(ls_layer *, int64_t T, int64_t C, int64_t V);

/* The layer has dropout (dropout.h); of a block: of this number. */
void ls_gpt_embedding_drop(ls_layer *, float rate);
void ls_gpt_attention_drop(ls_layer *, float rate, int64_t block);
void ls_gpt_mlp_drop(ls_layer *, float rate, int64_t block);

/* The keys and values that attention's forward has saved of one sample: k, v [T, C]; the columns of
 * head h begin at h * C / heads. saved: as ls_mixed_shown() has it. */
typedef struct ls_gpt_seen {
    ls_matrix k, v;
} ls_gpt_seen;
ls_gpt_seen ls_gpt_attention_saw(const ls_layer *, int64_t T, bool bf16, const void *saved);

#endif
