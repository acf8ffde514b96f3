/* rows.h - steps that layers share, run with all threads of a worker.
 *
 * Row-wise steps split rows among threads; gradient chains down the rows split columns.
 */
#ifndef LS_MODEL_ROWS_H
#define LS_MODEL_ROWS_H

#include "model/layer.h"

/* The layer norm that attention, MLP and head begin with; its gamma and beta are their first two
 * parameters. h [rows, C] = norm of the call's x; mean, rstd [rows] are kept for the way back. */
void ls_rows_norm(const ls_layer *, const ls_layer_call *, float *h, float *mean, float *rstd);

/* The call's dx = residual (may be NULL) + dh through the norm; its gradients of gamma and beta. */
void ls_rows_norm_back(const ls_layer *, const ls_layer_call *, const float *mean,
                       const float *rstd, const float *dh, const float *residual);

void ls_rows_gelu(const ls_compute *, int64_t n, const float *x, float *y);
/* In one pass: d becomes d times the slope at x; y = gelu(x). */
void ls_rows_gelu_back(const ls_compute *, int64_t n, const float *x, float *d, float *y);
void ls_rows_add(const ls_compute *, int64_t n, const float *a, const float *b, float *out);

/* The products with a layer's parameter w [in, out] (its index in the layer), which its bias [out]
 * follows. */
/* y [rows, out] = x [rows, in] . w + bias */
void ls_rows_linear(const ls_layer *, const ls_layer_call *, int w, const float *x, float *y);
/* dx [rows, in] = dy [rows, out] . w^T */
void ls_rows_linear_dx(const ls_layer *, const ls_layer_call *, int w, const float *dy, float *dx);
/* The gradients of w, by x^T . dy, and of the bias, by the sums of dy's columns. */
void ls_rows_linear_dw(const ls_layer *, const ls_layer_call *, int w, const float *x,
                       const float *dy);

#endif
