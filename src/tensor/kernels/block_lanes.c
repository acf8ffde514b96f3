/* block_lanes.c - see block_lanes.h. Layouts of the blocks: tensor/block.h, unpack.c. */
#include "tensor/kernels/block_lanes.h"

enum { LOW = 0x0f0f0f0f, TWO = 0x03030303, ONE = 0x01010101 };

/* The block of sixteen rows. */
typedef struct rows {
    const uint8_t *p;
    int64_t stride;
} rows;

/* Four words of each row, from byte `at` of the block on. */
INLINE void read4(rows r, int at, v16 words[4]) {
    if (r.stride != LS_IN_STRIP) {
        v_rows4(r.p + at, r.stride, words);
        return;
    }
    const uint8_t *p = r.p + (int64_t)LS_LANES * at;
    UNROLL for (int k = 0; k < 4; k++) words[k] =
        v_load((const float *)(const void *)(p + 4 * LS_LANES * k));
}

/* The scale at byte `at`: the first two of the block, or its last two. */
INLINE v16 read_f16(rows r, int at) {
    enum { LAST = 14 };
    v16 words[4];
    if (r.stride == LS_IN_STRIP)
        return v_load_f16((const uint16_t *)(const void *)(r.p + (int64_t)LS_LANES * at));
    read4(r, at ? at - LAST : 0, words);
    return at ? v_pick_f16(words[3], 1) : v_pick_f16(words[0], 0);
}

/* The scale that a block begins with. */
INLINE void put_scale(rows r, ls_block_lanes *out) { v_store(out->d[0], read_f16(r, 0)); }

/* Scale and minimum, the first word. */
INLINE void put_scales(rows r, ls_block_lanes *out) {
    v16 words[4];
    read4(r, 0, words);
    v_store(out->d[0], v_pick_f16(words[0], 0));
    v_store(out->m[0], v_pick_f16(words[0], 1));
}

/* ---- blocks of 32 ---- */

void LS_K(lanes_q8_0)(const uint8_t *p, int64_t stride, ls_block_lanes *out) {
    const rows r = {p, stride};
    v16 words[4];
    put_scale(r, out);
    UNROLL for (int half = 0; half < 2; half++) {
        read4(r, 2 + 16 * half, words);
        UNROLL for (int k = 0; k < 4; k++) v_store(out->words[4 * half + k], words[k]);
    }
}

/* The low nibbles of sixteen bytes belong to the first elements. */
INLINE void put_nibbles(rows r, int at, ls_block_lanes *out) {
    v16 words[4];
    read4(r, at, words);
    UNROLL for (int k = 0; k < 4; k++) {
        v_store(out->words[k], v_mask(words[k], LOW));
        v_store(out->words[4 + k], v_mask(v_down(words[k], 4), LOW));
    }
}

void LS_K(lanes_q4_0)(const uint8_t *p, int64_t stride, ls_block_lanes *out) {
    const rows r = {p, stride};
    put_scale(r, out);
    put_nibbles(r, 2, out);
}

void LS_K(lanes_q4_1)(const uint8_t *p, int64_t stride, ls_block_lanes *out) {
    const rows r = {p, stride};
    put_scales(r, out);
    put_nibbles(r, 4, out);
}

/* The lowest four bits of each lane, one in each byte: bit i moves up by 7 i. */
INLINE v16 spread(v16 bits) {
    v16 all = v_mask(bits, 15);
    all = v_join(v_join(all, v_up(all, 7)), v_join(v_up(all, 14), v_up(all, 21)));
    return v_mask(all, ONE);
}

/* Nibbles, and the fifth bits of 32 elements before them. */
INLINE void put_five_bits(rows r, int at, ls_block_lanes *out) {
    v16 fifth[4], words[4];
    read4(r, at, fifth);
    read4(r, at + 4, words);
    UNROLL for (int k = 0; k < LS_LANE_WORDS; k++) {
        v16 low = v_mask(v_down(words[k % 4], k / 4 * 4), LOW);
        v16 high = v_up(spread(v_down(fifth[0], 4 * k)), 4);
        v_store(out->words[k], v_join(low, high));
    }
}

