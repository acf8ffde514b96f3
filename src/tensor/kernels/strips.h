/* strips.h - tables of blocks of 32, or of 32 values in 16 bits, whose bytes are stored a second
 * time, in the order in which products read them.
 *
 * Rows are stored in groups of LS_GEMV_STRIPS strips of sixteen rows. A group has its rows' blocks
 * one after the other; a block of a group has the scales of all strips (16 x f16: one of each row;
 * then the minima, if there are any), then the words of each strip (a word: four bytes of each
 * row). So a row is a lane, as in gemv_blocks.c, but nothing has to be transposed, and all is read
 * once, from the first byte to the last. Rows that do not fill a group are not stored: gemv_table.c
 * reads them as the file has them.
 *
 * A number is scaled to the bits of kernels/unpack.c, as in gemv_blocks.c.
 */
#ifndef LS_TENSOR_KERNELS_STRIPS_H
#define LS_TENSOR_KERNELS_STRIPS_H

#include "tensor/block.h"
#include "tensor/kernels/gemv_blocks.h"

enum {
    STRIPS = LS_GEMV_STRIPS,
    GROUP = 32,
    LINE = 64,
    SCALES = LS_LANES * 2, /* bytes */
    WORDS = LS_LANES * 4,
    AHEAD = 8192 /* bytes: what is prefetched; some of the next rows at the end of a group */
};

/* A block of a group: bytes of scales and minima, of words, and of both. */
typedef struct layout {
    int nscales, nwords; /* of a row */
    int nbytes;          /* of a row's block */
} layout;

INLINE layout layout_of(ls_block_type type) {
    switch (type) {
    case LS_BLOCK_Q8_0: return (layout){1, 8, 34};
    case LS_BLOCK_Q4_0: return (layout){1, 4, 18};
    case LS_BLOCK_Q4_1: return (layout){2, 4, 20};
    default: return (layout){0, 16, 64};
    }
}

/* One of a word's two values. */
INLINE v16 half_of(ls_block_type type, v16 word, int odd) {
    return type == LS_BLOCK_BF16 ? v_pick_bf16(word, odd) : v_pick_f16(word, odd);
}

#endif
