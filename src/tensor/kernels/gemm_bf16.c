/* gemm_bf16.c - packing for products in bf16, and their tile (blocks_tile.c) in the mode that it
 * needs, or in plain C.
 *
 * With an instruction for pairs (V_PAIRS), a packed word has the bf16 of k in its high half and
 * that of k + 2 in its low half. A k without a partner gets one: -0 in a and 0 in b, whose product
 * -0 changes no sum, not even one that is -0. Without the instruction, a packed word is an operand
 * that was rounded to bf16, as f32.
 */
#include <assert.h>

#include "tensor/kernels/bf16.h"
#include "tensor/kernels/pack_strip.h"

enum { TILE_M = LS_TILE_ROWS, TILE_N = LS_TILE_REGS * LS_VR };
enum { LINE = LS_SUM_BLOCK }; /* values of a line that are rounded or packed at a time */

/* n <= LINE values; y may be x. */
INLINE void line_to_bf16(int64_t n, const float *x, char *y) {
    uint16_t some[LINE];
    EACH for (int64_t i = 0; i < n; i++) some[i] = bf16_bits(x[i]);
    memcpy(y, some, (size_t)n * sizeof *some);
}

void LS_K(to_bf16)(int64_t n, const float *x, void *y) {
    int64_t i = 0;
    char *to = y;
    for (; i + LINE <= n; i += LINE) {
#ifdef V_PAIRS
        r_store_line_bf16(x + i, to + 2 * i);
#else
        line_to_bf16(LINE, x + i, to + 2 * i);
#endif
    }
    line_to_bf16(n - i, x + i, to + 2 * i);
}

#ifdef V_PAIRS

#define UNROLL _Pragma("GCC unroll 16")

INLINE int64_t min64(int64_t a, int64_t b) { return a < b ? a : b; }

/* Word w of a block has its values first_of(w) and first_of(w) + 2. */
INLINE int64_t first_of(int64_t w) { return w / 2 * 4 + w % 2; }
INLINE int64_t words_of(int64_t n) { return n / 4 * 2 + min64(n % 4, 2); }

int64_t LS_K(bf16_words)(int64_t K) { return words_of(K); }

/* A strip: `n` lines of `depth` values, `width` lines with the zeros after them. n may be up to two
 * strips' (pack_across). */
typedef struct strip {
    const ls_gemm_lines *from;
    int64_t first, n, depth, width; /* first: its first line */
    uint16_t pad;                   /* the bf16 of a missing value */
} strip;

INLINE uint16_t bf16_at(const strip *s, int64_t i, int64_t k) {
    return k >= s->depth ? s->pad : value_bits(s->from, s->first + i, k);
}

/* Values in any places. */
static void pack_any(const strip *s, float *restrict out) {
    for (int64_t k = 0; k < s->depth; k += LINE) {
        int64_t words = words_of(min64(LINE, s->depth - k));
        for (int64_t w = 0; w < words; w++, out += s->width)
            for (int64_t i = 0; i < s->width; i++) {
                int64_t v = k + first_of(w);
                uint32_t word =
                    i < s->n ? (uint32_t)bf16_at(s, i, v) << 16 | bf16_at(s, i, v + 2) : 0;
                memcpy(out + i, &word, sizeof word);
            }
    }
}

/* The last values of a line, from k on, fewer than LINE. */
static vr last_pairs(const strip *s, int64_t i, int64_t k) {
    uint16_t halves[LINE];
    for (int64_t v = 0; v < LINE; v++) halves[v] = bf16_at(s, i, k + v);
    return r_line_bf16(halves);
}

/* Lines of LINE / 2 words, side by side. */
static void interleave(const float *room, int64_t width, float *restrict out) {
    for (int64_t k = 0; k < LINE / 2; k += 8)
        for (int64_t i = 0; i < width; i += 4) {
            const float *p = room + i * LINE / 2 + k;
            const float *const from[4] = {p, p + LINE / 2, p + LINE, p + 3 * LINE / 2};
            v_transpose4(from, out + k * width + i, width);
        }
}

/* Lines whose values are contiguous. Memory is read in as many streams as there are lines, so it is
 * prefetched by hand, here and below. */
INLINE void pack_contiguous(const strip *s, bool bf16, float *restrict out) {
    float room[LS_TILE_WIDEST * LINE / 2];
    memset(room + s->n * LINE / 2, 0, (size_t)(s->width - s->n) * LINE / 2 * sizeof *room);
    int64_t k = 0;
    for (; k + LINE <= s->depth; k += LINE, out += LINE / 2 * s->width) {
        const char *p = value_at(s->from, s->first, k);
        for (int64_t i = 0; i < s->n; i++, p += s->from->line * (bf16 ? 2 : 4)) {
            v_prefetch(p + LINE * (bf16 ? 2 : 4));
            if (!bf16) v_prefetch(p + LINE * 6);
            r_store(room + i * LINE / 2,
                    bf16 ? r_line_bf16((const void *)p) : r_line_f32((const void *)p));
        }
        interleave(room, s->width, out);
    }
    int64_t left = s->depth - k;
    for (int64_t i = 0; left > 0 && i < s->n; i++)
        r_store(room + i * LINE / 2, last_pairs(s, i, k));
    for (int64_t w = 0; w < words_of(left); w++)
        for (int64_t i = 0; i < s->width; i++)
            memcpy(out + w * s->width + i, room + i * LINE / 2 + w, sizeof *out);
}

