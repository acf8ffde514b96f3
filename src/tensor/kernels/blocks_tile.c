/* blocks_tile.c - the innermost part of products in bf16: a tile of c goes on over K values of k,
 * in blocks of LS_SUM_BLOCK (kernels.h). Called while the processor takes numbers below 1.2e-38 as
 * zeros.
 *
 * Registers hold the even and the odd chains of half of the tile's rows during a block, and c stays
 * in memory. A word is a step of a chain: one value of k, or for an instruction for pairs the
 * values k and k + 2 (gemm_pairs.c); the words of even and of odd places alternate.
 */
#include "tensor/kernels/variant.h"

enum { TILE_N = LS_TILE_REGS * LS_VR, HALF = LS_TILE_ROWS / 2 };

#define UNROLL _Pragma("GCC unroll 16")
#define INLINE static inline __attribute__((always_inline))

INLINE vr step(bool pairs, vr a, vr b, vr c) {
#ifdef V_PAIRS
    if (pairs) return r_dot(a, b, c);
#endif
    (void)pairs;
    return r_fma(a, b, c);
}

typedef struct chains {
    vr of[2][HALF][LS_TILE_REGS]; /* of even and of odd places */
} chains;

INLINE void add_word(bool pairs, chains *x, int odd, const float *a, const float *b) {
    vr row[LS_TILE_REGS];
    UNROLL for (int j = 0; j < LS_TILE_REGS; j++) row[j] = r_load(b + j * LS_VR);
    UNROLL for (int i = 0; i < HALF; i++) {
        vr one = r_set1(a[i]);
        UNROLL for (int j = 0; j < LS_TILE_REGS; j++) x->of[odd][i][j] =
            step(pairs, one, row[j], x->of[odd][i][j]);
    }
}

/* A tile in memory, or LS_TILE_ROWS times the same row. */
typedef struct place {
    const float *p;
    int64_t row;
} place;

typedef struct tile {
    int64_t K;
    const float *a, *b;
    float *c;
    int64_t ldc;
} tile;

/* Half of a tile: c = from + (the even chains + the odd ones) of some words. */
INLINE void add_block(bool pairs, int64_t words, tile t, place from) {
    enum { A = LS_TILE_ROWS, B = TILE_N };
    chains x;
    UNROLL for (int i = 0; i < HALF; i++) UNROLL for (int j = 0; j < LS_TILE_REGS; j++)
        x.of[0][i][j] = x.of[1][i][j] = r_set1(0);
    for (; words >= 4; words -= 4, t.a += 4 * A, t.b += 4 * B)
        UNROLL for (int w = 0; w < 4; w++) add_word(pairs, &x, w % 2, t.a + w * A, t.b + w * B);
    if (words > 0) add_word(pairs, &x, 0, t.a, t.b);
    if (words > 1) add_word(pairs, &x, 1, t.a + A, t.b + B);
    if (words > 2) add_word(pairs, &x, 0, t.a + 2 * A, t.b + 2 * B);
    UNROLL for (int i = 0; i < HALF; i++) UNROLL for (int j = 0; j < LS_TILE_REGS; j++) {
        vr before = r_load(from.p + i * from.row + j * LS_VR);
        r_store(t.c + i * t.ldc + j * LS_VR, r_add(before, r_add(x.of[0][i][j], x.of[1][i][j])));
    }
}

INLINE int64_t words_of(bool pairs, int64_t depth) {
#ifdef V_PAIRS
    if (pairs) return LS_K(pairs_words)(depth);
#endif
    (void)pairs;
    return depth;
}

/* From `start` on [TILE_N], or from c if it is NULL. The tile below is prefetched; it need not
 * exist. */
INLINE void each_block(bool pairs, tile t, const float *start) {
    place from = start ? (place){start, 0} : (place){t.c, t.ldc};
    for (int i = 0; i < LS_TILE_ROWS; i++) {
        const char *below = (const char *)t.c + (LS_TILE_ROWS + i) * t.ldc * (int64_t)sizeof *t.c;
        for (int j = 0; j < LS_TILE_REGS; j++)
            __builtin_prefetch(below + j * LS_VR * (int64_t)sizeof *t.c, 1);
        __builtin_prefetch(below + (TILE_N - 1) * sizeof *t.c, 1);
    }
    for (int64_t k = 0; k < t.K; k += LS_SUM_BLOCK, from = (place){t.c, t.ldc}) {
        int64_t words = words_of(pairs, t.K - k < LS_SUM_BLOCK ? t.K - k : LS_SUM_BLOCK);
        for (int i = 0; i < LS_TILE_ROWS; i += HALF) {
            tile half = {.a = t.a + i, .b = t.b, .c = t.c + i * t.ldc, .ldc = t.ldc};
            add_block(pairs, words, half, (place){from.p + i * from.row, from.row});
        }
        t.a += words * LS_TILE_ROWS, t.b += words * TILE_N;
    }
}

void LS_K(blocks_tile)(int64_t K, const float *a, const float *b, const float *start, float *c,
                       int64_t ldc) {
    each_block(false, (tile){K, a, b, c, ldc}, start);
}

#ifdef V_PAIRS
void LS_K(pairs_tile)(int64_t K, const float *a, const float *b, const float *start, float *c,
                      int64_t ldc) {
    each_block(true, (tile){K, a, b, c, ldc}, start);
}
#endif
