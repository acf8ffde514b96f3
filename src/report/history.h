/* history.h - reads metrics.jsonl back, in pieces, since it may have any size.
 *
 * A line is one step, one evaluation, a gap, or what happened to the run:
 *   {"step": 10, "epoch": 0, "first": ..., "samples": ..., "view": 1, "workers": 4, "loss": ...,
 *    "lr": ..., "grad_norm": ..., "seconds": ..., "tokens_per_s": ...,
 *    "data_wait_s": ..., "memory_bytes": ..., "mfu": ...}
 *   {"step": 100, "val_loss": ..., "val_bits_per_byte": ..., "val_samples": ...}
 * Where samples are no windows of tokens, samples_per_s replaces tokens_per_s; val_bits_per_byte is
 * only written for texts.
 *
 * memory_bytes, once a second at most, is the resident memory of the run's processes on worker 0's
 * host. mfu is the share of the processor's peak (train/utilization.h).
 *
 *   {"step": 20, "started": "2026-11-02T09:10:11Z", "started_s": 1793610611, "host": "red",
 *    "pid": 4711, "workers": 4, "peak_flops_per_s": ..., "sum": "blocks32",
 *    "command": "lockstep train ..."}  training began after this step; after 0 in a new run. sum:
 *                                      the order of products in bf16 (tensor/sum_order.h), if the
 *                                      run has any
 *   {"step": 33, "diverged": true}     the loss of this step was no number, and the run ended
 *   {"step": 40, "ended": true}        the program that has a loop of its own closed its trainer
 *   {"step": 57, "gap": [1, 57]}       lines of these steps were lost before step 58 was written
 *   {"step": 21, "changed": {"optim.lr": ["0.003", "0.001"]}}
 *                                      the run was resumed with other keys that steer its steps:
 *                                      what they were, and what they are from this step on
 */
#ifndef LS_REPORT_HISTORY_H
#define LS_REPORT_HISTORY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "base/json.h"
#include "optim/noise.h"

/* The path of a run's metrics.jsonl: free() it. */
char *ls_metrics_path(const char *run);

/* The last step and the last evaluation that have lines; 0: none. */
typedef struct ls_logged {
    int64_t step, evaluation;
    ls_noise_mean noise; /* of that step's line */
} ls_logged;

/* Before a run resumes from step `steps`: cuts off the later or partly written lines of a killed
 * run. Reads only the end of the file: earlier damage remains, and `lockstep ckpt ledger` finds
 * it. */
ls_status ls_metrics_cut(const char *run, int64_t steps, ls_logged *logged_p, ls_error *);

/* Is the last step in metrics.jsonl step `steps`, and its evaluation missing? */
bool ls_history_lacks_evaluation(const char *run, int64_t steps);

/* The losses of metrics.jsonl as two series. Lines that are torn, damaged or foreign are
 * skipped; from a file of more than 32 MB only every n-th step is taken, and all evaluations. */
typedef struct ls_series {
    double *steps, *values; /* [n] */
    size_t n;
} ls_series;

typedef struct ls_run_history {
    ls_series train, val;
    bool has_tokens; /* losses are those of a token */
} ls_run_history;
ls_status ls_history_read(const char *run, ls_run_history *h_p, ls_error *);
void ls_history_free(ls_run_history *);

/* Calls use(arg, step, line) for each line of metrics.jsonl, in its order, from step 0 on, which a
 * start may have. Lines that are torn, damaged or foreign are skipped. */
typedef void ls_history_use(void *arg, int64_t step, const ls_json *line);
ls_status ls_history_scan(const char *run, ls_history_use *, void *arg, ls_error *);

#endif
