/* copy.h - rows of numbers that move between values: a range of a dimension, patches of an
 * image. */
#ifndef LS_LAYERS_COPY_H
#define LS_LAYERS_COPY_H

#include "model/builder.h"

/* rows of `width` floats each; strides are in floats. */
typedef struct ls_copy {
    int64_t rows, width;
    const float *from; /* NULL: zeros are written */
    int64_t from_stride;
    float *to;
    int64_t to_stride;
} ls_copy;

void ls_copy_in_thread(const ls_copy *);               /* by the calling thread alone */
void ls_copy_run(const ls_compute *, const ls_copy *); /* by all threads */

/* A sample's value as [outer, size, inner], around its dimension `dim`. */
typedef struct ls_around {
    int dim;
    int64_t outer, size, inner;
} ls_around;

/* dim: from 0, or from -1 down, the last one first. False: x has no such dimension, and the model
 * has failed. */
bool ls_around_dim(ls_model *, const ls_value *x, int dim, ls_around *a_p);

#endif
