/* gemm_tile.c - the innermost part of the GEMM and the packing that feeds it.
 *
 * A tile of c is held in registers while k runs over the panel: each element is one chain of
 * multiply-adds over k, in order, which continues from `start` or from the value in c. The tile has
 * the size that needs the fewest instructions and loads per multiply-add (vec.h).
 */
#include "tensor/kernels/pack_strip.h"

enum { TILE_M = LS_TILE_ROWS, TILE_N = LS_TILE_REGS * LS_VR };

#define UNROLL _Pragma("GCC unroll 16")

typedef struct tile {
    vr c[TILE_M][LS_TILE_REGS];
} tile;

/* One k: the tile's values of a are rs apart, b is [TILE_N]. */
static inline __attribute__((always_inline)) void tile_step(tile *t, const float *a, int64_t rs,
                                                            const float *b) {
    vr row[LS_TILE_REGS];
    UNROLL for (int j = 0; j < LS_TILE_REGS; j++) row[j] = r_load(b + j * LS_VR);
    UNROLL for (int i = 0; i < TILE_M; i++) {
        vr x = r_set1(a[i * rs]);
        UNROLL for (int j = 0; j < LS_TILE_REGS; j++) t->c[i][j] = r_fma(x, row[j], t->c[i][j]);
    }
}

static inline __attribute__((always_inline)) void tile_run(tile *t, int64_t K, const float *a,
                                                           int64_t rs, int64_t cs, const float *b) {
    for (; K >= 4; K -= 4, a += 4 * cs, b += 4 * TILE_N) {
        tile_step(t, a, rs, b);
        tile_step(t, a + cs, rs, b + TILE_N);
        tile_step(t, a + 2 * cs, rs, b + 2 * TILE_N);
        tile_step(t, a + 3 * cs, rs, b + 3 * TILE_N);
    }
    for (; K > 0; K--, a += cs, b += TILE_N) tile_step(t, a, rs, b);
}

/* Prefetches the tile below, which need not exist. */
void LS_K(gemm_tile)(int64_t K, const float *restrict a, int64_t rs, int64_t cs,
                     const float *restrict b, const float *start, float *restrict c, int64_t ldc) {
    tile t;
    const float *from = start ? start : c;
    int64_t step = start ? 0 : ldc;
    UNROLL for (int i = 0; i < TILE_M; i++) {
        UNROLL for (int j = 0; j < LS_TILE_REGS; j++) t.c[i][j] =
            r_load(from + i * step + j * LS_VR);
        const char *below = (const char *)c + (TILE_M + i) * ldc * (int64_t)sizeof *c;
        __builtin_prefetch(below, 1);
        __builtin_prefetch(below + (TILE_N - 1) * sizeof *c, 1);
    }
    if (rs == 1 && cs == TILE_M)
        tile_run(&t, K, a, 1, TILE_M, b);
    else if (rs == 1)
        tile_run(&t, K, a, 1, cs, b);
    else
        tile_run(&t, K, a, rs, 1, b);
    UNROLL for (int i = 0; i < TILE_M; i++) UNROLL for (int j = 0; j < LS_TILE_REGS; j++)
        r_store(c + i * ldc + j * LS_VR, t.c[i][j]);
}

/* a [M, K] with strides rs, cs -> strips of TILE_M rows. */
void LS_K(pack_a)(int64_t M, int64_t K, const float *a, int64_t rs, int64_t cs, float *out) {
    for (int64_t i = 0; i < M; i += TILE_M, out += K * TILE_M)
        pack_strip((lines){a + i * rs, rs, cs}, M - i < TILE_M ? M - i : TILE_M, K, TILE_M, out);
}

/* b [K, N] with strides rs, cs -> strips of TILE_N columns. */
void LS_K(pack_b)(int64_t K, int64_t N, const float *b, int64_t rs, int64_t cs, float *out) {
    for (int64_t j = 0; j < N; j += TILE_N, out += K * TILE_N)
        pack_strip((lines){b + j * cs, cs, rs}, N - j < TILE_N ? N - j : TILE_N, K, TILE_N, out);
}

/* Chains of 16 lanes, as many at once as there are registers: 6 would not hide the latency of
 * AVX-512's multiply-add. */
float LS_K(fma_peak)(int64_t rounds) {
    enum { CHAINS = 12, AT_ONCE = LS_VR >= 16 ? 12 : 6 };
    const v16 x = v_set1(0.999999f), y = v_set1(1e-7f);
    float
        at[CHAINS * LS_LANES]; /* all different, or the compiler would compute equal chains once */
    for (int i = 0; i < CHAINS * LS_LANES; i++) at[i] = 0.01f * (float)i;
    for (float *p = at; p < at + CHAINS * LS_LANES; p += AT_ONCE * LS_LANES) {
        v16 c[AT_ONCE];
        UNROLL for (int k = 0; k < AT_ONCE; k++) c[k] = v_load(p + k * LS_LANES);
        for (int64_t i = 0; i < rounds; i++)
            UNROLL for (int j = 0; j < 16; j++) UNROLL for (int k = 0; k < AT_ONCE; k++) c[k] =
                v_fma(c[k], x, y);
        UNROLL for (int k = 0; k < AT_ONCE; k++) v_store(p + k * LS_LANES, c[k]);
    }
    v16 sum = v_load(at);
    for (int k = 1; k < CHAINS; k++) sum = v_add(sum, v_load(at + k * LS_LANES));
    return v_sum(sum);
}
