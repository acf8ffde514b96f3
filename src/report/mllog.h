/* mllog.h - a run's log in the form of MLPerf's training rules: a header, the evaluations, and how
 * it ended.
 *
 * A line is ":::MLLOG " and an object: time_ms since 1970, event_type, key, value, metadata. In
 * their order:
 *
 *   submission_...  cache_clear  init_start  seed  global_batch_size  opt_...  init_stop  run_start
 *   block_start                                                 steps until the next evaluation
 *   block_stop  eval_start  eval_accuracy  eval_stop  block_start     } for each evaluation
 *   ...
 *   block_stop  eval_start  eval_accuracy  eval_stop  run_stop        } with the goal, or the last
 *
 * run_stop's status is "success" with the first evaluation that reaches the goal; the training may
 * continue, but the log does not. It is "aborted" if the last evaluation has not reached it.
 *
 * All lines of an evaluation are written at once. A run that continues cuts the log off after the
 * last block_start of a step that it has, as it does with metrics.jsonl, so no line occurs twice,
 * and the times continue: they include the time in which a killed run was not running.
 *
 * Source: mlcommons/training_policies, "MLPerf training rules"; mlcommons/logging, ruleset 6.1.0.
 */
#ifndef LS_REPORT_MLLOG_H
#define LS_REPORT_MLLOG_H

#include "config/config.h"
#include "report/goal.h"

/* The words of submission_... lines. */
typedef enum ls_mllog_word {
    LS_MLLOG_BENCHMARK,
    LS_MLLOG_DIVISION,
    LS_MLLOG_ORG,
    LS_MLLOG_PLATFORM,
    LS_MLLOG_STATUS,
    LS_MLLOG_WORDS
} ls_mllog_word;
extern const char *const ls_mllog_words[LS_MLLOG_WORDS + 1]; /* "benchmark", ..., NULL */

/* What the user asked for. */
typedef struct ls_mllog_request {
    const char *path; /* NULL: no log */
    ls_goal goal;
    const char *words[LS_MLLOG_WORDS]; /* NULL: the usual word */
} ls_mllog_request;

/* What the header records about the run. */
typedef struct ls_mllog_run {
    const char *dir;
    bool continues; /* it has had the log before */
    const ls_config *config;
    const ls_model *model;
    const char *optimizer;      /* its name */
    int nworkers, stages;       /* stages: workers of a pipeline */
    uint64_t ntrain, nval;      /* samples */
    int64_t began_ns, ready_ns; /* on ls_clock_ns(): of the program, of the steps */
} ls_mllog_run;

typedef struct ls_mllog ls_mllog;

/* Opens the log of a run that has made `steps` steps. Request and config must outlive it.
 * LS_EINVAL: the model's evaluations have no such number, the file is there already, or does not
 * belong to the run. */
ls_status ls_mllog_open(const ls_mllog_request *, const ls_mllog_run *, int64_t steps,
                        ls_mllog **m_p, ls_error *);

/* An evaluation begins. With m NULL, this and the next do nothing. */
void ls_mllog_begin(ls_mllog *m);
/* Logs it, after `steps` steps, unless an earlier view did. last: no more will follow. A line that
 * can't be written is logged once, and no further line follows it. */
void ls_mllog_evaluation(ls_mllog *m, int64_t steps, const ls_evaluation *, bool last);
/* The run is complete without a further evaluation (train.patience). */
void ls_mllog_end(ls_mllog *m, int64_t steps);
/* NULL is fine. LS_EIO: lines could not be written. */
ls_status ls_mllog_close(ls_mllog *m, ls_error *);

#endif
