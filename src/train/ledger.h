/* ledger.h - which samples each step of a run has used, held against which it should have.
 *
 * The lines of metrics.jsonl are the ledger: step, epoch, the place of the first sample in the
 * epoch's order, how many, by which view and how many workers.
 */
#ifndef LS_TRAIN_LEDGER_H
#define LS_TRAIN_LEDGER_H

#include <stdint.h>

#include "base/error.h"

typedef struct ls_ledger {
    int64_t steps;    /* complete */
    int64_t nsamples; /* of an epoch */
    int64_t epochs;   /* complete */
    int64_t rest;     /* samples of the next one */
    int64_t changes;  /* of the view */
    int64_t least_workers, most_workers;
} ls_ledger;

/* LS_EINVAL: the first step that is missing, there twice, or has other samples than it should; or
 * a sample that an epoch used twice or not at all. */
ls_status ls_ledger_check(const char *run, ls_ledger *l_p, ls_error *);

#endif
