/* report.h - pictures of a run. */
#ifndef LS_TRAIN_REPORT_H
#define LS_TRAIN_REPORT_H

#include "base/error.h"

/* Writes RUN/loss.svg from RUN/metrics.jsonl and prints the same curve on standard output.
 * `bigram`: a level to draw, nats a token. */
ls_status ls_report_curve(const char *run, double bigram, ls_error *);

#endif
