/* report.h - pictures of a run. */
#ifndef LS_REPORT_REPORT_H
#define LS_REPORT_REPORT_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"

/* When RUN/loss.svg was last drawn, and how long that took. */
typedef struct ls_picture {
    int64_t drawn_ns, took_ns;
    bool failed;
} ls_picture;

/* Draws RUN/loss.svg anew, after an evaluation or (`last`) where a run stops. All of metrics.jsonl
 * is read for it, so after evaluations it takes at most a hundredth of the time, and a second of a
 * time, at a stop five seconds: what would take longer (of some 60,000 or 300,000 steps) is left to
 * the end of the run. A file that can't be written is logged. */
void ls_report_picture(ls_picture *, const char *run, bool last);

/* Writes RUN/loss.svg from RUN/metrics.jsonl and prints the same curve on standard output.
 * `bigram`: a level to draw, nats a token. */
ls_status ls_report_curve(const char *run, double bigram, ls_error *);

#endif
