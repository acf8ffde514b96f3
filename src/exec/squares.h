/* squares.h - what the gradient noise scale needs of each virtual worker's gradient
 * (optim/noise.h), before it is added to others. */
#ifndef LS_EXEC_SQUARES_H
#define LS_EXEC_SQUARES_H

#include "optim/noise.h"
#include "plan/plan.h"

typedef struct ls_squares {
    ls_noise_signs signs;
    int64_t step;       /* that they are of; -1: none */
    double (*blocks)[2]; /* [blocks of the model] of the virtual worker that is measured */
} ls_squares;

void ls_squares_open(ls_squares *, const ls_plan *); /* a plan that measures nothing is fine */
void ls_squares_close(ls_squares *);

/* The gradient of a virtual worker. */
typedef struct ls_squares_input {
    const ls_plan *plan;
    const void *grads; /* [nfloats] of the plan's reduce type */
    uint64_t seed;
    int64_t step;
} ls_squares_input;

/* Measures a bucket of it. */
void ls_squares_bucket(ls_squares *, const ls_compute *, const ls_squares_input *, int bucket);
/* After all buckets. */
void ls_squares_sum(const ls_squares *, const ls_squares_input *,
                    double numbers[LS_NOISE_NUMBERS]);

/* The step's estimates, from the sums over all workers of ls_plan_nscalars() numbers. scale: of the
 * gradient; samples: of the batch. */
void ls_squares_finish(const ls_plan *, double *sums, int64_t step, double scale,
                       uint64_t samples, ls_noise_step *out);

#endif
