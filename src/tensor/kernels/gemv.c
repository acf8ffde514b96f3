/* gemv.c - products of one row, which are limited by reading the weights.
 *
 * Weights [K, N] are processed eight rows at a time: the eight continue one chain for each column,
 * so y is read and written once for eight rows, and memory is read in eight streams. A table [V, C]
 * is processed sixteen rows at a time, a row a lane: blocks of 16 x 16 are transposed, with two
 * 16-bit values as one. The next rows are prefetched by hand: rows of weights are split among
 * threads, and the hardware prefetcher would have to relearn its streams for each part.
 */
#include <assert.h>

#include "tensor/kernels/variant.h"

/* Inlined for each type if that is a few vector instructions. Portable loops over sixteen lanes,
 * built with sanitizers, would grow to millions of lines. */
#if defined(LS_VARIANT_portable)
#define INLINE static inline
#else
#define INLINE static inline __attribute__((always_inline))
#endif

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

/* Sixteen rows of a table; if there are fewer, the last is repeated. */
typedef struct strip {
    const void *rows[LS_LANES];
} strip;

enum { CELLS = LS_LANES * LS_LANES };

/* across [16][16]: value k + i of row r at i, r. n values, 1 to 16. */
INLINE void transpose_f32(const strip *s, int64_t k, int64_t n, float *across) {
    float copy[CELLS] = {0};
    for (int first = 0; first < LS_LANES; first += 4)
        for (int half = 0; half < LS_LANES; half += 8) {
            const float *lines[4];
            for (int i = 0; i < 4; i++) {
                float *own = copy + (first + i) * LS_LANES;
                lines[i] = element(LS_F32, s->rows[first + i], k);
                if (n < LS_LANES) lines[i] = memcpy(own, lines[i], (size_t)n * sizeof *own);
                lines[i] += half;
            }
            v_transpose4(lines, across + half * LS_LANES + first, LS_LANES);
        }
}

/* Two neighbouring values share a lane: across [8][16], values k + 2i and k + 2i + 1 of row r at
 * i, r. */
INLINE void transpose_pairs(const strip *s, int64_t k, int64_t n, float *across) {
    float pairs[CELLS / 2] = {0};
    for (int first = 0; first < LS_LANES; first += 4) {
        const float *lines[4];
        for (int i = 0; i < 4; i++) {
            float *own = pairs + (first + i) * 8;
            lines[i] = element(LS_BF16, s->rows[first + i], k);
            if (n < LS_LANES) lines[i] = memcpy(own, lines[i], (size_t)n * 2);
        }
        v_transpose4(lines, across + first, LS_LANES);
    }
}

/* Continues the sum over n values of each row, from value k on; n in 1..16. */
INLINE v16 strip_values(ls_dtype type, const strip *s, int64_t k, int64_t n, const float *x,
                        v16 sum) {
    float across[CELLS];
    if (type == LS_F32) {
        transpose_f32(s, k, n, across);
        for (int64_t i = 0; i < n; i++)
            sum = v_fma(v_set1(x[k + i]), v_load(across + i * LS_LANES), sum);
        return sum;
    }
    transpose_pairs(s, k, n, across);
    for (int64_t i = 0; i < n; i++) {
        v16 pair = v_load(across + i / 2 * LS_LANES);
        v16 w = type == LS_BF16 ? v_pick_bf16(pair, i & 1) : v_pick_f16(pair, i & 1);
        sum = v_fma(v_set1(x[k + i]), w, sum);
    }
    return sum;
}

/* The rows after the strip follow it in memory, so prefetch one strip length ahead. */
INLINE void strip_prefetch(ls_dtype type, const strip *s, int64_t k, int64_t C) {
    for (int i = 0; i < LS_LANES; i++) v_prefetch(element(type, s->rows[i], k + LS_LANES * C));
}

INLINE void table_product(ls_dtype type, int64_t V, int64_t C, const float *x, const void *w,
                          float *y) {
    for (int64_t v = 0; v < V; v += LS_LANES) {
        int64_t n = V - v, k = 0;
        strip s;
        for (int i = 0; i < LS_LANES; i++)
            s.rows[i] = element(type, w, (i < n ? v + i : V - 1) * C);
        v16 sum = v_set1(0.0f);
        for (; k + LS_LANES <= C; k += LS_LANES) {
            if (n >= 2 * LS_LANES) strip_prefetch(type, &s, k, C);
            sum = strip_values(type, &s, k, LS_LANES, x, sum);
        }
        if (k < C) sum = strip_values(type, &s, k, C - k, x, sum);
        v_store_n(y + v, sum, n);
    }
}

void LS_K(gemv_table)(ls_dtype type, int64_t V, int64_t C, const float *x, const void *w,
                      float *y) {
    assert(type == LS_F32 || type == LS_BF16 || type == LS_F16);
    switch (type) {
    case LS_F32: table_product(LS_F32, V, C, x, w, y); break;
    case LS_BF16: table_product(LS_BF16, V, C, x, w, y); break;
    default: table_product(LS_F16, V, C, x, w, y); break;
    }
}
