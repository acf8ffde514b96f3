/* rows.c - see rows.h. */
#include "model/rows.h"

#include <string.h>

#include "tensor/gemm.h"

typedef struct layernorm_job {
    const ls_kernels *k;
    int64_t rows, C;
    const float *x, *gamma, *beta;
    float *y, *mean, *rstd;
} layernorm_job;

static void layernorm_run(void *arg, int thread, int nthreads) {
    const layernorm_job *j = arg;
    int64_t r = 0, end = 0;
    ls_pool_share(j->rows, 1, thread, nthreads, &r, &end);
    j->k->layernorm(end - r, j->C, j->x + r * j->C, j->gamma, j->beta, j->y + r * j->C,
                    j->mean + r, j->rstd + r);
}

void ls_rows_layernorm(const ls_compute *c, int64_t rows, int64_t C, const float *x,
                       const float *gamma, const float *beta, float *y, float *mean, float *rstd) {
    layernorm_job j = {c->k, rows, C, x, gamma, beta, y, mean, rstd};
    ls_pool_run(c->pool, layernorm_run, &j);
}

typedef struct layernorm_back_job {
    const ls_kernels *k;
    const ls_layernorm_back *b;
} layernorm_back_job;

static void layernorm_dparams_run(void *arg, int thread, int nthreads) {
    const layernorm_back_job *j = arg;
    const ls_layernorm_back *b = j->b;
    int64_t c0 = 0, c1 = 0;
    ls_pool_share(b->C, 16, thread, nthreads, &c0, &c1);
    size_t nbytes = (size_t)(c1 - c0) * sizeof(float);
    if (b->start) memset(b->dgamma + c0, 0, nbytes);
    if (b->start) memset(b->dbeta + c0, 0, nbytes);
    j->k->layernorm_dparams(b->rows, b->C, c0, c1, b->dy, b->x, b->mean, b->rstd, b->dgamma,
                            b->dbeta);
}

static void layernorm_dx_run(void *arg, int thread, int nthreads) {
    const layernorm_back_job *j = arg;
    const ls_layernorm_back *b = j->b;
    int64_t r = 0, end = 0;
    ls_pool_share(b->rows, 1, thread, nthreads, &r, &end);
    int64_t at = r * b->C;
    j->k->layernorm_dx(end - r, b->C, b->dy + at, b->x + at, b->gamma, b->mean + r, b->rstd + r,
                       b->residual ? b->residual + at : NULL, b->dx + at);
}

void ls_rows_layernorm_back(const ls_compute *c, const ls_layernorm_back *b) {
    layernorm_back_job j = {c->k, b};
    ls_pool_run(c->pool, layernorm_dparams_run, &j);
    ls_pool_run(c->pool, layernorm_dx_run, &j);
}

typedef struct flat_job {
    const ls_kernels *k;
    int64_t n;
    const float *a, *b;
    float *out;
} flat_job;

/* A thread's part of a flat job, with n = 0 where there is none. */
static flat_job flat_share(const flat_job *j, int thread, int nthreads) {
    int64_t first = 0, end = 0;
    ls_pool_share(j->n, 16, thread, nthreads, &first, &end);
    return (flat_job){j->k, end - first, j->a + first, j->b ? j->b + first : NULL, j->out + first};
}

static void gelu_run(void *arg, int thread, int nthreads) {
    flat_job j = flat_share(arg, thread, nthreads);
    j.k->gelu(j.n, j.a, j.out);
}

static void gelu_back_run(void *arg, int thread, int nthreads) {
    flat_job j = flat_share(arg, thread, nthreads);
    j.k->gelu_dx(j.n, j.a, j.b, j.out);
}

static void add_run(void *arg, int thread, int nthreads) {
    flat_job j = flat_share(arg, thread, nthreads);
    j.k->add(j.n, j.a, j.b, j.out);
}

void ls_rows_gelu(const ls_compute *c, int64_t n, const float *x, float *y) {
    ls_pool_run(c->pool, gelu_run, &(flat_job){c->k, n, x, NULL, y});
}

void ls_rows_gelu_back(const ls_compute *c, int64_t n, const float *x, const float *dy,
                       float *dx) {
    ls_pool_run(c->pool, gelu_back_run, &(flat_job){c->k, n, x, dy, dx});
}

void ls_rows_add(const ls_compute *c, int64_t n, const float *a, const float *b, float *out) {
    ls_pool_run(c->pool, add_run, &(flat_job){c->k, n, a, b, out});
}

void ls_rows_linear(const ls_compute *c, int64_t rows, int64_t in, int64_t out, const float *x,
                    const float *w, const float *bias, float *y) {
    ls_gemm(c, &(ls_gemm_job){.M = rows,
                              .N = out,
                              .K = in,
                              .a = ls_matrix_of(x, in),
                              .b = ls_matrix_of(w, out),
                              .c = y,
                              .ldc = out,
                              .start = LS_GEMM_BIAS,
                              .bias = bias});
}

typedef struct column_sum_job {
    const ls_kernels *k;
    int64_t rows, C;
    const float *x;
    float *sum;
    bool start;
} column_sum_job;

static void column_sum_run(void *arg, int thread, int nthreads) {
    const column_sum_job *j = arg;
    int64_t c0 = 0, c1 = 0;
    ls_pool_share(j->C, 16, thread, nthreads, &c0, &c1);
    if (j->start) memset(j->sum + c0, 0, (size_t)(c1 - c0) * sizeof(float));
    j->k->column_sum(j->rows, j->C, c0, c1, j->x, j->sum);
}

void ls_rows_linear_back(const ls_compute *c, int64_t rows, int64_t in, int64_t out, const float *x,
                         const float *w, const float *dy, float *dx, float *dw, float *dbias,
                         bool start) {
    if (dx)
        ls_gemm(c, &(ls_gemm_job){.M = rows,
                                  .N = in,
                                  .K = out,
                                  .a = ls_matrix_of(dy, out),
                                  .b = ls_matrix_transposed(w, out),
                                  .c = dx,
                                  .ldc = in});
    ls_gemm(c, &(ls_gemm_job){.M = in,
                              .N = out,
                              .K = rows,
                              .a = ls_matrix_transposed(x, in),
                              .b = ls_matrix_of(dy, out),
                              .c = dw,
                              .ldc = out,
                              .start = start ? LS_GEMM_ZERO : LS_GEMM_ADD});
    ls_pool_run(c->pool, column_sum_run, &(column_sum_job){c->k, rows, out, dy, dbias, start});
}
