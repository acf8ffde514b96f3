/* block_lanes.h - sixteen rows of weights in blocks, a row a lane, as products of one row
 * (gemv_lanes.c) and products with int8 (int8_rows.h) read them: strips of types that have none in
 * groups (strips.h). Layouts of the blocks: tensor/block.h, unpack.c.
 *
 * What is at byte b of each row's block is at 16 b of a strip's, row after row, in words of four
 * bytes, a scale beside whole words in two. Strips are stored two and two, a block of the one and a
 * block of the other in turn; rows that do not fill two are not stored.
 */
#ifndef LS_TENSOR_KERNELS_BLOCK_LANES_H
#define LS_TENSOR_KERNELS_BLOCK_LANES_H

#include "tensor/kernels/gemv_inline.h"

enum { LS_LANE_GROUP = 32, LS_LANE_WORDS = LS_LANE_GROUP / 4 };
enum { LS_LANE_GROUPS = LS_BLOCK_MOST / LS_LANE_GROUP };
enum { LS_LANE_BLOCK = LS_LANES * 210 }; /* bytes of a strip's block, at most */

/* Writes n words of each of sixteen rows, which are `stride` bytes apart; an f16 of each; a block
 * of each, as a strip has it. */
void LS_K(put_lane_words)(const uint8_t *from, int64_t stride, int n, uint8_t *to);
void LS_K(put_lane_f16)(const uint8_t *from, int64_t stride, uint8_t *to);
void LS_K(lane_block)(ls_block_type type, const uint8_t *from, int64_t stride, uint8_t *to);

/* ---- scales ---- */

/* Of 32 elements of each row; the second: of the second half, where it has its own (Q6_K, Q3_K,
 * Q2_K). */
typedef struct ls_lane_scales {
    float d[2][LS_LANES], m[2][LS_LANES];
} ls_lane_scales;

/* Those of the groups of a strip's block. */
typedef void ls_lane_scales_of(const uint8_t *block, ls_lane_scales *out);
ls_lane_scales_of LS_K(lane_scale), LS_K(lane_scale_and_minimum), LS_K(lane_scales_q4_k),
    LS_K(lane_scales_q6_k), LS_K(lane_scales_q3_k), LS_K(lane_scales_q2_k),
    LS_K(lane_scales_iq4_xs);

/* ---- words ---- */

/* All rows of a strip's block, or, if `part`, LS_VR of them from `first` on, which are the first
 * lanes: the others are zeros. */
typedef struct ls_lane_rows {
    const uint8_t *block;
    int first;
    bool part; /* constant where words are read */
} ls_lane_rows;

/* The word at byte `at` of each row's block. */
INLINE v16 lane_word_at(ls_lane_rows r, int at) {
    const float *p = (const float *)(const void *)(r.block + LS_LANES * at) + r.first;
    return r.part ? v_of_first(r_load(p)) : v_load(p);
}

/* Sixteen elements: the first or the second half of group span turn + g of a block. g, less than
 * the type's span, and `half` are constant where words are read. */
typedef struct ls_lane_place {
    int turn, g, half;
} ls_lane_place;

/* Word k of sixteen elements: the numbers of elements 4 k to 4 k + 3 of each row as bytes, whose
 * bits above the type's largest number may be anything. */
typedef v16 ls_lane_word(ls_lane_rows r, ls_lane_place at, int k);

enum { LS_LOW = 0x0f0f0f0f, LS_TWO = 0x03030303, LS_ONE = 0x01010101 };

INLINE v16 lane_word_q8_0(ls_lane_rows r, ls_lane_place at, int k) {
    return lane_word_at(r, 2 + 16 * at.half + 4 * k);
}

/* The low nibbles of sixteen bytes belong to the first elements. */
INLINE v16 lane_nibbles(ls_lane_rows r, int from, int half, int k) {
    v16 both = lane_word_at(r, from + 4 * k);
    return half ? v_down(both, 4) : both;
}

INLINE v16 lane_word_q4_0(ls_lane_rows r, ls_lane_place at, int k) {
    return lane_nibbles(r, 2, at.half, k);
}

