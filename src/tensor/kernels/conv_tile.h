/* conv_tile.h - the size of a convolution's tile in this variant, for conv_tile.c and table.c. */
#ifndef LS_TENSOR_KERNELS_CONV_TILE_H
#define LS_TENSOR_KERNELS_CONV_TILE_H

#include <stdbool.h>

#include "tensor/kernels/variant.h"

enum {
    /* Registers that hold the tile: 16 of 32, 12 of 16, or, in plain C, 4. */
    LS_CONV_CELLS = LS_TILE_ROWS * LS_TILE_REGS >= 24   ? 16
                    : LS_TILE_ROWS * LS_TILE_REGS >= 12 ? 12
                                                        : 4,
    LS_CONV_ROWS = LS_CONV_CELLS,
    LS_CONV_REGS = 2,
    LS_CONV_EACH = 6, /* rows of conv_each: with AVX2 a row takes two registers */
};

#endif
