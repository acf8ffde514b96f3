/* tune_metric.h - what a training of `lockstep tune` came to, by its run directory. */
#ifndef LS_CLI_TUNE_METRIC_H
#define LS_CLI_TUNE_METRIC_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"

/* The metric of this step in RUN/metrics.jsonl; NAN: it is not a number there. LS_EINVAL: it is in
 * no line of the step; the message lists those that are. */
ls_status cli_tune_metric(const char *run, const char *metric, int64_t step, double *value_p,
                          ls_error *);
/* The last line of a training's output: free() it. */
char *cli_tune_last_line(const char *output);

#endif
