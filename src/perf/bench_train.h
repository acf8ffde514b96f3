/* bench_train.h - measures how fast a config trains on this machine, and how a step spends its
 * time. */
#ifndef LS_PERF_BENCH_TRAIN_H
#define LS_PERF_BENCH_TRAIN_H

#include "config/config.h"
#include "report/tracer.h"

typedef struct ls_bench_train {
    int nworkers, threads;
    int64_t steps, warmup;
    double step_seconds;          /* median of the measured steps */
    double *losses, *all_seconds; /* [warmup + steps] of each */
    double units_per_s;           /* of the whole batch: ls_config_unit() names them */
    double flops_per_s;           /* model FLOPs: products of forward and backward, causal */
    double peak_flops_per_s;      /* measured: all workers run only multiply-adds, in bf16 with that
                                   * train.compute. 0: a device computes */
    double state_nbytes;          /* of a worker in memory: parameters, gradients, moments */
    double planned_nbytes;        /* memory of a worker, by the plan's table */
    double peak_nbytes;           /* largest resident memory of a worker's process */
    double sent_nbytes;           /* by a worker in a step, if sums are sent */
    double least_wait, most_wait; /* parts of a step in which a worker does not compute: of the one
                                   * that waits least, and most */
    double alone;  /* of a step's processor time, the part in which only one thread of a worker
                    * computes; mean over workers. 0 with one thread */
    double uneven; /* how much longer than their mean the longest of threads' parts are */
    double seconds[LS_NACTION_KINDS]; /* of a step, mean over workers and steps */
} ls_bench_train;

/* What to measure. */
typedef struct ls_bench_request {
    int nworkers; /* 0: one per core */
    int64_t warmup, steps;
    ls_trace_request trace; /* of steps after the measured ones */
    const char *export_dir; /* for the training data (export_bench.h); NULL: none */
} ls_bench_request;

/* Worker 0 calls it with the result. */
typedef void ls_bench_report(const ls_config *, const ls_bench_train *);

/* Trains on random samples, or, for an export, on those of the config's files. Writes only the
 * files that the request asks for. */
ls_status ls_bench_train_run(const ls_config *, const ls_bench_request *, ls_bench_report *,
                             ls_error *);

#endif
