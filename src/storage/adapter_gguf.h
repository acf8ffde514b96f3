/* adapter_gguf.h - the adapters of a run as a GGUF file, which llama.cpp loads beside the base
 * model (--lora):
 *
 *     general.type          "adapter"
 *     adapter.type          "lora"
 *     adapter.lora.alpha    the scale is this number / rank
 *     NAME.lora_a           f32 [rank, in], for NAME of the base's tensor: blk.0.attn_q.weight
 *     NAME.lora_b           f32 [out, rank], its rows in the order of the base's; times n where
 *                           the adapter is joined of n (joined_adapters.h)
 */
#ifndef LS_STORAGE_ADAPTER_GGUF_H
#define LS_STORAGE_ADAPTER_GGUF_H

#include "model/param.h"
#include "storage/peft.h"
#include "weights/tensor_names.h"

/* Writes the new file `to`, whole or not at all. from: a run or a checkpoint. ema: the average of
 * the weights. LS_EINVAL: the run has no adapters, or llama.cpp has no form for what it has
 * trained. */
ls_status ls_adapter_gguf_export(const char *from, bool ema, const char *to, ls_peft_written *w_p,
                                 ls_error *);

/* For readers, too: the base's tensor that an adapter's parameter is of, and whether it is A.
 * False: GGUF has none. */
bool ls_adapter_gguf_base(const ls_architecture *, const ls_param *, ls_name *id_p, bool *is_a_p);
/* The row of B in the file that is row i here. */
int64_t ls_adapter_gguf_row(const ls_architecture *, const ls_name *, int64_t i);

#endif
