/* peft.h - the adapters of a run (lora.*) in the form of the Python package peft:
 *
 *     adapter_config.json           what they are, and of which model
 *     adapter_model.safetensors     f32: base_model.model.NAME, and what lora.train has trained as
 *                                   a whole
 */
#ifndef LS_STORAGE_PEFT_H
#define LS_STORAGE_PEFT_H

#include "base/error.h"

#include <stdbool.h>
#include <stddef.h>

typedef struct ls_peft_written {
    size_t ntensors, count; /* tensors, and their numbers */
    char *base;             /* base_model_name_or_path: free() it; NULL: none */
} ls_peft_written;

/* Writes the new directory `to`, whole or not at all. from: a run or a checkpoint. ema: the average
 * of the weights (optim.ema). base: the base model's name, or its path; NULL: the path that the run
 * began with. LS_EINVAL: the run has no adapters, or peft has no form for what it
 * has trained. */
ls_status ls_peft_export(const char *from, bool ema, const char *base, const char *to,
                         ls_peft_written *w_p, ls_error *);

#endif
