/* rows.h - steps that layers share, run with all threads of a worker.
 *
 * Row-wise steps split rows among threads; gradient chains down the rows split columns.
 */
#ifndef LS_MODEL_ROWS_H
#define LS_MODEL_ROWS_H

#include "model/layer.h"

/* y [rows, C] = layer norm of x; mean, rstd [rows]. */
void ls_rows_layernorm(const ls_compute *, int64_t rows, int64_t C, const float *x,
                       const float *gamma, const float *beta, float *y, float *mean, float *rstd);

typedef struct ls_layernorm_back {
    int64_t rows, C;
    const float *dy, *x, *gamma, *mean, *rstd;
    const float *residual; /* added to dx; may be NULL */
    float *dx;
    float *dgamma, *dbeta; /* [C] */
    bool start;            /* the chains of dgamma and dbeta start at 0 */
} ls_layernorm_back;
void ls_rows_layernorm_back(const ls_compute *, const ls_layernorm_back *);

void ls_rows_gelu(const ls_compute *, int64_t n, const float *x, float *y);
void ls_rows_gelu_back(const ls_compute *, int64_t n, const float *x, const float *dy, float *dx);
void ls_rows_add(const ls_compute *, int64_t n, const float *a, const float *b, float *out);

/* y [rows, out] = x [rows, in] . w [in, out] + bias [out] */
void ls_rows_linear(const ls_compute *, int64_t rows, int64_t in, int64_t out, const float *x,
                    const float *w, const float *bias, float *y);
/* dx = dy . w^T (skipped where dx is NULL); dw += x^T . dy; dbias += sums of dy's columns */
void ls_rows_linear_back(const ls_compute *, int64_t rows, int64_t in, int64_t out, const float *x,
                         const float *w, const float *dy, float *dx, float *dw, float *dbias,
                         bool start);

#endif
