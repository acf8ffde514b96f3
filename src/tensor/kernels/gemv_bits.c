/* gemv_bits.c - products of one row with rows of blocks whose numbers have five or six bits, with
 * rows of blocks of 256, and of IQ4_NL (tensor/block.h): see gemv_blocks.h.
 *
 * A row is a lane, as in gemv_blocks.c. A number is its low four or two bits, and 16 or 4 times the
 * bits above, which is exact; it is scaled to the bits of kernels/unpack.c.
 */
#include "tensor/kernels/gemv_blocks.h"

enum { STRIPS = 2, GROUP = 32, PARTS = LS_BLOCK_MOST / 16 };

/* A loop over the blocks of two strips: what is read of sixteen elements, and the chains. */
typedef struct rows {
    int64_t stride, strip; /* bytes between rows, between strips */
    gemv_sums sum[STRIPS];
    v16 d[STRIPS], m[STRIPS];
    v16 low[STRIPS][4];  /* the lowest bits of each byte count */
    v16 high[STRIPS][4]; /* these, too; or the lowest of the first words, one for each element */
} rows;

/* Sixteen bytes of each row, moved down by some bits. */
INLINE void read_words(const rows *r, const uint8_t *p, int down, v16 words[STRIPS][4]) {
    UNROLL for (int s = 0; s < STRIPS; s++) {
        v_rows4(p + s * r->strip, r->stride, words[s]);
        UNROLL for (int k = 0; k < 4; k++) words[s][k] = v_down(words[s][k], down);
    }
}

/* The bits of a number: two or four low ones; how many above them; spread: one in each bit of the
 * first word. */
typedef struct bits {
    int low, above, spread;
} bits;

/* Bits k to k + 4 of a word as the lowest ones of its four bytes; the other bits are any. */
INLINE v16 spread_bits(v16 word, int k) {
    v16 four = v_mask(v_down(word, k), 15);
    v16 two = v_join(four, v_up(four, 7));
    return v_join(two, v_up(two, 14));
}

/* The numbers of sixteen elements become the bytes of r->low. */
INLINE void join_bits(rows *r, bits b) {
    const uint32_t each = 0x01010101;
    UNROLL for (int s = 0; s < STRIPS; s++) UNROLL for (int k = 0; k < 4; k++) {
        v16 low = v_mask(r->low[s][k], ((1u << b.low) - 1) * each);
        v16 high = b.spread ? spread_bits(r->high[s][0], 4 * k) : r->high[s][k];
        high = v_mask(high, ((1u << b.above) - 1) * each);
        r->low[s][k] = v_join(low, v_up(high, b.low));
    }
}

INLINE v16 number(const rows *r, int s, int i, bits b) {
    v16 word = r->low[s][i / 4];
    if (!b.above && b.low == 4) return v_pick_u4(word, i % 4 * 2);
    return v_pick_bits(word, i % 4 * 8, b.above ? 8 : b.low);
}

/* d q + m: the product is exact. */
INLINE void add_affine(int bf16, rows *r, const float *x, bits b) {
    if (b.above) join_bits(r, b);
    UNROLL for (int k = 0; k < 16; k += 4) UNROLL for (int s = 0; s < STRIPS; s++) {
        v16 w[4];
        UNROLL for (int i = 0; i < 4; i++) w[i] = v_fma(number(r, s, k + i, b), r->d[s], r->m[s]);
        gemv_four(bf16, x + k, w, &r->sum[s]);
    }
}

/* d (q - middle) */
INLINE void add_centred(int bf16, rows *r, const float *x, float middle, bits b) {
    join_bits(r, b);
    UNROLL for (int k = 0; k < 16; k += 4) UNROLL for (int s = 0; s < STRIPS; s++) {
        v16 w[4];
        UNROLL for (int i = 0; i < 4; i++) w[i] =
            v_mul(v_sub(number(r, s, k + i, b), v_set1(middle)), r->d[s]);
        gemv_four(bf16, x + k, w, &r->sum[s]);
    }
}

/* d e[q], of the numbers that are the lower nibbles of bytes. */
INLINE void add_entries(int bf16, rows *r, const float *x) {
    UNROLL for (int s = 0; s < STRIPS; s++) UNROLL for (int k = 0; k < 4; k++) r->low[s][k] =
        v_entries(v_mask(r->low[s][k], 0x0f0f0f0f), LS_IQ4_TABLE);
    UNROLL for (int k = 0; k < 4; k++) UNROLL for (int s = 0; s < STRIPS; s++) {
        v16 w[4];
        UNROLL for (int i = 0; i < 4; i++) w[i] = v_mul(v_pick_i8(r->low[s][k], i), r->d[s]);
        gemv_four(bf16, x + 4 * k, w, &r->sum[s]);
    }
}

