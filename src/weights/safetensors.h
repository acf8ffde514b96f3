/* safetensors.h - tensors in a file: an 8-byte length, a JSON header, then the data.
 *
 * Format: https://huggingface.co/docs/safetensors. Files are written with metadata format "pt", so
 * that its Python library and PyTorch can read them. Reading checks everything before any use: a
 * damaged or hostile file is an error that names the file and the tensor.
 */
#ifndef LS_WEIGHTS_SAFETENSORS_H
#define LS_WEIGHTS_SAFETENSORS_H

#include <stdbool.h>

#include "base/file.h"
#include "tensor/block.h"

enum { LS_TENSOR_MAX_DIMS = 8, LS_TENSOR_NAME = 128 };

typedef struct ls_tensor {
    char name[LS_TENSOR_NAME];
    int ndims;
    int64_t dims[LS_TENSOR_MAX_DIMS];
    size_t count;       /* product of dims */
    const void *data;   /* [count] of the type, aligned to an element */
    ls_block_type type; /* LS_NBLOCK_TYPES: one that can't be read */
    const char *dtype;  /* its name in the file; NULL: `type` says it */
} ls_tensor;

/* Bytes of the data. */
size_t ls_tensor_nbytes(const ls_tensor *);
/* For qsort() and bsearch() of pointers to tensors. */
int ls_tensor_by_name(const void *a, const void *b);
/* out [n] = elements first, first + 1 ... in f32. */
void ls_tensor_read(const ls_tensor *, size_t first, size_t n, float *out);

/* Creates the file, with the tensors in this order, which keeps each aligned to its elements. The
 * format has no blocks: a tensor of rows of blocks is written as rows of bytes (U8), and the
 * metadata have its name and its type. */
ls_status ls_safetensors_write(const char *path, const ls_tensor *, size_t n, ls_error *);
/* Writes the file with all values in f32; what is there is replaced as by ls_output_write(). */
ls_status ls_safetensors_write_wide(const char *path, const ls_tensor *, size_t n, ls_error *);
/* Creates the same file with zeros as data, which others will write. */
ls_status ls_safetensors_reserve(const char *path, const ls_tensor *, size_t n, ls_error *);
/* Creates the file without its data, which the caller puts, in the order of the tensors. */
ls_status ls_safetensors_create(const char *path, const ls_tensor *, size_t n, ls_file *f_p,
                                ls_error *);

typedef struct ls_safetensors {
    ls_tensor *tensors; /* in the order of the data */
    size_t n;
    const ls_tensor **by_name; /* [n] the same, sorted */
    void **copies;             /* [ncopies] the data of tensors that are not aligned in the file */
    size_t ncopies;
    ls_mapped map;
} ls_safetensors;

/* Reads F32 tensors only. Their data points into the mapped file. If that is truncated while it is
 * open, it reads as zeros from there on, and ls_guard_check() of base/guard.h fails. */
ls_status ls_safetensors_open(const char *path, ls_safetensors *s_p, ls_error *);
/* As ls_safetensors_open(), and also reads tensors in 16 bits and in blocks. */
ls_status ls_safetensors_open_stored(const char *path, ls_safetensors *s_p, ls_error *);
/* Reads a file of any types of the format, also of another program, which may have aligned nothing:
 * what is not aligned is copied. */
ls_status ls_safetensors_open_any(const char *path, ls_safetensors *s_p, ls_error *);
void ls_safetensors_close(ls_safetensors *);
const ls_tensor *ls_safetensors_find(const ls_safetensors *, const char *name); /* or NULL */

#endif
