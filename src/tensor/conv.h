/* conv.h - convolutions of images in which every element is one chain of multiply-adds.
 *
 * Images are [n, h, w, channels] (NHWC), weights [kernel_h, kernel_w, in / groups, out] (PyTorch's
 * are [out, in / groups, kernel_h, kernel_w]); group g has the g-th part of the channels of x and
 * of y. Indices: r, s of the kernel, c of x's channels, k of y's.
 *
 *   y[n, oh, ow, k] = bias[k] + sum over r, s, c of
 *       x[n, oh * stride_h + r - pad_h, ow * stride_w + s - pad_w, c] * w[r, s, c, k]
 *
 * The order of each chain:
 *   y:  r, s, c.
 *   dx: oh, ow, k; so r and s descend. With a stride, a pixel of x meets only those r and s for
 *       which oh and ow are integers.
 *   dw: samples, oh, ow; then those of the next call.
 *   db: a sum of dy in the same order.
 *
 * Pixels beyond the borders of x, and of dy in the chains of dx, are zeros that are multiplied like
 * all others: an infinite weight gives NaN there, and a sum of -0 may become +0.
 *
 * So bits do not depend on n, on other samples, on threads, or on the variant of the kernels, and
 * gradients of parameters that continue over calls have the bits of one call with all samples.
 *
 * A transposed convolution is ls_conv_back_x() with a bias: dy is its input, dx its output, and the
 * struct describes the convolution from its output to its input. Its gradients are those of
 * ls_conv_forward() (of its input) and ls_conv_back_w().
 *
 * Work memory is the GEMM's, of each thread; nothing is allocated. Where the compute has a device,
 * the work is queued there (conv_device.h).
 */
#ifndef LS_TENSOR_CONV_H
#define LS_TENSOR_CONV_H

#include "tensor/gemm.h"

typedef struct ls_conv {
    int64_t h, w;    /* of x */
    int64_t in, out; /* channels of x and of y, multiples of groups */
    int64_t kernel_h, kernel_w;
    int64_t stride_h, stride_w;
    int64_t pad_h, pad_w; /* on each side */
    int64_t groups; /* from 1 to in; in == out == groups: depthwise, which has its own kernel */
} ls_conv;

/* What a call reads and writes; it reads only the fields it needs. Arrays do not overlap. */
typedef struct ls_conv_job {
    int64_t n;               /* samples, from 0 */
    ls_gemm_start start;     /* of the chains of the array that is written */
    const float *x, *w, *dy; /* [n, h, w, in], the weights, [n, out_h, out_w, out] */
    const float *bias;       /* for LS_GEMM_BIAS: [out], in ls_conv_back_x() [in] */
    float *y, *dx, *dw, *db; /* shapes of dy, x, w; [out] */
} ls_conv_job;

/* LS_EINVAL: a size is out of range, channels are no multiples of groups, the kernel is larger than
 * the padded image, or has more weights than work memory holds. */
ls_status ls_conv_check(const ls_conv *, ls_error *);

/* For a valid convolution. */
int64_t ls_conv_out_h(const ls_conv *);
int64_t ls_conv_out_w(const ls_conv *);

/* The calls below use all threads of the worker, and must not be called inside ls_pool_run(). The
 * convolution must be valid. */
void ls_conv_forward(const ls_compute *, const ls_conv *, const ls_conv_job *); /* x, w -> y */
void ls_conv_back_x(const ls_compute *, const ls_conv *, const ls_conv_job *);  /* dy, w -> dx */
/* The gradients of parameters start at 0 or continue from dw and db. */
void ls_conv_back_w(const ls_compute *, const ls_conv *, const ls_conv_job *);    /* x, dy -> dw */
void ls_conv_back_bias(const ls_compute *, const ls_conv *, const ls_conv_job *); /* dy -> db */

#endif
