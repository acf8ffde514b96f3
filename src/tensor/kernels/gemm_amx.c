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
#include "base/min.h"
#include "tensor/kernels/bf16.h"
#include "tensor/kernels/variant.h"

#ifdef V_PAIRS

#include "tensor/amx.h"

enum { BLOCK = LS_SUM_BLOCK, PAIRS = BLOCK / 2, LINES = 16, STRIP = 2 * LINES };
enum { TILE = LINES * PAIRS, TILE_NBYTES = TILE * 4, ROW = PAIRS * 4 }; /* words, bytes */
enum { AHEAD = 256, ROWS_AHEAD = 16 }; /* bytes of a line, and rows: how far packing prefetches */
enum { DEEPEST = 2048 };               /* values of k: 256 rows of a are then 1 MB */

static int64_t blocks_of(int64_t K) { return (K + BLOCK - 1) / BLOCK; }

int64_t LS_K(amx_words)(int64_t K) { return blocks_of(K) * PAIRS; }

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

static uint32_t pair_at(const part *x, int64_t line, int64_t k) {
    return bf16_at(x, line, k) | (uint32_t)bf16_at(x, line, k + 1) << 16;
}

/* Lines as rows: to [LINES][PAIRS]. */
static void by_line(const part *x, uint32_t *to) {
    int64_t size = x->from->bf16 ? 2 : 4, whole = 0;
    if (x->from->step == 1 && x->depth == BLOCK) whole = x->n;
    const char *p = value_at(x->from, x->line, x->k);
    for (int64_t i = 0; i < whole; i++, p += x->from->line * size, to += PAIRS) {
        v_prefetch(p + AHEAD);
        if (x->from->bf16)
            memcpy(to, p, ROW);
        else
            r_store_line_bf16((const void *)p, (void *)to);
    }
    for (int64_t i = whole; i < LINES; i++, to += PAIRS)
        for (int64_t k = 0; k < PAIRS; k++) to[k] = pair_at(x, i, 2 * k);
}

/* A row of pairs: of 16 lines the value at `first` and, nbytes later, the next one. */
static void store_pairs(const ls_gemm_lines *from, const char *first, int64_t nbytes,
                        uint32_t *to) {
    const void *low = first, *high = first + nbytes;
    r_store((float *)(void *)to, from->bf16 ? r_rows_bf16(high, low) : r_rows_f32(high, low));
}

/* The bytes from a value of a line to the next one. */
static int64_t step_of(const ls_gemm_lines *from) { return from->step * (from->bf16 ? 2 : 4); }

/* Pairs as rows: to [PAIRS][LINES]. */
static void by_pair(const part *x, uint32_t *to) {
    int64_t nbytes = step_of(x->from), whole = 0;
    if (x->from->line == 1 && x->n == LINES) whole = x->depth / 2;
    const char *p = value_at(x->from, x->line, x->k);
    for (int64_t k = 0; k < whole; k++, p += 2 * nbytes, to += LINES)
        store_pairs(x->from, p, nbytes, to);
    for (int64_t k = whole; k < PAIRS; k++, to += LINES)
        for (int64_t i = 0; i < LINES; i++) to[i] = pair_at(x, i, 2 * k);
}

/* Of 16 rows, row_nbytes apart, of 16 words: the words of each place as a row. */
static void transpose(const void *from, int64_t row_nbytes, uint32_t *to) {
    float *q = (float *)(void *)to;
    for (int k = 0; k < 16; k += 4) {
        v16 words[4];
        v_rows4((const uint8_t *)from + 4 * k, row_nbytes, words);
        for (int i = 0; i < 4; i++) v_store(q + (k + i) * 16, words[i]);
    }
}

/* A tile of the unit, from values that are contiguous along lines, or else across them. */
static void pack_tile(const part *x, bool pairs, uint32_t *to) {
    uint32_t other[TILE];
    const ls_gemm_lines *from = x->from;
    bool across = from->line == 1;
    if (x->n == 0) {
        memset(to, 0, TILE_NBYTES);
    } else if (across == pairs) {
        (pairs ? by_pair : by_line)(x, to);
    } else if (pairs && from->bf16 && from->step == 1 && x->n == LINES && x->depth == BLOCK) {
        transpose(value_at(from, x->line, x->k), 2 * from->line, to);
    } else {
        (pairs ? by_line : by_pair)(x, other);
        transpose(other, ROW, to);
    }
}

/* Strips of all lines. */
typedef struct packing {
    const ls_gemm_lines *from;
    int64_t n, depth, blocks;
    bool pairs; /* for b */
    uint32_t *out;
} packing;

/* The tile of the 16 lines from i on and of block b. */
static uint32_t *tile_of(const packing *x, int64_t i, int64_t b) {
    return x->out + (i / STRIP * x->blocks + b) * 2 * TILE + i % STRIP / LINES * TILE;
}

static void pack_at(const packing *x, int64_t i, int64_t b) {
    part p = {.from = x->from,
              .line = i,
              .n = ls_max(ls_min(LINES, x->n - i), 0),
              .k = b * BLOCK,
              .depth = ls_min(BLOCK, x->depth - b * BLOCK),
              .pad = x->pairs ? 0 : 0x8000};
    pack_tile(&p, x->pairs, tile_of(x, i, b));
}

/* Packs the whole strips of a complete block of b, two rows of memory at a time. Returns the number
 * of lines that it packed. */
