/* strips.h - tables whose bytes are stored a second time, in the order in which products read them.
 *
 * Most types have strips of sixteen rows (block_lanes.h). Those that ls_strips_in_groups() names
 * have groups of LS_GEMV_STRIPS strips. A group has its rows' blocks one after the other; a block
 * of a group has the scales of all strips (16 x f16: one of each row; then the minima, if there are
 * any), then the words of each strip (a word: four bytes of each row). So a row is a lane, nothing
 * has to be transposed, and all is read once, from the first byte to the last. Rows that do not
 * fill a group are not stored: gemv_table.c reads them as the file has them.
 *
 * A number is scaled to the bits of kernels/unpack.c: the product of a scale of 16 bits and a
 * number of at most 8 bits is exact, so d q + m is one multiply-add.
 */
#ifndef LS_TENSOR_KERNELS_STRIPS_H
#define LS_TENSOR_KERNELS_STRIPS_H

#include "tensor/block.h"
#include "tensor/kernels/gemv_rows.h"

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
    int most;            /* as v_number() takes it */
} layout;

INLINE layout layout_of(ls_block_type type) {
    switch (type) {
    case LS_BLOCK_Q8_0: return (layout){1, 8, 34, 128};
    case LS_BLOCK_Q4_0: return (layout){1, 4, 18, 15};
    case LS_BLOCK_Q4_1: return (layout){2, 4, 20, 15};
    default: return (layout){0, 16, 64, 0};
    }
}

/* Not by memcpy() to lanes: compilers copy these in halves of a register, for which its load
 * waits. */
INLINE v16 words_at(const uint8_t *p) { return v_load((const float *)(const void *)p); }

/* A block of a group; or of LS_VR rows of it, which are the first lanes: the others are zeros. */
typedef struct block {
    const uint8_t *words; /* of the first strip, or of these rows */
    v16 d[STRIPS][4];     /* of each strip, or in the first of these rows: gemv_scales() */
    v16 m[STRIPS];        /* minima */
    bool part;            /* constant where weights are read */
} block;

/* Word k of the nwords of each row of strip s. */
INLINE v16 word_of(const block *b, int s, int k, int nwords) {
    if (b->part) return v_of_first(r_load((const float *)(const void *)(b->words + k * WORDS)));
    return words_at(b->words + (nwords * s + k) * WORDS);
}

/* Four of 32 weights: from 16 half + 4 four on. */
typedef struct place {
    int half, four; /* half is constant where weights are read */
} place;

/* The i-th of four weights, of each row of strip s. */
typedef v16 weight_fn(const block *b, int s, place at, int i);

INLINE v16 weight_q8_0(const block *b, int s, place at, int i) {
    return v_mul(v_number(128, 0, word_of(b, s, 4 * at.half + at.four, 8), i), b->d[s][i]);
}

/* The low nibbles of sixteen bytes are weights 0 to 15, the high ones 16 to 31. */
INLINE v16 nibbles_of(const block *b, int s, place at) {
    const v16 both = word_of(b, s, at.four, 4);
    return at.half ? v_down(both, 4) : both;
}

INLINE v16 weight_q4_0(const block *b, int s, place at, int i) {
    return v_mul(v_number(15, 8, nibbles_of(b, s, at), i), b->d[s][i]);
}

INLINE v16 weight_q4_1(const block *b, int s, place at, int i) {
    return v_fma(v_number(15, 0, nibbles_of(b, s, at), i), b->d[s][i], b->m[s]);
}

INLINE v16 weight_bf16(const block *b, int s, place at, int i) {
    return v_pick_bf16(word_of(b, s, 8 * at.half + 2 * at.four + i / 2, 16), i % 2);
}

INLINE v16 weight_f16(const block *b, int s, place at, int i) {
    return v_pick_f16(word_of(b, s, 8 * at.half + 2 * at.four + i / 2, 16), i % 2);
}

#endif
