/* peft_read.h - adapters of the Python package peft (peft.h), with which a new run begins
 * (model.adapter).
 */
#ifndef LS_STORAGE_PEFT_READ_H
#define LS_STORAGE_PEFT_READ_H

#include "config/config.h"
#include "storage/state.h"

/* Sets lora.* of a new run as its model.adapter has them, and makes the path absolute. model.from
 * is absolute. Does nothing if model.adapter is empty. LS_EINVAL: it is no adapter that can be
 * trained here, or that of another model, or lora.rank is set, too. */
ls_status ls_peft_adopt(ls_config *, ls_error *);

/* Reads what the adapter has into flat.of[0] of the state, of which `owned` and `all_params` count.
 * LS_EINVAL: it does not have all that is trained, in these shapes, or has more. */
ls_status ls_peft_load(const char *path, const ls_train_state *, ls_error *);

#endif
