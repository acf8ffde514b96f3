/* safetensors.h - tensors in a file: an 8-byte length, a JSON header, then the data.
 *
 * Format: https://huggingface.co/docs/safetensors. Files are written with metadata format "pt" and
 * f32 data, so that its Python library and PyTorch can read them. Reading checks everything before
 * any use: a damaged or hostile file is an error that names the file and the tensor.
 */
#ifndef LS_WEIGHTS_SAFETENSORS_H
#define LS_WEIGHTS_SAFETENSORS_H

#include "base/file.h"

enum { LS_TENSOR_MAX_DIMS = 8, LS_TENSOR_NAME = 128 };

typedef struct ls_tensor {
    char name[LS_TENSOR_NAME];
    int ndims;
    int64_t dims[LS_TENSOR_MAX_DIMS];
    size_t count;      /* product of dims */
    const float *data; /* [count] */
} ls_tensor;

/* Creates the file, with the tensors in this order. */
ls_status ls_safetensors_write(const char *path, const ls_tensor *, size_t n, ls_error *);
/* Creates the same file with zeros as data, which others will write. */
ls_status ls_safetensors_reserve(const char *path, const ls_tensor *, size_t n, ls_error *);

typedef struct ls_safetensors {
    ls_tensor *tensors; /* in the order of the data */
    size_t n;
    const ls_tensor **by_name; /* [n] the same, sorted */
    ls_mapped map;
} ls_safetensors;

/* Reads F32 tensors only. Their data points into the mapped file. */
ls_status ls_safetensors_open(const char *path, ls_safetensors *s_p, ls_error *);
void ls_safetensors_close(ls_safetensors *);
const ls_tensor *ls_safetensors_find(const ls_safetensors *, const char *name); /* or NULL */

#endif
