/* blocks_tile.c - the innermost part of products in bf16: a tile of c goes on over K values of k, in
 * blocks of LS_SUM_BLOCK (kernels.h). Called while the processor takes numbers below 1.2e-38 as
 * zeros.
 *
 * The tile's registers hold a block's even chains, then its odd ones, and c stays in memory, since
 * there are no registers for all three. A word is a step of the chains: one value of k, or, with an
 * instruction for pairs, the values k and k + 2 (gemm_bf16.c).
 */
#include "tensor/kernels/variant.h"

enum { TILE_M = LS_TILE_ROWS, TILE_N = LS_TILE_REGS * LS_VR };

#define UNROLL _Pragma("GCC unroll 16")
#define INLINE static inline __attribute__((always_inline))

typedef struct tile {
    vr c[TILE_M][LS_TILE_REGS];
} tile;

#ifdef V_PAIRS
/* A chain's words follow each other. */
enum { STEP = 1, WORDS = LS_SUM_BLOCK / 4, BLOCK_WORDS = LS_SUM_BLOCK / 2 };
INLINE vr step(vr a, vr b, vr c) { return r_dot(a, b, c); }
INLINE int64_t words_of_chain(int64_t values) { return (values + 1) / 2; }
INLINE int64_t first_odd(int64_t even_words) { return even_words; }
#else
/* Even and odd words alternate. */
enum { STEP = 2, WORDS = LS_SUM_BLOCK / 2, BLOCK_WORDS = LS_SUM_BLOCK };
INLINE vr step(vr a, vr b, vr c) { return r_fma(a, b, c); }
INLINE int64_t words_of_chain(int64_t values) { return values; }
INLINE int64_t first_odd(int64_t even_words) {
    (void)even_words;
    return 1;
}
#endif

INLINE void add_word(tile *t, const float *a, const float *b) {
    vr row[LS_TILE_REGS];
    UNROLL for (int j = 0; j < LS_TILE_REGS; j++) row[j] = r_load(b + j * LS_VR);
    UNROLL for (int i = 0; i < TILE_M; i++) {
        vr x = r_set1(a[i]);
        UNROLL for (int j = 0; j < LS_TILE_REGS; j++) t->c[i][j] = step(x, row[j], t->c[i][j]);
    }
}

/* The chains of n words, from 0. */
INLINE void find_chain(tile *t, int64_t n, const float *a, const float *b) {
    UNROLL for (int i = 0; i < TILE_M; i++) UNROLL for (int j = 0; j < LS_TILE_REGS; j++)
        t->c[i][j] = r_set1(0);
    for (; n >= 4; n -= 4, a += 4 * STEP * TILE_M, b += 4 * STEP * TILE_N)
        UNROLL for (int k = 0; k < 4; k++)
            add_word(t, a + k * STEP * TILE_M, b + k * STEP * TILE_N);
    for (; n > 0; n--, a += STEP * TILE_M, b += STEP * TILE_N) add_word(t, a, b);
}

/* A tile in memory, or TILE_M times the same row. */
typedef struct place {
    const float *p;
    int64_t row;
} place;

/* c = from + (the even chains + the odd ones). */
INLINE void add_block(int64_t even, int64_t odd, const float *a, const float *b, place from,
                      float *c, int64_t ldc) {
    float chains[TILE_M * TILE_N];
    int64_t at = first_odd(even);
    tile t;
    find_chain(&t, even, a, b);
    UNROLL for (int i = 0; i < TILE_M; i++) UNROLL for (int j = 0; j < LS_TILE_REGS; j++)
        r_store(chains + i * TILE_N + j * LS_VR, t.c[i][j]);
    find_chain(&t, odd, a + at * TILE_M, b + at * TILE_N);
    UNROLL for (int i = 0; i < TILE_M; i++) UNROLL for (int j = 0; j < LS_TILE_REGS; j++) {
        vr sum = r_add(r_load(chains + i * TILE_N + j * LS_VR), t.c[i][j]);
        r_store(c + i * ldc + j * LS_VR, r_add(r_load(from.p + i * from.row + j * LS_VR), sum));
    }
}

/* The tile below is prefetched; it need not exist. */
void LS_K(blocks_tile)(int64_t K, const float *restrict a, const float *restrict b,
                       const float *start, float *c, int64_t ldc) {
    place from = start ? (place){start, 0} : (place){c, ldc};
    for (int i = 0; i < TILE_M; i++) {
        const char *below = (const char *)c + (TILE_M + i) * ldc * (int64_t)sizeof *c;
        for (int j = 0; j < LS_TILE_REGS; j++)
            __builtin_prefetch(below + j * LS_VR * (int64_t)sizeof *c, 1);
        __builtin_prefetch(below + (TILE_N - 1) * sizeof *c, 1);
    }
    for (; K >= LS_SUM_BLOCK; K -= LS_SUM_BLOCK, from = (place){c, ldc}) {
        add_block(WORDS, WORDS, a, b, from, c, ldc);
        a += BLOCK_WORDS * TILE_M, b += BLOCK_WORDS * TILE_N;
    }
    if (K > 0) add_block(words_of_chain((K + 1) / 2), words_of_chain(K / 2), a, b, from, c, ldc);
}
