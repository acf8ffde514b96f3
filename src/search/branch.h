/* branch.h - branches of a run: from a checkpoint on, the same run with k times the batch.
 *
 * The learning rate is scaled, too: by the root of k for Adam and its kind, by k for sgd and lars
 * (optim.scale_lr). As a function of samples its curve is that of the run. All branches take the
 * same samples in the same order, so their losses are compared over the same samples: the largest k
 * whose loss is at most `tolerance` above the lowest of smaller ones is the critical batch. The
 * branch k = 1 is the run itself.
 *
 * Source: Merrill, Arora, Groeneveld & Hajishirzi, "Critical batch size revisited", arXiv
 * 2505.23971.
 */
#ifndef LS_SEARCH_BRANCH_H
#define LS_SEARCH_BRANCH_H

#include "config/config.h"

enum { LS_BRANCHES = 16 };

/* Which branches are wanted. */
typedef struct ls_branch_request {
    int64_t step;      /* of the checkpoint */
    int64_t samples;   /* of each branch, at least; 0: those that the run has left */
    int64_t most;      /* the largest k */
    uint64_t nsamples; /* of the data set */
} ls_branch_request;

/* The samples that all branches take, as places in the order of all epochs, one after the other. */
typedef struct ls_branch_span {
    int64_t step, batch; /* of the run, where branches begin */
    uint64_t nsamples;   /* of the data set */
    uint64_t first, end;
} ls_branch_span;

/* Branch 1 has whole steps, `most` times as many as the largest branch (but at the end of an epoch,
 * where steps have fewer samples). LS_EINVAL: the run has fewer left, or its batch changes within
 * them. */
ls_status ls_branch_span_of(const ls_config *run, const ls_branch_request *, ls_branch_span *s_p,
                            ls_error *);
/* The config of branch k, and the step after which it has taken all of the span; the last step may
 * go beyond. LS_EINVAL: it is not possible. */
ls_status ls_branch_config(const ls_config *run, const ls_branch_span *, int64_t k, ls_config *c_p,
                           int64_t *end_p, ls_error *);

/* ---- what came out ---- */

/* The mean training losses of a branch over pieces of the span: the same samples in all
 * branches. */
enum { LS_BRANCH_PIECES = 32 };
typedef struct ls_branch_losses {
    double of[LS_BRANCH_PIECES];
} ls_branch_losses;
/* Reads them from the metrics.jsonl of the branch's run directory. */
ls_status ls_branch_read(const char *dir, const ls_branch_span *, int64_t end,
                         ls_branch_losses *l_p, ls_error *);

typedef struct ls_branch_result {
    int64_t k;
    ls_branch_losses losses;
    double loss;  /* mean over the last quarter of the span */
    double above; /* the lowest loss of smaller k; of the first 0 */
    double error; /* standard error of `above`, of paired differences over pieces */
} ls_branch_result;
/* Sets loss, above and error of each; results [n] by ascending k. */
void ls_branch_compare(ls_branch_result *results, int n);

typedef struct ls_branch_critical {
    int last;         /* the result with the largest k that is good enough */
    bool reached;     /* there is a larger k, which is not */
    double k;         /* where `above` crosses the tolerance, by log k; else that of `last` */
    double low, high; /* the same if all `above` were two standard errors higher, or lower; high
                       * INFINITY: beyond the largest k */
} ls_branch_critical;
ls_branch_critical ls_branch_find(const ls_branch_result *results, int n, double tolerance);

#endif
