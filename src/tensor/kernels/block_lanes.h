/* block_lanes.h - sixteen rows of weights in blocks, a row a lane, as products of one row
 * (gemv_lanes.c) and products with int8 read them; and the strips of types that have none in groups
 * (strips.h).
 */
#ifndef LS_TENSOR_KERNELS_BLOCK_LANES_H
#define LS_TENSOR_KERNELS_BLOCK_LANES_H

#include "tensor/kernels/gemv_inline.h"

enum { LS_LANE_GROUP = 32, LS_LANE_WORDS = LS_LANE_GROUP / 4 };
enum { LS_LANE_GROUPS = LS_BLOCK_MOST / LS_LANE_GROUP };

/* 32 elements of each row: their numbers as words of four bytes, and scales. */
typedef struct ls_block_lanes {
    float words[LS_LANE_WORDS][LS_LANES]; /* bits, not numbers */
    /* the second: of the second half, where it has its own (Q6_K, Q3_K, Q2_K) */
    float d[2][LS_LANES], m[2][LS_LANES];
} ls_block_lanes;

/* The groups of a block of sixteen rows, which begin at p + i * stride; or, with a stride of
 * LS_IN_STRIP, of a block of a strip: what is at byte b of each row is at 16 b, row after row, in
 * words of four bytes, a scale beside whole words in two. Strips are stored two and two, a block of
 * the one and a block of the other in turn; rows that do not fill two are not stored. */
enum { LS_IN_STRIP = 0 };
typedef void ls_block_lanes_unpack(const uint8_t *p, int64_t stride, ls_block_lanes *out);

ls_block_lanes_unpack LS_K(lanes_q8_0), LS_K(lanes_q4_0), LS_K(lanes_q4_1), LS_K(lanes_q5_0),
    LS_K(lanes_q5_1), LS_K(lanes_q4_k), LS_K(lanes_q5_k), LS_K(lanes_q6_k), LS_K(lanes_q3_k),
    LS_K(lanes_q2_k), LS_K(lanes_iq4_nl), LS_K(lanes_iq4_xs);

/* What the numbers of a type are: 0 to `most`, or, with 128, signed; less `middle`; with minima;
 * each half of a group with scales of its own. */
typedef struct ls_lane_type {
    int64_t elements, nbytes; /* of a block */
    ls_block_lanes_unpack *unpack;
    int most, middle;
    bool affine, halves;
} ls_lane_type;

INLINE ls_lane_type lane_type_of(ls_block_type type) {
    switch (type) {
    case LS_BLOCK_Q8_0: return (ls_lane_type){32, 34, LS_K(lanes_q8_0), .most = 128};
    case LS_BLOCK_Q4_0: return (ls_lane_type){32, 18, LS_K(lanes_q4_0), .most = 15, .middle = 8};
    case LS_BLOCK_Q4_1: return (ls_lane_type){32, 20, LS_K(lanes_q4_1), .most = 15, .affine = true};
    case LS_BLOCK_Q5_0: return (ls_lane_type){32, 22, LS_K(lanes_q5_0), .most = 31, .middle = 16};
    case LS_BLOCK_Q5_1: return (ls_lane_type){32, 24, LS_K(lanes_q5_1), .most = 31, .affine = true};
    case LS_BLOCK_Q4_K:
        return (ls_lane_type){256, 144, LS_K(lanes_q4_k), .most = 15, .affine = true};
    case LS_BLOCK_Q5_K:
        return (ls_lane_type){256, 176, LS_K(lanes_q5_k), .most = 31, .affine = true};
    case LS_BLOCK_Q3_K:
        return (ls_lane_type){256, 110, LS_K(lanes_q3_k), .most = 7, .middle = 4, .halves = true};
    case LS_BLOCK_Q2_K:
        return (ls_lane_type){256, 84, LS_K(lanes_q2_k), .most = 3, .affine = true, .halves = true};
    case LS_BLOCK_IQ4_NL: return (ls_lane_type){32, 18, LS_K(lanes_iq4_nl), .most = 128};
    case LS_BLOCK_IQ4_XS: return (ls_lane_type){256, 136, LS_K(lanes_iq4_xs), .most = 128};
    default:
        return (ls_lane_type){256, 210, LS_K(lanes_q6_k), .most = 63, .middle = 32, .halves = true};
    }
}

#endif
