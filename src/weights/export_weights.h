/* export_weights.h - writes a model for others' programs: as a directory of Hugging Face's form, or
 * as one GGUF file with its tokenizer and chat template. It appears whole or not at all, and is
 * read again and checked before.
 */
#ifndef LS_WEIGHTS_EXPORT_WEIGHTS_H
#define LS_WEIGHTS_EXPORT_WEIGHTS_H

#include "base/hash.h"
#include "weights/model_text.h"
#include "weights/write_model.h"

typedef struct ls_export {
    ls_model_source source;
    const ls_model_text *text;
    ls_block_type type; /* of the weights */
} ls_export;

/* What was written, as it reads again. */
typedef struct ls_written {
    ls_architecture arch;
    ls_hash hash;  /* ls_weights_hash() */
    char *types;   /* "210 Q4_1, 61 F32, 1 Q8_0" */
    size_t nbytes; /* of the tensors */
} ls_written;

/* `path` must not exist. LS_EINVAL: it does, or the form can't hold the model. */
ls_status ls_export_folder(const ls_export *, const char *path, ls_written *w_p, ls_error *);
ls_status ls_export_gguf(const ls_export *, const char *path, ls_written *w_p, ls_error *);

/* Reads a written model. */
ls_status ls_written_read(const char *path, ls_written *w_p, ls_error *);
void ls_written_free(ls_written *);

/* The hash of all tensors' names, dims and values in f32, sorted by name: the same for any form and
 * type of file that has these values, and that of `lockstep ckpt hash` for a run's. LS_EINVAL: a
 * number is not finite. */
ls_status ls_weights_hash(const ls_weights *, ls_hash *h_p, ls_error *);

#endif
