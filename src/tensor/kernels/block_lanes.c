/* block_lanes.c - blocks of a strip are written, and their scales are read: block_lanes.h. */
#include "tensor/kernels/block_lanes.h"

/* ---- writing ---- */

void LS_K(put_lane_words)(const uint8_t *from, int64_t stride, int n, uint8_t *to) {
    enum { WORDS = LS_LANES * 4 };
    for (; n >= 4; n -= 4, from += 16) {
        v16 words[4];
        v_rows4(from, stride, words);
        for (int i = 0; i < 4; i++, to += WORDS) v_store((float *)(void *)to, words[i]);
    }
    for (; n > 0; n--, from += 4)
        for (int i = 0; i < LS_LANES; i++, to += 4) memcpy(to, from + i * stride, 4);
}

void LS_K(put_lane_f16)(const uint8_t *from, int64_t stride, uint8_t *to) {
    for (int i = 0; i < LS_LANES; i++) memcpy(to + 2 * i, from + i * stride, 2);
}

/* A scale beside whole words is first, or last. */
void LS_K(lane_block)(ls_block_type type, const uint8_t *from, int64_t stride, uint8_t *to) {
    const int nbytes = (int)lane_type_of(type).nbytes;
    const bool last = type == LS_BLOCK_Q6_K || type == LS_BLOCK_Q3_K;
    const int first = nbytes % 4 && !last ? 2 : 0;
    if (first) LS_K(put_lane_f16)(from, stride, to);
    LS_K(put_lane_words)(from + first, stride, nbytes / 4, to + LS_LANES * first);
    if (last) LS_K(put_lane_f16)(from + nbytes - 2, stride, to + LS_LANES * (nbytes - 2));
}

/* ---- scales ---- */

/* Word k of those at byte `at`; the f16 there. */
INLINE v16 word_of(const uint8_t *block, int at, int k) {
    return lane_word_at((ls_lane_rows){.block = block}, at + 4 * k);
}
INLINE v16 f16_at(const uint8_t *block, int at) {
    return v_load_f16((const uint16_t *)(const void *)(block + LS_LANES * at));
}

/* -(m t) */
INLINE void put_minimum(v16 m, v16 t, float *to) { v_store(to, v_mul(v_mul(m, t), v_set1(-1.0f))); }

void LS_K(lane_scale)(const uint8_t *p, ls_lane_scales *out) { v_store(out->d[0], f16_at(p, 0)); }

void LS_K(lane_scale_and_minimum)(const uint8_t *p, ls_lane_scales *out) {
    v16 both = word_of(p, 0, 0);
    v_store(out->d[0], v_pick_f16(both, 0));
    v_store(out->m[0], v_pick_f16(both, 1));
}

INLINE v16 six_bits(v16 upper, int at, v16 lower, int nibble) {
    return v_add(v_mul(v_pick_bits(upper, at, 2), v_set1(16.0f)), v_pick_u4(lower, nibble));
}

/* Scales d s and minima -(m t) of the groups, from the 16 bytes that a block begins with. */
void LS_K(lane_scales_q4_k)(const uint8_t *p, ls_lane_scales *out) {
    v16 d = v_pick_f16(word_of(p, 0, 0), 0), m = v_pick_f16(word_of(p, 0, 0), 1);
    v16 s = word_of(p, 0, 1), t = word_of(p, 0, 2), low = word_of(p, 0, 3);
    UNROLL for (int g = 0; g < 4; g++) {
        v_store(out[g].d[0], v_mul(d, v_pick_bits(s, 8 * g, 6)));
        put_minimum(m, v_pick_bits(t, 8 * g, 6), out[g].m[0]);
        v_store(out[4 + g].d[0], v_mul(d, six_bits(s, 8 * g + 6, low, 2 * g)));
        put_minimum(m, six_bits(t, 8 * g + 6, low, 2 * g + 1), out[4 + g].m[0]);
    }
}

void LS_K(lane_scales_q6_k)(const uint8_t *p, ls_lane_scales *out) {
    v16 d = f16_at(p, 208);
    UNROLL for (int i = 0; i < 2 * LS_LANE_GROUPS; i++)
        v_store(out[i / 2].d[i % 2], v_mul(d, v_pick_i8(word_of(p, 192, i / 4), i % 4)));
}

/* d (s - 32), of s as six_bits() has it. */
INLINE void put_scale_of_six(v16 d, v16 s, float *to) {
    v_store(to, v_mul(d, v_sub(s, v_set1(32.0f))));
}

void LS_K(lane_scales_q3_k)(const uint8_t *p, ls_lane_scales *out) {
    v16 d = f16_at(p, 108), upper = word_of(p, 96, 2);
    UNROLL for (int i = 0; i < 2 * LS_LANE_GROUPS; i++) {
        v16 lower = word_of(p, 96, i / 4 % 2);
        put_scale_of_six(d, six_bits(upper, i % 4 * 8 + i / 4 * 2, lower, i % 4 * 2 + i / 8),
                         out[i / 2].d[i % 2]);
    }
}

void LS_K(lane_scales_q2_k)(const uint8_t *p, ls_lane_scales *out) {
    v16 d = v_pick_f16(word_of(p, 80, 0), 0), m = v_pick_f16(word_of(p, 80, 0), 1);
    UNROLL for (int i = 0; i < 2 * LS_LANE_GROUPS; i++) {
        v16 both = word_of(p, 0, i / 4);
        v_store(out[i / 2].d[i % 2], v_mul(d, v_pick_u4(both, i % 4 * 2)));
        put_minimum(m, v_pick_u4(both, i % 4 * 2 + 1), out[i / 2].m[i % 2]);
    }
}

void LS_K(lane_scales_iq4_xs)(const uint8_t *p, ls_lane_scales *out) {
    v16 d = v_pick_f16(word_of(p, 0, 0), 0);
    UNROLL for (int g = 0; g < LS_LANE_GROUPS; g++) put_scale_of_six(
        d, six_bits(word_of(p, 0, 0), 16 + 2 * g, word_of(p, 0, 1), g), out[g].d[0]);
}