INLINE v16 lane_word_q4_1(ls_lane_rows r, ls_lane_place at, int k) {
    return lane_nibbles(r, 4, at.half, k);
}

/* Nibbles, and the fifth bits of 32 elements before them: bit i of four moves up by 7 i + 4. */
INLINE v16 lane_five_bits(ls_lane_rows r, int from, int half, int k) {
    enum { MOVES = 1 << 4 | 1 << 11 | 1 << 18 | 1 << 25, FIFTH = 0x10101010 };
    v16 four = v_mask(v_down(lane_word_at(r, from), 16 * half + 4 * k), 15);
    v16 low = v_mask(lane_nibbles(r, from + 4, half, k), LS_LOW);
    return v_join(low, v_mask(v_times(four, MOVES), FIFTH));
}

INLINE v16 lane_word_q5_0(ls_lane_rows r, ls_lane_place at, int k) {
    return lane_five_bits(r, 2, at.half, k);
}

INLINE v16 lane_word_q5_1(ls_lane_rows r, ls_lane_place at, int k) {
    return lane_five_bits(r, 4, at.half, k);
}

/* Nibbles are numbers of the table's entries, which are signed. */
INLINE v16 lane_entries(ls_lane_rows r, int from, int half, int k) {
    return v_entries(v_mask(lane_nibbles(r, from, half, k), LS_LOW), LS_IQ4_TABLE);
}

INLINE v16 lane_word_iq4_nl(ls_lane_rows r, ls_lane_place at, int k) {
    return lane_entries(r, 2, at.half, k);
}

INLINE v16 lane_word_iq4_xs(ls_lane_rows r, ls_lane_place at, int k) {
    return lane_entries(r, 8 + 16 * at.turn, at.half, k);
}

/* A pair has the low and the high nibbles of 32 bytes. */
INLINE v16 lane_word_q4_k(ls_lane_rows r, ls_lane_place at, int k) {
    v16 both = lane_word_at(r, 16 + 32 * at.turn + 16 * at.half + 4 * k);
    return at.g ? v_down(both, 4) : both;
}

/* Bit n of 32 further bytes is the fifth bit of group n. */
INLINE v16 lane_word_q5_k(ls_lane_rows r, ls_lane_place at, int k) {
    v16 both = lane_word_at(r, 48 + 32 * at.turn + 16 * at.half + 4 * k);
    v16 above = v_down(lane_word_at(r, 16 + 16 * at.half + 4 * k), 2 * at.turn + at.g);
    return v_join(v_mask(at.g ? v_down(both, 4) : both, LS_LOW), v_up(v_mask(above, LS_ONE), 4));
}

INLINE v16 lane_word_q6_k(ls_lane_rows r, ls_lane_place at, int k) {
    v16 both = lane_word_at(r, at.turn * 64 + at.g % 2 * 32 + 16 * at.half + 4 * k);
    v16 above = lane_word_at(r, 128 + at.turn * 32 + 16 * at.half + 4 * k);
    above = at.g < 2 ? v_up(above, 4 - 2 * at.g) : v_down(above, 2 * at.g - 4);
    return v_join(v_mask(v_down(both, at.g / 2 * 4), LS_LOW), v_mask(above, (uint32_t)LS_TWO << 4));
}

/* Two bits of each byte of 32 of the group's half of the block. */
INLINE v16 lane_two_bits(ls_lane_rows r, int from, ls_lane_place at, int k) {
    return v_down(lane_word_at(r, from + at.turn * 32 + 16 * at.half + 4 * k), 2 * at.g);
}

INLINE v16 lane_word_q2_k(ls_lane_rows r, ls_lane_place at, int k) {
    return lane_two_bits(r, 16, at, k);
}

/* The third is bit n, that of the group, of each of the 32 bytes that the block begins with. */
INLINE v16 lane_word_q3_k(ls_lane_rows r, ls_lane_place at, int k) {
    v16 low = v_mask(lane_two_bits(r, 32, at, k), LS_TWO);
    v16 third = v_mask(v_down(lane_word_at(r, 16 * at.half + 4 * k), 4 * at.turn + at.g), LS_ONE);
    return v_join(low, v_up(third, 2));
}

