/* details.h - what a page asks about a run when someone looks there: samples, its ledger, its traced steps, and how it
 * compares with others. Each appends JSON; what is wrong is {"error": a line}.
 */
#ifndef LS_WATCH_DETAILS_H
#define LS_WATCH_DETAILS_H

#include "base/mem.h"

enum { LS_DETAILS_COMPARED = 8 };
/* Traced steps are read from this file of a run directory (train --trace RUN/trace.json). */
#define LS_DETAILS_TRACE "trace.json"

/* {"samples": the last lines of samples.jsonl, "cut": are there more?} */
void ls_details_samples(const char *run, ls_buf *out);
/* {"text": what the ledger says} */
void ls_details_ledger(const char *run, ls_buf *out);
/* {"text": what `lockstep compare` prints}; runs [n], at most LS_DETAILS_COMPARED. */
void ls_details_compare(const char *const *runs, int n, ls_buf *out);
/* {"label", "workers", "first_step", "steps", "step", "step_s", "events"}: an event is an array of worker, lane (0
 * computes, 1 communicates), begin, the time until which it waited for other workers, end, all in µs, and its name. step: from
 * 0, of those that were traced. */
void ls_details_timeline(const char *run, int step, ls_buf *out);

#endif
