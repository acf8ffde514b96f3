/* rows.c - see rows.h. */
#include "model/rows.h"

#include <string.h>

#include "tensor/gemm.h"

enum { GAMMA, BETA };

typedef struct norm_job {
    const ls_layer *l;
    const ls_layer_call *c;
    float *h, *mean, *rstd;
} norm_job;

static void norm_run(void *arg, int thread, int nthreads) {
    const norm_job *j = arg;
    const ls_layer_call *c = j->c;
    const float *x = c->x[0];
    int64_t C = j->l->C, r = 0, end = 0;
    ls_pool_share(c->n * c->T, 1, thread, nthreads, &r, &end);
    c->compute->k->layernorm(end - r, C, x + r * C, ls_layer_param(j->l, c, GAMMA),
                             ls_layer_param(j->l, c, BETA), j->h + r * C, j->mean + r, j->rstd + r);
}

void ls_rows_norm(const ls_layer *l, const ls_layer_call *c, float *h, float *mean, float *rstd) {
    ls_pool_run_sized(c->compute->pool, c->n * c->T * l->C, norm_run,
                      &(norm_job){l, c, h, mean, rstd});
}

typedef struct norm_back_job {
    const ls_layer *l;
    const ls_layer_call *c;
    const float *mean, *rstd, *dh, *residual;
} norm_back_job;

static void norm_dparams_run(void *arg, int thread, int nthreads) {
    const norm_back_job *j = arg;
    const ls_layer_call *c = j->c;
    int64_t c0 = 0, c1 = 0;
    float *dgamma = ls_layer_grad(j->l, c, GAMMA), *dbeta = ls_layer_grad(j->l, c, BETA);
    ls_pool_share(j->l->C, 16, thread, nthreads, &c0, &c1);
    size_t nbytes = (size_t)(c1 - c0) * sizeof(float);
    if (c->grads_start && dgamma) memset(dgamma + c0, 0, nbytes);
    if (c->grads_start && dbeta) memset(dbeta + c0, 0, nbytes);
    c->compute->k->layernorm_dparams(c->n * c->T, j->l->C, c0, c1, j->dh, c->x[0], j->mean, j->rstd,
                                     dgamma, dbeta);
}

static void norm_dx_run(void *arg, int thread, int nthreads) {
    const norm_back_job *j = arg;
    const ls_layer_call *c = j->c;
    const float *x = c->x[0];
    float *dx = c->dx[0];
    int64_t r = 0, end = 0;
    ls_pool_share(c->n * c->T, 1, thread, nthreads, &r, &end);
    int64_t at = r * j->l->C;
    c->compute->k->layernorm_dx(end - r, j->l->C, j->dh + at, x + at,
                                ls_layer_param(j->l, c, GAMMA), j->mean + r, j->rstd + r,
                                j->residual ? j->residual + at : NULL, dx + at);
}

void ls_rows_norm_back(const ls_layer *l, const ls_layer_call *c, const float *mean,
                       const float *rstd, const float *dh, const float *residual) {
    norm_back_job j = {l, c, mean, rstd, dh, residual};
    if (!l->frozen[GAMMA] || !l->frozen[BETA]) ls_pool_run(c->compute->pool, norm_dparams_run, &j);
    if (c->dx[0]) ls_pool_run(c->compute->pool, norm_dx_run, &j);
}

bool ls_rows_norm_has_back(const ls_layer *l, const ls_layer_call *c) {
    return c->dx[0] || !l->frozen[GAMMA] || !l->frozen[BETA];
}

typedef struct flat_job {
    const ls_kernels *k;
    int64_t n;
    const float *a, *b;
    float *out;
} flat_job;

/* A thread's part of a flat job; n = 0: it has none. */
static flat_job flat_share(const flat_job *j, int thread, int nthreads) {
    int64_t first = 0, end = 0;
    ls_pool_share(j->n, 16, thread, nthreads, &first, &end);
    return (flat_job){j->k, end - first, j->a + first, j->b ? j->b + first : NULL, j->out + first};
}

static void gelu_run(void *arg, int thread, int nthreads) {
    flat_job j = flat_share(arg, thread, nthreads);
    j.k->gelu(j.n, j.a, j.out);
}

typedef struct gelu_job {
    const ls_kernels *k;
    int64_t n;
    const float *x;
    float *d, *y;
} gelu_job;

static void gelu_back_run(void *arg, int thread, int nthreads) {
    const gelu_job *j = arg;
    int64_t i = 0, end = 0;
    ls_pool_share(j->n, 16, thread, nthreads, &i, &end);
    j->k->gelu_back(end - i, j->x + i, j->d + i, j->d + i, j->y + i);
}

