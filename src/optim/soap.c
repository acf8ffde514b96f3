/* soap.c - SOAP: Adam in the basis in which the gradient's second moment is diagonal.
 *
 * Vyas et al., "SOAP: improving and stabilizing Shampoo using Adam", ICLR 2025, on the shorter side
 * of a matrix alone (the paper's one-sided form), with the steps of its authors' program: the first
 * gradient only makes the basis; every tenth update renews it by one step of orthogonal iteration.
 *
 * X [R, N] is the matrix, or its transpose where that has fewer rows; GG [R, R] is the mean of
 * G G^T, and the columns of Q [R, R] are its eigenvectors. The mean of gradients is in the
 * coordinates of the parameter, that of squares in those of Q.
 */
#include <math.h>
#include <string.h>

#include "base/math.h"
#include "optim/whole.h"
#include "tensor/gemm.h"

enum { RENEWAL = 10, SWEEPS = 30 };

/* The states, and the room's values for applying. */
enum { MEAN, SQUARES, GG, Q };

static bool is_wide(const ls_param *p) { return p->dims[0] <= p->dims[1]; }
static size_t rows_of(const ls_param *p) { return (size_t)(is_wide(p) ? p->dims[0] : p->dims[1]); }

typedef struct room {
    float *step, *mean, *squares, *gg, *q; /* values */
    float *x, *y, *product;                /* scratch: [count], [count], [R, R] */
    double *a, *b;                         /* [R, R] */
    double *squares_of_rows;               /* [R] */
} room;

static size_t values(const ls_param *p) { return 3 * p->count + 2 * rows_of(p) * rows_of(p); }

static size_t scratch(const ls_param *p) {
    size_t R = rows_of(p);
    return 4 * R * R + 2 * p->count + R * R + 2 * R;
}

static room room_of(const ls_whole_call *c) {
    size_t n = c->p->count, square = rows_of(c->p) * rows_of(c->p);
    room r = {.step = c->values, .mean = c->values + n, .squares = c->values + 2 * n};
    r.gg = c->values + 3 * n;
    r.q = r.gg + square;
    r.a = (double *)(void *)c->scratch; /* at the beginning of a vector */
    r.b = r.a + square;
    r.squares_of_rows = r.b + square;
    r.x = c->scratch + 4 * square + 2 * rows_of(c->p);
    r.y = r.x + n;
    r.product = r.y + n;
    return r;
}

/* ---- products ---- */

/* out = Q^T x, or back: Q x; in the parameter's layout, where a tall one is x Q, or x Q^T. */
static void rotate(const ls_whole_call *c, const float *x, const float *q, bool back, float *out) {
    int64_t R = (int64_t)rows_of(c->p);
    ls_matrix matrix = ls_matrix_of(x, c->p->dims[1]), basis = ls_matrix_of(q, R);
    bool wide = is_wide(c->p);
    if (wide != back) basis = ls_matrix_across(basis);
    ls_gemm(c->c, &(ls_gemm_job){.M = c->p->dims[0],
                                 .N = c->p->dims[1],
                                 .K = R,
                                 .a = wide ? basis : matrix,
                                 .b = wide ? matrix : basis,
                                 .c = out,
                                 .ldc = c->p->dims[1]});
}

/* out [R, R] = a b */
static void multiply(const ls_whole_call *c, ls_matrix a, ls_matrix b, int64_t K, float *out) {
    int64_t R = (int64_t)rows_of(c->p);
    ls_gemm(c->c, &(ls_gemm_job){.M = R, .N = R, .K = K, .a = a, .b = b, .c = out, .ldc = R});
}

/* GG with this gradient, which is in r->x. */
static void add_gradient(const ls_whole_call *c, const room *r) {
    size_t R = rows_of(c->p);
    ls_matrix x = ls_matrix_of(r->x, c->p->dims[1]);
    if (!is_wide(c->p)) x = ls_matrix_across(x);
    multiply(c, x, ls_matrix_across(x), (int64_t)(c->p->count / R), r->product);
    for (size_t i = 0; i < R * R; i++)
        r->gg[i] = c->s.beta2 * c->states[GG][i] + (1.0f - c->s.beta2) * r->product[i];
}

/* ---- the basis ---- */

static double dot(const double *x, const double *y, size_t n) {
    double sums[4] = {0}; /* four chains, so that one need not wait for itself */
    for (size_t i = 0; i < n; i++) sums[i % 4] += x[i] * y[i];
    return (sums[0] + sums[1]) + (sums[2] + sums[3]);
}

