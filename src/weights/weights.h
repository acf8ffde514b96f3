/* weights.h - the weights of a model, from a GGUF file or from a directory of Hugging Face's form.
 *
 * A directory has config.json, and model.safetensors, its shards with an index (shards.h), or
 * model.gguf. Opening reads the architecture and finds its tensors: all that it needs, of the
 * dimensions that it needs, and no others but such that follow from it (tensor_names.h); else an
 * error names the tensor. Weights stay in the mapped files as they are, and are widened to f32 when
 * they are read. Files that are truncated while they are open are an error of ls_weights_rows().
 *
 * Reading: any thread.
 */
#ifndef LS_WEIGHTS_WEIGHTS_H
#define LS_WEIGHTS_WEIGHTS_H

#include "tensor/kernels.h"
#include "weights/gguf.h"
#include "weights/shards.h"
#include "weights/tensor_names.h"

typedef struct ls_weight {
    ls_name id;          /* its name, and dims [out, in], or [n] */
    ls_block_type type;  /* as stored */
    ls_row_order order;  /* of the stored elements; LS_ROWS_SAME in safetensors */
    const uint8_t *data; /* [nbytes], mapped */
    size_t nbytes;
    size_t norms_at; /* of LS_ROWS_PLUS_ONE: its first element in `norms` */
} ls_weight;

typedef struct ls_weights {
    char *path;
    ls_architecture arch;
    ls_weight *list;     /* [n] in the order of ls_name_at() */
    ls_weight **by_name; /* [n] the same, sorted */
    size_t n;
    bool is_gguf;
    ls_gguf gguf;               /* if it is */
    const ls_gguf_value *norms; /* LS_GGUF_NORMS of it; NULL: there is none */
    ls_shards shards;           /* else */
    const ls_kernels *kernels;
} ls_weights;

/* LS_EIO: a file can't be read. LS_EINVAL: a file is damaged, or the model is not supported. */
ls_status ls_weights_open(const char *path, ls_weights *w_p, ls_error *);
void ls_weights_close(ls_weights *);

const ls_weight *ls_weights_find(const ls_weights *, const char *name); /* or NULL */
/* The tensor that is this parameter of a model, or its part for an expert (ls_name.expert). */
const ls_weight *ls_weights_find_param(const ls_weights *, const char *param, int expert);

/* out [end - first, dims[1]] = rows [first, end) of a matrix, or [end - first] elements of a
 * vector, in canonical order. LS_EIO: bytes of a file were lost. */
ls_status ls_weights_rows(const ls_weights *, const ls_weight *, int64_t first, int64_t end,
                          float *out, ls_error *);

/* Bytes of all tensors. */
size_t ls_weights_nbytes(const ls_weights *);
/* Appends the types and how many tensors each has: "210 Q4_1, 61 F32, 1 Q8_0". */
void ls_weights_put_types(const ls_weights *, ls_buf *);

/* The path of a file of the model's directory, which the caller frees; NULL: there is none. */
char *ls_model_file(const ls_weights *, const char *name);

#define LS_MODEL_TOKENIZER        "tokenizer.json"
#define LS_MODEL_TOKENIZER_CONFIG "tokenizer_config.json"
#define LS_MODEL_TEMPLATE         "chat_template.jinja"
#define LS_WEIGHTS_CONFIG         "config.json"
#define LS_WEIGHTS_GENERATION     "generation_config.json"
#define LS_WEIGHTS_GGUF           "model.gguf"

#endif
