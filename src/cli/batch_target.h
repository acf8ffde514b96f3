/* batch_target.h - lockstep batch CONFIG --steps-to: trains with several batches and rates to a
 * validation loss (perf/target.h), and prints what larger batches save.
 *
 * For each batch, rates compete by successive halving: all train up to an eighth of the samples, the
 * better half of them up to a quarter, and so on. The first that reach the target end it: of these,
 * the one with the fewest steps counts. Source: Jamieson & Talwalkar, AISTATS 2016.
 */
#ifndef LS_CLI_BATCH_TARGET_H
#define LS_CLI_BATCH_TARGET_H

#include <stdbool.h>

#include "cli/batch_cost.h"
#include "cli/batch_jobs.h"
#include "perf/target.h"

enum { CLI_TARGET_BATCHES = 16, CLI_TARGET_RATES = 16 };

typedef struct cli_target {
    const ls_config *config;
    const char *output; /* directory of the trainings */
    ls_target target;
    int64_t batches[CLI_TARGET_BATCHES]; /* [nbatches] ascending */
    int nbatches;
    double factors[CLI_TARGET_RATES]; /* [nfactors] of rates */
    int nfactors;
    cli_batch_workers workers;
    cli_batch_machine machine;
    bool json;
} cli_target;

ls_status cli_target_run(const cli_target *, ls_error *);

#endif
