/* unpack.c - blocks of weights as f32 (tensor/block.h).
 *
 * The numbers of 32 elements are gathered as the bytes of four words, then widened, scaled and
 * stored, 16 at a time. Words are read as little-endian.
 */
#include "tensor/block.h"
#include "tensor/kernels/half.h"
#include "tensor/kernels/variant.h"

enum { GROUP = 32 };

INLINE float scale_at(const uint8_t *p) {
    uint16_t h;
    memcpy(&h, p, sizeof h);
    return f32_of_f16(h);
}

/* ---- types of one element ---- */

void LS_K(unpack_f32)(int64_t n, const uint8_t *x, float *y) {
    if (n > 0) memcpy(y, x, (size_t)n * sizeof *y);
}

void LS_K(unpack_bf16)(int64_t n, const uint8_t *x, float *y) {
    const uint16_t *h = (const uint16_t *)(const void *)x;
    int64_t i = 0;
    for (; i + LS_LANES <= n; i += LS_LANES) v_store(y + i, v_load_bf16(h + i));
    for (; i < n; i++) y[i] = f32_of_bf16(h[i]);
}

void LS_K(unpack_f16)(int64_t n, const uint8_t *x, float *y) {
    const uint16_t *h = (const uint16_t *)(const void *)x;
    int64_t i = 0;
    for (; i + LS_LANES <= n; i += LS_LANES) v_store(y + i, v_load_f16(h + i));
    for (; i < n; i++) y[i] = f32_of_f16(h[i]);
}

/* ---- 32 elements: their numbers are the bytes of four words ---- */

typedef struct group {
    uint64_t of[GROUP / 8];
} group;

static const uint64_t ONES = 0x0101010101010101u;

INLINE uint64_t word_at(const uint8_t *p) {
    uint64_t word;
    memcpy(&word, p, sizeof word);
    return word;
}

/* y = q d of 16 elements, q = each byte - middle. */
INLINE void put_scaled(uint64_t lo, uint64_t hi, float middle, float d, float *y) {
    v_store(y, v_mul(v_sub(v_of_u8(lo, hi), v_set1(middle)), v_set1(d)));
}

INLINE void put_group_scaled(group q, float middle, float d, float *y) {
    put_scaled(q.of[0], q.of[1], middle, d, y);
    put_scaled(q.of[2], q.of[3], middle, d, y + LS_LANES);
}

/* y = d q + m */
INLINE void put_group_affine(group q, float d, float m, float *y) {
    v16 scale = v_set1(d), shift = v_set1(m);
    v_store(y, v_add(v_mul(v_of_u8(q.of[0], q.of[1]), scale), shift));
    v_store(y + LS_LANES, v_add(v_mul(v_of_u8(q.of[2], q.of[3]), scale), shift));
}

/* The nibbles of 16 bytes, the low ones first. */
INLINE group nibbles_at(const uint8_t *x) {
    uint64_t lo = word_at(x), hi = word_at(x + 8);
    return (group){{lo & 15 * ONES, hi & 15 * ONES, lo >> 4 & 15 * ONES, hi >> 4 & 15 * ONES}};
}

/* From each of 32 bytes the bits of `mask`, after a shift to the right. */
INLINE group bits_at(const uint8_t *x, int shift, uint64_t mask) {
    group q;
    for (int i = 0; i < GROUP / 8; i++) q.of[i] = word_at(x + 8 * i) >> shift & mask * ONES;
    return q;
}

/* The 32 bits at x, one in each byte. Eight bits are spread over eight bytes: each byte gets all of
 * them, keeps its own, and 0x7f is added; then its highest bit is the one that it kept. */
INLINE group spread_bits_at(const uint8_t *x) {
    group q;
    for (int i = 0; i < GROUP / 8; i++)
        q.of[i] = (((x[i] * ONES) & 0x8040201008040201u) + 0x7f * ONES) >> 7 & ONES;
    return q;
}

/* `high` becomes the bits from the fifth on. */
INLINE group join(group low, group high) {
    for (int i = 0; i < GROUP / 8; i++) low.of[i] |= high.of[i] << 4;
    return low;
}

/* ---- blocks of 32 ---- */

