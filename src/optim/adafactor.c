/* adafactor.c - Adafactor: a second moment of rows and one of columns in place of one an element.
 *
 * Shazeer & Stern, "Adafactor: adaptive learning rates with sublinear memory cost", ICML 2018,
 * without momentum, with the constants and the names of PyTorch's program. A parameter of several
 * dims is B matrices [R, C]; a vector has a second moment an element.
 */
#include <float.h>
#include <math.h>

#include "base/math.h"
#include "optim/whole.h"

static const double EPS_WEIGHTS = 1e-3;

typedef struct shape {
    size_t B, R, C; /* C of a vector is its count, R 0 */
} shape;

static shape shape_of(const ls_param *p) {
    if (p->ndims < 2) return (shape){1, 0, p->count};
    size_t C = (size_t)p->dims[p->ndims - 1], R = (size_t)p->dims[p->ndims - 2];
    return (shape){p->count / (R * C), R, C};
}

/* The new moments of rows [B, R] and columns [B, C], and for each of the B the mean of its
 * rows'. */
static size_t values(const ls_param *p) {
    shape s = shape_of(p);
    return s.R ? s.B * (s.R + s.C + 1) : 0;
}

static float *means_of(const ls_whole_call *c) {
    shape s = shape_of(c->p);
    return c->values + s.B * (s.R + s.C);
}

/* Sums of squares of columns [B, C] in double precision. */
static size_t scratch(const ls_param *p) {
    shape s = shape_of(p);
    return s.R ? 2 * s.B * s.C : 0;
}

/* 1 - beta2 of this update. */
static float new_weight(const ls_whole_call *c) {
    return (float)ls_math_exp(-0.8 * ls_math_log((double)(c->updates + 1)));
}

static float blend(float was, float now, float weight) { return was + weight * (now - was); }

static void rows_run(void *arg, int thread, int nthreads) {
    const ls_whole_call *c = arg;
    shape s = shape_of(c->p);
    double scale = (double)c->s.grad_scale * (double)c->s.grad_scale;
    float weight = new_weight(c);
    int64_t first = 0, end = 0;
    ls_pool_share((int64_t)(s.B * s.R), 1, thread, nthreads, &first, &end);
    for (size_t r = (size_t)first; r < (size_t)end; r++) {
        double sum = 0;
        for (size_t i = 0; i < s.C; i += LS_BLOCK) {
            size_t n = s.C - i < LS_BLOCK ? s.C - i : LS_BLOCK;
            sum += (double)c->c->k->sum_squares((int64_t)n, c->grads + r * s.C + i);
        }
        float mean = (float)(sum * scale / (double)s.C);
        c->values[r] = blend(c->states[0][r], mean, weight);
    }
}

/* Each column is one chain over its rows. */
static void columns_run(void *arg, int thread, int nthreads) {
    const ls_whole_call *c = arg;
    shape s = shape_of(c->p);
    double scale = (double)c->s.grad_scale * (double)c->s.grad_scale;
    double *sums = (double *)(void *)c->scratch;
    float weight = new_weight(c);
    int64_t first = 0, end = 0;
    ls_pool_share((int64_t)s.C, 16, thread, nthreads, &first, &end);
    for (size_t b = 0; b < s.B; b++) {
        double *sum = sums + b * s.C;
        for (size_t k = (size_t)first; k < (size_t)end; k++) sum[k] = 0;
        for (size_t r = 0; r < s.R; r++) {
            const float *g = c->grads + (b * s.R + r) * s.C;
            for (size_t k = (size_t)first; k < (size_t)end; k++)
                sum[k] += (double)g[k] * (double)g[k];
        }
        for (size_t k = (size_t)first; k < (size_t)end; k++) {
            float mean = (float)(sum[k] * scale / (double)s.R);
            c->values[s.B * s.R + b * s.C + k] = blend(c->states[1][b * s.C + k], mean, weight);
        }
    }
}