/* ---- types ---- */

/* What the numbers of a type are: 0 to `most`, or, with 128, signed; less `middle`; with minima;
 * each half of a group with scales of its own. */
typedef struct ls_lane_type {
    int64_t elements, nbytes; /* of a block */
    int span;                 /* groups */
    ls_lane_word *word;
    ls_lane_scales_of *scales;
    int most, middle;
    bool affine, halves;
} ls_lane_type;

INLINE ls_lane_type lane_type_of(ls_block_type type) {
    switch (type) {
    case LS_BLOCK_Q8_0:
        return (ls_lane_type){32, 34, 1, lane_word_q8_0, LS_K(lane_scale), .most = 128};
    case LS_BLOCK_Q4_0:
        return (ls_lane_type){32, 18, 1, lane_word_q4_0, LS_K(lane_scale), .most = 15, .middle = 8};
    case LS_BLOCK_Q4_1:
        return (ls_lane_type){
            32, 20, 1, lane_word_q4_1, LS_K(lane_scale_and_minimum), .most = 15, .affine = true};
    case LS_BLOCK_Q5_0:
        return (ls_lane_type){32,         22,          1, lane_word_q5_0, LS_K(lane_scale),
                              .most = 31, .middle = 16};
    case LS_BLOCK_Q5_1:
        return (ls_lane_type){
            32, 24, 1, lane_word_q5_1, LS_K(lane_scale_and_minimum), .most = 31, .affine = true};
    case LS_BLOCK_Q4_K:
        return (ls_lane_type){256,        144,           2, lane_word_q4_k, LS_K(lane_scales_q4_k),
                              .most = 15, .affine = true};
    case LS_BLOCK_Q5_K:
        return (ls_lane_type){256,        176,           2, lane_word_q5_k, LS_K(lane_scales_q4_k),
                              .most = 31, .affine = true};
    case LS_BLOCK_Q3_K:
        return (ls_lane_type){
            256,         110,           4, lane_word_q3_k, LS_K(lane_scales_q3_k), .most = 7,
            .middle = 4, .halves = true};
    case LS_BLOCK_Q2_K:
        return (ls_lane_type){
            256,           84, 4, lane_word_q2_k, LS_K(lane_scales_q2_k), .most = 3, .affine = true,
            .halves = true};
    case LS_BLOCK_IQ4_NL:
        return (ls_lane_type){32, 18, 1, lane_word_iq4_nl, LS_K(lane_scale), .most = 128};
    case LS_BLOCK_IQ4_XS:
        return (ls_lane_type){256, 136, 1, lane_word_iq4_xs, LS_K(lane_scales_iq4_xs), .most = 128};
    default:
        return (ls_lane_type){
            256,          210,           4, lane_word_q6_k, LS_K(lane_scales_q6_k), .most = 63,
            .middle = 32, .halves = true};
    }
}

/* Cases of a switch, a loop for each type: call(its number), of types that have no groups. */
#define LS_LANE_CASES(call)                                                                        \
    case LS_BLOCK_Q5_0: call(LS_BLOCK_Q5_0); break;                                                \
    case LS_BLOCK_Q5_1: call(LS_BLOCK_Q5_1); break;                                                \
    case LS_BLOCK_Q4_K: call(LS_BLOCK_Q4_K); break;                                                \
    case LS_BLOCK_Q5_K: call(LS_BLOCK_Q5_K); break;                                                \
    case LS_BLOCK_Q3_K: call(LS_BLOCK_Q3_K); break;                                                \
    case LS_BLOCK_Q2_K: call(LS_BLOCK_Q2_K); break;                                                \
    case LS_BLOCK_IQ4_NL: call(LS_BLOCK_IQ4_NL); break;                                            \
    case LS_BLOCK_IQ4_XS: call(LS_BLOCK_IQ4_XS); break;                                            \
    default:                                                                                       \
        call(LS_BLOCK_Q6_K);                                                                       \
        break

#endif
