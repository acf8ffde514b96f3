/* demo.c - the largest cosine coefficients of each chunk (Peng, Quesnelle & Kingma, "DeMo:
 * Decoupled Momentum Optimization", arXiv 2411.19870, which calls them fast components).
 *
 * A chunk of L elements x has the coefficients of the orthonormal DCT-II,
 *
 *     y_c = s_c sum_i x_i cos(pi (2 i + 1) c / (2 L)),  s_0 = sqrt(1/L), s_c = sqrt(2/L) else,
 *
 * of which the k largest by magnitude are sent, among equal ones those of lowest c. The last chunk
 * may be shorter, and sends k coefficients or all. Each sum is one chain, in a product of several
 * chunks or of one.
 *
 * Message: for each coefficient its number c (u16), filled up to 4 bytes; then the values.
 */
#include <assert.h>
#include <math.h>
#include <string.h>

#include "base/math.h"
#include "compress/codec.h"

/* Chunks of a vector of n elements. */
typedef struct chunks {
    size_t length, whole, last; /* `last`: elements of a shorter one; 0: there is none */
    size_t k, k_last;           /* coefficients of each */
} chunks;

static chunks chunks_of(const ls_compression *how, size_t n) {
    chunks c = {.length = how->block, .whole = n / how->block, .last = n % how->block};
    c.k = how->k;
    c.k_last = c.last < c.k ? c.last : c.k;
    return c;
}

static size_t coefficients(const chunks *c) { return c->whole * c->k + c->k_last; }

static size_t numbers_nbytes(const chunks *c) { return (coefficients(c) * 2 + 3) / 4 * 4; }

static size_t nbytes(const ls_compression *how, size_t n, int round) {
    chunks c = chunks_of(how, n);
    (void)round;
    return numbers_nbytes(&c) + coefficients(&c) * sizeof(float);
}

static size_t unit(const ls_compression *how) { return how->block; }

/* Of any processor's tiles (kernels.h). */
enum { MOST_ROWS = 16, MOST_COLUMNS = 64 };

/* Two matrices [L, L], for whole chunks and for the last one: row c has the cosines of coefficient
 * c, and of the transposed ones; for whole chunks these are also packed as gemm_tile() reads them. */
typedef struct tables {
    float *cosines, *transposed, *packed;
} tables;

static size_t tables_floats(const ls_compression *how, size_t n) {
    size_t L = how->block, last = n % L;
    return 2 * (L * L + last * last) + L * (L + MOST_COLUMNS);
}

/* After the tables: the coefficients of a tile's chunks. */
static size_t nwork(const ls_compression *how, size_t n) {
    return (tables_floats(how, n) + MOST_ROWS * (how->block + MOST_COLUMNS)) * sizeof(float);
}

static tables tables_of(const ls_codec_job *j, bool last) {
    size_t L = j->how->block, l = last ? j->n % L : L;
    float *packed = j->work, *begin = packed + L * (L + MOST_COLUMNS) + (last ? 2 * L * L : 0);
    return (tables){begin, begin + l * l, packed};
}

/* cos(pi m / (2 L)). */
static double cosine(size_t m, size_t L) {
    m %= 4 * L;
    if (m > 2 * L) m = 4 * L - m;
    return ls_math_cospi((double)m / (double)(2 * L));
}

static void make_tables(tables t, size_t L) {
    double cosines[4 * LS_CODEC_MOST_CHUNK];
    double first = sqrt(1.0 / (double)L), other = sqrt(2.0 / (double)L);
    for (size_t m = 0; m < 4 * L; m++) cosines[m] = cosine(m, L);
    for (size_t c = 0; c < L; c++)
        for (size_t i = 0; i < L; i++) {
            float value = (float)((c ? other : first) * cosines[(2 * i + 1) * c % (4 * L)]);
            t.cosines[c * L + i] = value;
            t.transposed[i * L + c] = value;
        }
}

static void prepare(const ls_codec_job *j) {
    size_t L = j->how->block, last = j->n % L;
    tables t = tables_of(j, false);
    assert(j->k->tile_m <= MOST_ROWS && j->k->tile_n <= MOST_COLUMNS);
    if (last) make_tables(tables_of(j, true), last);
    if (j->n < L) return;
    make_tables(t, L);
    j->k->pack_b((int64_t)L, (int64_t)L, t.transposed, (int64_t)L, 1, t.packed);
}

/* ---- the largest ---- */

/* Signed, which compares fast; the highest bit of a magnitude is 0. */
typedef int32_t quad __attribute__((vector_size(16), may_alias));
enum { QUAD = 4 };

/* Magnitudes, as their bits, of which the last quad is filled up with 0. */
typedef struct magnitudes {
    _Alignas(16) int32_t of[LS_CODEC_MOST_CHUNK];
    size_t nquads;
} magnitudes;

/* Returns the largest one. */
static int32_t find_magnitudes(const float *y, size_t L, magnitudes *m) {
    quad *of = (quad *)(void *)m->of, most = {0};
    m->nquads = (L + QUAD - 1) / QUAD;
    of[m->nquads - 1] = most;
    memcpy(m->of, y, L * sizeof *y);
    for (size_t i = 0; i < m->nquads; i++) {
        of[i] &= 0x7fffffff;
        quad more = of[i] > most;
        most = (of[i] & more) | (most & ~more);
    }
    int32_t a = most[0] > most[1] ? most[0] : most[1], b = most[2] > most[3] ? most[2] : most[3];
    return a > b ? a : b;
}

