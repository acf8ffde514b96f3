/* row_adapters.c - see row_adapters.h. */
#include "layers/row_adapters.h"

#include "layers/linear.h"
#include "layers/lora_device.h"
#include "model/row_ops.h"

/* Rows of a layer that have one adapter. */
typedef struct job {
    const ls_layer *l;
    const ls_layer_call *c;
    const ls_row_adapter *a;
    int64_t rows, in, out;
    ls_matrix x;
    float *t, *y; /* [rows, rank], [rows, out] */
} job;

/* c (+)= x [rows, K] . w [N, K]^T */
static void multiply(const job *j, ls_matrix x, const float *w, ls_gemm_job g) {
    g.M = j->rows;
    g.bf16 = ls_layer_in_bf16(j->c);
    g.a = x;
    g.b = ls_matrix_across(ls_matrix_of(w, g.K));
    g.ldc = g.N;
    ls_gemm(j->c->compute, &g);
}

/* y = x . w^T without the bias, which DoRA adds at the end. */
static void multiply_again(const job *j) {
    ls_layer_call part = *j->c;
    part.n = 1;
    part.T = j->rows;
    part.x[0] = j->x.p;
    ls_linear_product(j->l, &part, false, j->y);
}

static void scale(const job *j) {
    const ls_compute *c = j->c->compute;
    int64_t n = j->rows * j->a->rank;
    if (c->device)
        ls_lora_device_scale(c, n, j->t, j->a->scale);
    else
        c->k->affine(n, j->t, j->a->scale, 0, j->t);
}

static const float *bias_of(const job *j) {
    int bias = ls_linear_bias(j->l);
    return bias ? ls_layer_param(j->l, j->c, bias) : NULL;
}

static void multiply_run(void *arg, int thread, int nthreads) {
    const job *j = arg;
    const ls_kernels *k = j->c->compute->k;
    const float *bias = bias_of(j);
    int64_t r = 0, end = 0;
    ls_pool_share(j->rows, 1, thread, nthreads, &r, &end);
    for (; r < end; r++) {
        float *y = j->y + r * j->out;
        k->multiply(j->out, y, j->a->g, y);
        if (bias) k->add(j->out, y, bias, y);
    }
}

/* y = g y + bias */
static void multiply_columns(const job *j) {
    const ls_compute *c = j->c->compute;
    if (c->device)
        ls_lora_device_columns(
            c, &(ls_lora_columns){j->rows, j->out, j->y, j->a->g, NULL, bias_of(j), j->y});
    else
        ls_pool_run(c->pool, multiply_run, (void *)(uintptr_t)j);
}

static void add(const job *j) {
    const ls_row_adapter *a = j->a;
    if (a->g && ls_linear_bias(j->l)) multiply_again(j);
    multiply(j, j->x, a->a, (ls_gemm_job){.N = a->rank, .K = j->in, .c = j->t});
    scale(j);
    multiply(j, ls_matrix_of(j->t, a->rank), a->b,
             (ls_gemm_job){.N = j->out, .K = a->rank, .c = j->y, .start = LS_GEMM_ADD});
    if (a->g) multiply_columns(j);
}

void ls_row_adapters_add(const ls_layer *l, const ls_layer_call *c, float *y) {
    const ls_row_adapters *all = c->adapters;
    int64_t out = ls_linear_outputs(l), each = c->T / all->T;
    ls_matrix x = ls_rows_x(l, c, 0, l->C);
    for (int i = 0; i < all->n; i++) {
        const ls_adapted_rows *r = &all->list[i];
        int64_t first = r->first * each;
        job j = {.l = l, .c = c, .a = &r->of[l->params[0]], .in = l->C, .out = out};
        if (!j.a->rank) continue;
        j.rows = r->end * each - first;
        j.x = ls_matrix_from(x, first, 0);
        j.t = all->room;
        j.y = y + first * out;
        add(&j);
    }
}
