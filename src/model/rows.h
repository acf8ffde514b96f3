/* rows.h - steps that several layers use, run with all threads of a worker.
 *
 * Row-wise steps split rows among threads; gradient chains down the rows split columns.
 */
#ifndef LS_MODEL_ROWS_H
#define LS_MODEL_ROWS_H

#include "model/layer.h"

/* The layer norm with which attention, MLP and head begin; gamma and beta are their first two
 * parameters. h [rows, C] = norm of the call's x; mean, rstd [rows] are saved for backward. */
void ls_rows_norm(const ls_layer *, const ls_layer_call *, float *h, float *mean, float *rstd);

/* Backward of the norm: the call's dx, if it is wanted, = residual (may be NULL) + the gradient
 * through the norm of dh, and the gradients of gamma and beta, unless they are frozen. */
void ls_rows_norm_back(const ls_layer *, const ls_layer_call *, const float *mean,
                       const float *rstd, const float *dh, const float *residual);
/* Does the norm have any of these gradients? */
bool ls_rows_norm_has_back(const ls_layer *, const ls_layer_call *);

void ls_rows_gelu(const ls_compute *, int64_t n, const float *x, float *y);
/* In one pass: multiplies d by the derivative at x; y = gelu(x). */
void ls_rows_gelu_back(const ls_compute *, int64_t n, const float *x, float *d, float *y);
void ls_rows_add(const ls_compute *, int64_t n, const float *a, const float *b, float *out);

/* sum [C] = the sums of the columns of x [rows, C]; or they are added to a gradient that an earlier
 * call has begun. */
void ls_rows_column_sum(const ls_layer_call *, int64_t rows, int64_t C, const float *x, float *sum);

/* Products with the layer's parameter number w, [in, out]; the next parameter is its bias [out]. A
 * weight that is the layer's last parameter has no bias, and `in` is the layer's C.
 * y [rows, out] = x [rows, in] . w + bias */
void ls_rows_linear(const ls_layer *, const ls_layer_call *, int w, const float *x, float *y);
/* dx [rows, in] = dy [rows, out] . w^T */
void ls_rows_linear_dx(const ls_layer *, const ls_layer_call *, int w, const float *dy, float *dx);
/* The gradients of w, by x^T . dy, and of the bias, by the sums of dy's columns, unless they are
 * frozen. */
void ls_rows_linear_dw(const ls_layer *, const ls_layer_call *, int w, const float *x,
                       const float *dy);
/* Is there any of these gradients? */
bool ls_rows_linear_has_dw(const ls_layer *, int w);

#endif
