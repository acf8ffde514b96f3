/* squares.h - what the gradient noise scale needs of each virtual worker's gradient
 * (optim/noise.h), before it is added to others. */
#ifndef LS_EXEC_SQUARES_H
#define LS_EXEC_SQUARES_H

#include "optim/noise.h"
#include "share/share.h"

typedef struct ls_squares {
    ls_noise_signs signs;
    int64_t step;       /* that they are of; -1: none */
    float (*blocks)[2]; /* [blocks of the largest bucket] of the bucket that is measured */
    double *numbers;    /* [V][LS_NOISE_NUMBERS] of the step that ends */
} ls_squares;

void ls_squares_open(ls_squares *, const ls_share *); /* a plan that measures nothing is fine */
void ls_squares_close(ls_squares *);

/* The gradient of a virtual worker. */
typedef struct ls_squares_input {
    const ls_share *share;
    const void *grads; /* [nfloats] of the plan's reduce type */
    uint64_t seed;
    int64_t step;
} ls_squares_input;

/* Measures a bucket of it, and adds what comes out to bins. */
void ls_squares_bucket(ls_squares *, const ls_compute *, const ls_squares_input *, int bucket,
                       double bins[LS_NOISE_SUMS]);

/* The sums over all workers of ls_share.nscalars numbers. */
typedef struct ls_squares_sums {
    const ls_share *share;
    double *sums;
    int64_t step;
    double scale;     /* of the gradient */
    uint64_t samples; /* of the batch */
} ls_squares_sums;
/* The step's estimates. */
void ls_squares_finish(const ls_squares *, const ls_squares_sums *, ls_noise_step *out);

#endif
