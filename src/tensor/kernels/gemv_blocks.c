/* gemv_blocks.c - products of one row with rows of blocks of 32 numbers of four or eight bits: see
 * gemv_blocks.h. Other blocks: gemv_lanes.c.
 *
 * A number is scaled to the bits of kernels/unpack.c: the product of a scale of 16 bits and a
 * number of at most 8 bits is exact, so d q + m is one multiply-add.
 */
#include "tensor/kernels/gemv_blocks.h"

enum { STRIPS = LS_GEMV_STRIPS, GROUP = 32 };

/* A loop over the blocks of n strips: what is read of them, and the chains. What the next sixteen
 * elements need is read while sixteen are computed, and kept in memory until then. */
typedef struct rows {
    int64_t stride, strip; /* bytes between rows, between strips */
    gemv_sums sum[STRIPS];
    v16 d[STRIPS], m[STRIPS];
    v16 words[STRIPS][4];
    float next_scales[STRIPS][2][LS_LANES], next_words[STRIPS][4][LS_LANES];
} rows;

/* Four words of each row of strip s. */
INLINE void read_words(int s, rows *r, const uint8_t *p) {
    v16 words[4];
    v_rows4(p + s * r->strip, r->stride, words);
    UNROLL for (int k = 0; k < 4; k++) v_store(r->next_words[s][k], words[k]);
}

/* The scales, and the minima, that a block begins with: a word is read for each row. */
INLINE void read_scales(int s, int minima, rows *r, const uint8_t *p) {
    v16 words[4];
    v_rows4(p + s * r->strip, r->stride, words);
    v_store(r->next_scales[s][0], v_pick_f16(words[0], 0));
    if (minima) v_store(r->next_scales[s][1], v_pick_f16(words[0], 1));
}

INLINE void take_words(int n, rows *r) {
    UNROLL for (int s = 0; s < n; s++) UNROLL for (int k = 0; k < 4; k++) r->words[s][k] =
        v_load(r->next_words[s][k]);
}
INLINE void take_scales(int n, int minima, rows *r) {
    UNROLL for (int s = 0; s < n; s++) {
        r->d[s] = v_load(r->next_scales[s][0]);
        if (minima) r->m[s] = v_load(r->next_scales[s][1]);
    }
}

/* What is read of the next block, or of this one. */
typedef struct ahead {
    const uint8_t *words, *scales; /* NULL: none */
    int minima;
} ahead;

INLINE void read_ahead(int n, int i, rows *r, ahead a) {
    int each = 16 / n;
    if (a.words && i % each == 0) read_words(i / each, r, a.words);
    if (a.scales && i % each == each - 1) read_scales(i / each, a.minima, r, a.scales);
}

INLINE void add_bytes(int n, int bf16, rows *r, const float *x, ahead a) {
    UNROLL for (int k = 0; k < 4; k++) {
        UNROLL for (int s = 0; s < n; s++) {
            v16 w[4];
            UNROLL for (int i = 0; i < 4; i++) w[i] = v_mul(v_pick_i8(r->words[s][k], i), r->d[s]);
            gemv_four(bf16, x + 4 * k, w, &r->sum[s]);
        }
        UNROLL for (int i = 0; i < 4; i++) read_ahead(n, 4 * k + i, r, a);
    }
}

/* The low nibbles of 16 bytes, or the high ones. */
INLINE void add_centred(int n, int bf16, int high, rows *r, const float *x, ahead a) {
    UNROLL for (int k = 0; k < 4; k++) {
        UNROLL for (int s = 0; s < n; s++) {
            v16 w[4];
            UNROLL for (int i = 0; i < 4; i++) w[i] =
                v_mul(v_pick_s4(r->words[s][k], 2 * i + high), r->d[s]);
            gemv_four(bf16, x + 4 * k, w, &r->sum[s]);
        }
        UNROLL for (int i = 0; i < 4; i++) read_ahead(n, 4 * k + i, r, a);
    }
}

