/* batch_branch.h - lockstep batch RUN --branch: trains the branches of a run (perf/branch.h), and
 * prints what came out. */
#ifndef LS_CLI_BATCH_BRANCH_H
#define LS_CLI_BATCH_BRANCH_H

#include <stdbool.h>

#include "cli/batch_cost.h"
#include "cli/batch_jobs.h"
#include "perf/branch.h"

typedef struct cli_branches {
    const char *run;    /* its directory */
    const char *output; /* directory of the branches; NULL: RUN/branches */
    int64_t factors[LS_BRANCHES];
    int n;        /* of factors, ascending, the first is 1 */
    double units; /* tokens, or samples, of each branch at least; 0: what the run has left */
    int64_t at;   /* step of the checkpoint; 0: the newest one with as much left */
    double tolerance;
    cli_batch_workers workers;
    cli_batch_machine machine;
    bool json;
} cli_branches;

ls_status cli_branches_run(const cli_branches *, ls_error *);

#endif