/* How many are above a limit: lanes of a comparison are -1 where it holds. */
static size_t count_above(const magnitudes *m, int32_t limit) {
    const quad *of = (const quad *)(const void *)m->of;
    quad sum = {0};
    for (size_t i = 0; i < m->nquads; i++) sum += of[i] > limit;
    return (size_t) - (sum[0] + sum[1] + sum[2] + sum[3]);
}

/* The k-th largest magnitude, or the limit itself if exactly k magnitudes are above it. The search
 * halves a range of limits, of which the lower one has k magnitudes or more above it, the upper one
 * fewer. It begins at an eighth of the largest magnitude, below which the k-th one seldom is. */
static int32_t find_limit(const magnitudes *m, int32_t most, size_t k, size_t *above_p) {
    const int32_t eighth = 3 << 23; /* its exponent is 3 less */
    int32_t lo = most > eighth ? most - eighth : 0, hi = most;
    size_t n = count_above(m, lo);
    if (n < k) {
        hi = lo;
        lo = 0;
        n = count_above(m, lo);
    }
    if (n < k) hi = lo; /* the others are 0 */
    while (n != k && hi - lo > 1) {
        int32_t middle = lo + (hi - lo) / 2;
        size_t above = count_above(m, middle);
        if (above < k) {
            hi = middle;
            continue;
        }
        lo = middle;
        n = above;
    }
    *above_p = n == k ? k : count_above(m, hi);
    return n == k ? lo : hi;
}

/* The k largest of the coefficients y [L], in the order of their numbers. */
static void choose(const float *y, size_t L, size_t k, uint16_t *numbers, float *values) {
    magnitudes m;
    int32_t most = find_magnitudes(y, L, &m);
    size_t above = 0, found = 0;
    int32_t limit = find_limit(&m, most, k, &above);
    size_t equal = k - above;                     /* those of lowest number are taken */
    for (size_t c = 0; c < L && found < k; c++) { /* without branches, which would be unforeseen */
        bool is_equal = (m.of[c] == limit) & (equal > 0);
        numbers[found] = (uint16_t)c;
        values[found] = y[c];
        found += (m.of[c] > limit) | is_equal;
        equal -= is_equal;
    }
}

/* ---- the transform ---- */

/* The coefficients of some chunks, `row` apart. */
typedef struct spectra {
    float *of; /* [MOST_ROWS, row] of the work memory */
    size_t row;
} spectra;

/* Of one chunk of L elements. */
static void transform(const ls_codec_job *j, const float *x, size_t L, spectra *s) {
    memset(s->of, 0, L * sizeof *s->of);
    s->row = L;
    j->k->gemv(LS_F32, (int64_t)L, (int64_t)L, x, tables_of(j, L < j->how->block).transposed,
               (int64_t)L, s->of);
}

/* Of as many whole chunks as a tile has rows. */
static void transform_tile(const ls_codec_job *j, const float *x, spectra *s) {
    static const float zeros[MOST_COLUMNS];
    size_t L = j->how->block, columns = (size_t)j->k->tile_n;
    const float *packed = tables_of(j, false).packed;
    s->row = (L + columns - 1) / columns * columns;
    for (size_t c = 0; c < L; c += columns)
        j->k->gemm_tile((int64_t)L, x, (int64_t)L, 1, packed + c * L, zeros, s->of + c,
                        (int64_t)s->row);
}

static void encode(const ls_codec_job *j, int round, const float *x, void *message) {
    chunks c = chunks_of(j->how, j->n);
    uint16_t *numbers = message;
    float *values = (float *)((unsigned char *)message + numbers_nbytes(&c));
    size_t all = c.whole + (c.last > 0), tile = (size_t)j->k->tile_m, n = 0;
    spectra s = {.of = (float *)j->work + tables_floats(j->how, j->n)};
    (void)round;
    if (coefficients(&c) % 2) numbers[coefficients(&c)] = 0;
    for (size_t i = 0; i < all; i += n) {
        bool last = i == c.whole;
        n = i + tile <= c.whole ? tile : 1;
        if (n > 1)
            transform_tile(j, x + i * c.length, &s);
        else
            transform(j, x + i * c.length, last ? c.last : c.length, &s);
        for (size_t k = i; k < i + n; k++)
            choose(s.of + (k - i) * s.row, last ? c.last : c.length, last ? c.k_last : c.k,
                   numbers + k * c.k, values + k * c.k);
    }
}

/* A number from another worker that is too large is not followed. */
static void decode(const ls_codec_job *j, const void *message, size_t first, size_t count,
                   float *out) {
    chunks c = chunks_of(j->how, j->n);
    const uint16_t *numbers = message;
    const float *values = (const float *)((const unsigned char *)message + numbers_nbytes(&c));
    memset(out, 0, count * sizeof *out);
    for (size_t i = first / c.length; i * c.length < first + count; i++) {
        bool last = i == c.whole;
        size_t L = last ? c.last : c.length, k = last ? c.k_last : c.k;
        for (size_t s = i * c.k; s < i * c.k + k; s++)
            if (numbers[s] < L)
                j->k->gemv(LS_F32, 1, (int64_t)L, &values[s],
                           tables_of(j, last).cosines + numbers[s] * L, (int64_t)L,
                           out + (i * c.length - first));
    }
}

const ls_codec ls_codec_demo = {.name = "demo",
                                .nshared = ls_codec_none,
                                .nwork = nwork,
                                .nbytes = nbytes,
                                .unit = unit,
                                .prepare = prepare,
                                .encode = encode,
                                .absorb = ls_codec_absorb_nothing,
                                .decode = decode};
