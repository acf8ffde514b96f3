/* ledger.h - which samples each step of a run has used, held against which it should have.
 *
 * The lines of metrics.jsonl are the ledger: step, epoch, the place of the first sample in the
 * epoch's order, how many, by which view and how many workers. Every line must be one that
 * history.h describes, and the steps up to the newest checkpoint must all be there.
 */
#ifndef LS_REPORT_LEDGER_H
#define LS_REPORT_LEDGER_H

#include <stdint.h>

#include "base/error.h"

typedef struct ls_ledger {
    int64_t steps;    /* complete */
    int64_t nsamples; /* of an epoch */
    int64_t epochs;   /* complete */
    int64_t rest;     /* samples of the next one */
    int64_t changes;  /* of the view */
    int64_t least_workers, most_workers;
    int64_t missing;          /* steps in marked gaps: their lines were lost, the run went on */
    int64_t gap_from, gap_to; /* the first gap */
} ls_ledger;

/* LS_EINVAL: the first line that is damaged, has values out of range or other samples than it
 * should, or a step that is missing or there twice; or a sample that an epoch used twice or not at
 * all; or the log ends before the newest good checkpoint. The message has the line's number. A last
 * line that is torn counts for nothing. */
ls_status ls_ledger_check(const char *run, ls_ledger *l_p, ls_error *);

#endif
