/* import.h - a published model as a directory of its own, complete, checked and of one form:
 *
 *     config.json, generation_config.json     the architecture
 *     model.gguf, or model.safetensors (or its shards and their index)
 *     tokenizer.json, tokenizer_config.json, and chat_template.jinja if the model has a template
 *
 * All of the model is read and checked before anything is written: the architecture, every number,
 * the tokenizer, the template. The directory appears whole or not at all.
 */
#ifndef LS_WEIGHTS_IMPORT_H
#define LS_WEIGHTS_IMPORT_H

#include "weights/export_weights.h"

typedef struct ls_imported {
    ls_written written;
    const char *kind; /* of the tokenizer: "byte-level BPE" */
    uint32_t ntokens; /* that it has */
    bool has_template;
} ls_imported;

/* `from`: a GGUF file, or a directory (weights.h). type: F32, F16 or BF16, as safetensors, or one
 * of blocks, as GGUF; LS_NBLOCK_TYPES: weights stay as they are stored. LS_EINVAL: `to` exists, or
 * the model is damaged or not supported. */
ls_status ls_model_import(const char *from, const char *to, ls_block_type type, ls_imported *i_p,
                          ls_error *);
void ls_imported_free(ls_imported *);

#endif
