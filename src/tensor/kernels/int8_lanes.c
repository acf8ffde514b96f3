/* int8_lanes.c - see int8_lanes.h. Layouts of the blocks: tensor/block.h, unpack.c. */
#include "tensor/kernels/int8_lanes.h"

enum { LOW = 0x0f0f0f0f, TWO = 0x03030303, ONE = 0x01010101 };

static void put_word(v16 word, uint8_t *to) {
    float lanes[LS_LANES];
    v_store(lanes, word);
    memcpy(to, lanes, sizeof lanes);
}

/* Scales, and minima, that a block begins with. */
static void put_scales(const uint8_t *p, int64_t stride, bool minima, ls_int8_lanes *out) {
    v16 words[4];
    v_rows4(p, stride, words);
    v_store(out->d[0], v_pick_f16(words[0], 0));
    if (minima) v_store(out->m[0], v_pick_f16(words[0], 1));
}

/* ---- blocks of 32 ---- */

void LS_K(int8_lanes_q8_0)(const uint8_t *p, int64_t stride, ls_int8_lanes *out) {
    v16 words[4];
    put_scales(p, stride, false, out);
    for (int half = 0; half < 2; half++) {
        v_rows4(p + 2 + 16 * half, stride, words);
        for (int k = 0; k < 4; k++) put_word(words[k], out->words[4 * half + k]);
    }
}

/* The low nibbles of sixteen bytes belong to the first elements. */
static void put_nibbles(const uint8_t *p, int64_t stride, ls_int8_lanes *out) {
    v16 words[4];
    v_rows4(p, stride, words);
    for (int k = 0; k < 4; k++) {
        put_word(v_mask(words[k], LOW), out->words[k]);
        put_word(v_mask(v_down(words[k], 4), LOW), out->words[4 + k]);
    }
}

void LS_K(int8_lanes_q4_0)(const uint8_t *p, int64_t stride, ls_int8_lanes *out) {
    put_scales(p, stride, false, out);
    put_nibbles(p + 2, stride, out);
}

void LS_K(int8_lanes_q4_1)(const uint8_t *p, int64_t stride, ls_int8_lanes *out) {
    put_scales(p, stride, true, out);
    put_nibbles(p + 4, stride, out);
}

/* The lowest four bits of each lane, one in each byte: bit i moves up by 7 i. */
static v16 spread(v16 bits) {
    v16 all = v_mask(bits, 15);
    all = v_join(v_join(all, v_up(all, 7)), v_join(v_up(all, 14), v_up(all, 21)));
    return v_mask(all, ONE);
}

/* Nibbles, and the fifth bits of 32 elements before them. */
static void put_five_bits(const uint8_t *p, int64_t stride, ls_int8_lanes *out) {
    v16 fifth[4], words[4];
    v_rows4(p, stride, fifth);
    v_rows4(p + 4, stride, words);
    for (int k = 0; k < LS_INT8_WORDS; k++) {
        v16 low = v_mask(v_down(words[k % 4], k / 4 * 4), LOW);
        v16 high = v_up(spread(v_down(fifth[0], 4 * k)), 4);
        put_word(v_join(low, high), out->words[k]);
    }
}

void LS_K(int8_lanes_q5_0)(const uint8_t *p, int64_t stride, ls_int8_lanes *out) {
    put_scales(p, stride, false, out);
    put_five_bits(p + 2, stride, out);
}

void LS_K(int8_lanes_q5_1)(const uint8_t *p, int64_t stride, ls_int8_lanes *out) {
    put_scales(p, stride, true, out);
    put_five_bits(p + 4, stride, out);
}

/* The same with the table's entries, which are signed. */
static void put_entries(const uint8_t *p, int64_t stride, ls_int8_lanes *out) {
    v16 words[4];
    v_rows4(p, stride, words);
    for (int k = 0; k < LS_INT8_WORDS; k++)
        put_word(v_entries(v_mask(v_down(words[k % 4], k / 4 * 4), LOW), LS_IQ4_TABLE),
                 out->words[k]);
}