INLINE void add_affine(int n, int bf16, int high, rows *r, const float *x, ahead a) {
    UNROLL for (int k = 0; k < 4; k++) {
        UNROLL for (int s = 0; s < n; s++) {
            v16 w[4];
            UNROLL for (int i = 0; i < 4; i++) w[i] =
                v_fma(v_pick_u4(r->words[s][k], 2 * i + high), r->d[s], r->m[s]);
            gemv_four(bf16, x + 4 * k, w, &r->sum[s]);
        }
        UNROLL for (int i = 0; i < 4; i++) read_ahead(n, 4 * k + i, r, a);
    }
}

/* ---- a block of each type: p, and the next one ---- */

INLINE void block_q8_0(int n, int bf16, rows *r, const float *x, const uint8_t *p,
                       const uint8_t *next) {
    take_scales(n, 0, r);
    take_words(n, r);
    add_bytes(n, bf16, r, x, (ahead){.words = p + 18});
    take_words(n, r);
    add_bytes(n, bf16, r, x + 16, (ahead){.words = next + 2, .scales = next});
}

INLINE void block_q4_0(int n, int bf16, rows *r, const float *x, const uint8_t *p,
                       const uint8_t *next) {
    (void)p;
    take_scales(n, 0, r);
    take_words(n, r);
    add_centred(n, bf16, 0, r, x, (ahead){.scales = next});
    add_centred(n, bf16, 1, r, x + 16, (ahead){.words = next + 2});
}

INLINE void block_q4_1(int n, int bf16, rows *r, const float *x, const uint8_t *p,
                       const uint8_t *next) {
    (void)p;
    take_scales(n, 1, r);
    take_words(n, r);
    add_affine(n, bf16, 0, r, x, (ahead){.scales = next, .minima = 1});
    add_affine(n, bf16, 1, r, x + 16, (ahead){.words = next + 4});
}

/* ---- all blocks of a row ---- */

typedef void block_fn(int n, int bf16, rows *r, const float *x, const uint8_t *p,
                      const uint8_t *next);

typedef struct rows_job {
    int64_t C;
    const float *x;
    const uint8_t *w;
    float *sum;
} rows_job;

/* first: where the words are that a block's first elements need. */
INLINE void each_block(int n, int bf16, block_fn *block, int64_t nbytes, int64_t first,
                       const rows_job *j) {
    int64_t nblocks = j->C / GROUP, stride = nblocks * nbytes;
    rows r;
    r.stride = stride, r.strip = LS_LANES * stride;
    for (int s = 0; s < n; s++) {
        r.sum[s] = gemv_sums_from(j->sum + s * LS_LANES);
        read_scales(s, 1, &r, j->w);
        read_words(s, &r, j->w + first);
    }
    for (int64_t i = 0; i < nblocks; i++) {
        const uint8_t *p = j->w + i * nbytes, *next = i + 1 < nblocks ? p + nbytes : p;
        gemv_prefetch(j->w + n * r.strip, n * LS_LANES * nbytes, i);
        block(n, bf16, &r, j->x + i * GROUP, p, next);
        UNROLL for (int s = 0; s < n; s++) gemv_end_block(bf16, &r.sum[s]);
    }
    for (int s = 0; s < n; s++) v_store(j->sum + s * LS_LANES, r.sum[s].all);
}

#define ROWS(name, bf16, type, nbytes, first)                                                      \
    void LS_K(gemv_rows_##name)(int strips, int64_t C, const float *x, const uint8_t *w,           \
                                float *sum) {                                                      \
        if (strips == 2)                                                                           \
            each_block(2, bf16, block_##type, nbytes, first, &(rows_job){C, x, w, sum});           \
        else                                                                                       \
            each_block(STRIPS, bf16, block_##type, nbytes, first, &(rows_job){C, x, w, sum});      \
    }
ROWS(q8_0, 0, q8_0, 34, 2)
ROWS(q4_0, 0, q4_0, 18, 2)
ROWS(q4_1, 0, q4_1, 20, 4)
#ifdef V_PAIRS
ROWS(q8_0_bf16, 1, q8_0, 34, 2)
ROWS(q4_0_bf16, 1, q4_0, 18, 2)
ROWS(q4_1_bf16, 1, q4_1, 20, 4)
#endif
