/* loss.h - operands of the kernels of losses over rows.
 *
 * Losses are in double, one for each row, unscaled. Gradients are multiplied by a row's factor,
 * scale * weight[row]. Fields that a kernel doesn't name are not read.
 */
#ifndef LS_TENSOR_LOSS_H
#define LS_TENSOR_LOSS_H

#include <stdint.h>

/* In the formulas, x and t are elements of a row of x and of target. */
typedef enum ls_loss {
    /* log(sum(e^x)) - sum(q * x), q = (1 - smoothing) at the label, plus smoothing / n everywhere.
     * A row with a negative label has loss and gradient 0. Gradient: softmax(x) - q. */
    LS_LOSS_CROSS_ENTROPY,
    /* With logits; t in [0, 1]: sum(max(x, 0) - x * t + log(1 + e^-|x|)). Gradient: sigmoid(x) -
     * t. */
    LS_LOSS_BINARY,
    /* sum((x - t)^2). Gradient: 2 (x - t). */
    LS_LOSS_SQUARES,
    LS_NLOSSES
} ls_loss;

typedef struct ls_loss_rows {
    int64_t rows, n;
    const float *x;       /* [rows, n] */
    const int32_t *label; /* [rows], < n: cross-entropy */
    float smoothing;      /* in [0, 1]: cross-entropy */
    float *stat;         /* [rows, 2]: cross-entropy; the forward pass leaves it for the gradient */
    const float *target; /* [rows, n]: the other losses */
    double *losses;      /* [rows] */
    float scale;
    const float *weight; /* [rows]; NULL: 1 each */
    float *dx;           /* [rows, n]; may be x */
} ls_loss_rows;

/* The losses, or the gradients dx. */
typedef void ls_loss_kernel(const ls_loss_rows *);

#endif