void LS_K(int8_lanes_iq4_nl)(const uint8_t *p, int64_t stride, ls_int8_lanes *out) {
    put_scales(p, stride, false, out);
    put_entries(p + 2, stride, out);
}

/* ---- blocks of 256 ---- */

static v16 six_bits(v16 upper, int at, v16 lower, int nibble) {
    return v_add(v_mul(v_pick_bits(upper, at, 2), v_set1(16.0f)), v_pick_u4(lower, nibble));
}

/* Scales d s and minima -(m t) of the groups, from the 16 bytes that a block begins with. */
static void put_scales_k(const uint8_t *p, int64_t stride, ls_int8_lanes out[LS_INT8_GROUPS]) {
    v16 words[4], minus = v_set1(-1.0f);
    v_rows4(p, stride, words);
    v16 d = v_pick_f16(words[0], 0), m = v_pick_f16(words[0], 1);
    for (int g = 0; g < 4; g++) {
        v16 s = v_pick_bits(words[1], 8 * g, 6), t = v_pick_bits(words[2], 8 * g, 6);
        v_store(out[g].d[0], v_mul(d, s));
        v_store(out[g].m[0], v_mul(v_mul(m, t), minus));
        s = six_bits(words[1], 8 * g + 6, words[3], 2 * g);
        t = six_bits(words[2], 8 * g + 6, words[3], 2 * g + 1);
        v_store(out[4 + g].d[0], v_mul(d, s));
        v_store(out[4 + g].m[0], v_mul(v_mul(m, t), minus));
    }
}

/* Groups 2 i and 2 i + 1 have the low and the high nibbles of 32 bytes. Of 32 further bytes, unless
 * they are NULL, bit g is the fifth bit of group g. */
static void put_pair_k(const uint8_t *p, const uint8_t *fifth, int64_t stride, int half,
                       ls_int8_lanes pair[2], int g) {
    v16 words[4], above[4];
    v_rows4(p + 16 * half, stride, words);
    v_rows4((fifth ? fifth : p) + 16 * half, stride, above);
    for (int odd = 0; odd < 2; odd++)
        for (int k = 0; k < 4; k++) {
            v16 q = v_mask(v_down(words[k], 4 * odd), LOW);
            if (fifth) q = v_join(q, v_up(v_mask(v_down(above[k], g + odd), ONE), 4));
            put_word(q, pair[odd].words[4 * half + k]);
        }
}

static void put_groups_k(const uint8_t *p, const uint8_t *fifth, int64_t stride,
                         ls_int8_lanes out[LS_INT8_GROUPS]) {
    for (int g = 0; g < LS_INT8_GROUPS; g += 2)
        for (int half = 0; half < 2; half++)
            put_pair_k(p + g / 2 * LS_INT8_GROUP, fifth, stride, half, out + g, g);
}

void LS_K(int8_lanes_q4_k)(const uint8_t *p, int64_t stride, ls_int8_lanes *out) {
    put_scales_k(p, stride, out);
    put_groups_k(p + 16, NULL, stride, out);
}

void LS_K(int8_lanes_q5_k)(const uint8_t *p, int64_t stride, ls_int8_lanes *out) {
    put_scales_k(p, stride, out);
    put_groups_k(p + 48, p + 16, stride, out);
}

/* The sixteen bytes that end with the block's last two have its scale. */
static void put_scales_q6_k(const uint8_t *p, int64_t stride, ls_int8_lanes out[LS_INT8_GROUPS]) {
    v16 words[4], last[4];
    v_rows4(p + 192, stride, words);
    v_rows4(p + 194, stride, last);
    v16 d = v_pick_f16(last[3], 1);
    for (int i = 0; i < 2 * LS_INT8_GROUPS; i++)
        v_store(out[i / 2].d[i % 2], v_mul(d, v_pick_i8(words[i / 4], i % 4)));
}

