/* metrics.h - what a run reports: metrics.jsonl, TensorBoard events, and the live line.
 *
 * Worker 0 writes them. history.h describes the lines of metrics.jsonl and reads them back.
 */
#ifndef LS_REPORT_METRICS_H
#define LS_REPORT_METRICS_H

#include "config/config.h"
#include "exec/exec.h"
#include "report/evaluation.h"
#include "report/history.h"

typedef struct ls_metrics ls_metrics;

/* Appends to the files in the run directory. The logged steps and evaluations are not appended
 * again. The config and the model must outlive it. */
ls_status ls_metrics_open(const char *run, const ls_config *, const ls_model *, ls_logged,
                          ls_metrics **m_p, ls_error *);
/* Later lines belong to this view of nworkers workers. */
void ls_metrics_set_view(ls_metrics *, int64_t number, int nworkers);
/* Later lines have the share of the peak (mfu), for a model with `flops` operations a sample on
 * cores that together do `peak` operations a second. 0, which is the default: not known. */
void ls_metrics_set_peak(ls_metrics *, double flops, double peak);
/* What all steps so far have used of the peak; zeros: not known. */
typedef struct ls_metrics_use {
    double flops, peak; /* a second */
} ls_metrics_use;
ls_metrics_use ls_metrics_used(const ls_metrics *);
/* Prints no lines, which only the run's log then has: the program's own loop prints. */
void ls_metrics_set_quiet(ls_metrics *);
/* Creates new files if the files were removed, or if TensorBoard's could not be written. */
ls_status ls_metrics_repair(ls_metrics *, ls_error *);
ls_status ls_metrics_close(ls_metrics *, ls_error *); /* NULL is fine */

/* How long a step took; a negative number is not known, and not reported. */
typedef struct ls_step_time {
    double seconds;
    double data_wait_s;              /* until this worker had the step's samples */
    const struct ls_step_push *push; /* with sync.mode async; else NULL */
} ls_step_time;

/* A step that one worker pushed (sync.mode async). */
typedef struct ls_step_push {
    int worker;
    const int64_t *staleness; /* [nshards] of its gradient, when each shard applied it */
    int nshards;
} ls_step_push;

/* steps: complete, including this one. Lines that can't be written wait in memory until they can
 * be; if they never can, ls_metrics_close() fails. LS_EIO: too many lines wait. */
ls_status ls_metrics_step(ls_metrics *, int64_t steps, const ls_step_in *, const ls_step_out *,
                          const ls_step_time *, ls_error *);
/* Writes the step of a store's latest note, if the worker that was to write its line was lost. */
ls_status ls_metrics_missing(ls_metrics *, const ls_store_note *, ls_error *);
/* The gradient noise scale so far (train.noise_scale). */
ls_noise_scale ls_metrics_noise(const ls_metrics *);
/* Training begins after `step` steps, by this command line (NULL: not known); the process `pid` of
 * this host holds the run directory. The line also has the order of products in bf16; it is written
 * with the next one. */
void ls_metrics_started(ls_metrics *, int64_t step, const char *command, int pid);
/* LS_EINVAL: the loss or the norm of a step is not finite. What to do: a lower rate, `other` (NULL:
 * nothing), and an earlier checkpoint where `run` (NULL: none is written) has one. */
ls_status ls_step_diverged(const char *run, int64_t step, const ls_step_out *, const char *other,
                           ls_error *);
/* Records that the loss or the norm of the gradient of this step is not finite: the run ends. */
ls_status ls_metrics_diverged(ls_metrics *, int64_t step, ls_error *);
/* Records that a program has closed its trainer after this step. */
ls_status ls_metrics_ended(ls_metrics *, int64_t step, ls_error *);
/* The run was resumed with other keys: as of ls_config_changes(), from this step on. None: nothing
 * is written. */
ls_status ls_metrics_changed(ls_metrics *, int64_t step, const ls_json *keys, ls_error *);
ls_status ls_metrics_evaluation(ls_metrics *, int64_t steps, const ls_evaluation *, ls_error *);

#endif
