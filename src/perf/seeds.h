/* seeds.h - the same training with several seeds: when each reaches a target, and the mean, from
 * five seeds on without the fastest and the slowest.
 *
 * Source of the rule: "MLPerf training benchmark", Mattson et al., MLSys 2020.
 */
#ifndef LS_PERF_SEEDS_H
#define LS_PERF_SEEDS_H

#include <stdint.h>

#include "report/goal.h"

enum { LS_SEEDS_LEAST = 3, LS_SEEDS_TRIMMED = 5, LS_SEEDS_MOST = 100 };

/* When a run first reached the target. */
typedef struct ls_seeds_run {
    bool reached;
    int64_t steps;  /* } else of the whole run */
    double seconds; /* } of the steps */
    double best;    /* the best value of its evaluations; NAN: none */
} ls_seeds_run;
/* Reads RUN/metrics.jsonl. */
ls_status ls_seeds_read(const char *run, const ls_goal *, ls_seeds_run *r_p, ls_error *);

/* Mean and standard deviation (of a sample) of two values or more: from LS_SEEDS_TRIMMED on without
 * the lowest and the highest; the latter may be that of a run without a result (INFINITY). False:
 * another value has no result. */
typedef struct ls_seeds_score {
    double mean, spread;
} ls_seeds_score;
bool ls_seeds_score_of(const double *values, int n, ls_seeds_score *s_p);

#endif
