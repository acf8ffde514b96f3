/* peft_read.h - adapters of the Python package peft (peft.h), for adapter_file.h. */
#ifndef LS_STORAGE_PEFT_READ_H
#define LS_STORAGE_PEFT_READ_H

#include "config/config.h"
#include "storage/state.h"

/* Sets lora.* of a new run as the directory model.adapter has them. LS_EINVAL: it is no adapter
 * that can be trained here, or that of another model. */
ls_status ls_peft_adopt(ls_config *, ls_error *);

/* Reads what the adapter has into flat.of[0] of the state, of which `owned` and `all_params` count.
 * The matrices that Phi-3's files have for several layers (qkv_proj, gate_up_proj) become those
 * layers, with the same A. LS_EINVAL: it does not have all that is trained, in these shapes, or has
 * more. */
ls_status ls_peft_load(const ls_config *, const ls_train_state *, ls_error *);

#endif
