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

enum { STRIPS = 2, GROUP = 32 };

/* What is read of a strip's blocks. */
typedef struct blocks {
    v16 d, m;
    v16 words[4];
} blocks;

/* The scales of sixteen blocks, `stride` bytes apart. */
INLINE v16 scales_at(const uint8_t *p, int64_t stride) {
    uint16_t d[LS_LANES];
    for (int i = 0; i < LS_LANES; i++) memcpy(&d[i], p + i * stride, sizeof *d);
    return v_load_f16(d);
}

/* Scales and minima: two of 16 bits in a word. */
INLINE v16 pairs_at(const uint8_t *p, int64_t stride) {
    float pairs[LS_LANES];
    for (int i = 0; i < LS_LANES; i++) memcpy(&pairs[i], p + i * stride, sizeof *pairs);
    return v_load(pairs);
}

/* The next strips are adjacent in memory: prefetches the part that belongs to block i of n. */
INLINE void prefetch_next(const uint8_t *w, int64_t nbytes, int64_t i, int64_t n) {
    const uint8_t *p = w + nbytes + nbytes * i / n, *end = w + nbytes + nbytes * (i + 1) / n;
    for (; p < end; p += 64) v_prefetch(p);
}

/* ---- 34 bytes: d, 32 x i8 ---- */

INLINE void add_bytes(int n, const blocks *b, const float *x, v16 *sum) {
    UNROLL for (int i = 0; i < 16; i++) {
        v16 y = v_set1(x[i]);
        UNROLL for (int s = 0; s < n; s++)
            sum[s] = v_fma(y, v_mul(v_pick_i8(b[s].words[i / 4], i % 4), b[s].d), sum[s]);
    }
}

INLINE void rows_q8_0(int n, int64_t C, const float *x, const uint8_t *w, float *start) {
    enum { BYTES = 34 };
    int64_t nblocks = C / GROUP, stride = nblocks * BYTES, strip = LS_LANES * stride;
    v16 sum[STRIPS];
    for (int s = 0; s < n; s++) sum[s] = v_load(start + s * LS_LANES);
    for (int64_t i = 0; i < nblocks; i++, x += GROUP) {
        const uint8_t *p = w + i * BYTES;
        blocks b[STRIPS];
        prefetch_next(w, n * strip, i, nblocks);
        UNROLL for (int s = 0; s < n; s++) {
            b[s].d = scales_at(p + s * strip, stride);
            v_rows4(p + s * strip + 2, stride, b[s].words);
        }
        add_bytes(n, b, x, sum);
        UNROLL for (int s = 0; s < n; s++) v_rows4(p + s * strip + 18, stride, b[s].words);
        add_bytes(n, b, x + 16, sum);
    }
    for (int s = 0; s < n; s++) v_store(start + s * LS_LANES, sum[s]);
}

/* ---- 18 bytes: d, 16 bytes of two nibbles ---- */

/* The low nibbles of 16 bytes, or the high ones. */
INLINE void add_centred(int n, int high, const blocks *b, const float *x, v16 *sum) {
    UNROLL for (int i = 0; i < 16; i++) {
        v16 y = v_set1(x[i]);
        UNROLL for (int s = 0; s < n; s++) {
            v16 q = v_pick_s4(b[s].words[i / 4], i % 4 * 2 + high);
            sum[s] = v_fma(y, v_mul(q, b[s].d), sum[s]);
        }
    }
}

INLINE void rows_q4_0(int n, int64_t C, const float *x, const uint8_t *w, float *start) {
    enum { BYTES = 18 };
    int64_t nblocks = C / GROUP, stride = nblocks * BYTES, strip = LS_LANES * stride;
    v16 sum[STRIPS];
    for (int s = 0; s < n; s++) sum[s] = v_load(start + s * LS_LANES);
    for (int64_t i = 0; i < nblocks; i++, x += GROUP) {
        const uint8_t *p = w + i * BYTES;
        blocks b[STRIPS];
        prefetch_next(w, n * strip, i, nblocks);
        UNROLL for (int s = 0; s < n; s++) {
            b[s].d = scales_at(p + s * strip, stride);
            v_rows4(p + s * strip + 2, stride, b[s].words);
        }
        add_centred(n, 0, b, x, sum);
        add_centred(n, 1, b, x + 16, sum);
    }
    for (int s = 0; s < n; s++) v_store(start + s * LS_LANES, sum[s]);
}

/* ---- 20 bytes: d, m, 16 bytes of two nibbles ---- */

INLINE void add_affine(int n, int high, const blocks *b, const float *x, v16 *sum) {
    UNROLL for (int i = 0; i < 16; i++) {
        v16 y = v_set1(x[i]);
        UNROLL for (int s = 0; s < n; s++) {
            v16 q = v_pick_u4(b[s].words[i / 4], i % 4 * 2 + high);
            sum[s] = v_fma(y, v_fma(q, b[s].d, b[s].m), sum[s]);
        }
    }
}

INLINE void rows_q4_1(int n, int64_t C, const float *x, const uint8_t *w, float *start) {
    enum { BYTES = 20 };
    int64_t nblocks = C / GROUP, stride = nblocks * BYTES, strip = LS_LANES * stride;
    v16 sum[STRIPS];
    for (int s = 0; s < n; s++) sum[s] = v_load(start + s * LS_LANES);
    for (int64_t i = 0; i < nblocks; i++, x += GROUP) {
        const uint8_t *p = w + i * BYTES;
        blocks b[STRIPS];
        prefetch_next(w, n * strip, i, nblocks);
        UNROLL for (int s = 0; s < n; s++) {
            v16 pairs = pairs_at(p + s * strip, stride);
            b[s].d = v_pick_f16(pairs, 0);
            b[s].m = v_pick_f16(pairs, 1);
            v_rows4(p + s * strip + 4, stride, b[s].words);
        }
        add_affine(n, 0, b, x, sum);
        add_affine(n, 1, b, x + 16, sum);
    }
    for (int s = 0; s < n; s++) v_store(start + s * LS_LANES, sum[s]);
}

/* ---- for each type ---- */

void LS_K(gemv_16_q8_0)(int64_t C, const float *x, const uint8_t *w, float *sum) {
    rows_q8_0(1, C, x, w, sum);
}
void LS_K(gemv_32_q8_0)(int64_t C, const float *x, const uint8_t *w, float *sum) {
    rows_q8_0(STRIPS, C, x, w, sum);
}
void LS_K(gemv_16_q4_0)(int64_t C, const float *x, const uint8_t *w, float *sum) {
    rows_q4_0(1, C, x, w, sum);
}
void LS_K(gemv_32_q4_0)(int64_t C, const float *x, const uint8_t *w, float *sum) {
    rows_q4_0(STRIPS, C, x, w, sum);
}
void LS_K(gemv_16_q4_1)(int64_t C, const float *x, const uint8_t *w, float *sum) {
    rows_q4_1(1, C, x, w, sum);
}
void LS_K(gemv_32_q4_1)(int64_t C, const float *x, const uint8_t *w, float *sum) {
    rows_q4_1(STRIPS, C, x, w, sum);
}
