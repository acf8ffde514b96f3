/* gemm_pairs.c - products in bf16 by an instruction for pairs (V_PAIRS in vec.h).
 *
 * A packed word has the bf16 of k in its high half and that of k + 2 in its low half. A k without a
 * partner gets one: -0 in a and 0 in b, whose product -0 changes no sum, not even one that is -0.
 */
#include "tensor/kernels/bf16.h"
#include "tensor/kernels/pack_strip.h"

#ifdef V_PAIRS

#define UNROLL _Pragma("GCC unroll 16")

enum { TILE_M = LS_TILE_ROWS, TILE_N = LS_TILE_REGS * LS_VR };
enum { LINE = BF16_LINE };

void LS_K(pairs_to_bf16)(int64_t n, const float *x, void *y) {
    int64_t i = 0;
    char *to = y;
    for (; i + LINE <= n; i += LINE) r_store_line_bf16(x + i, to + 2 * i);
    bf16_line(n - i, x + i, to + 2 * i);
}

/* ---- packing ---- */

INLINE int64_t min64(int64_t a, int64_t b) { return a < b ? a : b; }

/* Word w of a block has its values first_of(w) and first_of(w) + 2. */
INLINE int64_t first_of(int64_t w) { return w / 2 * 4 + w % 2; }
INLINE int64_t words_of(int64_t n) { return n / 4 * 2 + min64(n % 4, 2); }

int64_t LS_K(pairs_words)(int64_t K) { return words_of(K); }

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
    float *second = out + LS_K(pairs_words)(s->depth) * s->width;
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
    int64_t words = LS_K(pairs_words)(depth);
    int64_t at_once = from->line == 1 && s.width < LS_VR ? 2 * s.width : s.width;
    s.from = from, s.depth = depth;
    for (int64_t i = 0; i < n; i += at_once, out += words * at_once) {
        s.first = i;
        s.n = n - i < at_once ? n - i : at_once;
        pack(&s, out);
    }
}

void LS_K(pairs_pack_a)(int64_t M, int64_t K, const ls_gemm_lines *a, float *out) {
    pack_strips(M, K, a, (strip){.width = TILE_M, .pad = 0x8000}, out);
}

void LS_K(pairs_pack_b)(int64_t K, int64_t N, const ls_gemm_lines *b, float *out) {
    pack_strips(N, K, b, (strip){.width = TILE_N}, out);
}

/* ---- tiles ---- */

void LS_K(pairs_tiles)(const ls_gemm_tiles *x) {
    const int64_t a_strip = LS_K(pairs_words)(x->K) * TILE_M, below = TILE_M * x->ldc;
    v_flush_state mode = v_flush_begin();
    for (int64_t i = 0; i < x->n; i++) {
        ls_ahead_fetch(x->ahead, x->ahead->share, 0);
        LS_K(pairs_tile)(x->K, x->a + i * a_strip, x->b, x->start, x->c + i * below, x->ldc);
    }
    v_flush_end(mode);
}

float LS_K(pairs_peak)(int64_t rounds) {
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

void LS_K(use_pairs)(ls_kernels *k) {
    k->name = "avx512bf16";
    k->bf16_depth = 2;
    k->bf16_words = LS_K(pairs_words);
    k->pack_a_bf16 = LS_K(pairs_pack_a);
    k->pack_b_bf16 = LS_K(pairs_pack_b);
    k->bf16_tiles = LS_K(pairs_tiles);
    k->bf16_peak = LS_K(pairs_peak);
    k->to_bf16 = LS_K(pairs_to_bf16);
    k->gemv_table_bf16 = LS_K(pairs_gemv_table);
}

#endif
