/* details.h - what a page asks about a run when someone looks there: samples, its ledger, its
 * traced steps, its workers, its checkpoints, and how it compares with others. Each appends JSON;
 * what is wrong is {"error": a line}.
 *
 * Some take seconds, so they are called by a thread of their own (http/jobs.h).
 */
#ifndef LS_WATCH_DETAILS_H
#define LS_WATCH_DETAILS_H

#include "base/mem.h"

enum { LS_DETAILS_RUNS = 8, LS_DETAILS_NAME = 64 };
/* Traced steps are read from this file of a run directory (train --trace RUN/trace.json). */
#define LS_DETAILS_TRACE "trace.json"

typedef struct ls_details_query {
    char *runs[LS_DETAILS_RUNS]; /* [nruns] run directories, at least one */
    int nruns;
    int step;                   /* of those that were traced, from 0 */
    char name[LS_DETAILS_NAME]; /* a number of metrics.jsonl */
    int columns;
} ls_details_query;

typedef void ls_details_write(const ls_details_query *, ls_buf *out);

/* {"samples": the last lines of samples.jsonl, "cut": are there more?} */
ls_details_write ls_details_samples;
/* {"text": what the ledger says} */
ls_details_write ls_details_ledger;
/* {"text": what `lockstep compare` prints}, of all runs. */
ls_details_write ls_details_compare;
/* {"label", "workers", "first_step", "steps", "step", "step_s", "events"}: an event is an array of
 * worker, lane (0 computes, 1 communicates), begin, the time until which it waited for other
 * workers, end, all in µs, and its name. */
ls_details_write ls_details_timeline;
/* workers.json (docs/reference/run-directory.md), with "age_s". */
ls_details_write ls_details_workers;
/* {"checkpoints": [{"step", "bytes", "val_loss", "written_s", "best"}]}, the newest first. */
ls_details_write ls_details_checkpoints;
/* {"lost": [{"view", "text"}]}: why views ended, by the run's log. */
ls_details_write ls_details_lost;
/* Of the first run minus the second (difference.h). */
ls_details_write ls_details_difference;

#endif
