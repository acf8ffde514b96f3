/* gemv_blocks.c - see gemv_blocks.h.
 *
 * A row is a lane. Of each row 16 bytes are read as four words, which are transposed; then a word's
 * bytes, or its nibbles, are picked in all lanes at once, widened and scaled. Two strips of sixteen
 * rows are computed together, since one chain would wait for its own multiply-adds.
 *
 * A number is scaled to the bits of kernels/unpack.c: the product of a scale of 16 bits and a number
 * of at most 8 bits is exact, so d q + m is one multiply-add.
 */
#include "tensor/kernels/gemv_blocks.h"

#include "tensor/kernels/gemv_inline.h"

#define UNROLL _Pragma("GCC unroll 16")

enum { STRIPS = LS_GEMV_STRIPS, GROUP = 32 };

/* A loop over the blocks of n strips: what is read of them, and the chains. */
typedef struct rows {
    int64_t stride, strip; /* bytes between rows, between strips */
    v16 sum[STRIPS], d[STRIPS], m[STRIPS];
    v16 words[STRIPS][4];
} rows;

/* Prefetches part i of the next strips, which are adjacent in memory. */
INLINE void prefetch_next(const uint8_t *w, int64_t all, int64_t nbytes, int64_t i) {
    const uint8_t *p = w + all + nbytes * i, *end = p + nbytes;
    for (; p < end; p += 64) v_prefetch_far(p);
}

/* Four words of each row. */
INLINE void load_words(int n, rows *r, const uint8_t *p) {
    UNROLL for (int s = 0; s < n; s++) v_rows4(p + s * r->strip, r->stride, r->words[s]);
}

/* The scales, and the minima, that a block begins with: a word is read for each row. */
INLINE void load_scales(int n, int minima, rows *r, const uint8_t *p) {
    UNROLL for (int s = 0; s < n; s++) {
        v16 words[4];
        v_rows4(p + s * r->strip, r->stride, words);
        r->d[s] = v_pick_f16(words[0], 0);
        if (minima) r->m[s] = v_pick_f16(words[0], 1);
    }
}

INLINE void add_bytes(int n, rows *r, const float *x) {
    UNROLL for (int i = 0; i < 16; i++) {
        v16 y = v_set1(x[i]);
        UNROLL for (int s = 0; s < n; s++) r->sum[s] =
            v_fma(y, v_mul(v_pick_i8(r->words[s][i / 4], i % 4), r->d[s]), r->sum[s]);
    }
}

/* The low nibbles of 16 bytes, or the high ones. */
INLINE void add_centred(int n, int high, rows *r, const float *x) {
    UNROLL for (int i = 0; i < 16; i++) {
        v16 y = v_set1(x[i]);
        UNROLL for (int s = 0; s < n; s++) {
            v16 q = v_pick_s4(r->words[s][i / 4], i % 4 * 2 + high);
            r->sum[s] = v_fma(y, v_mul(q, r->d[s]), r->sum[s]);
        }
    }
}

INLINE void add_affine(int n, int high, rows *r, const float *x) {
    UNROLL for (int i = 0; i < 16; i++) {
        v16 y = v_set1(x[i]);
        UNROLL for (int s = 0; s < n; s++) {
            v16 q = v_pick_u4(r->words[s][i / 4], i % 4 * 2 + high);
            r->sum[s] = v_fma(y, v_fma(q, r->d[s], r->m[s]), r->sum[s]);
        }
    }
}

/* ---- a block of each type ---- */

INLINE void block_q8_0(int n, rows *r, const float *x, const uint8_t *p) {
    load_scales(n, 0, r, p);
    load_words(n, r, p + 2);
    add_bytes(n, r, x);
    load_words(n, r, p + 18);
    add_bytes(n, r, x + 16);
}

INLINE void block_q4_0(int n, rows *r, const float *x, const uint8_t *p) {
    load_scales(n, 0, r, p);
    load_words(n, r, p + 2);
    add_centred(n, 0, r, x);
    add_centred(n, 1, r, x + 16);
}

INLINE void block_q4_1(int n, rows *r, const float *x, const uint8_t *p) {
    load_scales(n, 1, r, p);
    load_words(n, r, p + 4);
    add_affine(n, 0, r, x);
    add_affine(n, 1, r, x + 16);
}

/* ---- all blocks of a row ---- */

typedef void block_fn(int n, rows *r, const float *x, const uint8_t *p);

INLINE void each_block(int n, block_fn *block, int64_t C, int64_t elements, int64_t nbytes,
                       const float *x, const uint8_t *w, float *sum) {
    int64_t nblocks = C / elements, stride = nblocks * nbytes;
    rows r = {.stride = stride, .strip = LS_LANES * stride};
    for (int s = 0; s < n; s++) r.sum[s] = v_load(sum + s * LS_LANES);
    for (int64_t i = 0; i < nblocks; i++, x += elements) {
        prefetch_next(w, n * r.strip, n * LS_LANES * nbytes, i);
        block(n, &r, x, w + i * nbytes);
    }
    for (int s = 0; s < n; s++) v_store(sum + s * LS_LANES, r.sum[s]);
}

#define ROWS(type, elements, nbytes)                                                               \
    void LS_K(gemv_rows_##type)(int strips, int64_t C, const float *x, const uint8_t *w,           \
                                float *sum) {                                                      \
        if (strips == 2)                                                                           \
            each_block(2, block_##type, C, elements, nbytes, x, w, sum);                           \
        else                                                                                       \
            each_block(STRIPS, block_##type, C, elements, nbytes, x, w, sum);                      \
    }
ROWS(q8_0, 32, 34)
ROWS(q4_0, 32, 18)
ROWS(q4_1, 32, 20)
