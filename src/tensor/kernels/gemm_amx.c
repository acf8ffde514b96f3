/* gemm_amx.c - products in bf16 by Intel's matrix unit (tensor/amx.h), whose instruction adds a
 * block of LS_SUM_BLOCK values of k in just the order that kernels.h defines.
 *
 * A tile of c is 32 x 32, four of the unit's. A strip is 32 lines; of each block it has two of the
 * unit's tiles, of 16 lines each: of a, rows of a tile are lines and words pairs of k; of b, rows
 * are pairs of k and words lines. A pair has its first value in the low half. The last block is
 * complete: values that are missing are -0 in a and 0 in b, whose product -0 changes no sum.
 *
 * All processors with this unit have the instruction for pairs, by which it packs.
 */
#include "tensor/kernels/pack_strip.h"

#ifdef V_PAIRS

#include "base/min.h"
#include "tensor/amx.h"
#include "tensor/kernels/bf16.h"

enum { BLOCK = LS_SUM_BLOCK, PAIRS = BLOCK / 2, LINES = 16, STRIP = 2 * LINES };
enum { TILE = LINES * PAIRS, TILE_NBYTES = TILE * 4, ROW = PAIRS * 4 }; /* words, bytes */

int64_t LS_K(amx_words)(int64_t K) { return (K + BLOCK - 1) / BLOCK * PAIRS; }

/* ---- packing ---- */

/* Sixteen lines of a block: those from `line` on, of which n are there, and values from k on, of
 * which `depth` are there. */
typedef struct part {
    const ls_gemm_lines *from;
    int64_t line, n, k, depth;
    uint16_t pad;
} part;

/* The bf16 of value k of a line; of a line that is missing 0. */
static uint16_t bf16_at(const part *x, int64_t line, int64_t k) {
    if (line >= x->n) return 0;
    return k >= x->depth ? x->pad : value_bits(x->from, x->line + line, x->k + k);
}

/* Lines as rows: to [LINES][PAIRS]. */
static void by_line(const part *x, uint32_t *to) {
    bool whole = x->from->step == 1 && x->depth == BLOCK;
    for (int64_t i = 0; i < LINES; i++, to += PAIRS) {
        if (whole && i < x->n) {
            const void *p = value_at(x->from, x->line + i, x->k);
            if (x->from->bf16)
                memcpy(to, p, ROW);
            else
                r_store_line_bf16(p, (void *)to);
            continue;
        }
        for (int64_t k = 0; k < PAIRS; k++)
            to[k] = bf16_at(x, i, 2 * k) | (uint32_t)bf16_at(x, i, 2 * k + 1) << 16;
    }
}

/* Pairs as rows: to [PAIRS][LINES]. */
static void by_pair(const part *x, uint32_t *to) {
    bool whole = x->from->line == 1 && x->n == LINES;
    for (int64_t k = 0; k < PAIRS; k++, to += LINES) {
        if (whole && 2 * k + 1 < x->depth) {
            const void *first = value_at(x->from, x->line, x->k + 2 * k);
            const void *second = value_at(x->from, x->line, x->k + 2 * k + 1);
            vr words = x->from->bf16 ? r_rows_bf16(second, first) : r_rows_f32(second, first);
            r_store((float *)(void *)to, words);
            continue;
        }
        for (int64_t i = 0; i < LINES; i++)
            to[i] = bf16_at(x, i, 2 * k) | (uint32_t)bf16_at(x, i, 2 * k + 1) << 16;
    }
}

static void transpose(const uint32_t *from, uint32_t *to) {
    const float *p = (const float *)(const void *)from;
    float *q = (float *)(void *)to;
    for (int i = 0; i < LINES; i += 4)
        for (int k = 0; k < PAIRS; k += 8) {
            const float *r = p + i * PAIRS + k;
            const float *const rows[4] = {r, r + PAIRS, r + 2 * PAIRS, r + 3 * PAIRS};
            v_transpose4(rows, q + k * LINES + i, LINES);
        }
}

/* A tile of the unit, from values that are contiguous along lines, or else across them. */
static void pack_tile(const part *x, bool pairs, uint32_t *to) {
    uint32_t other[TILE];
    bool across = x->from->line == 1;
    if (across == pairs) {
        (pairs ? by_pair : by_line)(x, to);
        return;
    }
    (pairs ? by_line : by_pair)(x, other);
    transpose(other, to);
}

