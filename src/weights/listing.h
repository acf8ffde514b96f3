/* listing.h - the tensors of weight files, of a model or of a file that can only be listed. */
#ifndef LS_WEIGHTS_LISTING_H
#define LS_WEIGHTS_LISTING_H

#include "weights/weights.h"

/* A tensor of any kind of file. */
typedef struct ls_weights_row {
    const char *name, *type;
    const char *stored; /* its name in the file; NULL: the same */
    int ndims;
    int64_t dims[LS_TENSOR_MAX_DIMS]; /* outermost first */
    size_t nbytes;
} ls_weights_row;

/* What was opened: a model, or else files that are only listed. */
typedef struct ls_weights_listing {
    const char *path, *format;
    ls_weights model;
    ls_gguf gguf;
    ls_safetensors file;
    const ls_gguf *keys;  /* NULL: no GGUF file */
    ls_weights_row *rows; /* [n] */
    size_t n;
} ls_weights_listing;

/* The model; where it can't be used, the file alone, and *why has the reason. Free it in any
 * case. */
ls_status ls_weights_list(const char *path, ls_weights_listing *l_p, ls_error *why, ls_error *);
void ls_weights_listing_free(ls_weights_listing *);
size_t ls_weights_listing_nbytes(const ls_weights_listing *); /* of all tensors */

#endif
