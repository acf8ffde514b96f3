/* ledger.h - compares the samples that each step of a run used with those it should have used.
 *
 * The lines of metrics.jsonl are the ledger: step, epoch, the place of the first sample in the
 * epoch's order, the number of samples, the view and the number of workers. Every line must be one
 * that history.h describes, and all steps up to the newest checkpoint must have one.
 */
#ifndef LS_REPORT_LEDGER_H
#define LS_REPORT_LEDGER_H

#include <stdint.h>

#include "base/error.h"
#include "base/json.h"

typedef struct ls_ledger {
    int64_t steps;    /* complete */
    int64_t nsamples; /* of an epoch */
    int64_t epochs;   /* complete */
    int64_t rest;     /* samples used of the next epoch */
    int64_t changes;  /* changes of view */
    int64_t least_workers, most_workers;
    int64_t missing;          /* steps in marked gaps, whose lines were lost */
    int64_t gap_from, gap_to; /* the first gap */
    ls_json
        *changed; /* an array of changed keys: "step", from which they hold, "key", "was", "now" */
} ls_ledger;

/* LS_EINVAL: a line is damaged, or has values out of range or the wrong samples; a step is missing
 * or occurs twice; an epoch used a sample twice or not at all; or the log ends before the newest
 * good checkpoint. The message has the number of the first such line. A torn last line is
 * ignored. */
ls_status ls_ledger_check(const char *run, ls_ledger *l_p, ls_error *);
void ls_ledger_free(ls_ledger *);

/* Appends the changed keys of a line of metrics.jsonl (history.h), if it has any, to such an
 * array. */
void ls_ledger_add_changed(ls_json *changed, int64_t step, const ls_json *line);
/* Appends "from step 21 on optim.lr is 0.001, which was 0.003" for one of them. */
void ls_ledger_put_changed(const ls_json *one, ls_buf *out);

#endif
