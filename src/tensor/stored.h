/* stored.h - weights as files have them, in a type of block.h, and their values in f32.
 *
 * Products read them as they are (gemm.h, gemv.h), to the bits of products of their values in f32.
 */
#ifndef LS_TENSOR_STORED_H
#define LS_TENSOR_STORED_H

#include <stddef.h>

#include "tensor/kernels.h"

/* LS_F32, LS_BF16 or LS_F16. */
ls_block_type ls_block_of_dtype(ls_dtype);
/* Elements of a block. */
int64_t ls_block_elements(ls_block_type);
/* Bytes of `count` elements, which is a multiple of the block's. */
size_t ls_block_nbytes(ls_block_type, int64_t count);
/* The values from element `first` on, which is the first of a block; without strips, unless `first`
 * is 0. */
ls_stored ls_stored_at(ls_stored, int64_t first);

/* y [n] = elements first, first + 1 ... of the blocks at `data`, which is aligned to 2 bytes (F32:
 * to 1). Only the blocks of these elements are read. */
void ls_block_read(const ls_kernels *, ls_block_type, const uint8_t *data, int64_t first, int64_t n,
                   float *y);
void ls_stored_read(const ls_kernels *, ls_stored, int64_t first, int64_t n, float *y);

#endif
