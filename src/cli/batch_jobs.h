/* batch_jobs.h - trainings of `lockstep batch` (batch_trial.h), one after the other or side by side.
 *
 * What a training comes to does not depend on its workers, so what comes of several does not depend
 * on how they share them. Side by side they are processes of a pool (pool.h), and end with this
 * command, also where it is killed: the same command continues.
 */
#ifndef LS_CLI_BATCH_JOBS_H
#define LS_CLI_BATCH_JOBS_H

#include "cli/batch_trial.h"

/* Workers, and how many trainings share them. */
typedef struct cli_batch_workers {
    int64_t
        workers;  /* of all trainings together; 0: one after the other as many as `lockstep train`
                        takes, else one per core */
    int64_t jobs; /* trainings at once, at most; 0, 1: one after the other */
} cli_batch_workers;

typedef struct cli_batch_job {
    cli_trial trial; /* its directory; the rest is set here */
    const ls_config *config;
    int64_t until;
    bool diverged; /* set: its loss is no number any more */
} cli_batch_job;

/* LS_EINVAL: trainings side by side are asked for, and what they come to depends on their workers. */
ls_status cli_batch_jobs_check(const cli_batch_workers *, const ls_config *, ls_error *);

/* Trains all n up to their steps. A failure, other than a loss that is no number, ends all.
 * LS_EABORT: interrupted. */
ls_status cli_batch_jobs_run(const cli_batch_workers *, cli_batch_job *list, int n, ls_error *);

#endif