/* Values k and k + 2 of the lines from i on, of which there may be fewer than LS_VR. */
static vr some_pairs(const strip *s, int64_t i, int64_t k) {
    uint16_t high[LS_VR] = {0}, low[LS_VR] = {0};
    for (int64_t j = 0; j < LS_VR && i + j < s->n; j++) {
        high[j] = bf16_at(s, i + j, k);
        low[j] = bf16_at(s, i + j, k + 2);
    }
    return r_rows_bf16(high, low);
}

INLINE vr pairs_across(const strip *s, bool bf16, int64_t i, int64_t k) {
    enum { AHEAD = 16 };
    if (s->n - i < LS_VR || k + 2 >= s->depth) return some_pairs(s, i, k);
    const void *high = value_at(s->from, s->first + i, k);
    const void *low = value_at(s->from, s->first + i, k + 2);
    v_prefetch(value_at(s->from, s->first + i, k + AHEAD));
    v_prefetch(value_at(s->from, s->first + i, k + 2 + AHEAD));
    return bf16 ? r_rows_bf16(high, low) : r_rows_f32(high, low);
}

/* Neighbouring lines have contiguous values: a strip of whole registers, or two strips of half a
 * register, of which the second may be missing. */
INLINE void pack_across(const strip *s, bool bf16, float *restrict out) {
    float *second = out + LS_K(bf16_words)(s->depth) * s->width;
    for (int64_t first = 0; first < s->depth; first += LINE) {
        int64_t words = words_of(min64(LINE, s->depth - first));
        for (int64_t w = 0; w < words; w++, out += s->width, second += s->width) {
            int64_t k = first + first_of(w);
            for (int64_t i = 0; i + LS_VR <= s->width; i += LS_VR)
                r_store(out + i, pairs_across(s, bf16, i, k));
            if (s->width >= LS_VR) continue;
            vr two = pairs_across(s, bf16, 0, k);
            r_store_half(out, two, 0);
            if (s->n > s->width) r_store_half(second, two, 1);
        }
    }
}

static void pack(const strip *s, float *out) {
    if (s->from->line == 1 && s->from->bf16)
        pack_across(s, true, out);
    else if (s->from->line == 1)
        pack_across(s, false, out);
    else if (s->from->step == 1 && s->from->bf16)
        pack_contiguous(s, true, out);
    else if (s->from->step == 1)
        pack_contiguous(s, false, out);
    else
        pack_any(s, out);
}

static void pack_strips(int64_t n, int64_t depth, const ls_gemm_lines *from, strip s, float *out) {
    int64_t words = LS_K(bf16_words)(depth);
    int64_t at_once = from->line == 1 && s.width < LS_VR ? 2 * s.width : s.width;
    s.from = from, s.depth = depth;
    for (int64_t i = 0; i < n; i += at_once, out += words * at_once) {
        s.first = i;
        s.n = n - i < at_once ? n - i : at_once;
        pack(&s, out);
    }
}

void LS_K(pack_a_bf16)(int64_t M, int64_t K, const ls_gemm_lines *a, float *out) {
    pack_strips(M, K, a, (strip){.width = TILE_M, .pad = 0x8000}, out);
}

void LS_K(pack_b_bf16)(int64_t K, int64_t N, const ls_gemm_lines *b, float *out) {
    pack_strips(N, K, b, (strip){.width = TILE_N}, out);
}

float LS_K(bf16_peak)(int64_t rounds) {
    enum { CHAINS = 12 };
    const vr x = r_set1(f32_of(0x3f7f0000u)), y = r_set1(f32_of(0x33d60000u));
    float at[CHAINS * LS_VR]; /* all different, or the compiler would compute equal chains once */
    vr c[CHAINS], sum = r_set1(0.0f);
    for (int i = 0; i < CHAINS * LS_VR; i++) at[i] = 0.01f * (float)i;
    UNROLL for (int k = 0; k < CHAINS; k++) c[k] = r_load(at + k * LS_VR);
    for (int64_t i = 0; i < rounds; i++)
        UNROLL for (int j = 0; j < 16; j++) UNROLL for (int k = 0; k < CHAINS; k++) c[k] =
            r_dot(x, y, c[k]);
    UNROLL for (int k = 0; k < CHAINS; k++) sum = r_dot(c[k], x, sum);
    r_store(at, sum);
    return at[0];
}

#else

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

#endif

/* ---- tiles ---- */

#if defined(V_FLUSH) && !defined(V_PAIRS)
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

void LS_K(bf16_tiles)(int64_t n, int64_t K, const float *a, const float *b, const float *start,
                      float *c, int64_t ldc) {
    const int64_t a_strip = LS_K(bf16_words)(K) * TILE_M, below = TILE_M * ldc;
#ifndef V_FLUSH
    for (int64_t i = 0; i < n; i++, a += a_strip, c += below)
        exact_tile(&(sums){K, a, b, start ? start : c, start ? 0 : ldc}, c, ldc);
#else
#ifndef V_PAIRS
    for (int64_t i = 0; V_FLUSH_REPEATS && i < n; i++)
        checked_tile(K, a + i * a_strip, b, start, c + i * below, ldc);
    if (V_FLUSH_REPEATS) return;
#endif
    v_flush_state mode = v_flush_begin();
    for (int64_t i = 0; i < n; i++)
        LS_K(blocks_tile)(K, a + i * a_strip, b, start, c + i * below, ldc);
    v_flush_end(mode);
#endif
}
