/* reference.h - GPT-2 in plain loops and double precision, for the tests to compare with.
 *
 * Written from the paper's formulas: no blocking, no vectors, no code of the library but its random
 * numbers. A layer is a
 * forward and a backward; backward computes again what it needs, adds to the gradients, and writes
 * dx.
 *
 * Shapes: n samples, T positions, rows = n * T, C width, V vocabulary. Weights are [in, out].
 */
#ifndef LS_TEST_REFERENCE_H
#define LS_TEST_REFERENCE_H

#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/random.h"

typedef struct ref_shape {
    int64_t n, T, C, heads, V;
} ref_shape;

typedef struct ref_tensors {
    double *t[6]; /* a layer's parameters or gradients, in the order of the library's layer */
    double rate;  /* of dropout */
    int mask;     /* the number of the layer's first mask */
} ref_tensors;

/* The seed and the step of masks. */
enum { REF_SEED = 3, REF_STEP = 4 };

/* What dropout makes of 1 at a sample's number `at`: 0, or 1 / (1 - rate). One word of the random
 * numbers at a time: see tensor/kernels/dropout.c. */
static inline double ref_kept(const ref_tensors *p, int mask, int64_t sample, int64_t at) {
    uint32_t w[4];
    uint64_t index = (uint64_t)(at / 64 * 16 + at % 16) + ((uint64_t)(p->mask + mask) << 40);
    if (p->rate == 0) return 1;
    ls_random_words(REF_SEED, LS_STREAM_DROPOUT, ((uint64_t)REF_STEP << 32) + (uint64_t)sample,
                    index, w);
    return w[at / 16 % 4] / 4294967296.0 < p->rate ? 0 : 1 / (1 - p->rate);
}

/* to [n, T, C] = from, with a mask. */
static inline void ref_drop(const ref_shape *s, const ref_tensors *p, int mask, const double *from,
                            double *to) {
    int64_t each = s->T * s->C;
    for (int64_t i = 0; i < s->n * each; i++)
        to[i] = from[i] * ref_kept(p, mask, i / each, i % each);
}

/* tokens [n, T + 1]; x [rows, C]; y [rows, C], the head's [n]: the samples' losses. */
typedef void ref_forward(const ref_shape *, const ref_tensors *p, const uint32_t *tokens,
                         const double *x, double *y);
typedef void ref_backward(const ref_shape *, const ref_tensors *p, const uint32_t *tokens,
                          const double *x, const double *dy, const ref_tensors *g, double *dx);

static inline double *ref_zeros(int64_t n) {
    double *p = calloc((size_t)n + 1, sizeof *p);
    if (!p) abort();
    return p;
}

/* The token at position t of sample i; t = T is the last target. */
static inline int64_t ref_token(const ref_shape *s, const uint32_t *tokens, int64_t i, int64_t t) {
    return tokens[i * (s->T + 1) + t];
}

/* y = (x - mean) / sqrt(variance + 1e-5) * gamma + beta, each row by itself. */
static inline void ref_norm(int64_t rows, int64_t C, const double *x, const double *gamma,
                            const double *beta, double *y) {
    for (int64_t r = 0; r < rows; r++, x += C, y += C) {
        double mean = 0, variance = 0;
        for (int64_t c = 0; c < C; c++) mean += x[c] / (double)C;
        for (int64_t c = 0; c < C; c++) variance += (x[c] - mean) * (x[c] - mean) / (double)C;
        double rstd = 1.0 / sqrt(variance + 1e-5);
        for (int64_t c = 0; c < C; c++) y[c] = (x[c] - mean) * rstd * gamma[c] + beta[c];
    }
}

