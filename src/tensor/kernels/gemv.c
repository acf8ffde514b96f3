/* gemv.c - products of one row, which are limited by reading the weights.
 *
 * Weights [K, N] are processed eight rows at a time: the eight continue one chain for each column,
 * so y is read and written once for eight rows, and memory is read in eight streams. The next rows
 * are prefetched by hand: rows of weights are split among threads, and the hardware prefetcher
 * would have to relearn its streams for each part.
 *
 * In blocks of LS_SUM_BLOCK (kernels.h) a block's rows are processed together, for some columns.
 */
#include <assert.h>

#include "tensor/kernels/gemv_inline.h"

enum { ROWS = 8 }; /* at a time */

INLINE const void *element(ls_dtype type, const void *w, int64_t i) {
    return (const char *)w + i * (type == LS_F32 ? 4 : 2);
}

/* Loads n weights from w, n in 1..16; the other lanes are 0. */
INLINE v16 load(ls_dtype type, const void *w, int64_t n) {
    if (type == LS_F32) return v_load_n(w, n);
    uint16_t t[LS_LANES] = {0};
    if (n < LS_LANES) w = memcpy(t, w, (size_t)n * sizeof *t);
    return type == LS_BF16 ? v_load_bf16(w) : v_load_f16(w);
}

/* n columns of `rows` rows; prefetches those of `next`. */
INLINE void columns(ls_dtype type, int rows, int64_t n, const float *x, const void *w,
                    const void *next, int64_t ld, float *y) {
    v16 sum = v_load_n(y, n);
    for (int r = 0; r < rows; r++) {
        v_prefetch(element(type, next, r * ld));
        sum = v_fma(v_set1(x[r]), load(type, element(type, w, r * ld), n), sum);
    }
    v_store_n(y, sum, n);
}

INLINE void panel(ls_dtype type, int rows, int64_t N, const float *x, const void *w,
                  const void *next, int64_t ld, float *y) {
    int64_t j = 0;
    for (; j + LS_LANES <= N; j += LS_LANES)
        columns(type, rows, LS_LANES, x, element(type, w, j), element(type, next, j), ld, y + j);
    if (j < N)
        columns(type, rows, N - j, x, element(type, w, j), element(type, next, j), ld, y + j);
}

INLINE void product(ls_dtype type, int64_t K, int64_t N, const float *x, const void *w, int64_t ld,
                    float *y) {
    int64_t k = 0;
    for (; k + ROWS <= K; k += ROWS) {
        const void *here = element(type, w, k * ld);
        int64_t ahead = k + 2 * ROWS <= K ? ROWS * ld : 0;
        panel(type, ROWS, N, x + k, here, element(type, here, ahead), ld, y);
    }
    for (; k < K; k++) {
        const void *here = element(type, w, k * ld);
        panel(type, 1, N, x + k, here, here, ld, y);
    }
}

/* ---- in blocks ---- */

enum { VECTORS = 2 }; /* of columns: their four chains hide the time of a multiply-add */

/* n columns: 16 nv, or fewer than 16, of `rows` rows. */
INLINE void block_columns(ls_dtype type, int nv, int64_t rows, int64_t n, const float *x,
                          const void *w, const void *next, int64_t ld, float *y) {
    v16 chains[2][VECTORS];
    UNROLL for (int v = 0; v < nv; v++) chains[0][v] = chains[1][v] = v_set1(0.0f);
    for (int64_t r = 0; r < rows; r++) {
        const v16 one = v_set1(x[r]);
        v_prefetch(element(type, next, r * ld));
        UNROLL for (int v = 0; v < nv; v++) {
            v16 *chain = &chains[r & 1][v];
            *chain = v_fma(one, load(type, element(type, w, r * ld + v * LS_LANES), n), *chain);
        }
    }
    UNROLL for (int v = 0; v < nv; v++) {
        float *at = y + v * LS_LANES;
        v_store_n(at, v_add(v_load_n(at, n), v_add(chains[0][v], chains[1][v])), n);
    }
}

INLINE void block_of_rows(ls_dtype type, int64_t rows, int64_t N, const float *x, const void *w,
                          const void *next, int64_t ld, float *y) {
    enum { WIDE = VECTORS * LS_LANES };
    int64_t j = 0;
    for (; j + WIDE <= N; j += WIDE)
        block_columns(type, VECTORS, rows, LS_LANES, x, element(type, w, j), element(type, next, j),
                      ld, y + j);
    for (; j < N; j += LS_LANES)
        block_columns(type, 1, rows, N - j, x, element(type, w, j), element(type, next, j), ld,
                      y + j);
}

INLINE void product_in_blocks(ls_dtype type, int64_t K, int64_t N, const float *x, const void *w,
                              int64_t ld, float *y) {
    enum { BLOCK = LS_SUM_BLOCK };
    int64_t k = 0;
    for (; k + BLOCK <= K; k += BLOCK) {
        const void *here = element(type, w, k * ld);
        int64_t ahead = k + 2 * BLOCK <= K ? BLOCK * ld : 0;
        block_of_rows(type, BLOCK, N, x + k, here, element(type, here, ahead), ld, y);
    }
    const void *here = element(type, w, k * ld);
    if (k < K) block_of_rows(type, K - k, N, x + k, here, here, ld, y);
}

void LS_K(gemv_in_blocks)(ls_dtype type, int64_t K, int64_t N, const float *x, const void *w,
                          int64_t ld, float *y) {
    assert(type == LS_F32 || type == LS_BF16);
    if (type == LS_F32)
        product_in_blocks(LS_F32, K, N, x, w, ld, y);
    else
        product_in_blocks(LS_BF16, K, N, x, w, ld, y);
}

void LS_K(gemv)(ls_dtype type, int64_t K, int64_t N, const float *x, const void *w, int64_t ld,
                float *y) {
    assert(type == LS_F32 || type == LS_BF16 || type == LS_F16);
    switch (type) {
    case LS_F32: product(LS_F32, K, N, x, w, ld, y); break;
    case LS_BF16: product(LS_BF16, K, N, x, w, ld, y); break;
    default: product(LS_F16, K, N, x, w, ld, y); break;
    }
}