/* After each 32 elements. */
INLINE void end_group(int bf16, rows *r) {
    UNROLL for (int s = 0; s < STRIPS; s++) gemv_end_block(bf16, &r->sum[s]);
}

/* ---- blocks of 32 ---- */

static const bits FIFTH = {4, 1, 1};

INLINE void block_q5_0(int bf16, rows *r, const float *x, const uint8_t *p) {
    v16 words[STRIPS][4];
    read_words(r, p, 0, words);
    UNROLL for (int s = 0; s < STRIPS; s++) r->d[s] = v_pick_f16(words[s][0], 0);
    for (int half = 0; half < 2; half++) {
        read_words(r, p + 2, 16 * half, r->high);
        read_words(r, p + 6, 4 * half, r->low);
        add_centred(bf16, r, x + 16 * half, 16.0f, FIFTH);
    }
    end_group(bf16, r);
}

INLINE void block_q5_1(int bf16, rows *r, const float *x, const uint8_t *p) {
    v16 words[STRIPS][4];
    read_words(r, p, 0, words);
    UNROLL for (int s = 0; s < STRIPS; s++) {
        r->d[s] = v_pick_f16(words[s][0], 0);
        r->m[s] = v_pick_f16(words[s][0], 1);
    }
    for (int half = 0; half < 2; half++) {
        read_words(r, p + 4, 16 * half, r->high);
        read_words(r, p + 8, 4 * half, r->low);
        add_affine(bf16, r, x + 16 * half, FIFTH);
    }
    end_group(bf16, r);
}

INLINE void block_iq4_nl(int bf16, rows *r, const float *x, const uint8_t *p) {
    v16 words[STRIPS][4];
    read_words(r, p, 0, words);
    UNROLL for (int s = 0; s < STRIPS; s++) r->d[s] = v_pick_f16(words[s][0], 0);
    for (int half = 0; half < 2; half++) {
        read_words(r, p + 2, 4 * half, r->low);
        add_entries(bf16, r, x + 16 * half);
    }
    end_group(bf16, r);
}

/* ---- blocks of 256 ---- */

/* Scales and minima of a block: of each group of 32, or of each 16 elements. */
typedef struct scales {
    float d[PARTS][STRIPS][LS_LANES], m[PARTS][STRIPS][LS_LANES];
} scales;

INLINE void put_scales(scales *all, int g, int s, v16 d, v16 m) {
    v_store(all->d[g][s], d);
    v_store(all->m[g][s], v_mul(m, v_set1(-1.0f)));
}

/* From the 16 bytes with which Q4_K and Q5_K begin; unpack.c has the order of their bits. */
INLINE void read_scales(const rows *r, const uint8_t *p, scales *all) {
    v16 words[STRIPS][4];
    read_words(r, p, 0, words);
    UNROLL for (int s = 0; s < STRIPS; s++) {
        v16 d = v_pick_f16(words[s][0], 0), m = v_pick_f16(words[s][0], 1), sixteen = v_set1(16.0f);
        v16 scale = words[s][1], minimum = words[s][2], both = words[s][3];
        UNROLL for (int g = 0; g < 4; g++) {
            put_scales(all, g, s, v_mul(d, v_pick_bits(scale, 8 * g, 6)),
                       v_mul(m, v_pick_bits(minimum, 8 * g, 6)));
            v16 upper = v_fma(v_pick_bits(scale, 8 * g + 6, 2), sixteen, v_pick_u4(both, 2 * g));
            v16 lower =
                v_fma(v_pick_bits(minimum, 8 * g + 6, 2), sixteen, v_pick_u4(both, 2 * g + 1));
            put_scales(all, 4 + g, s, v_mul(d, upper), v_mul(m, lower));
        }
    }
}

INLINE void take_scales(rows *r, const scales *all, int g) {
    UNROLL for (int s = 0; s < STRIPS; s++) {
        r->d[s] = v_load(all->d[g][s]);
        r->m[s] = v_load(all->m[g][s]);
    }
}

