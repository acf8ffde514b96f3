/* rowwise.h - row-wise Adagrad of one row, where rows are updated each by itself. */
#ifndef LS_OPTIM_ROWWISE_H
#define LS_OPTIM_ROWWISE_H

#include "tensor/kernels.h"

/* g, row [width]: the gradient (s->grad_scale is 1), which is overwritten, and the parameters.
 * *squares: the row's sum of mean squares. */
void ls_rowwise_update(const ls_kernels *, const ls_update_scalars *, size_t width, float *g,
                       float *row, float *squares);

#endif
