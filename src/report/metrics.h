/* metrics.h - what a run says of itself: metrics.jsonl, TensorBoard events, and the live line.
 *
 * Written by worker 0; history.h reads it back and describes its lines.
 */
#ifndef LS_REPORT_METRICS_H
#define LS_REPORT_METRICS_H

#include "report/evaluation.h"
#include "report/history.h"
#include "train/run.h"

typedef struct ls_metrics ls_metrics;

/* Appends to what is in the run's folder; not what is there already. */
ls_status ls_metrics_open(const ls_run *, ls_logged, ls_metrics **m_p, ls_error *);
/* Begins new files where those that it writes were taken away, or TensorBoard's could not be
 * written. */
ls_status ls_metrics_mend(ls_metrics *, ls_error *);
ls_status ls_metrics_close(ls_metrics *, ls_error *); /* NULL is fine */

/* `steps`: complete with this one. Lines that the disk does not take wait in memory until it does,
 * or ls_metrics_close() fails. LS_EIO: too many wait. */
ls_status ls_metrics_step(ls_metrics *, int64_t steps, const ls_step_in *, const ls_step_out *,
                          double seconds, ls_error *);
/* The latest step in memory, where who was to write its line was lost. */
ls_status ls_metrics_missing(ls_metrics *, ls_error *);
ls_status ls_metrics_evaluation(ls_metrics *, int64_t steps, const ls_evaluation *, ls_error *);

#endif