/* Rotates two rows of n, with these squares, so that they become orthogonal. False: they are. */
static bool part_rows(double *x, double *y, double *squares_x, double *squares_y, size_t n) {
    double along = dot(x, y, n);
    if (fabs(along) <= 1e-14 * sqrt(*squares_x * *squares_y)) return false;
    double ratio = (*squares_y - *squares_x) / (2 * along);
    double tangent = (ratio < 0 ? -1 : 1) / (fabs(ratio) + sqrt(ratio * ratio + 1));
    double cosine = 1 / sqrt(tangent * tangent + 1), sine = tangent * cosine;
    for (size_t i = 0; i < n; i++) {
        double was = x[i];
        x[i] = cosine * was - sine * y[i];
        y[i] = sine * was + cosine * y[i];
    }
    *squares_x -= tangent * along;
    *squares_y += tangent * along;
    return true;
}

/* Hestenes' form of Jacobi's method: rotations make the rows of a, which is symmetric, orthogonal.
 * They become its eigenvectors, each times its eigenvalue. squares [R]: of the rows. */
static void diagonalize(double *a, double *squares, size_t R) {
    bool again = true;
    for (int sweep = 0; again && sweep < SWEEPS; sweep++) {
        again = false;
        for (size_t i = 0; i < R; i++) squares[i] = dot(a + i * R, a + i * R, R);
        for (size_t i = 0; i < R; i++)
            for (size_t k = i + 1; k < R; k++)
                if (part_rows(a + i * R, a + k * R, &squares[i], &squares[k], R)) again = true;
    }
    for (size_t i = 0; i < R; i++) squares[i] = dot(a + i * R, a + i * R, R);
}

/* The place of the next largest of values [R], which are marked as taken by -1. All are at least 0,
 * up to rounding. */
static size_t take_largest(double *x, size_t R) {
    size_t best = 0;
    for (size_t i = 1; i < R; i++)
        if (x[i] > x[best]) best = i;
    x[best] = -INFINITY;
    return best;
}

/* Makes row `at` of v [., R] orthogonal to those before, and of length 1. False: nothing is
 * left. */
static bool straighten(double *v, size_t R, size_t at) {
    double *x = v + at * R, before = 0, after = 0;
    for (size_t i = 0; i < R; i++) before += x[i] * x[i];
    for (int again = 0; again < 2; again++) /* twice is enough */
        for (size_t k = 0; k < at; k++) {
            double along = 0;
            for (size_t i = 0; i < R; i++) along += v[k * R + i] * x[i];
            for (size_t i = 0; i < R; i++) x[i] -= along * v[k * R + i];
        }
    for (size_t i = 0; i < R; i++) after += x[i] * x[i];
    if (after <= 1e-24 * before) return false;
    for (size_t i = 0; i < R; i++) x[i] /= sqrt(after);
    return true;
}

/* Sets row `at` to a unit vector that is not among those before, where a column vanished. */
static void replace(double *v, size_t R, size_t at) {
    for (size_t k = 0; k < R; k++) {
        for (size_t i = 0; i < R; i++) v[at * R + i] = i == k;
        if (straighten(v, R, at)) return;
    }
}

/* The columns of Q are the rows of v, made orthonormal one after the other. */
static void set_basis(const room *r, double *v, size_t R) {
    for (size_t k = 0; k < R; k++) {
        if (!straighten(v, R, k)) replace(v, R, k);
        for (size_t i = 0; i < R; i++) r->q[i * R + k] = (float)v[k * R + i];
    }
}

/* The eigenvectors of the first GG, by descending eigenvalues. */
static void begin_basis(const ls_whole_call *c, const room *r) {
    size_t R = rows_of(c->p);
    double *squares = r->squares_of_rows;
    for (size_t i = 0; i < R * R; i++) r->a[i] = (double)r->gg[i];
    diagonalize(r->a, squares, R);
    for (size_t k = 0; k < R; k++) {
        size_t from = take_largest(squares, R);
        memcpy(r->b + k * R, r->a + from * R, R * sizeof *r->b);
    }
    set_basis(r, r->b, R);
}

/* Row i of squares moves to row `to` of those of the parameter's layout. */
static void move_row(const ls_whole_call *c, const float *from, size_t i, size_t to, float *out) {
    size_t R = rows_of(c->p), N = c->p->count / R;
    bool wide = is_wide(c->p);
    for (size_t k = 0; k < N; k++)
        out[wide ? to * N + k : k * R + to] = from[wide ? i * N + k : k * R + i];
}

/* The columns of Q by descending eigenvalues, as they are estimated, then one step of orthogonal
 * iteration: the columns of GG Q, made orthonormal one after the other. */
