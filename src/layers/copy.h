/* copy.h - rows of numbers that move between values: a range of a dimension, patches of an
 * image. */
#ifndef LS_LAYERS_COPY_H
#define LS_LAYERS_COPY_H

#include "model/builder.h"

/* rows of `width` numbers each, in f32 or bf16; strides are in numbers. */
typedef struct ls_copy {
    int64_t rows, width;
    const void *from; /* NULL: zeros are written */
    int64_t from_stride;
    void *to;
    int64_t to_stride;
    bool bf16;
    bool adds; /* to what is there; with zeros nothing is written */
} ls_copy;

void ls_copy_in_thread(const ls_copy *); /* by the calling thread alone; adds nothing */
void ls_copy_run(const ls_compute *, const ls_copy *); /* by all threads, or the device */

/* A sample's value as [outer, size, inner], around its dimension `dim`. */
typedef struct ls_around {
    int dim;
    int64_t outer, size, inner;
} ls_around;

/* dim: from 0, or from -1 down, the last one first. False: x has no such dimension, and the model
 * has failed. */
bool ls_around_dim(ls_model *, const ls_value *x, int dim, ls_around *a_p);

#endif
