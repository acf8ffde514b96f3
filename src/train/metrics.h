/* metrics.h - what a run says of itself: metrics.jsonl, TensorBoard events, and the live line.
 *
 * Kept by worker 0. A line of metrics.jsonl is one step, or one evaluation:
 *   {"step": 10, "epoch": 0, "first": ..., "samples": ..., "view": 1, "workers": 4, "loss": ...,
 *    "lr": ..., "grad_norm": ..., "seconds": ..., "tokens_per_s": ...}
 *   {"step": 100, "val_loss": ..., "val_bits_per_byte": ..., "val_samples": ...}
 */
#ifndef LS_TRAIN_METRICS_H
#define LS_TRAIN_METRICS_H

#include "base/json.h"
#include "train/evaluate.h"

typedef struct ls_metrics ls_metrics;

/* The last steps that have their lines; 0: none. */
typedef struct ls_logged {
    int64_t step, evaluation;
} ls_logged;

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

/* Before going on from step `steps`: drops what a run that was killed wrote beyond it, or half. */
ls_status ls_metrics_cut(const char *run, int64_t steps, ls_logged *logged_p, ls_error *);

/* Calls fn for each whole line, in the order of the file; a torn last line, or one that is not
 * ours, is passed over. Ends with the first that fails. */
typedef ls_status ls_metrics_line(const ls_json *line, int64_t step, void *arg);
ls_status ls_metrics_read(const char *run, ls_metrics_line *fn, void *arg, ls_error *);

/* The losses of metrics.jsonl as two series. */
typedef struct ls_series {
    double *steps, *values; /* [n] */
    size_t n;
} ls_series;

typedef struct ls_history {
    ls_series train, val;
} ls_history;
ls_status ls_history_read(const char *run, ls_history *h_p, ls_error *);
void ls_history_free(ls_history *);

#endif
