/* write_model.h - writes a model's weights as safetensors, or as a GGUF file that llama.cpp runs.
 *
 * Files must not exist, and are synced; on an error some may be left. Weights come from a source in
 * canonical order and are never all in memory: at most one matrix is, where GGUF transposes it.
 */
#ifndef LS_WEIGHTS_WRITE_MODEL_H
#define LS_WEIGHTS_WRITE_MODEL_H

#include "weights/gguf_write.h"
#include "weights/weights.h"

typedef struct ls_model_source {
    const ls_architecture *arch;
    /* out = rows [first, end) of the tensor, as of ls_weights_rows(). */
    ls_status (*rows)(const void *arg, const ls_name *, int64_t first, int64_t end, float *out,
                      ls_error *);
    const void *arg;
} ls_model_source;

/* The weights of files. */
ls_model_source ls_source_of_weights(const ls_weights *);

/* Writes model.safetensors of F32, F16 or BF16 in the directory; or, if its tensors take over
 * shard_nbytes (0: they may), shards of at most shard_nbytes (a larger tensor has its own shard)
 * and their index. LS_EINVAL: a number is not finite, or too large for the type. */
ls_status ls_write_safetensors(const ls_model_source *, const char *folder, ls_block_type type,
                               int64_t shard_nbytes, ls_error *);

/* Writes config.json and generation_config.json. `type`: that of the weights; another than F32, F16
 * and BF16 is named float32. */
ls_status ls_write_config(const ls_architecture *, const char *folder, ls_block_type type,
                          ls_error *);

/* Writes a GGUF file: matrices of the type, vectors and GPT-2's positions of F32. *w has the
 * key-values of the tokenizer, and others, but those of ls_gguf_put_architecture(); the caller
 * frees it. LS_EINVAL: GGUF can't say something of the architecture, rows have no whole blocks, or
 * a number can't be held. */
ls_status ls_write_gguf(const ls_model_source *, const char *path, ls_block_type type,
                        ls_gguf_writer *w, ls_error *);

#endif