static inline void ref_norm_back(int64_t rows, int64_t C, const double *x, const double *gamma,
                                 const double *dy, double *dgamma, double *dbeta, double *dx) {
    for (int64_t r = 0; r < rows; r++, x += C, dy += C, dx += C) {
        double mean = 0, variance = 0, mean_d = 0, mean_dz = 0;
        for (int64_t c = 0; c < C; c++) mean += x[c] / (double)C;
        for (int64_t c = 0; c < C; c++) variance += (x[c] - mean) * (x[c] - mean) / (double)C;
        double rstd = 1.0 / sqrt(variance + 1e-5);
        for (int64_t c = 0; c < C; c++) {
            double z = (x[c] - mean) * rstd;
            dgamma[c] += dy[c] * z;
            dbeta[c] += dy[c];
            mean_d += dy[c] * gamma[c] / (double)C;
            mean_dz += dy[c] * gamma[c] * z / (double)C;
        }
        for (int64_t c = 0; c < C; c++)
            dx[c] = rstd * (dy[c] * gamma[c] - mean_d - (x[c] - mean) * rstd * mean_dz);
    }
}

/* y [rows, out] = x [rows, in] . w [in, out] + b */
static inline void ref_linear(int64_t rows, int64_t in, int64_t out, const double *x,
                              const double *w, const double *b, double *y) {
    for (int64_t r = 0; r < rows; r++) {
        for (int64_t j = 0; j < out; j++) y[r * out + j] = b[j];
        for (int64_t i = 0; i < in; i++)
            for (int64_t j = 0; j < out; j++) y[r * out + j] += x[r * in + i] * w[i * out + j];
    }
}

static inline void ref_linear_back(int64_t rows, int64_t in, int64_t out, const double *x,
                                   const double *w, const double *dy, double *dw, double *db,
                                   double *dx) {
    for (int64_t r = 0; r < rows; r++) {
        for (int64_t j = 0; j < out; j++) db[j] += dy[r * out + j];
        for (int64_t i = 0; i < in; i++) {
            double sum = 0;
            for (int64_t j = 0; j < out; j++) {
                sum += dy[r * out + j] * w[i * out + j];
                dw[i * out + j] += dy[r * out + j] * x[r * in + i];
            }
            dx[r * in + i] = sum;
        }
    }
}

/* p: wte [V, C], wpe [T, C] */
static inline void ref_embedding(const ref_shape *s, const ref_tensors *p, const uint32_t *tokens,
                                 const double *x, double *y) {
    (void)x;
    for (int64_t i = 0; i < s->n; i++)
        for (int64_t t = 0; t < s->T; t++)
            for (int64_t c = 0; c < s->C; c++)
                y[(i * s->T + t) * s->C + c] =
                    p->t[0][ref_token(s, tokens, i, t) * s->C + c] + p->t[1][t * s->C + c];
    ref_drop(s, p, 0, y, y);
}

static inline void ref_embedding_back(const ref_shape *s, const ref_tensors *p,
                                      const uint32_t *tokens, const double *x, const double *dy,
                                      const ref_tensors *g, double *dx) {
    (void)x;
    ref_drop(s, p, 0, dy, dx);
    for (int64_t i = 0; i < s->n; i++)
        for (int64_t t = 0; t < s->T; t++)
            for (int64_t c = 0; c < s->C; c++) {
                g->t[0][ref_token(s, tokens, i, t) * s->C + c] += dx[(i * s->T + t) * s->C + c];
                g->t[1][t * s->C + c] += dx[(i * s->T + t) * s->C + c];
            }
}

/* One row of probabilities: prob [T], with zeros after t. q, k: a head's, rows 3C apart. */
static inline void ref_softmax(const ref_shape *s, const double *q, const double *k, int64_t t,
                               double *prob) {
    int64_t D = s->C / s->heads;
    double most = -INFINITY, sum = 0;
    for (int64_t u = 0; u < s->T; u++) prob[u] = 0;
    for (int64_t u = 0; u <= t; u++) {
        for (int64_t d = 0; d < D; d++) prob[u] += q[t * 3 * s->C + d] * k[u * 3 * s->C + d];
        prob[u] /= sqrt((double)D);
        most = fmax(most, prob[u]);
    }
    for (int64_t u = 0; u <= t; u++) sum += prob[u] = exp(prob[u] - most);
    for (int64_t u = 0; u <= t; u++) prob[u] /= sum;
}