void LS_K(unpack_q8_0)(int64_t n, const uint8_t *x, float *y) {
    for (; n-- > 0; x += 34, y += GROUP) {
        v16 d = v_set1(scale_at(x));
        v_store(y, v_mul(v_of_i8(word_at(x + 2), word_at(x + 10)), d));
        v_store(y + LS_LANES, v_mul(v_of_i8(word_at(x + 18), word_at(x + 26)), d));
    }
}

void LS_K(unpack_q4_0)(int64_t n, const uint8_t *x, float *y) {
    for (; n-- > 0; x += 18, y += GROUP) put_group_scaled(nibbles_at(x + 2), 8, scale_at(x), y);
}

void LS_K(unpack_q4_1)(int64_t n, const uint8_t *x, float *y) {
    for (; n-- > 0; x += 20, y += GROUP)
        put_group_affine(nibbles_at(x + 4), scale_at(x), scale_at(x + 2), y);
}

void LS_K(unpack_q5_0)(int64_t n, const uint8_t *x, float *y) {
    for (; n-- > 0; x += 22, y += GROUP)
        put_group_scaled(join(nibbles_at(x + 6), spread_bits_at(x + 2)), 16, scale_at(x), y);
}

void LS_K(unpack_q5_1)(int64_t n, const uint8_t *x, float *y) {
    for (; n-- > 0; x += 24, y += GROUP)
        put_group_affine(join(nibbles_at(x + 8), spread_bits_at(x + 4)), scale_at(x),
                         scale_at(x + 2), y);
}

/* Numbers of IQ4_NL and IQ4_XS, as i8; the same 32 bytes of lanes are used twice. */
INLINE group entries_of(group q) {
    float lanes[LS_LANES];
    memcpy(lanes, q.of, sizeof q.of);
    memcpy(lanes + LS_LANES / 2, q.of, sizeof q.of);
    v_store(lanes, v_entries(v_load(lanes), LS_IQ4_TABLE));
    memcpy(q.of, lanes, sizeof q.of);
    return q;
}

INLINE void put_entries(const uint8_t *x, float d, float *y) {
    group q = entries_of(nibbles_at(x));
    v_store(y, v_mul(v_of_i8(q.of[0], q.of[1]), v_set1(d)));
    v_store(y + LS_LANES, v_mul(v_of_i8(q.of[2], q.of[3]), v_set1(d)));
}

void LS_K(unpack_iq4_nl)(int64_t n, const uint8_t *x, float *y) {
    for (; n-- > 0; x += 18, y += GROUP) put_entries(x + 2, scale_at(x), y);
}

/* ---- blocks of 256: 8 groups ---- */

/* Scale and minimum of a group, 6 bits each, from 12 bytes: those of groups 0 to 3 are the low bits
 * of bytes 0 to 3 and 4 to 7; those of groups 4 to 7 have four bits in bytes 8 to 11 and two in the
 * high bits of bytes 0 to 7. */
INLINE void take_scales(const uint8_t *x, int g, float *scale_p, float *minimum_p) {
    uint8_t s = x[g % 4], m = x[4 + g % 4], both = x[8 + g % 4];
    *scale_p = (float)(g < 4 ? s & 63 : (both & 15) | s >> 6 << 4);
    *minimum_p = (float)(g < 4 ? m & 63 : both >> 4 | m >> 6 << 4);
}

/* Groups 2p and 2p + 1 have the low and the high nibbles of the same 32 bytes. */
void LS_K(unpack_q4_k)(int64_t n, const uint8_t *x, float *y) {
    float s, t;
    for (; n-- > 0; x += 144) {
        float d = scale_at(x), m = scale_at(x + 2);
        for (int g = 0; g < 8; g++, y += GROUP) {
            take_scales(x + 4, g, &s, &t);
            put_group_affine(bits_at(x + 16 + g / 2 * GROUP, g % 2 * 4, 15), d * s, -(m * t), y);
        }
    }
}

