/* bench_train.h - how fast a config trains here, and where the time of a step goes. */
#ifndef LS_PERF_BENCH_TRAIN_H
#define LS_PERF_BENCH_TRAIN_H

#include "config/config.h"
#include "report/tracer.h"

typedef struct ls_bench_train {
    int nworkers, threads;
    int64_t steps, warmup;
    double step_seconds;              /* median of the measured steps */
    double *losses, *all_seconds;     /* [warmup + steps] of each */
    double tokens_per_s;              /* of the whole batch */
    double flops_per_s;               /* model FLOPs: products of forward and backward, causal */
    double peak_flops_per_s;          /* measured: all workers at multiply-adds alone */
    double state_nbytes;              /* parameters, gradients, moments in memory, a worker */
    double planned_nbytes;            /* memory of a worker, as the plan's table says */
    double peak_nbytes;               /* resident memory of a worker's process, at most */
    double sent_nbytes;               /* by a worker in a step, where sums are sent */
    double seconds[LS_NACTION_KINDS]; /* of a step, mean over workers and steps */
} ls_bench_train;

/* What is measured. */
typedef struct ls_bench_request {
    int nworkers; /* 0: one a core */
    int64_t warmup, steps;
    ls_trace_request trace; /* of steps after those that are measured */
    const char *export_dir; /* for what is trained on (export.h); NULL: nowhere */
} ls_bench_request;

/* What worker 0 does with the result. */
typedef void ls_bench_report(const ls_config *, const ls_bench_train *);

/* Trains on random tokens; leaves nothing on disk but what is asked for. */
ls_status ls_bench_train_run(const ls_config *, const ls_bench_request *, ls_bench_report *,
                             ls_error *);

/* Multiply-adds alone on `cores` cores at once: FLOP/s, the best of a few tries. */
double ls_bench_peak(int cores);

#endif
