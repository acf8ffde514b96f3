/* gemv.c - products of one row, which are limited by reading the weights.
 *
 * Weights [K, N] are processed eight rows at a time: the eight continue one chain for each column,
 * so y is read and written once for eight rows, and memory is read in eight streams. The next rows
 * are prefetched by hand: rows of weights are split among threads, and the hardware prefetcher
 * would have to relearn its streams for each part.
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

void LS_K(gemv)(ls_dtype type, int64_t K, int64_t N, const float *x, const void *w, int64_t ld,
                float *y) {
    assert(type == LS_F32 || type == LS_BF16 || type == LS_F16);
    switch (type) {
    case LS_F32: product(LS_F32, K, N, x, w, ld, y); break;
    case LS_BF16: product(LS_BF16, K, N, x, w, ld, y); break;
    default: product(LS_F16, K, N, x, w, ld, y); break;
    }
}
