/* factors.h - gradients as two factors of low rank (share/codes.h): a worker's, and their sums.
 *
 * With g a virtual worker's gradient of a matrix and e its error, Q the second factor of the step
 * before, and all sums in the tree's order over the V virtual workers:
 *
 *     first    M = g + e          P = sum of M Q, made orthonormal
 *     second                      Q = sum of M' P
 *     decode   e = M - P Q'/V     the sum of the gradients is taken to be P Q'
 *
 * M lies where the new errors will be. What is no matrix is summed as it is, with the first
 * factors.
 *
 * sums   [bucket][slot][floats of the round] as slots of gradients: what a virtual worker adds is
 *        folded at once. Slot 0 gets the sum over all.
 * first  [piece][rows][rank] orthonormal
 * second [second factors of the model]
 */
#ifndef LS_EXEC_FACTORS_H
#define LS_EXEC_FACTORS_H

#include <stdatomic.h>

#include "lockstep/group.h"
#include "plan/plan.h"

typedef struct ls_factors {
    const ls_share *share;
    int worker;
    void *memory;
    float *sums[2], *second;
    size_t *at[2]; /* [nbuckets] floats */
    float **first; /* [pieces] */
} ls_factors;

/* For a plan that has factors. Close frees what there is, also after a failure. */
ls_status ls_factors_open(ls_factors *, const ls_share *, int worker, ls_error *);
void ls_factors_close(ls_factors *);

/* One bucket in one step. */
typedef struct ls_factors_job {
    ls_factors *factors;
    int bucket;
    int64_t step;
    float *errors;    /* of all virtual workers (state/errors.h) */
    atomic_bool *bad; /* set if a value is not finite: then its matrix counts as 0 */
} ls_factors_job;

/* Virtual workers in order; the first one of a worker also takes over the sum before. */
void ls_factors_first(const ls_factors_job *, const ls_compute *, int vw, const float *grads);
void ls_factors_second(const ls_factors_job *, const ls_compute *, int vw);
/* Collective: the sum over all virtual workers of the factors of SumFactors. */
ls_status ls_factors_sum_start(ls_factors *, ls_group *, const ls_action *, ls_request **r_p,
                               ls_error *);
/* Writes the worker's part of the sum of gradients, but for what is no parameter, and the errors of
 * its virtual workers. */
void ls_factors_decode(const ls_factors_job *, const ls_compute *, float *grads);

#endif