static int64_t pack_rows(const packing *x, int64_t b) {
    int64_t n = x->n / STRIP * STRIP, nbytes = step_of(x->from);
    const int64_t half = LINES * (x->from->bf16 ? 2 : 4), strip = x->blocks * 2 * TILE;
    if (!x->pairs || (b + 1) * BLOCK > x->depth) return 0;
    for (int64_t k = 0; k < PAIRS; k++) {
        const char *p = value_at(x->from, 0, b * BLOCK + 2 * k), *ahead = p + ROWS_AHEAD * nbytes;
        uint32_t *to = tile_of(x, 0, b) + k * LINES;
        for (int64_t i = 0; i < n; i += STRIP, p += 2 * half, ahead += 2 * half, to += strip) {
            v_prefetch_far(ahead);
            v_prefetch_far(ahead + nbytes);
            store_pairs(x->from, p, nbytes, to);
            store_pairs(x->from, p + half, nbytes, to + TILE);
        }
    }
    return n;
}

/* In the order of memory. */
static void pack(const packing *x) {
    const int64_t lines = (x->n + STRIP - 1) / STRIP * STRIP;
    if (x->from->line == 1) {
        for (int64_t b = 0; b < x->blocks; b++)
            for (int64_t i = pack_rows(x, b); i < lines; i += LINES) pack_at(x, i, b);
        return;
    }
    for (int64_t i = 0; i < lines; i += LINES)
        for (int64_t b = 0; b < x->blocks; b++) pack_at(x, i, b);
}

void LS_K(amx_pack_a)(int64_t M, int64_t K, const ls_gemm_lines *a, float *out) {
    pack(&(packing){a, M, K, blocks_of(K), false, (uint32_t *)(void *)out});
}

void LS_K(amx_pack_b)(int64_t K, int64_t N, const ls_gemm_lines *b, float *out) {
    pack(&(packing){b, N, K, blocks_of(K), true, (uint32_t *)(void *)out});
}

/* ---- tiles ---- */

static bool is_zero(const float *start) {
    static const float zeros[STRIP];
    return memcmp(start, zeros, sizeof zeros) == 0;
}

/* A finished tile of c, whose rows are rounded and written past the caches while the next one is
 * multiplied. */
typedef struct leaving {
    _Alignas(64) float tile[STRIP * STRIP];
    uint16_t *to;     /* the next row */
    int64_t ld, rows; /* between rows; that are left */
} leaving;

__attribute__((always_inline)) static inline void leave(leaving *x, int64_t rows) {
    for (; rows > 0 && x->rows > 0; rows--, x->to += x->ld)
        r_stream_bf16(x->tile + (STRIP - x->rows--) * STRIP, x->to);
}

static void store_tile(float *c, int64_t row) {
    float *lower = (float *)(void *)((char *)c + LINES * row);
    LS_AMX_STORE(0, c, row);
    LS_AMX_STORE(1, c + LINES, row);
    LS_AMX_STORE(2, lower, row);
    LS_AMX_STORE(3, lower + LINES, row);
}

/* Tiles 0 to 3 are c, 4 and 5 lines of a, 6 and 7 of b. With each block rows of the tile before
 * leave, or lines of c's next tile are prefetched, and lines that the product reads next. */
static void one_tile(const ls_gemm_tiles *x, int64_t blocks, const char *a, float *c, float *next,
                     leaving *done) {
    const int64_t row = x->ldc * (int64_t)sizeof *c;
    const char *b = (const char *)x->b;
    const float *start = x->start;
    ls_ahead ahead = *x->ahead;
    ls_ahead of_c = {(const char *)next, STRIP, STRIP * 4 - LS_AHEAD_LINE, row, 0, 0};
    const int64_t some = (ahead.share + blocks - 1) / blocks;
    const int64_t some_of_c = (2 * STRIP + blocks - 1) / blocks;
    if (start && is_zero(start)) {
        LS_AMX_ZERO(0);
        LS_AMX_ZERO(1);
        LS_AMX_ZERO(2);
        LS_AMX_ZERO(3);
    } else {
        const float *from = start ? start : c, *below = start ? start : c + LINES * x->ldc;
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
        if (x->rounded)
            leave(done, some_of_c);
        else
            ls_ahead_fetch(&of_c, some_of_c, 0);
        ls_ahead_fetch(&ahead, some, 1);
    }
    *x->ahead = ahead;
    if (!x->rounded) {
        store_tile(c, row);
        return;
    }
    store_tile(done->tile, STRIP * sizeof *done->tile);
    done->to = x->rounded + (c - x->c);
    done->rows = STRIP;
}

/* After the last tile most likely comes the first one of the next columns. */
void LS_K(amx_tiles)(const ls_gemm_tiles *x) {
    const int64_t blocks = blocks_of(x->K), strip = blocks * 2 * TILE_NBYTES;
    const int64_t below = STRIP * x->ldc;
    leaving done;
    done.ld = x->ldc, done.rows = 0;
    ls_amx_begin(ls_amx_whole_tiles());
    for (int64_t i = 0; i < x->n; i++)
        one_tile(x, blocks, (const char *)x->a + i * strip, x->c + i * below,
                 i + 1 < x->n ? x->c + (i + 1) * below : x->c + STRIP, &done);
    ls_amx_end();
    leave(&done, STRIP);
    if (x->rounded) v_stream_end();
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
    k->bf16_deepest = DEEPEST;
    k->bf16_words = LS_K(amx_words);
    k->pack_a_bf16 = LS_K(amx_pack_a);
    k->pack_b_bf16 = LS_K(amx_pack_b);
    k->bf16_tiles = LS_K(amx_tiles);
    k->bf16_peak = LS_K(amx_peak);
    k->int8_rows = LS_K(int8_rows_amx);
}

#endif