INLINE void block_q4_k(int bf16, rows *r, const float *x, const uint8_t *p) {
    scales all;
    read_scales(r, p, &all);
    for (int i = 0; i < PARTS; i++) {
        take_scales(r, &all, i / 2);
        read_words(r, p + 16 + i / 4 * GROUP + i % 2 * 16, i / 2 % 2 * 4, r->low);
        add_affine(bf16, r, x + 16 * i, (bits){4, 0, 0});
        if (i % 2) end_group(bf16, r);
    }
}

INLINE void block_q5_k(int bf16, rows *r, const float *x, const uint8_t *p) {
    scales all;
    read_scales(r, p, &all);
    for (int i = 0; i < PARTS; i++) {
        take_scales(r, &all, i / 2);
        read_words(r, p + 48 + i / 4 * GROUP + i % 2 * 16, i / 2 % 2 * 4, r->low);
        read_words(r, p + 16 + i % 2 * 16, i / 2, r->high);
        add_affine(bf16, r, x + 16 * i, (bits){4, 1, 0});
        if (i % 2) end_group(bf16, r);
    }
}

/* The sixteen bytes that end with the block's last two have its scale. */
INLINE void read_scales_q6_k(const rows *r, const uint8_t *p, scales *all) {
    v16 words[STRIPS][4], last[STRIPS][4];
    read_words(r, p + 192, 0, words);
    read_words(r, p + 194, 0, last);
    UNROLL for (int s = 0; s < STRIPS; s++) UNROLL for (int i = 0; i < PARTS; i++)
        v_store(all->d[i][s], v_mul(v_pick_f16(last[s][3], 1), v_pick_i8(words[s][i / 4], i % 4)));
}

INLINE void block_q6_k(int bf16, rows *r, const float *x, const uint8_t *p) {
    scales all;
    read_scales_q6_k(r, p, &all);
    for (int i = 0; i < PARTS; i++) {
        int half = i / 8, group = i / 2 % 4;
        UNROLL for (int s = 0; s < STRIPS; s++) r->d[s] = v_load(all.d[i][s]);
        read_words(r, p + 64 * half + group % 2 * GROUP + i % 2 * 16, group / 2 * 4, r->low);
        read_words(r, p + 128 + half * GROUP + i % 2 * 16, 2 * group, r->high);
        add_centred(bf16, r, x + 16 * i, 32.0f, (bits){4, 2, 0});
        if (i % 2) end_group(bf16, r);
    }
}

/* d (s - 32) */
INLINE v16 scale_of_six(v16 d, v16 high, v16 low) {
    return v_mul(d, v_sub(v_fma(high, v_set1(16.0f), low), v_set1(32.0f)));
}

/* The twelve bytes of scales, and the sixteen bytes that end with the block. */
INLINE void read_scales_q3_k(const rows *r, const uint8_t *p, scales *all) {
    v16 words[STRIPS][4], last[STRIPS][4];
    read_words(r, p + 94, 0, last);
    read_words(r, p + 92, 0, words);
    UNROLL for (int s = 0; s < STRIPS; s++) UNROLL for (int i = 0; i < PARTS; i++) {
        v16 high = v_pick_bits(words[s][3], i % 4 * 8 + i / 4 * 2, 2);
        v16 low = v_pick_u4(words[s][1 + i / 4 % 2], i % 4 * 2 + i / 8);
        v_store(all->d[i][s], scale_of_six(v_pick_f16(last[s][3], 1), high, low));
    }
}

INLINE void block_q3_k(int bf16, rows *r, const float *x, const uint8_t *p) {
    scales all;
    read_scales_q3_k(r, p, &all);
    for (int i = 0; i < PARTS; i++) {
        UNROLL for (int s = 0; s < STRIPS; s++) r->d[s] = v_load(all.d[i][s]);
        read_words(r, p + 32 + i / 8 * GROUP + i % 2 * 16, i / 2 % 4 * 2, r->low);
        read_words(r, p + i % 2 * 16, i / 2, r->high);
        add_centred(bf16, r, x + 16 * i, 4.0f, (bits){2, 1, 0});
        if (i % 2) end_group(bf16, r);
    }
}

/* The sixteen bytes that a block begins with, and those that end with it. */
INLINE void read_scales_q2_k(const rows *r, const uint8_t *p, scales *all) {
    v16 words[STRIPS][4], last[STRIPS][4];
    read_words(r, p, 0, words);
    read_words(r, p + 68, 0, last);
    UNROLL for (int s = 0; s < STRIPS; s++) {
        v16 d = v_pick_f16(last[s][3], 0), m = v_pick_f16(last[s][3], 1);
        UNROLL for (int i = 0; i < PARTS; i++) {
            v16 word = words[s][i / 4];
            put_scales(all, i, s, v_mul(d, v_pick_u4(word, i % 4 * 2)),
                       v_mul(m, v_pick_u4(word, i % 4 * 2 + 1)));
        }
    }
}

