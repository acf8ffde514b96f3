/* blocks.h - what codecs share that encode each block of elements by itself: a message has one f32
 * for each block, its scale, then the packed elements of all blocks. */
#ifndef LS_COMPRESS_BLOCKS_H
#define LS_COMPRESS_BLOCKS_H

#include "compress/codec.h"

/* A vector of n elements in blocks; the last one may be shorter. */
typedef struct ls_blocks {
    size_t n, block, nblocks;
} ls_blocks;

static inline ls_blocks ls_blocks_of(const ls_compression *how, size_t n) {
    return (ls_blocks){n, how->block, (n + how->block - 1) / how->block};
}

/* The elements of block b. */
static inline int64_t ls_blocks_length(const ls_blocks *x, size_t b) {
    size_t left = x->n - b * x->block;
    return (int64_t)(left < x->block ? left : x->block);
}

/* Scales, and groups of LS_PACK elements that take group_nbytes each. */
static inline size_t ls_blocks_nbytes(const ls_blocks *x, size_t group_nbytes) {
    return x->nblocks * sizeof(float) + (x->n + LS_PACK - 1) / LS_PACK * group_nbytes;
}

/* The elements from `at` on that are in at's block, of `left` that are wanted. */
static inline size_t ls_blocks_run(const ls_blocks *x, size_t at, size_t left) {
    size_t rest = x->block - at % x->block;
    return rest < left ? rest : left;
}

static inline size_t ls_blocks_unit(const ls_compression *how) {
    (void)how;
    return LS_PACK;
}

#endif
