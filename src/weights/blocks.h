/* blocks.h - the element types of weight files (tensor/block.h): names, sizes, reading, writing.
 *
 * Reading gives the bits of the Python package `gguf`. So does writing, for finite numbers; its
 * algorithms are those of quantize_row_*_ref() in llama.cpp's ggml/src/ggml-quants.c. The K and IQ
 * types are only read: their writers search for the best scales, and publish no one result.
 */
#ifndef LS_WEIGHTS_BLOCKS_H
#define LS_WEIGHTS_BLOCKS_H

#include <stdbool.h>
#include <stddef.h>

#include "base/mem.h"
#include "tensor/stored.h"

typedef struct ls_block_info {
    const char *name;     /* "Q4_0" */
    uint32_t gguf;        /* the type's number in GGUF files */
    int elements, nbytes; /* of a block */
    /* Writes n blocks, or returns false: a number is not finite, or too large for the type. NULL:
     * the type is only read. */
    bool (*pack)(int64_t n, const float *x, uint8_t *y);
} ls_block_info;

const ls_block_info *ls_block_of(ls_block_type);
/* By its name, in upper or lower case; false: there is no such type. */
bool ls_block_named(const char *name, ls_block_type *t_p);
/* By its number in GGUF files; false: it can't be read. */
bool ls_block_of_gguf(uint32_t number, ls_block_type *t_p);

/* A type of GGUF files, also one that can't be read; NULL: there is no such number. */
typedef struct ls_gguf_type {
    const char *name;
    int elements, nbytes; /* of a block */
} ls_gguf_type;
const ls_gguf_type *ls_gguf_type_of(uint32_t number);

/* Appends the names of all types that can be written, as words: "F32, F16 or BF16". */
void ls_block_put_writable(ls_buf *);

#endif