/* The fifth bit of element i of group g is bit g of byte i of 32. */
void LS_K(unpack_q5_k)(int64_t n, const uint8_t *x, float *y) {
    float s, t;
    for (; n-- > 0; x += 176) {
        float d = scale_at(x), m = scale_at(x + 2);
        for (int g = 0; g < 8; g++, y += GROUP) {
            take_scales(x + 4, g, &s, &t);
            group low = bits_at(x + 48 + g / 2 * GROUP, g % 2 * 4, 15);
            put_group_affine(join(low, bits_at(x + 16, g, 1)), d * s, -(m * t), y);
        }
    }
}

/* Each half has 64 bytes whose low nibbles belong to its groups 0 and 1, the high ones to groups 2
 * and 3; and 32 bytes with two high bits of each of these groups. A scale is that of 16
 * elements. */
void LS_K(unpack_q6_k)(int64_t n, const uint8_t *x, float *y) {
    for (; n-- > 0; x += 210) {
        const int8_t *scales = (const int8_t *)(const void *)(x + 192);
        float d = scale_at(x + 208);
        for (int g = 0; g < 8; g++, y += GROUP) {
            group low = bits_at(x + g / 4 * 64 + g % 2 * GROUP, g % 4 / 2 * 4, 15);
            group q = join(low, bits_at(x + 128 + g / 4 * GROUP, g % 4 * 2, 3));
            put_scaled(q.of[0], q.of[1], 32, d * (float)scales[2 * g], y);
            put_scaled(q.of[2], q.of[3], 32, d * (float)scales[2 * g + 1], y + LS_LANES);
        }
    }
}

/* Scale k of 16, 6 bits: its low four are in byte k % 8 of 12, its high two in byte 8 + k % 4. */
INLINE float scale_q3_k(const uint8_t *x, int k) {
    int low = x[k % 8] >> k / 8 * 4 & 15, high = x[8 + k % 4] >> k / 4 * 2 & 3;
    return (float)((low | high << 4) - 32);
}

/* Each half has 32 bytes with two bits of each of its four groups. The third bit of element i of
 * group g is bit g of byte i of 32. */
void LS_K(unpack_q3_k)(int64_t n, const uint8_t *x, float *y) {
    for (; n-- > 0; x += 110) {
        float d = scale_at(x + 108);
        for (int g = 0; g < 8; g++, y += GROUP) {
            group q = bits_at(x + 32 + g / 4 * GROUP, g % 4 * 2, 3), third = bits_at(x, g, 1);
            for (int i = 0; i < GROUP / 8; i++) q.of[i] |= third.of[i] << 2;
            put_scaled(q.of[0], q.of[1], 4, d * scale_q3_k(x + 96, 2 * g), y);
            put_scaled(q.of[2], q.of[3], 4, d * scale_q3_k(x + 96, 2 * g + 1), y + LS_LANES);
        }
    }
}

/* The bits of q as in Q3_K. A byte has the scale (low nibble) and the minimum of 16 elements. */
void LS_K(unpack_q2_k)(int64_t n, const uint8_t *x, float *y) {
    for (; n-- > 0; x += 84) {
        float d = scale_at(x + 80), m = scale_at(x + 82);
        for (int k = 0; k < 16; k++, y += LS_LANES) {
            group q = bits_at(x + 16 + k / 8 * GROUP, k % 8 / 2 * 2, 3);
            v16 all = v_of_u8(q.of[k % 2 * 2], q.of[k % 2 * 2 + 1]);
            v16 scale = v_set1(d * (float)(x[k] & 15)), minimum = v_set1(m * (float)(x[k] >> 4));
            v_store(y, v_sub(v_mul(all, scale), minimum));
        }
    }
}

/* A group's scale: four bits in bytes 4 to 7, two in bytes 2 and 3. Its numbers are those of a
 * block of 32. */
void LS_K(unpack_iq4_xs)(int64_t n, const uint8_t *x, float *y) {
    for (; n-- > 0; x += 136) {
        float d = scale_at(x);
        for (int g = 0; g < 8; g++, y += GROUP) {
            int low = x[4 + g / 2] >> g % 2 * 4 & 15, high = x[2 + g / 4] >> g % 4 * 2 & 3;
            put_entries(x + 8 + 16 * g, d * (float)((low | high << 4) - 32), y);
        }
    }
}