/* Strips of lines. pairs: for b. */
static void pack(int64_t n, int64_t depth, const ls_gemm_lines *from, bool pairs, float *out) {
    uint32_t *to = (uint32_t *)(void *)out;
    for (int64_t s = 0; s < n; s += STRIP)
        for (int64_t k = 0; k < depth; k += BLOCK)
            for (int64_t i = s; i < s + STRIP; i += LINES, to += TILE) {
                part x = {from, i, ls_min(LINES, n - i), k, ls_min(BLOCK, depth - k), 0x8000};
                if (pairs) x.pad = 0;
                pack_tile(&x, pairs, to);
            }
}

void LS_K(amx_pack_a)(int64_t M, int64_t K, const ls_gemm_lines *a, float *out) {
    pack(M, K, a, false, out);
}

void LS_K(amx_pack_b)(int64_t K, int64_t N, const ls_gemm_lines *b, float *out) {
    pack(N, K, b, true, out);
}

/* ---- tiles ---- */

static bool is_zero(const float *start) {
    static const float zeros[STRIP];
    return memcmp(start, zeros, sizeof zeros) == 0;
}

/* Tiles 0 to 3 are c, 4 and 5 lines of a, 6 and 7 of b. */
static void one_tile(int64_t blocks, const char *a, const char *b, const float *start, float *c,
                     int64_t ldc) {
    const int64_t row = ldc * (int64_t)sizeof *c;
    float *lower = c + LINES * ldc;
    if (start && is_zero(start)) {
        LS_AMX_ZERO(0);
        LS_AMX_ZERO(1);
        LS_AMX_ZERO(2);
        LS_AMX_ZERO(3);
    } else {
        const float *from = start ? start : c, *below = start ? start : lower;
        LS_AMX_LOAD(0, from, start ? 0 : row);
        LS_AMX_LOAD(1, from + LINES, start ? 0 : row);
        LS_AMX_LOAD(2, below, start ? 0 : row);
        LS_AMX_LOAD(3, below + LINES, start ? 0 : row);
    }
    for (; blocks > 0; blocks--, a += 2 * TILE_NBYTES, b += 2 * TILE_NBYTES) {
        LS_AMX_LOAD(4, a, ROW);
        LS_AMX_LOAD(6, b, ROW);
        LS_AMX_BF16(0, 4, 6);
        LS_AMX_LOAD(7, b + TILE_NBYTES, ROW);
        LS_AMX_BF16(1, 4, 7);
        LS_AMX_LOAD(5, a + TILE_NBYTES, ROW);
        LS_AMX_BF16(2, 5, 6);
        LS_AMX_BF16(3, 5, 7);
    }
    LS_AMX_STORE(0, c, row);
    LS_AMX_STORE(1, c + LINES, row);
    LS_AMX_STORE(2, lower, row);
    LS_AMX_STORE(3, lower + LINES, row);
}

void LS_K(amx_tiles)(int64_t n, int64_t K, const float *a, const float *b, const float *start,
                     float *c, int64_t ldc) {
    const int64_t blocks = (K + BLOCK - 1) / BLOCK, strip = blocks * 2 * TILE_NBYTES;
    ls_amx_begin(ls_amx_whole_tiles());
    for (int64_t i = 0; i < n; i++)
        one_tile(blocks, (const char *)a + i * strip, (const char *)b, start, c + i * STRIP * ldc,
                 ldc);
    ls_amx_end();
}

float LS_K(amx_peak)(int64_t rounds) {
    enum { AT_ONCE = 4, ROUND = 192 * 16 * 2 }; /* multiply-adds of a round */
    int64_t n = rounds * ROUND / (AT_ONCE * LINES * LINES * BLOCK);
    float c[LINES * LINES];
    ls_amx_begin(ls_amx_whole_tiles()); /* which are 0 */
    for (int64_t i = 0; i < n; i++) {
        LS_AMX_BF16(0, 4, 6);
        LS_AMX_BF16(1, 4, 7);
        LS_AMX_BF16(2, 5, 6);
        LS_AMX_BF16(3, 5, 7);
    }
    LS_AMX_STORE(0, c, ROW);
    ls_amx_end();
    return c[0];
}

void LS_K(use_amx)(ls_kernels *k) {
    k->name = "amx";
    k->bf16_m = k->bf16_n = STRIP;
    k->bf16_words = LS_K(amx_words);
    k->pack_a_bf16 = LS_K(amx_pack_a);
    k->pack_b_bf16 = LS_K(amx_pack_b);
    k->bf16_tiles = LS_K(amx_tiles);
    k->bf16_peak = LS_K(amx_peak);
    k->int8_rows = LS_K(int8_rows_amx);
}

#endif
