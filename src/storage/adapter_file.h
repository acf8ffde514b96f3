/* adapter_file.h - an adapter in a form of other programs, with which a new run begins
 * (model.adapter), or that is loaded beside a model: peft's directory (peft.h), or a GGUF file
 * (adapter_gguf.h).
 */
#ifndef LS_STORAGE_ADAPTER_FILE_H
#define LS_STORAGE_ADAPTER_FILE_H

#include "config/config.h"
#include "storage/state.h"

bool ls_adapter_file_is(const char *path);

/* Sets lora.* of a new run as its model.adapter has them, and makes the path absolute. model.from
 * is absolute. Does nothing if model.adapter is empty. LS_EINVAL: it is no adapter that can be
 * trained here, or that of another model, or lora.rank is set, too. */
ls_status ls_adapter_file_adopt(ls_config *, ls_error *);

/* Reads what the adapter has into flat.of[0] of the state, of which `owned` and `all_params` count.
 * LS_EINVAL: it does not have all that is trained, in these shapes, or has more. */
ls_status ls_adapter_file_load(const ls_config *, const ls_train_state *, ls_error *);

#endif
