/* demo.c - the largest cosine coefficients of each chunk (Peng, Quesnelle & Kingma, "DeMo:
 * Decoupled Momentum Optimization", arXiv 2411.19870, which calls them fast components).
 *
 * A chunk of L elements x has the coefficients of the orthonormal DCT-II,
 *
 *     y_c = s_c sum_i x_i cos(pi (2 i + 1) c / (2 L)),  s_0 = sqrt(1/L), s_c = sqrt(2/L) else,
 *
 * of which the k largest by magnitude are sent, among equal ones those of lowest c. The last chunk
 * may be shorter, and sends k coefficients or all. Each sum is one chain.
 *
 * Message: for each coefficient its number c (u16), filled up to 4 bytes; then the values.
 */
#include <math.h>
#include <string.h>

#include "base/math.h"
#include "compress/codec.h"
#include "compress/select.h"

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

/* Two matrices [L, L], for whole chunks and for the last one: row c has the cosines of coefficient
 * c, and of the transposed ones. */
typedef struct tables {
    float *cosines, *transposed;
} tables;

static size_t nwork(const ls_compression *how, size_t n) {
    size_t last = n % how->block;
    return 2 * (how->block * how->block + last * last) * sizeof(float);
}

static tables tables_of(const ls_codec_job *j, bool last) {
    size_t L = j->how->block, l = last ? j->n % L : L;
    float *begin = (float *)j->work + (last ? 2 * L * L : 0);
    return (tables){begin, begin + l * l};
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
    if (j->n >= L) make_tables(tables_of(j, false), L);
    if (last) make_tables(tables_of(j, true), last);
}

/* The k largest of the coefficients y [L], in the order of their numbers. */
static void choose(const float *y, size_t L, size_t k, uint16_t *numbers, float *values) {
    uint64_t keys[LS_CODEC_MOST_CHUNK];
    for (size_t c = 0; c < L; c++) keys[c] = ls_select_key(y[c], (uint32_t)c);
    uint64_t least = ls_select(keys, L, k - 1);
    size_t found = 0;
    for (size_t c = 0; c < L && found < k; c++) {
        if (ls_select_key(y[c], (uint32_t)c) < least) continue;
        numbers[found] = (uint16_t)c;
        values[found++] = y[c];
    }
}

static void encode(const ls_codec_job *j, int round, const float *x, void *message) {
    chunks c = chunks_of(j->how, j->n);
    uint16_t *numbers = message;
    float *values = (float *)((unsigned char *)message + numbers_nbytes(&c));
    (void)round;
    if (coefficients(&c) % 2) numbers[coefficients(&c)] = 0;
    for (size_t i = 0; i < c.whole + (c.last > 0); i++) {
        bool last = i == c.whole;
        size_t L = last ? c.last : c.length;
        float y[LS_CODEC_MOST_CHUNK];
        memset(y, 0, L * sizeof *y);
        j->k->gemv(LS_F32, (int64_t)L, (int64_t)L, x + i * c.length, tables_of(j, last).transposed,
                   (int64_t)L, y);
        choose(y, L, last ? c.k_last : c.k, numbers + i * c.k, values + i * c.k);
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