/* The place of a probability in its mask: rows are multiples of 64. */
static inline int64_t ref_prob_at(const ref_shape *s, int64_t h, int64_t t, int64_t u) {
    return (h * s->T + t) * ((s->T + 63) / 64 * 64) + u;
}

/* qkv [rows, 3C] -> prob [n, heads, T, T], kept: what their mask makes of 1, att [rows, C] */
static inline void ref_mix(const ref_shape *s, const ref_tensors *p, const double *qkv,
                           double *prob, double *kept, double *att) {
    int64_t D = s->C / s->heads, ld = 3 * s->C;
    for (int64_t i = 0; i < s->n; i++)
        for (int64_t h = 0; h < s->heads; h++)
            for (int64_t t = 0; t < s->T; t++) {
                const double *q = qkv + i * s->T * ld + h * D, *v = q + 2 * s->C;
                int64_t at = ((i * s->heads + h) * s->T + t) * s->T;
                double *row = prob + at, *k = kept + at;
                ref_softmax(s, q, q + s->C, t, row);
                for (int64_t u = 0; u <= t; u++) k[u] = ref_kept(p, 0, i, ref_prob_at(s, h, t, u));
                for (int64_t d = 0; d < D; d++) {
                    double sum = 0;
                    for (int64_t u = 0; u <= t; u++) sum += row[u] * k[u] * v[u * ld + d];
                    att[(i * s->T + t) * s->C + h * D + d] = sum;
                }
            }
}

/* dqkv += ; one query t of one head. datt [D]; q, dq: the head's in qkv and dqkv. */
static inline void ref_mix_back(const ref_shape *s, const double *q, const double *prob,
                                const double *kept, const double *datt, int64_t t, double *dq) {
    int64_t D = s->C / s->heads, ld = 3 * s->C;
    const double *k = q + s->C, *v = k + s->C;
    double *dk = dq + s->C, *dv = dk + s->C, mean = 0;
    double *dprob = ref_zeros(s->T);
    for (int64_t u = 0; u <= t; u++) {
        for (int64_t d = 0; d < D; d++) {
            dprob[u] += datt[d] * v[u * ld + d] * kept[u];
            dv[u * ld + d] += datt[d] * prob[u] * kept[u];
        }
        mean += prob[u] * dprob[u];
    }
    for (int64_t u = 0; u <= t; u++) {
        double ds = prob[u] * (dprob[u] - mean) / sqrt((double)D);
        for (int64_t d = 0; d < D; d++) {
            dq[t * ld + d] += ds * k[u * ld + d];
            dk[u * ld + d] += ds * q[t * ld + d];
        }
    }
    free(dprob);
}

/* p: gamma, beta [C]; w_qkv [C, 3C], b_qkv; w_out [C, C], b_out */
static inline void ref_attention(const ref_shape *s, const ref_tensors *p, const uint32_t *tokens,
                                 const double *x, double *y) {
    (void)tokens;
    int64_t rows = s->n * s->T, C = s->C;
    double *h = ref_zeros(rows * C), *qkv = ref_zeros(rows * 3 * C), *att = ref_zeros(rows * C);
    double *prob = ref_zeros(s->heads * rows * s->T), *kept = ref_zeros(s->heads * rows * s->T);
    ref_norm(rows, C, x, p->t[0], p->t[1], h);
    ref_linear(rows, C, 3 * C, h, p->t[2], p->t[3], qkv);
    ref_mix(s, p, qkv, prob, kept, att);
    ref_linear(rows, C, C, att, p->t[4], p->t[5], y);
    ref_drop(s, p, 1, y, y);
    for (int64_t i = 0; i < rows * C; i++) y[i] += x[i];
    free(h), free(qkv), free(att), free(prob), free(kept);
}