INLINE void block_q2_k(int bf16, rows *r, const float *x, const uint8_t *p) {
    scales all;
    read_scales_q2_k(r, p, &all);
    for (int i = 0; i < PARTS; i++) {
        take_scales(r, &all, i);
        read_words(r, p + 16 + i / 8 * GROUP + i % 2 * 16, i / 2 % 4 * 2, r->low);
        add_affine(bf16, r, x + 16 * i, (bits){2, 0, 0});
        if (i % 2) end_group(bf16, r);
    }
}

INLINE void block_iq4_xs(int bf16, rows *r, const float *x, const uint8_t *p) {
    v16 words[STRIPS][4];
    scales all;
    read_words(r, p, 0, words);
    UNROLL for (int s = 0; s < STRIPS; s++) UNROLL for (int g = 0; g < PARTS / 2; g++)
        v_store(all.d[g][s],
                scale_of_six(v_pick_f16(words[s][0], 0), v_pick_bits(words[s][0], 16 + 2 * g, 2),
                             v_pick_u4(words[s][1], g)));
    for (int i = 0; i < PARTS; i++) {
        UNROLL for (int s = 0; s < STRIPS; s++) r->d[s] = v_load(all.d[i / 2][s]);
        read_words(r, p + 8 + i / 2 * 16, i % 2 * 4, r->low);
        add_entries(bf16, r, x + 16 * i);
        if (i % 2) end_group(bf16, r);
    }
}

/* ---- all blocks of a row ---- */

typedef void block_fn(int bf16, rows *r, const float *x, const uint8_t *p);

typedef struct rows_job {
    int64_t C;
    const float *x;
    const uint8_t *w;
    float *sum;
} rows_job;

INLINE void each_block(int bf16, block_fn *block, int64_t elements, int64_t nbytes,
                       const rows_job *j) {
    int64_t nblocks = j->C / elements, stride = nblocks * nbytes;
    rows r = {.stride = stride, .strip = LS_LANES * stride};
    for (int s = 0; s < STRIPS; s++) r.sum[s] = gemv_sums_from(j->sum + s * LS_LANES);
    for (int64_t i = 0; i < nblocks; i++) {
        gemv_prefetch(j->w + STRIPS * r.strip, STRIPS * LS_LANES * nbytes, i);
        block(bf16, &r, j->x + i * elements, j->w + i * nbytes);
    }
    for (int s = 0; s < STRIPS; s++) v_store(j->sum + s * LS_LANES, r.sum[s].all);
}

#define ROWS(name, bf16, type, elements, nbytes)                                                   \
    void LS_K(gemv_rows_##name)(int strips, int64_t C, const float *x, const uint8_t *w,           \
                                float *sum) {                                                      \
        (void)strips;                                                                              \
        each_block(bf16, block_##type, elements, nbytes, &(rows_job){C, x, w, sum});               \
    }
ROWS(q5_0, 0, q5_0, 32, 22)
ROWS(q5_1, 0, q5_1, 32, 24)
ROWS(q4_k, 0, q4_k, 256, 144)
ROWS(q5_k, 0, q5_k, 256, 176)
ROWS(q6_k, 0, q6_k, 256, 210)
ROWS(q3_k, 0, q3_k, 256, 110)
ROWS(q2_k, 0, q2_k, 256, 84)
ROWS(iq4_nl, 0, iq4_nl, 32, 18)
ROWS(iq4_xs, 0, iq4_xs, 256, 136)
#ifdef V_PAIRS
ROWS(q5_0_bf16, 1, q5_0, 32, 22)
ROWS(q5_1_bf16, 1, q5_1, 32, 24)
ROWS(q4_k_bf16, 1, q4_k, 256, 144)
ROWS(q5_k_bf16, 1, q5_k, 256, 176)
ROWS(q6_k_bf16, 1, q6_k, 256, 210)
ROWS(q3_k_bf16, 1, q3_k, 256, 110)
ROWS(q2_k_bf16, 1, q2_k, 256, 84)
ROWS(iq4_nl_bf16, 1, iq4_nl, 32, 18)
ROWS(iq4_xs_bf16, 1, iq4_xs, 256, 136)
#endif
