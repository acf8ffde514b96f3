/* target.h - how many steps a training needs to a validation loss, by its batch; and what larger
 * batches save.
 *
 * Source of the three regimes: Shallue, Lee, Antognini, Sohl-Dickstein, Frostig & Dahl, "Measuring
 * the effects of data parallelism on neural network training", JMLR 20 (2019) 112.
 */
#ifndef LS_SEARCH_TARGET_H
#define LS_SEARCH_TARGET_H

#include "config/config.h"

/* What all trainings have in common. */
typedef struct ls_target {
    double loss;     /* validation loss to be reached */
    int64_t samples; /* that a training takes at most */
} ls_target;

/* The config of a training with this batch. factor: of the rate that optim.scale_lr would give from
 * the config's batch: by the root, for sgd and lars linear. After its warm-up, which takes as many
 * samples as the config's, the rate is constant, so a loss does not depend on when a training ends.
 * LS_EINVAL: the batch is not possible. */
ls_status ls_target_config(const ls_config *, const ls_target *, int64_t batch, double factor,
                           ls_config *c_p, ls_error *);

/* ---- a training ---- */

/* Losses as metrics.jsonl has them. */
typedef struct ls_target_curve {
    int64_t batch;
    int64_t *steps; /* } [n] evaluations */
    double *losses; /* } */
    int n;
    double *train; /* [nsteps] of each step, from the first on */
    int64_t nsteps;
} ls_target_curve;

/* Reads RUN/metrics.jsonl as it was after step `until`: a training that was interrupted may have
 * come further. ls_target_curve_free() it. LS_EINVAL: lines of some steps were lost. */
ls_status ls_target_read(const char *run, int64_t batch, int64_t until, ls_target_curve *c_p,
                         ls_error *);
void ls_target_curve_free(ls_target_curve *);
/* Steps to the loss, between evaluations by a straight line; INFINITY: not reached. */
double ls_target_steps(const ls_target_curve *, double loss);
/* The validation loss of the latest evaluation after at most `steps` steps; NAN: there is none. */
double ls_target_val(const ls_target_curve *, double steps);
/* The mean training loss of the steps before that take `samples` samples. */
double ls_target_train(const ls_target_curve *, double steps, double samples);

/* ---- all batches ---- */

typedef enum ls_target_regime {
    LS_REGIME_PERFECT,     /* at most 25 % more samples than the least of smaller batches */
    LS_REGIME_DIMINISHING, /* more, but larger batches take fewer steps */
    LS_REGIME_STAGNATION,  /* twice the batch would save less than 7 % of the steps */
    LS_REGIME_UNREACHED
} ls_target_regime;

/* batches, steps (to the target) [n], by ascending batches; regimes [n]. */
void ls_target_regimes(const int64_t *batches, const double *steps, int n,
                       ls_target_regime *regimes);
const char *ls_target_regime_name(ls_target_regime);

#endif
