/* block_scales.h - where the blocks of a type have their 16-bit floats. */
#ifndef LS_TEST_BLOCK_SCALES_H
#define LS_TEST_BLOCK_SCALES_H

#include "tensor/block.h"

/* Returns how many there are, one after the other, and where they begin. */
static inline int block_scales(ls_block_type t, int *at_p) {
    *at_p = t == LS_BLOCK_Q6_K ? 208 : t == LS_BLOCK_Q3_K ? 108 : t == LS_BLOCK_Q2_K ? 80 : 0;
    bool two = t == LS_BLOCK_Q4_1 || t == LS_BLOCK_Q5_1 || t == LS_BLOCK_Q4_K ||
               t == LS_BLOCK_Q5_K || t == LS_BLOCK_Q2_K;
    return two ? 2 : 1;
}

#endif
