/* targets.h - trains a config with several batches and rates to a validation loss, and compares
 * what larger batches save: `lockstep batch --steps-to`.
 *
 * For each batch, rates compete by successive halving: all train up to an eighth of the samples,
 * the better half of them up to a quarter, and so on. The first that reach the target end it: of
 * these, the one with the fewest steps counts. Source: Jamieson & Talwalkar, AISTATS 2016.
 */
#ifndef LS_SEARCH_TARGETS_H
#define LS_SEARCH_TARGETS_H

#include "search/cost.h"
#include "search/runner.h"
#include "search/target.h"

enum { LS_TARGET_BATCHES = 16, LS_TARGET_RATES = 16 };

typedef struct ls_targets_request {
    const ls_config *config;
    const char *output; /* directory of the trials */
    ls_target target;
    int64_t batches[LS_TARGET_BATCHES]; /* [nbatches] ascending */
    int nbatches;
    double factors[LS_TARGET_RATES]; /* [nfactors] of rates */
    int nfactors;
    ls_sharing sharing;
    ls_cost_request cost;
} ls_targets_request;

/* The best trial of a batch. */
typedef struct ls_target_best {
    int64_t batch, trained; /* trained: steps */
    double lr, steps;
    double val, train;             /* when all have taken the same samples */
    double val_steps, train_steps; /* when all have made the same steps */
    ls_target_curve curve;
    ls_target_regime regime;
} ls_target_best;

typedef struct ls_targets {
    const ls_targets_request *asked;
    ls_target_best best[LS_TARGET_BATCHES]; /* [asked->nbatches] */
    ls_costs costs;                         /* to the target */
    double samples, steps;                  /* at which all are compared */
} ls_targets;

/* Trains what is not trained yet. Free it in any case. */
ls_status ls_targets_run(const ls_targets_request *, ls_targets *t_p, ls_error *);
void ls_targets_free(ls_targets *);
/* Writes a picture; its path is the caller's. */
ls_status ls_targets_draw(const ls_targets *, char **path_p, ls_error *);

#endif
