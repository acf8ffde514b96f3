/* head.c - final layer norm, logits by the token embedding (tied), cross-entropy.
 *
 * params: gamma, beta [C]; wte [V, C], which belongs to the embedding
 * saved, a row: logits [V] | h = layer norm(x) [C] | mean, rstd | stat [2]
 * forward: x -> losses [n]. backward: dx, and the beginning of wte's gradient (see embedding.c).
 *
 * Where losses is NULL, forward stops at the logits, which ls_head_logits() finds.
 */
#include "model/head.h"

#include "base/math.h"
#include "model/rows.h"
#include "model/table.h"
#include "tensor/gemm.h"

enum { WTE = 2 };
enum { TABLE_BLOCK = 2048 }; /* rows */

typedef struct saved {
    float *logits, *h, *mean, *rstd, *stat;
} saved;

static saved saved_of(const ls_layer *l, const ls_layer_call *c) {
    int64_t rows = c->n * c->T;
    saved s;
    s.logits = c->saved;
    s.h = s.logits + rows * l->V;
    s.mean = s.h + rows * l->C;
    s.rstd = s.mean + rows;
    s.stat = s.rstd + rows;
    return s;
}

const float *ls_head_logits(const void *memory) { return memory; }

typedef struct job {
    const ls_layer *l;
    const ls_layer_call *c;
    saved s;
} job;

static int64_t target_of(const ls_layer_call *c, int64_t row) {
    return c->tokens[row / c->T * (c->T + 1) + row % c->T + 1];
}

/* Threads split samples: a sample's loss is one chain over its positions. */
static void loss_run(void *arg, int thread, int nthreads) {
    const job *j = arg;
    int64_t i = 0, end = 0, V = j->l->V, T = j->c->T;
    ls_pool_share(j->c->n, 1, thread, nthreads, &i, &end);
    for (; i < end; i++) {
        double loss = 0.0;
        for (int64_t r = i * T; r < (i + 1) * T; r++) {
            const float *x = j->s.logits + r * V;
            float *stat = j->s.stat + 2 * r;
            double sum = (double)j->c->compute->k->cross_entropy(V, x, stat);
            loss += ls_math_log(sum) + (double)stat[0] - (double)x[target_of(j->c, r)];
        }
        j->c->losses[i] = loss;
    }
}

/* The vocabulary is taken in blocks where its table has to be widened. */
static int64_t block_of(const ls_layer *l, const ls_layer_call *c) {
    return c->store && l->V > TABLE_BLOCK ? TABLE_BLOCK : l->V;
}

static void forward(const ls_layer *l, const ls_layer_call *c) {
    int64_t rows = c->n * c->T, C = l->C, V = l->V, block = block_of(l, c);
    job j = {l, c, saved_of(l, c)};
    ls_rows_norm(l, c, j.s.h, j.s.mean, j.s.rstd);
    for (int64_t v = 0; v < V; v += block) {
        int64_t n = V - v < block ? V - v : block;
        const float *w = ls_table_rows(l, c, WTE, v, n, c->room);
        ls_gemm(c->compute, &(ls_gemm_job){.M = rows,
                                           .N = n,
                                           .K = C,
                                           .a = ls_matrix_of(j.s.h, C),
                                           .b = ls_matrix_transposed(w, C),
                                           .c = j.s.logits + v,
                                           .ldc = V});
    }
    if (c->losses) ls_pool_run(c->compute->pool, loss_run, &j);
}

static void dlogits_run(void *arg, int thread, int nthreads) {
    const job *j = arg;
    int64_t r = 0, end = 0, V = j->l->V;
    ls_pool_share(j->c->n * j->c->T, 1, thread, nthreads, &r, &end);
    for (; r < end; r++)
        j->c->compute->k->cross_entropy_dx(V, j->s.logits + r * V, j->s.stat + 2 * r,
                                           target_of(j->c, r), j->c->loss_scale);
}

/* work: dh [rows, C]. The logits become their gradient in place. */
static void backward(const ls_layer *l, const ls_layer_call *c) {
    int64_t rows = c->n * c->T, C = l->C, V = l->V, block = block_of(l, c);
    float *dh = c->work;
    job j = {l, c, saved_of(l, c)};
    ls_pool_run(c->compute->pool, dlogits_run, &j);
    for (int64_t v = 0; v < V; v += block) {
        int64_t n = V - v < block ? V - v : block;
        ls_table_grad g = ls_table_grad_begin(l, c, WTE, v, n, c->room);
        ls_gemm(c->compute, &(ls_gemm_job){.M = n,
                                           .N = C,
                                           .K = rows,
                                           .a = ls_matrix_transposed(j.s.logits + v, V),
                                           .b = ls_matrix_of(j.s.h, C),
                                           .c = g.p,
                                           .ldc = C,
                                           .start = g.start ? LS_GEMM_ZERO : LS_GEMM_ADD});
        ls_table_grad_end(l, c, WTE, v, n, &g);
        const float *w = ls_table_rows(l, c, WTE, v, n, c->room);
        ls_gemm(c->compute, &(ls_gemm_job){.M = rows,
                                           .N = C,
                                           .K = n,
                                           .a = ls_matrix_of(j.s.logits + v, V),
                                           .b = ls_matrix_of(w, C),
                                           .c = dh,
                                           .ldc = C,
                                           .start = v == 0 ? LS_GEMM_ZERO : LS_GEMM_ADD});
    }
    ls_rows_norm_back(l, c, j.s.mean, j.s.rstd, dh, NULL);
}

static const ls_layer_ops ops = {.kind = "head", .forward = forward, .backward = backward};

void ls_head_declare(ls_layer *l, int64_t T, int64_t C, int64_t V) {
    l->ops = &ops;
    l->T = T;
    l->C = C;
    l->V = V;
    l->saved_floats = (size_t)(T * (V + C + 4));
    l->work_floats = (size_t)(T * C);
    l->forward_flops = 2.0 * (double)(T * C * V);
    ls_works *f = &l->forward_work, *b = &l->backward_work;
    ls_works_norm(f, b, T, C);
    ls_works_product(f, LS_WORK_PRODUCT_DX, 0, V, C); /* the embedding, transposed */
    ls_works_pass(f, LS_WORK_LOSS, T * V);
    ls_works_pass(b, LS_WORK_LOSS_DX, T * V);
    ls_works_product(b, LS_WORK_PRODUCT_DW, V, C, 0);
    ls_works_product(b, LS_WORK_PRODUCT, 0, C, V);
    l->loss = true;
    l->ntables = 1;
    l->room_floats = (size_t)((V < TABLE_BLOCK ? V : TABLE_BLOCK) * C);
}
