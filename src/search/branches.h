/* branches.h - trains branches of a run with other batches, and compares them: `lockstep batch
 * --branch`. */
#ifndef LS_SEARCH_BRANCHES_H
#define LS_SEARCH_BRANCHES_H

#include "search/branch.h"
#include "search/cost.h"
#include "search/runner.h"

typedef struct ls_branches_request {
    const char *run;    /* its directory */
    const char *output; /* directory of the branches; NULL: RUN/branches */
    int64_t factors[LS_BRANCHES];
    int n;        /* of factors, ascending, the first is 1 */
    double units; /* tokens, or samples, of each branch at least; 0: what the run has left */
    int64_t at;   /* step of the checkpoint; 0: the newest one with as much left */
    double tolerance;
    ls_sharing sharing;
    ls_cost_request cost;
} ls_branches_request;

typedef struct ls_branches {
    const ls_branches_request *asked;
    char *output, *checkpoint;
    ls_config *run;
    uint64_t nsamples; /* of the data set */
    ls_branch_span span;
    ls_config *configs;        /* } [asked->n] */
    ls_trial *trials;          /* } */
    ls_branch_result *results; /* } */
    double *val_losses;        /* } */
    ls_costs costs;
    ls_branch_critical critical;
} ls_branches;

/* Trains the branches that are not trained yet. Free *b_p in any case. */
ls_status ls_branches_run(const ls_branches_request *, ls_branches *b_p, ls_error *);
void ls_branches_free(ls_branches *);

/* Does the run itself have a checkpoint where branch 1 ends, with the same bits? A sentence; NULL:
 * it has none there. */
const char *ls_branches_compare_bits(const ls_branches *);
/* Writes a picture; its path is the caller's. */
ls_status ls_branches_draw(const ls_branches *, char **path_p, ls_error *);

#endif