static void renew_basis(const ls_whole_call *c, const room *r) {
    size_t R = rows_of(c->p);
    double *estimates = r->b;
    memcpy(r->y, r->squares, c->p->count * sizeof *r->y);
    multiply(c, ls_matrix_of(r->gg, (int64_t)R), ls_matrix_of(r->q, (int64_t)R), (int64_t)R,
             r->product);
    for (size_t k = 0; k < R; k++) {
        estimates[k] = 0;
        for (size_t i = 0; i < R; i++)
            estimates[k] += (double)r->q[i * R + k] * (double)r->product[i * R + k];
    }
    for (size_t k = 0; k < R; k++) {
        size_t from = take_largest(estimates, R);
        for (size_t i = 0; i < R; i++) r->a[k * R + i] = (double)r->product[i * R + from];
        move_row(c, r->y, from, k, r->squares);
    }
    set_basis(r, r->a, R);
}

/* ---- the update ---- */

static void clip_block(const ls_whole_call *c, void *arg, size_t from, size_t n) {
    const room *r = arg;
    for (size_t i = from; i < from + n; i++) {
        r->x[i] = c->grads[i] * c->s.grad_scale;
        r->mean[i] = c->s.beta1 * c->states[MEAN][i] + (1.0f - c->s.beta1) * r->x[i];
    }
}

/* The squares of the gradient in y. */
static void squares_block(const ls_whole_call *c, void *arg, size_t from, size_t n) {
    const room *r = arg;
    for (size_t i = from; i < from + n; i++)
        r->squares[i] =
            c->s.beta2 * c->states[SQUARES][i] + (1.0f - c->s.beta2) * r->y[i] * r->y[i];
}

/* Divides the mean in y. */
static void divide_block(const ls_whole_call *c, void *arg, size_t from, size_t n) {
    const room *r = arg;
    for (size_t i = from; i < from + n; i++) r->y[i] /= sqrtf(r->squares[i]) + c->s.eps;
}

/* The first update moves nothing. */
static void begin(const ls_whole_call *c, const room *r) {
    size_t nbytes = c->p->count * sizeof(float);
    begin_basis(c, r);
    memset(r->step, 0, nbytes);
    memset(r->mean, 0, nbytes);
    memset(r->squares, 0, nbytes);
}

static void compute(const ls_whole_call *c) {
    room r = room_of(c);
    size_t square = rows_of(c->p) * rows_of(c->p);
    ls_whole_each_block(c, clip_block, &r);
    add_gradient(c, &r);
    if (c->updates == 0) {
        begin(c, &r);
        return;
    }
    memcpy(r.q, c->states[Q], square * sizeof *r.q);
    rotate(c, r.x, r.q, false, r.y);
    ls_whole_each_block(c, squares_block, &r);
    rotate(c, r.mean, r.q, false, r.y);
    ls_whole_each_block(c, divide_block, &r);
    rotate(c, r.y, r.q, true, r.step);
    if (c->updates % RENEWAL == 0) renew_basis(c, &r);
}

/* The rate of Adam's corrected means, of which the first update has no part. */
static float rate_of(const ls_whole_call *c) {
    double first = 1 - ls_math_pow_int((double)c->s.beta1, (uint64_t)c->updates);
    double second = 1 - ls_math_pow_int((double)c->s.beta2, (uint64_t)c->updates);
    return c->updates ? (float)((double)c->s.lr * sqrt(second) / first) : 0;
}

/* The block's part of a state with n values. */
static void put(float *state, const float *from, size_t n, size_t first, size_t end) {
    for (size_t i = first; i < end && i < n; i++) state[i] = from[i];
}

static void apply(const ls_whole_call *c, size_t from, size_t n) {
    room r = room_of(c);
    size_t square = rows_of(c->p) * rows_of(c->p), end = from + n;
    float rate = rate_of(c), keep = c->updates ? 1.0f - c->s.lr * c->s.weight_decay : 1.0f;
    put(c->states[MEAN], r.mean, c->p->count, from, end);
    put(c->states[SQUARES], r.squares, c->p->count, from, end);
    put(c->states[GG], r.gg, square, from, end);
    put(c->states[Q], r.q, square, from, end);
    for (size_t i = from; i < end; i++) c->params[i] = (c->params[i] - rate * r.step[i]) * keep;
}

static void products(const ls_param *p, ls_whole_product *list) {
    double R = (double)rows_of(p), N = (double)p->count / R;
    list[0] = (ls_whole_product){3, R, N, R};
    list[1] = (ls_whole_product){1, R, R, N};
    list[2] = (ls_whole_product){1.0 / RENEWAL, R, R, R};
}

const ls_whole_rule ls_soap = {values, scratch, compute, apply, products};
