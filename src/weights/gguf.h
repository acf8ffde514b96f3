/* gguf.h - reads GGUF files: key-value pairs and tensors, mapped.
 *
 * Versions 2 and 3, little-endian. Format:
 * https://github.com/ggml-org/ggml/blob/master/docs/gguf.md. Opening checks every count, length and
 * offset, so that what a file says can be used as it is: a damaged or hostile file is an error that
 * names the file, the key or tensor and the offset. As in llama.cpp, tensors follow each other in
 * the order of their list, each padded to the alignment; keys and names are distinct. Bytes after
 * the last tensor are ignored.
 *
 * A file that is truncated while it is open reads as zeros from there on: see base/guard.h, whose
 * ls_guard_check() then fails.
 */
#ifndef LS_WEIGHTS_GGUF_H
#define LS_WEIGHTS_GGUF_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

/* The kinds of values, by their numbers in files. */
typedef enum ls_gguf_kind {
    LS_GGUF_U8,
    LS_GGUF_I8,
    LS_GGUF_U16,
    LS_GGUF_I16,
    LS_GGUF_U32,
    LS_GGUF_I32,
    LS_GGUF_F32,
    LS_GGUF_BOOL,
    LS_GGUF_TEXT,
    LS_GGUF_ARRAY,
    LS_GGUF_U64,
    LS_GGUF_I64,
    LS_GGUF_F64,
    LS_NGGUF_KINDS
} ls_gguf_kind;

typedef struct ls_gguf_text {
    const char *data; /* [n], any bytes, without a 0 at the end */
    size_t n;
} ls_gguf_text;

typedef struct ls_gguf_value {
    char *key;         /* UTF-8 */
    ls_gguf_kind kind; /* of each element of an array; never LS_GGUF_ARRAY */
    bool is_array;
    size_t n;            /* elements of an array, else 1 */
    const uint8_t *data; /* the elements */
    size_t nbytes;       /* of all elements */
    size_t *texts;       /* [n] where each text of an array begins, after its length; else NULL */
} ls_gguf_value;

enum { LS_GGUF_MAX_DIMS = 4 };

typedef struct ls_gguf_tensor {
    char *name;    /* UTF-8 */
    uint32_t type; /* the number of a type (blocks.h), which may be one that can't be read */
    int ndims;
    int64_t dims[LS_GGUF_MAX_DIMS]; /* as in the file: the first is that of adjacent elements */
    int64_t count;                  /* product of dims */
    const uint8_t *data;            /* [nbytes] */
    size_t nbytes;
} ls_gguf_tensor;

typedef struct ls_gguf {
    char *path;
    uint32_t version;
    size_t alignment;
    ls_gguf_value *values;   /* [nvalues] in the order of the file */
    ls_gguf_tensor *tensors; /* [ntensors] in the order of the file */
    size_t nvalues, ntensors;
    size_t *values_by_key, *tensors_by_name; /* their indices, sorted */
    const uint8_t *data;                     /* [nbytes] the whole file */
    size_t nbytes;
} ls_gguf;

/* LS_EIO: the file can't be read. LS_EINVAL: it is no GGUF file, or is damaged. */
ls_status ls_gguf_open(const char *path, ls_gguf *g_p, ls_error *);
void ls_gguf_close(ls_gguf *);
/* Does the file begin like a GGUF file? */
bool ls_gguf_is(const char *path);

/* NULL: there is none. */
const ls_gguf_value *ls_gguf_find(const ls_gguf *, const char *key);
const ls_gguf_tensor *ls_gguf_find_tensor(const ls_gguf *, const char *name);

/* Element i < n of an array, or the value itself, i = 0. False: it is of another kind, or an
 * integer is beyond int64_t. A number may be an integer. */
bool ls_gguf_integer(const ls_gguf_value *, size_t i, int64_t *value_p);
bool ls_gguf_number(const ls_gguf_value *, size_t i, double *value_p);
bool ls_gguf_bool(const ls_gguf_value *, size_t i, bool *value_p);
bool ls_gguf_text_at(const ls_gguf_value *, size_t i, ls_gguf_text *text_p);
/* True if the value is one text with these bytes. */
bool ls_gguf_is_text(const ls_gguf_value *, const char *text);

const char *ls_gguf_kind_name(ls_gguf_kind);
/* Bytes of an element; 0 for texts, whose lengths differ. */
size_t ls_gguf_kind_nbytes(ls_gguf_kind);

#endif
