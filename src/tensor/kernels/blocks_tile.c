/* blocks_tile.c - the innermost part of products in bf16: a tile of c goes on over K values of k,
 * in blocks of LS_SUM_BLOCK (kernels.h). Called while the processor takes numbers below 1.2e-38 as
 * zeros.
 *
 * Registers hold the even and the odd chains of half of the tile's rows during a block, and c stays
 * in memory. A word is a step of a chain: one value of k, or with an instruction for pairs the
 * values k and k + 2 (gemm_bf16.c); the words of even and of odd places alternate.
 */
#include "tensor/kernels/variant.h"

enum { TILE_N = LS_TILE_REGS * LS_VR, HALF = LS_TILE_ROWS / 2 };

#define UNROLL _Pragma("GCC unroll 16")
#define INLINE static inline __attribute__((always_inline))

#ifdef V_PAIRS
INLINE vr step(vr a, vr b, vr c) { return r_dot(a, b, c); }
#else
INLINE vr step(vr a, vr b, vr c) { return r_fma(a, b, c); }
#endif

typedef struct chains {
    vr of[2][HALF][LS_TILE_REGS]; /* of even and of odd places */
} chains;

INLINE void add_word(chains *x, int odd, const float *a, const float *b) {
    vr row[LS_TILE_REGS];
    UNROLL for (int j = 0; j < LS_TILE_REGS; j++) row[j] = r_load(b + j * LS_VR);
    UNROLL for (int i = 0; i < HALF; i++) {
        vr one = r_set1(a[i]);
        UNROLL for (int j = 0; j < LS_TILE_REGS; j++) x->of[odd][i][j] =
            step(one, row[j], x->of[odd][i][j]);
    }
}

/* A tile in memory, or LS_TILE_ROWS times the same row. */
typedef struct place {
    const float *p;
    int64_t row;
} place;

/* Half of a tile: c = from + (the even chains + the odd ones) of some words. */
INLINE void add_block(int64_t words, const float *a, const float *b, place from, float *c,
                      int64_t ldc) {
    enum { A = LS_TILE_ROWS, B = TILE_N };
    chains x;
    UNROLL for (int i = 0; i < HALF; i++) UNROLL for (int j = 0; j < LS_TILE_REGS; j++)
        x.of[0][i][j] = x.of[1][i][j] = r_set1(0);
    for (; words >= 4; words -= 4, a += 4 * A, b += 4 * B)
        UNROLL for (int w = 0; w < 4; w++) add_word(&x, w % 2, a + w * A, b + w * B);
    if (words > 0) add_word(&x, 0, a, b);
    if (words > 1) add_word(&x, 1, a + A, b + B);
    if (words > 2) add_word(&x, 0, a + 2 * A, b + 2 * B);
    UNROLL for (int i = 0; i < HALF; i++) UNROLL for (int j = 0; j < LS_TILE_REGS; j++) {
        vr before = r_load(from.p + i * from.row + j * LS_VR);
        r_store(c + i * ldc + j * LS_VR, r_add(before, r_add(x.of[0][i][j], x.of[1][i][j])));
    }
}

/* The tile below is prefetched; it need not exist. */
void LS_K(blocks_tile)(int64_t K, const float *restrict a, const float *restrict b,
                       const float *start, float *c, int64_t ldc) {
    place from = start ? (place){start, 0} : (place){c, ldc};
    for (int i = 0; i < LS_TILE_ROWS; i++) {
        const char *below = (const char *)c + (LS_TILE_ROWS + i) * ldc * (int64_t)sizeof *c;
        for (int j = 0; j < LS_TILE_REGS; j++)
            __builtin_prefetch(below + j * LS_VR * (int64_t)sizeof *c, 1);
        __builtin_prefetch(below + (TILE_N - 1) * sizeof *c, 1);
    }
    for (int64_t k = 0; k < K; k += LS_SUM_BLOCK, from = (place){c, ldc}) {
        int64_t words = LS_K(bf16_words)(K - k < LS_SUM_BLOCK ? K - k : LS_SUM_BLOCK);
        for (int i = 0; i < LS_TILE_ROWS; i += HALF)
            add_block(words, a + i, b, (place){from.p + i * from.row, from.row}, c + i * ldc, ldc);
        a += words * LS_TILE_ROWS, b += words * TILE_N;
    }
}