static inline void ref_attention_back(const ref_shape *s, const ref_tensors *p,
                                      const uint32_t *tokens, const double *x, const double *dy,
                                      const ref_tensors *g, double *dx) {
    (void)tokens;
    int64_t rows = s->n * s->T, C = s->C, D = C / s->heads;
    double *h = ref_zeros(rows * C), *qkv = ref_zeros(rows * 3 * C), *att = ref_zeros(rows * C);
    double *prob = ref_zeros(s->heads * rows * s->T), *dqkv = ref_zeros(rows * 3 * C);
    double *datt = ref_zeros(rows * C), *dh = ref_zeros(rows * C), *dout = ref_zeros(rows * C);
    double *kept = ref_zeros(s->heads * rows * s->T);
    ref_norm(rows, C, x, p->t[0], p->t[1], h);
    ref_linear(rows, C, 3 * C, h, p->t[2], p->t[3], qkv);
    ref_mix(s, p, qkv, prob, kept, att);
    ref_drop(s, p, 1, dy, dout);
    ref_linear_back(rows, C, C, att, p->t[4], dout, g->t[4], g->t[5], datt);
    for (int64_t i = 0; i < s->n; i++)
        for (int64_t k = 0; k < s->heads; k++)
            for (int64_t t = 0; t < s->T; t++) {
                int64_t at = i * s->T * 3 * C + k * D;
                int64_t row = ((i * s->heads + k) * s->T + t) * s->T;
                ref_mix_back(s, qkv + at, prob + row, kept + row, datt + (i * s->T + t) * C + k * D,
                             t, dqkv + at);
            }
    ref_linear_back(rows, C, 3 * C, h, p->t[2], dqkv, g->t[2], g->t[3], dh);
    ref_norm_back(rows, C, x, p->t[0], dh, g->t[0], g->t[1], dx);
    for (int64_t i = 0; i < rows * C; i++) dx[i] += dy[i];
    free(h), free(qkv), free(att), free(prob), free(dqkv), free(datt), free(dh), free(dout);
    free(kept);
}

/* 0.5 x (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3))) and its derivative */
static inline double ref_gelu(double x) {
    return 0.5 * x * (1 + tanh(sqrt(2 / acos(-1.0)) * (x + 0.044715 * x * x * x)));
}
static inline double ref_gelu_slope(double x) {
    double a = sqrt(2 / acos(-1.0)), th = tanh(a * (x + 0.044715 * x * x * x));
    return 0.5 * (1 + th) + 0.5 * x * (1 - th * th) * a * (1 + 3 * 0.044715 * x * x);
}

/* p: gamma, beta [C]; w_in [C, 4C], b_in; w_out [4C, C], b_out */
static inline void ref_mlp(const ref_shape *s, const ref_tensors *p, const uint32_t *tokens,
                           const double *x, double *y) {
    (void)tokens;
    int64_t rows = s->n * s->T, C = s->C;
    double *h = ref_zeros(rows * C), *u = ref_zeros(rows * 4 * C);
    ref_norm(rows, C, x, p->t[0], p->t[1], h);
    ref_linear(rows, C, 4 * C, h, p->t[2], p->t[3], u);
    for (int64_t i = 0; i < rows * 4 * C; i++) u[i] = ref_gelu(u[i]);
    ref_linear(rows, 4 * C, C, u, p->t[4], p->t[5], y);
    ref_drop(s, p, 0, y, y);
    for (int64_t i = 0; i < rows * C; i++) y[i] += x[i];
    free(h), free(u);
}

