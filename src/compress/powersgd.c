/* powersgd.c - a matrix of low rank (Vogels, Karimireddy & Jaggi, "PowerSGD: Practical Low-Rank
 * Gradient Compression for Distributed Optimization", NeurIPS 2019).
 *
 * The vector is a matrix M [rows, cols], its last row filled up with zeros. With Q [cols, r] of the
 * step before:
 *
 *     round 0   P = mean of M Q, whose columns are then made orthonormal
 *     round 1   Q = mean of M' P
 *     decoded   P Q', the same for all contributions: it stands for their mean
 *
 * A column of Q that is zero (before the first step, or after a step whose mean had a lower rank)
 * is drawn from (seed, step). Columns of P are made orthonormal one after another, each freed twice
 * of those before it; one of which less than 2^-16 is left depends on them, and becomes zero.
 * Factors are stored by columns. Dot products are 16 lanes and a tree, other sums one chain.
 *
 * Messages: P, then Q. `shared`: Q. Work memory: P.
 */
#include <math.h>
#include <string.h>

#include "base/random.h"
#include "compress/codec.h"

typedef struct matrix {
    size_t rows, cols, r;
    size_t whole; /* rows that are complete; at most one more has a part */
    size_t rest;  /* elements of that part */
} matrix;

static matrix matrix_of(const ls_compression *how, size_t n) {
    size_t cols = n ? (n + how->rows - 1) / how->rows : 0;
    return (matrix){how->rows, cols, (size_t)how->rank, cols ? n / cols : 0, cols ? n % cols : 0};
}

static size_t nshared(const ls_compression *how, size_t n) {
    matrix m = matrix_of(how, n);
    return m.cols * m.r;
}
static size_t nwork(const ls_compression *how, size_t n) {
    (void)n;
    return how->rows * (size_t)how->rank * sizeof(float);
}
static size_t nbytes(const ls_compression *how, size_t n, int round) {
    return round == 0 ? nwork(how, n) : nshared(how, n) * sizeof(float);
}
static size_t unit(const ls_compression *how) {
    (void)how;
    return 1;
}

/* ---- rounds ---- */

static bool is_zero(const float *x, size_t n) {
    for (size_t i = 0; i < n; i++)
        if (x[i] != 0) return false;
    return true;
}

static void prepare(const ls_codec_job *j) {
    matrix m = matrix_of(j->how, j->n);
    for (size_t c = 0; c < m.r; c++) {
        float *q = j->shared + c * m.cols;
        ls_random_place at = {j->how->seed, LS_STREAM_COMPRESS, j->how->step, (uint64_t)c << 32};
        if (is_zero(q, m.cols)) ls_random_normal(at, m.cols, 1.0f, q);
    }
}

/* Complete rows that stay in a cache while all columns of a factor are multiplied with them. */
static size_t rows_at_once(const matrix *m) {
    enum { FLOATS = 64 << 10 };
    return m->cols < FLOATS ? FLOATS / m->cols : 1;
}

/* Rows [first, end) of P = M Q: each element a dot product with a row. */
static void times_columns(const ls_codec_job *j, const matrix *m, const float *x, size_t first,
                          size_t end, float *p) {
    for (size_t i = first; i < end; i++) {
        size_t n = i < m->whole ? m->cols : m->rest;
        for (size_t c = 0; c < m->r; c++)
            p[c * m->rows + i] =
                j->k->compress.dot((int64_t)n, x + i * m->cols, j->shared + c * m->cols);
    }
}

/* Rows [first, end), complete ones or the last, of Q = M' P: each element a chain over rows. */
static void times_rows(const ls_codec_job *j, const matrix *m, const float *x, size_t first,
                       size_t end, float *q) {
    const float *p = j->work;
    int64_t cols = (int64_t)m->cols, n = first < m->whole ? cols : (int64_t)m->rest;
    for (size_t c = 0; c < m->r; c++)
        j->k->gemv(LS_F32, (int64_t)(end - first), n, p + c * m->rows + first, x + first * m->cols,
                   cols, q + c * m->cols);
}

static void encode(const ls_codec_job *j, int round, const float *x, void *message) {
    matrix m = matrix_of(j->how, j->n);
    size_t all = m.whole + (m.rest > 0), most = all ? rows_at_once(&m) : 0;
    float *factor = message;
    memset(factor, 0, nbytes(j->how, j->n, round));
    for (size_t first = 0, end = 0; first < all; first = end) {
        end = first + most < m.whole ? first + most : first < m.whole ? m.whole : all;
        if (round == 0)
            times_columns(j, &m, x, first, end, factor);
        else
            times_rows(j, &m, x, first, end, factor);
    }
}

/* Makes the columns of p [r, rows] orthonormal, or zero. */
static void orthonormalize(const ls_codec_job *j, const matrix *m, float *p) {
    const ls_compress_kernels *k = &j->k->compress;
    int64_t rows = (int64_t)m->rows;
    for (size_t c = 0; c < m->r; c++) {
        float *a = p + c * m->rows;
        float most = k->abs_max(rows, a), scale = most > 0 ? 1.0f / most : 0.0f;
        if (!isfinite(scale)) scale = 0;                    /* below 1/FLT_MAX: as zero */
        for (size_t i = 0; i < m->rows; i++) a[i] *= scale; /* so that squares don't overflow */
        float before = k->dot(rows, a, a);
        for (int twice = 0; twice < 2; twice++)
            for (size_t b = 0; b < c; b++) {
                const float *other = p + b * m->rows;
                k->subtract_scaled(rows, k->dot(rows, other, a), other, a);
            }
        float after = k->dot(rows, a, a);
        float inverse = after > before * 0x1p-32f ? 1.0f / sqrtf(after) : 0.0f;
        for (size_t i = 0; i < m->rows; i++) a[i] *= inverse;
    }
}

static void absorb(const ls_codec_job *j, int round, const void *sum, int contributions) {
    matrix m = matrix_of(j->how, j->n);
    size_t n = round == 0 ? m.rows * m.r : m.cols * m.r;
    float *factor = round == 0 ? j->work : j->shared;
    memcpy(factor, sum, n * sizeof *factor);
    j->k->average(LS_F32, n, contributions, factor);
    if (round == 0) orthonormalize(j, &m, factor);
}

/* Elements of a row: out += p * q over the columns, each element one chain. */
static void decode_row(const ls_codec_job *j, const matrix *m, size_t row, size_t col, size_t count,
                       float *out) {
    float p[LS_CODEC_MOST_RANK];
    for (size_t c = 0; c < m->r; c++) p[c] = ((const float *)j->work)[c * m->rows + row];
    j->k->gemv(LS_F32, (int64_t)m->r, (int64_t)count, p, j->shared + col, (int64_t)m->cols, out);
}

static void decode(const ls_codec_job *j, const void *message, size_t first, size_t count,
                   float *out) {
    matrix m = matrix_of(j->how, j->n);
    (void)message; /* absorbed */
    memset(out, 0, count * sizeof *out);
    for (size_t at = first, end = first + count, run = 0; at < end; at += run) {
        size_t col = at % m.cols;
        run = m.cols - col < end - at ? m.cols - col : end - at;
        decode_row(j, &m, at / m.cols, col, run, out + (at - first));
    }
}

const ls_codec ls_codec_powersgd = {.name = "powersgd",
                                    .rounds = 2,
                                    .nshared = nshared,
                                    .nwork = nwork,
                                    .nbytes = nbytes,
                                    .unit = unit,
                                    .prepare = prepare,
                                    .encode = encode,
                                    .absorb = absorb,
                                    .decode = decode};