void LS_K(lanes_q5_0)(const uint8_t *p, int64_t stride, ls_block_lanes *out) {
    const rows r = {p, stride};
    put_scale(r, out);
    put_five_bits(r, 2, out);
}

void LS_K(lanes_q5_1)(const uint8_t *p, int64_t stride, ls_block_lanes *out) {
    const rows r = {p, stride};
    put_scales(r, out);
    put_five_bits(r, 4, out);
}

/* The same with the table's entries, which are signed. */
INLINE void put_entries(rows r, int at, ls_block_lanes *out) {
    v16 words[4];
    read4(r, at, words);
    UNROLL for (int k = 0; k < LS_LANE_WORDS; k++) v_store(
        out->words[k], v_entries(v_mask(v_down(words[k % 4], k / 4 * 4), LOW), LS_IQ4_TABLE));
}

void LS_K(lanes_iq4_nl)(const uint8_t *p, int64_t stride, ls_block_lanes *out) {
    const rows r = {p, stride};
    put_scale(r, out);
    put_entries(r, 2, out);
}

/* ---- blocks of 256 ---- */

INLINE v16 six_bits(v16 upper, int at, v16 lower, int nibble) {
    return v_add(v_mul(v_pick_bits(upper, at, 2), v_set1(16.0f)), v_pick_u4(lower, nibble));
}

/* Scales d s and minima -(m t) of the groups, from the 16 bytes that a block begins with. */
INLINE void put_scales_k(rows r, ls_block_lanes out[LS_LANE_GROUPS]) {
    v16 words[4], minus = v_set1(-1.0f);
    read4(r, 0, words);
    v16 d = v_pick_f16(words[0], 0), m = v_pick_f16(words[0], 1);
    UNROLL for (int g = 0; g < 4; g++) {
        v16 s = v_pick_bits(words[1], 8 * g, 6), t = v_pick_bits(words[2], 8 * g, 6);
        v_store(out[g].d[0], v_mul(d, s));
        v_store(out[g].m[0], v_mul(v_mul(m, t), minus));
        s = six_bits(words[1], 8 * g + 6, words[3], 2 * g);
        t = six_bits(words[2], 8 * g + 6, words[3], 2 * g + 1);
        v_store(out[4 + g].d[0], v_mul(d, s));
        v_store(out[4 + g].m[0], v_mul(v_mul(m, t), minus));
    }
}

/* Groups g and g + 1, g even, have the low and the high nibbles of 32 bytes. Of 32 further bytes
 * from `fifth` on, unless it is 0, bit g is the fifth bit of group g. */
INLINE void put_pair_k(rows r, int at, int fifth, int half, ls_block_lanes pair[2], int g) {
    v16 words[4], above[4];
    read4(r, at + g / 2 * LS_LANE_GROUP + 16 * half, words);
    read4(r, fifth + 16 * half, above);
    UNROLL for (int odd = 0; odd < 2; odd++) UNROLL for (int k = 0; k < 4; k++) {
        v16 q = v_mask(v_down(words[k], 4 * odd), LOW);
        if (fifth) q = v_join(q, v_up(v_mask(v_down(above[k], g + odd), ONE), 4));
        v_store(pair[odd].words[4 * half + k], q);
    }
}

INLINE void put_groups_k(rows r, int at, int fifth, ls_block_lanes out[LS_LANE_GROUPS]) {
    UNROLL for (int g = 0; g < LS_LANE_GROUPS; g += 2) UNROLL for (int half = 0; half < 2; half++)
        put_pair_k(r, at, fifth, half, out + g, g);
}

void LS_K(lanes_q4_k)(const uint8_t *p, int64_t stride, ls_block_lanes *out) {
    const rows r = {p, stride};
    put_scales_k(r, out);
    put_groups_k(r, 16, 0, out);
}

void LS_K(lanes_q5_k)(const uint8_t *p, int64_t stride, ls_block_lanes *out) {
    const rows r = {p, stride};
    put_scales_k(r, out);
    put_groups_k(r, 48, 16, out);
}

