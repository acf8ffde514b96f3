/* gemm_bf16.c - packing for products in bf16, and their tile (blocks_tile.c) in the mode that it
 * needs, or in plain C. A packed word is an operand that was rounded to bf16, as f32.
 */
#include <assert.h>

#include "tensor/kernels/bf16.h"
#include "tensor/kernels/pack_strip.h"

enum { TILE_M = LS_TILE_ROWS, TILE_N = LS_TILE_REGS * LS_VR };

void LS_K(to_bf16)(int64_t n, const float *x, void *y) {
    char *to = y;
    for (int64_t i = 0; i < n; i += BF16_LINE)
        bf16_line(n - i < BF16_LINE ? n - i : BF16_LINE, x + i, to + 2 * i);
}

float LS_K(bf16_peak)(int64_t rounds) { return LS_K(fma_peak)(rounds); }

int64_t LS_K(bf16_words)(int64_t K) { return K; }

enum { DEPTH = 64, LINES = 96 }; /* of operands in bf16 that are widened at a time */

/* Neighbours in memory are widened together. They are values of k, or else lines. */
static lines widen(const ls_gemm_lines *from, int64_t line, int64_t n, int64_t k, int64_t some,
                   float *room) {
    bool across = from->line == 1;
    int64_t outer = across ? some : n, inner = across ? n : some;
    int64_t next = across ? from->step : from->line, step = across ? 1 : from->step;
    const uint16_t *p = value_at(from, line, k);
    for (int64_t i = 0; i < outer; i++, p += next) {
        float *to = room + i * inner;
        if (step == 1)
            EACH for (int64_t j = 0; j < inner; j++) to[j] = f32_of_bf16(p[j]);
        else
            for (int64_t j = 0; j < inner; j++) to[j] = f32_of_bf16(p[j * step]);
    }
    return across ? (lines){room, 1, inner} : (lines){room, inner, 1};
}

/* Strips of `width` lines in bf16. */
static void pack_halves(int64_t n, int64_t depth, const ls_gemm_lines *from, int64_t width,
                        float *out) {
    float room[LINES * DEPTH];
    assert(width <= LINES);
    int64_t most = from->line == 1 ? LINES / width * width : width;
    for (int64_t i = 0; i < n; i += most)
        for (int64_t k = 0; k < depth; k += DEPTH) {
            int64_t m = n - i < most ? n - i : most, some = depth - k < DEPTH ? depth - k : DEPTH;
            lines wide = widen(from, i, m, k, some, room);
            for (int64_t s = 0; s < m; s += width) {
                lines strip = {wide.p + s * wide.line, wide.line, wide.step};
                pack_strip(strip, m - s < width ? m - s : width, some, width,
                           out + (i + s) * depth + k * width);
            }
        }
}

static void pack(int64_t n, int64_t depth, const ls_gemm_lines *from, int64_t width, float *out) {
    if (from->bf16) {
        pack_halves(n, depth, from, width, out);
        return;
    }
    for (int64_t i = 0; i < n; i += width, out += depth * width) {
        int64_t some = n - i < width ? n - i : width;
        pack_strip((lines){value_at(from, i, 0), from->line, from->step}, some, depth, width, out);
        EACH for (int64_t j = 0; j < depth * width; j++) out[j] = bf16_round(out[j]);
    }
}

void LS_K(pack_a_bf16)(int64_t M, int64_t K, const ls_gemm_lines *a, float *out) {
    pack(M, K, a, TILE_M, out);
}

void LS_K(pack_b_bf16)(int64_t K, int64_t N, const ls_gemm_lines *b, float *out) {
    pack(N, K, b, TILE_N, out);
}

/* The sums of a tile, in plain C: from [TILE_M, TILE_N], rows from_row apart, where they begin. */
typedef struct sums {
    int64_t K;
    const float *a, *b, *from;
    int64_t from_row;
} sums;

static void exact_tile(const sums *x, float *c, int64_t ldc) {
    for (int64_t i = 0; i < TILE_M; i++)
        for (int64_t j = 0; j < TILE_N; j++) {
            bf16_sum s = {.sum = x->from[i * x->from_row + j]};
            for (int64_t k = 0; k < x->K; k++)
                bf16_add(&s, x->a[k * TILE_M + i], x->b[k * TILE_N + j]);
            c[i * ldc + j] = bf16_sum_of(&s);
        }
}

/* ---- tiles ---- */

#ifdef V_FLUSH
/* A processor that rounds after it has flushed says whether it has flushed anything; then the tile
 * is computed again. */
static void checked_tile(int64_t K, const float *a, const float *b, const float *start, float *c,
                         int64_t ldc) {
    float before[TILE_M * TILE_N];
    sums again = {K, a, b, start ? start : before, start ? 0 : TILE_N};
    for (int64_t i = 0; !start && i < TILE_M; i++)
        memcpy(before + i * TILE_N, c + i * ldc, TILE_N * sizeof *before);
    v_flush_state mode = v_flush_begin();
    LS_K(blocks_tile)(K, a, b, start, c, ldc);
    if (!v_flush_end(mode)) exact_tile(&again, c, ldc);
}
#endif

void LS_K(bf16_tiles)(const ls_gemm_tiles *x) {
    const int64_t a_strip = LS_K(bf16_words)(x->K) * TILE_M, below = TILE_M * x->ldc;
    const float *a = x->a;
    float *c = x->c;
#ifndef V_FLUSH
    for (int64_t i = 0; i < x->n; i++, a += a_strip, c += below)
        exact_tile(&(sums){x->K, a, x->b, x->start ? x->start : c, x->start ? 0 : x->ldc}, c,
                   x->ldc);
#else
    for (int64_t i = 0; V_FLUSH_REPEATS && i < x->n; i++) {
        ls_ahead_fetch(x->ahead, x->ahead->share, 0);
        checked_tile(x->K, a + i * a_strip, x->b, x->start, c + i * below, x->ldc);
    }
    if (V_FLUSH_REPEATS) return;
    v_flush_state mode = v_flush_begin();
    for (int64_t i = 0; i < x->n; i++) {
        ls_ahead_fetch(x->ahead, x->ahead->share, 0);
        LS_K(blocks_tile)(x->K, a + i * a_strip, x->b, x->start, c + i * below, x->ldc);
    }
    v_flush_end(mode);
#endif
}
