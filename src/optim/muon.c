/* muon.c - Muon: the momentum of a matrix, made nearly orthogonal by Newton and Schulz's iteration.
 *
 * Jordan et al., "Muon: an optimizer for hidden layers in neural networks", 2024, with its
 * coefficients, and the size of an update of Liu et al., "Muon is scalable for LLM training", arXiv
 * 2502.16982: that of AdamW's, so both have one learning rate. Nesterov's step, as both have it.
 * X is the matrix, or its transpose where that has fewer rows.
 */
#include <math.h>
#include <string.h>

#include "optim/whole.h"
#include "tensor/gemm.h"

enum { ITERATIONS = 5, STRIP = 96 /* rows of a symmetric product that are computed at once */ };
static const float A = 3.4445f, B = -4.7750f, C = 2.0315f;
static const double EPS = 1e-7;

/* The shorter and the longer side. */
static size_t rows_of(const ls_param *p) {
    return (size_t)(p->dims[0] < p->dims[1] ? p->dims[0] : p->dims[1]);
}
static size_t columns_of(const ls_param *p) { return p->count / rows_of(p); }

static size_t values(const ls_param *p) { return p->count; }
/* Scratch memory: another X, and two square matrices. */
static size_t scratch(const ls_param *p) { return p->count + 2 * rows_of(p) * rows_of(p); }

/* Momentum of element i, after this update. */
static inline float momentum_at(const ls_whole_call *c, size_t i, float g) {
    return c->s.momentum * c->states[0][i] + (1.0f - c->s.momentum) * g;
}

/* The step, before it is made orthogonal, and its squares. */
static void step_block(const ls_whole_call *c, void *arg, size_t from, size_t n) {
    (void)arg;
    for (size_t i = from; i < from + n; i++) {
        float g = c->grads[i] * c->s.grad_scale;
        c->values[i] = c->s.momentum * momentum_at(c, i, g) + (1.0f - c->s.momentum) * g;
    }
    c->sums[from / LS_BLOCK] = (double)c->c->k->sum_squares((int64_t)n, c->values + from);
}

static void scale_block(const ls_whole_call *c, void *arg, size_t from, size_t n) {
    const float *by = arg;
    for (size_t i = from; i < from + n; i++) c->values[i] *= *by;
}

/* X [R, N] with the layout of the parameter. */
static ls_matrix matrix(const ls_param *p, const float *x) {
    ls_matrix m = ls_matrix_of(x, p->dims[1]);
    return p->dims[0] <= p->dims[1] ? m : ls_matrix_across(m);
}

typedef struct parts {
    float *x, *y, *a, *square;
} parts;

static void start_block(const ls_whole_call *c, void *arg, size_t from, size_t n) {
    (void)c;
    const parts *b = arg;
    for (size_t i = from; i < from + n; i++) b->y[i] = A * b->x[i];
}

/* c [R, R] = a [R, K] b [K, R], which is symmetric, bit for bit: elements (i, j) and (j, i) are the
 * same chain of multiply-adds. In each strip of rows only the columns from the number of its first
 * row on are computed. */
static void symmetric(const ls_whole_call *call, ls_gemm_job job) {
    const float *a = job.a.p, *b = job.b.p;
    float *c = job.c;
    int64_t R = job.N;
    for (int64_t r = 0; r < R; r += STRIP) {
        job.a.p = a + r * job.a.rs;
        job.b.p = b + r * job.b.cs;
        job.c = c + r * R + r;
        job.M = R - r < STRIP ? R - r : STRIP;
        job.N = R - r;
        ls_gemm(call->c, &job);
    }
    for (int64_t i = STRIP; i < R; i++)
        for (int64_t j = 0; j < i / STRIP * STRIP; j++) c[i * R + j] = c[j * R + i];
}

/* The part of a symmetric product that is computed. */
static double symmetric_part(double R) {
    double strips = ceil(R / STRIP);
    return (strips + 1) / (2 * strips);
}

/* y = A x + (B a + C a a) x, a = x x^T. The product keeps the parameter's layout: [R, N], or its
 * transpose [N, R] = x (B a + C a a), as that matrix is symmetric. */
static void iterate(const ls_whole_call *c, parts *b) {
    int64_t R = (int64_t)rows_of(c->p), N = (int64_t)columns_of(c->p);
    ls_matrix x = matrix(c->p, b->x), a = ls_matrix_of(b->a, R),
              square = ls_matrix_of(b->square, R);
    symmetric(c,
              (ls_gemm_job){.N = R, .K = N, .a = x, .b = ls_matrix_across(x), .c = b->a, .ldc = R});
    symmetric(c, (ls_gemm_job){.N = R, .K = R, .a = a, .b = a, .c = b->square, .ldc = R});
    for (int64_t i = 0; i < R * R; i++) b->square[i] = B * b->a[i] + C * b->square[i];
    ls_whole_each_block(c, start_block, b);
    ls_gemm_job last = {.M = R, .N = N, .K = R, .a = square, .b = x, .start = LS_GEMM_ADD};
    if (c->p->dims[0] > c->p->dims[1])
        last = (ls_gemm_job){
            .M = N, .N = R, .K = R, .a = ls_matrix_of(b->x, R), .b = square, .start = LS_GEMM_ADD};
    last.c = b->y;
    last.ldc = c->p->dims[1];
    ls_gemm(c->c, &last);
    float *was = b->x;
    b->x = b->y;
    b->y = was;
}

static void compute(const ls_whole_call *c) {
    size_t R = rows_of(c->p);
    parts b = {.x = c->values, .y = c->scratch, .a = c->scratch + c->p->count};
    b.square = b.a + R * R;
    ls_whole_each_block(c, step_block, NULL);
    double norm = sqrt(ls_whole_total(c, c->sums));
    float by = (float)(1 / (norm > EPS ? norm : EPS));
    ls_whole_each_block(c, scale_block, &by);
    for (int i = 0; i < ITERATIONS; i++) iterate(c, &b);
    if (b.x != c->values) memcpy(c->values, b.x, c->p->count * sizeof *b.x);
}

static void apply(const ls_whole_call *c, size_t from, size_t n) {
    float rate = c->s.lr * 0.2f * sqrtf((float)columns_of(c->p));
    float keep = 1.0f - c->s.lr * c->s.weight_decay;
    for (size_t i = from; i < from + n; i++) {
        c->states[0][i] = momentum_at(c, i, c->grads[i] * c->s.grad_scale);
        c->params[i] = c->params[i] * keep - rate * c->values[i];
    }
}

static void products(const ls_param *p, ls_whole_product *list) {
    double R = (double)rows_of(p), N = (double)columns_of(p);
    list[0] = (ls_whole_product){ITERATIONS * symmetric_part(R), R, R, N};
    list[1] = (ls_whole_product){ITERATIONS * symmetric_part(R), R, R, R};
    list[2] = (ls_whole_product){ITERATIONS, R, N, R};
}

const ls_whole_rule ls_muon = {values, scratch, compute, apply, products};
