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

/* Redraws RUN/loss.svg, after an evaluation or (`last`) when a run stops. This reads all of
 * metrics.jsonl, so after evaluations all drawings may take a hundredth of the time, and each one
 * second; at a stop, five seconds. A picture that would take longer (some 60,000 or 300,000 steps)
 * is drawn only at the end of the run. A failure to write the file is logged. */
void ls_report_picture(ls_picture *, const char *run, bool last);

/* Writes RUN/loss.svg from RUN/metrics.jsonl and prints the same curve on standard output.
 * `bigram`: a level to draw, nats a token; 0: none. */
ls_status ls_report_curve(const char *run, double bigram, ls_error *);

#endif