static inline void ref_mlp_back(const ref_shape *s, const ref_tensors *p, const uint32_t *tokens,
                                const double *x, const double *dy, const ref_tensors *g,
                                double *dx) {
    (void)tokens;
    int64_t rows = s->n * s->T, C = s->C;
    double *h = ref_zeros(rows * C), *u = ref_zeros(rows * 4 * C), *a = ref_zeros(rows * 4 * C);
    double *du = ref_zeros(rows * 4 * C), *dh = ref_zeros(rows * C), *dout = ref_zeros(rows * C);
    ref_norm(rows, C, x, p->t[0], p->t[1], h);
    ref_linear(rows, C, 4 * C, h, p->t[2], p->t[3], u);
    for (int64_t i = 0; i < rows * 4 * C; i++) a[i] = ref_gelu(u[i]);
    ref_drop(s, p, 0, dy, dout);
    ref_linear_back(rows, 4 * C, C, a, p->t[4], dout, g->t[4], g->t[5], du);
    for (int64_t i = 0; i < rows * 4 * C; i++) du[i] *= ref_gelu_slope(u[i]);
    ref_linear_back(rows, C, 4 * C, h, p->t[2], du, g->t[2], g->t[3], dh);
    ref_norm_back(rows, C, x, p->t[0], dh, g->t[0], g->t[1], dx);
    for (int64_t i = 0; i < rows * C; i++) dx[i] += dy[i];
    free(h), free(u), free(a), free(du), free(dh), free(dout);
}

/* p: gamma, beta [C]; wte [V, C]. prob [V] of row r of h = norm(x); returns log sum exp - the
 * target's logit. */
static inline double ref_loss(const ref_shape *s, const ref_tensors *p, const double *h,
                              int64_t target, double *prob) {
    double most = -INFINITY, sum = 0;
    for (int64_t v = 0; v < s->V; v++) {
        prob[v] = 0;
        for (int64_t c = 0; c < s->C; c++) prob[v] += h[c] * p->t[2][v * s->C + c];
        most = fmax(most, prob[v]);
    }
    double hit = prob[target];
    for (int64_t v = 0; v < s->V; v++) sum += prob[v] = exp(prob[v] - most);
    for (int64_t v = 0; v < s->V; v++) prob[v] /= sum;
    return log(sum) + most - hit;
}

static inline void ref_head(const ref_shape *s, const ref_tensors *p, const uint32_t *tokens,
                            const double *x, double *y) {
    int64_t rows = s->n * s->T;
    double *h = ref_zeros(rows * s->C), *prob = ref_zeros(s->V);
    ref_norm(rows, s->C, x, p->t[0], p->t[1], h);
    for (int64_t i = 0; i < s->n; i++) {
        y[i] = 0;
        for (int64_t t = 0; t < s->T; t++)
            y[i] += ref_loss(s, p, h + (i * s->T + t) * s->C, ref_token(s, tokens, i, t + 1), prob);
    }
    free(h), free(prob);
}

static inline void ref_head_back(const ref_shape *s, const ref_tensors *p, const uint32_t *tokens,
                                 const double *x, const double *dy, const ref_tensors *g,
                                 double *dx) {
    int64_t rows = s->n * s->T, C = s->C;
    double *h = ref_zeros(rows * C), *prob = ref_zeros(s->V), *dh = ref_zeros(rows * C);
    ref_norm(rows, C, x, p->t[0], p->t[1], h);
    for (int64_t r = 0; r < rows; r++) {
        int64_t target = ref_token(s, tokens, r / s->T, r % s->T + 1);
        ref_loss(s, p, h + r * C, target, prob);
        for (int64_t v = 0; v < s->V; v++) {
            double d = dy[r / s->T] * (prob[v] - (v == target));
            for (int64_t c = 0; c < C; c++) {
                dh[r * C + c] += d * p->t[2][v * C + c];
                g->t[2][v * C + c] += d * h[r * C + c];
            }
        }
    }
    ref_norm_back(rows, C, x, p->t[0], dh, g->t[0], g->t[1], dx);
    free(h), free(prob), free(dh);
}

#endif