void LS_K(lanes_q6_k)(const uint8_t *p, int64_t stride, ls_block_lanes *out) {
    const rows r = {p, stride};
    v16 words[4], low[4], high[4], d = read_f16(r, 208);
    read4(r, 192, words);
    UNROLL for (int i = 0; i < 2 * LS_LANE_GROUPS; i++) {
        int g = i / 2, half = i % 2;
        v_store(out[g].d[half], v_mul(d, v_pick_i8(words[i / 4], i % 4)));
        read4(r, g / 4 * 64 + g % 2 * LS_LANE_GROUP + 16 * half, low);
        read4(r, 128 + g / 4 * LS_LANE_GROUP + 16 * half, high);
        UNROLL for (int k = 0; k < 4; k++) {
            v16 q = v_mask(v_down(low[k], g % 4 / 2 * 4), LOW);
            v16 above = v_mask(v_down(high[k], g % 4 * 2), TWO);
            v_store(out[g].words[4 * half + k], v_join(q, v_up(above, 4)));
        }
    }
}

/* d (s - 32), of s as six_bits() has it. */
INLINE void put_scale_of_six(v16 d, v16 s, float *to) {
    v_store(to, v_mul(d, v_sub(s, v_set1(32.0f))));
}

/* Two bits a number: group g's are two of each byte of 32 of its half of the block; the third of
 * Q3_K is bit g of each of the 32 bytes that the block begins with. */
INLINE void put_two_bits(rows r, int at, bool third, ls_block_lanes out[LS_LANE_GROUPS]) {
    UNROLL for (int g = 0; g < LS_LANE_GROUPS; g++) UNROLL for (int half = 0; half < 2; half++) {
        v16 low[4], high[4];
        read4(r, at + g / 4 * LS_LANE_GROUP + 16 * half, low);
        read4(r, 16 * half, high);
        UNROLL for (int k = 0; k < 4; k++) {
            v16 q = v_mask(v_down(low[k], g % 4 * 2), TWO);
            if (third) q = v_join(q, v_up(v_mask(v_down(high[k], g), ONE), 2));
            v_store(out[g].words[4 * half + k], q);
        }
    }
}

void LS_K(lanes_q3_k)(const uint8_t *p, int64_t stride, ls_block_lanes *out) {
    const rows r = {p, stride};
    v16 words[4], d = read_f16(r, 108);
    read4(r, 92, words);
    UNROLL for (int i = 0; i < 2 * LS_LANE_GROUPS; i++) put_scale_of_six(
        d, six_bits(words[3], i % 4 * 8 + i / 4 * 2, words[1 + i / 4 % 2], i % 4 * 2 + i / 8),
        out[i / 2].d[i % 2]);
    put_two_bits(r, 32, true, out);
}

void LS_K(lanes_q2_k)(const uint8_t *p, int64_t stride, ls_block_lanes *out) {
    const rows r = {p, stride};
    v16 words[4], last[4], minus = v_set1(-1.0f);
    read4(r, 0, words);
    read4(r, 68, last);
    v16 d = v_pick_f16(last[3], 0), m = v_pick_f16(last[3], 1);
    UNROLL for (int i = 0; i < 2 * LS_LANE_GROUPS; i++) {
        v16 s = v_pick_u4(words[i / 4], i % 4 * 2), t = v_pick_u4(words[i / 4], i % 4 * 2 + 1);
        v_store(out[i / 2].d[i % 2], v_mul(d, s));
        v_store(out[i / 2].m[i % 2], v_mul(v_mul(m, t), minus));
    }
    put_two_bits(r, 16, false, out);
}

void LS_K(lanes_iq4_xs)(const uint8_t *p, int64_t stride, ls_block_lanes *out) {
    const rows r = {p, stride};
    v16 words[4];
    read4(r, 0, words);
    UNROLL for (int g = 0; g < LS_LANE_GROUPS; g++) {
        put_scale_of_six(v_pick_f16(words[0], 0), six_bits(words[0], 16 + 2 * g, words[1], g),
                         out[g].d[0]);
        put_entries(r, 8 + 16 * g, &out[g]);
    }
}