static void add_run(void *arg, int thread, int nthreads) {
    flat_job j = flat_share(arg, thread, nthreads);
    j.k->add(j.n, j.a, j.b, j.out);
}

void ls_rows_gelu(const ls_compute *c, int64_t n, const float *x, float *y) {
    ls_pool_run(c->pool, gelu_run, &(flat_job){c->k, n, x, NULL, y});
}

void ls_rows_gelu_back(const ls_compute *c, int64_t n, const float *x, float *d, float *y) {
    ls_pool_run(c->pool, gelu_back_run, &(gelu_job){c->k, n, x, d, y});
}

void ls_rows_add(const ls_compute *c, int64_t n, const float *a, const float *b, float *out) {
    ls_pool_run_sized(c->pool, n, add_run, &(flat_job){c->k, n, a, b, out});
}

static bool has_bias(const ls_layer *l, int w) { return w + 1 < l->nparams; }
static int64_t outputs_of(const ls_layer *l, int w) {
    return has_bias(l, w) ? (int64_t)l->counts[w + 1] : (int64_t)l->counts[w] / l->C;
}
static int64_t inputs_of(const ls_layer *l, int w) {
    return (int64_t)l->counts[w] / outputs_of(l, w);
}

/* Parameter w [in, out] as an operand. */
static ls_matrix weights_of(const ls_layer *l, const ls_layer_call *c, int w) {
    if (!l->frozen[w] && l->in_products[w] && ls_layer_in_bf16(c))
        return ls_matrix_bf16(ls_layer_stored(l, c, w).data, outputs_of(l, w));
    return ls_matrix_of(ls_layer_param(l, c, w), outputs_of(l, w));
}

void ls_rows_linear(const ls_layer *l, const ls_layer_call *c, int w, const float *x, float *y) {
    int64_t in = inputs_of(l, w), out = outputs_of(l, w);
    ls_gemm(c->compute,
            &(ls_gemm_job){.bf16 = ls_layer_in_bf16(c),
                           .M = c->n * c->T,
                           .N = out,
                           .K = in,
                           .a = ls_matrix_of(x, in),
                           .b = weights_of(l, c, w),
                           .c = y,
                           .ldc = out,
                           .start = has_bias(l, w) ? LS_GEMM_BIAS : LS_GEMM_ZERO,
                           .bias = has_bias(l, w) ? ls_layer_param(l, c, w + 1) : NULL});
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

void ls_rows_column_sum(const ls_layer_call *c, int64_t rows, int64_t C, const float *x,
                        float *sum) {
    ls_pool_run(c->compute->pool, column_sum_run,
                &(column_sum_job){c->compute->k, rows, C, x, sum, c->grads_start});
}

void ls_rows_linear_dx(const ls_layer *l, const ls_layer_call *c, int w, const float *dy,
                       float *dx) {
    int64_t in = inputs_of(l, w), out = outputs_of(l, w);
    ls_gemm(c->compute, &(ls_gemm_job){.bf16 = ls_layer_in_bf16(c),
                                       .M = c->n * c->T,
                                       .N = in,
                                       .K = out,
                                       .a = ls_matrix_of(dy, out),
                                       .b = ls_matrix_across(weights_of(l, c, w)),
                                       .c = dx,
                                       .ldc = in});
}

void ls_rows_linear_dw(const ls_layer *l, const ls_layer_call *c, int w, const float *x,
                       const float *dy) {
    int64_t rows = c->n * c->T, in = inputs_of(l, w), out = outputs_of(l, w);
    if (!l->frozen[w])
        ls_gemm(c->compute, &(ls_gemm_job){.bf16 = ls_layer_in_bf16(c),
                                           .M = in,
                                           .N = out,
                                           .K = rows,
                                           .a = ls_matrix_transposed(x, in),
                                           .b = ls_matrix_of(dy, out),
                                           .c = ls_layer_grad(l, c, w),
                                           .ldc = out,
                                           .start = c->grads_start ? LS_GEMM_ZERO : LS_GEMM_ADD});
    if (has_bias(l, w) && !l->frozen[w + 1])
        ls_rows_column_sum(c, rows, out, dy, ls_layer_grad(l, c, w + 1));
}

bool ls_rows_linear_has_dw(const ls_layer *l, int w) {
    return !l->frozen[w] || (has_bias(l, w) && !l->frozen[w + 1]);
}