void LS_K(int8_lanes_q6_k)(const uint8_t *p, int64_t stride, ls_int8_lanes *out) {
    put_scales_q6_k(p, stride, out);
    for (int g = 0; g < LS_INT8_GROUPS; g++)
        for (int half = 0; half < 2; half++) {
            v16 low[4], high[4];
            v_rows4(p + g / 4 * 64 + g % 2 * LS_INT8_GROUP + 16 * half, stride, low);
            v_rows4(p + 128 + g / 4 * LS_INT8_GROUP + 16 * half, stride, high);
            for (int k = 0; k < 4; k++) {
                v16 q = v_mask(v_down(low[k], g % 4 / 2 * 4), LOW);
                v16 above = v_mask(v_down(high[k], g % 4 * 2), TWO);
                put_word(v_join(q, v_up(above, 4)), out[g].words[4 * half + k]);
            }
        }
}

/* d (s - 32), of s as six_bits() has it. */
static void put_scale_of_six(v16 d, v16 s, float *to) {
    v_store(to, v_mul(d, v_sub(s, v_set1(32.0f))));
}

/* Two bits a number: group g's are two of each byte of 32 of its half; the third of Q3_K is bit g
 * of each byte of 32 more. */
static void put_two_bits(const uint8_t *p, const uint8_t *third, int64_t stride,
                         ls_int8_lanes out[LS_INT8_GROUPS]) {
    for (int g = 0; g < LS_INT8_GROUPS; g++)
        for (int half = 0; half < 2; half++) {
            v16 low[4], high[4];
            v_rows4(p + g / 4 * LS_INT8_GROUP + 16 * half, stride, low);
            v_rows4((third ? third : p) + 16 * half, stride, high);
            for (int k = 0; k < 4; k++) {
                v16 q = v_mask(v_down(low[k], g % 4 * 2), TWO);
                if (third) q = v_join(q, v_up(v_mask(v_down(high[k], g), ONE), 2));
                put_word(q, out[g].words[4 * half + k]);
            }
        }
}

void LS_K(int8_lanes_q3_k)(const uint8_t *p, int64_t stride, ls_int8_lanes *out) {
    v16 words[4], last[4];
    v_rows4(p + 92, stride, words);
    v_rows4(p + 94, stride, last);
    v16 d = v_pick_f16(last[3], 1);
    for (int i = 0; i < 2 * LS_INT8_GROUPS; i++)
        put_scale_of_six(
            d, six_bits(words[3], i % 4 * 8 + i / 4 * 2, words[1 + i / 4 % 2], i % 4 * 2 + i / 8),
            out[i / 2].d[i % 2]);
    put_two_bits(p + 32, p, stride, out);
}

void LS_K(int8_lanes_q2_k)(const uint8_t *p, int64_t stride, ls_int8_lanes *out) {
    v16 words[4], last[4], minus = v_set1(-1.0f);
    v_rows4(p, stride, words);
    v_rows4(p + 68, stride, last);
    v16 d = v_pick_f16(last[3], 0), m = v_pick_f16(last[3], 1);
    for (int i = 0; i < 2 * LS_INT8_GROUPS; i++) {
        v16 s = v_pick_u4(words[i / 4], i % 4 * 2), t = v_pick_u4(words[i / 4], i % 4 * 2 + 1);
        v_store(out[i / 2].d[i % 2], v_mul(d, s));
        v_store(out[i / 2].m[i % 2], v_mul(v_mul(m, t), minus));
    }
    put_two_bits(p + 16, NULL, stride, out);
}

void LS_K(int8_lanes_iq4_xs)(const uint8_t *p, int64_t stride, ls_int8_lanes *out) {
    v16 words[4];
    v_rows4(p, stride, words);
    for (int g = 0; g < LS_INT8_GROUPS; g++) {
        put_scale_of_six(v_pick_f16(words[0], 0), six_bits(words[0], 16 + 2 * g, words[1], g),
                         out[g].d[0]);
        put_entries(p + 8 + 16 * g, stride, &out[g]);
    }
}