static void average_rows(const ls_whole_call *c) {
    shape s = shape_of(c->p);
    for (size_t b = 0; b < s.B; b++) {
        double sum = 0;
        for (size_t r = 0; r < s.R; r++) sum += (double)c->values[b * s.R + r];
        float mean = (float)(sum / (double)s.R);
        means_of(c)[b] = mean > FLT_EPSILON ? mean : FLT_EPSILON;
    }
}

static float ratio(float g, float variance) {
    const float least = FLT_EPSILON * FLT_EPSILON;
    return g / sqrtf(variance > least ? variance : least);
}

/* The update, before it is made smaller; u [n]. */
static void update_block(const ls_whole_call *c, size_t from, size_t n, float *u) {
    shape s = shape_of(c->p);
    const float *columns = c->values + s.B * s.R;
    float weight = new_weight(c);
    for (size_t i = 0; i < n && !s.R; i++) {
        float g = c->grads[from + i] * c->s.grad_scale;
        u[i] = ratio(g, blend(c->states[0][from + i], g * g, weight));
    }
    for (size_t i = 0, end; i < n && s.R; i = end) {
        size_t row = (from + i) / s.C, k = (from + i) % s.C, b = row / s.R;
        end = n - i < s.C - k ? n : i + s.C - k;
        for (size_t j = i; j < end; j++) {
            float g = c->grads[from + j] * c->s.grad_scale;
            float variance = c->values[row] * columns[b * s.C + k + (j - i)] / means_of(c)[b];
            u[j] = ratio(g, variance);
        }
    }
}

static void squares_block(const ls_whole_call *c, void *arg, size_t from, size_t n) {
    double *weights = arg;
    float u[LS_BLOCK];
    update_block(c, from, n, u);
    c->sums[from / LS_BLOCK] = (double)c->c->k->sum_squares((int64_t)n, u);
    weights[from / LS_BLOCK] = (double)c->c->k->sum_squares((int64_t)n, c->params + from);
}

/* factors[0]: what multiplies the update. */
static void compute(const ls_whole_call *c) {
    double *weights = c->sums + (c->p->count + LS_BLOCK - 1) / LS_BLOCK;
    double n = (double)c->p->count, t = (double)(c->updates + 1);
    if (shape_of(c->p).R) {
        ls_whole_call call = *c;
        ls_pool_run(c->c->pool, rows_run, &call);
        ls_pool_run(c->c->pool, columns_run, &call);
        average_rows(c);
    }
    ls_whole_each_block(c, squares_block, weights);
    double u = sqrt(ls_whole_total(c, c->sums) / n), w = sqrt(ls_whole_total(c, weights) / n);
    double rate = fmin((double)c->s.lr, 1 / sqrt(t));
    c->factors[0] = fmax(EPS_WEIGHTS, w) * rate / fmax(1, u);
}

/* The block's part of new moments, of which there are n. */
static void put(float *state, const float *values, size_t count, size_t from, size_t n) {
    for (size_t i = from; i < from + n && i < count; i++) state[i] = values[i];
}

static void apply(const ls_whole_call *c, size_t from, size_t n) {
    shape s = shape_of(c->p);
    float u[LS_BLOCK], rate = (float)c->factors[0], keep = 1.0f - c->s.lr * c->s.weight_decay;
    float weight = new_weight(c);
    update_block(c, from, n, u);
    for (size_t i = 0; i < n && !s.R; i++) {
        float g = c->grads[from + i] * c->s.grad_scale;
        c->states[0][from + i] = blend(c->states[0][from + i], g * g, weight);
    }
    if (s.R) {
        put(c->states[0], c->values, s.B * s.R, from, n);
        put(c->states[1], c->values + s.B * s.R, s.B * s.C, from, n);
    }
    for (size_t i = 0; i < n; i++) c->params[from + i] = c->params[from + i] * keep - rate * u[i];
}

const ls_whole_rule ls_adafactor = {values, scratch, compute, apply, ls_whole_no_products};
