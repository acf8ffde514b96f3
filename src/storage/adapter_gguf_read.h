/* adapter_gguf_read.h - adapters as llama.cpp loads them (adapter_gguf.h), its own or those of its
 * convert_lora_to_gguf.py, in types that can be read.
 */
#ifndef LS_STORAGE_ADAPTER_GGUF_READ_H
#define LS_STORAGE_ADAPTER_GGUF_READ_H

#include "config/config.h"
#include "storage/state.h"

/* Sets lora.* of a new run as the file model.adapter has them. LS_EINVAL: it is no adapter, or that
 * of another architecture, or has what adapters here can't have. */
ls_status ls_adapter_gguf_adopt(ls_config *, ls_error *);

/* Reads the file model.adapter into flat.of[0] of the state, of which `owned` and `all_params`
 * count. LS_EINVAL: it does not have all that is trained, in these shapes, or has more. */
ls_status ls_adapter_gguf_load(const ls_config *, const ls_train_state *, ls_error *);

#endif
