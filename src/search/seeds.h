/* seeds.h - the same training with several seeds: when each reaches a target, and the mean, from
 * five seeds on without the fastest and the slowest.
 *
 * Source of the rule: "MLPerf training benchmark", Mattson et al., MLSys 2020.
 */
#ifndef LS_SEARCH_SEEDS_H
#define LS_SEARCH_SEEDS_H

#include "config/config.h"
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

/* ---- all of it: `lockstep report --seeds` ---- */

typedef struct ls_seeds_request {
    int n;              /* seeds, from train.seed on */
    const char *target; /* "val_loss<=2.5", as ls_goal_read() ... */
    ls_goal goal;       /* ... has read it */
    const char *dir;    /* of the trainings, which continue where they were */
    const char *mllog;  /* a directory that gets each training's log; NULL: none */
    const char *name;   /* of the benchmark, in these logs */
    int64_t workers;    /* 0: as many as `lockstep train` takes */
    /* Called after each training. */
    void (*each)(void *arg, int64_t seed, const ls_seeds_run *);
    void *arg;
} ls_seeds_request;

typedef struct ls_seeds {
    ls_seeds_score steps, seconds;
} ls_seeds;

/* Trains what is not trained yet, one seed after the other. LS_EABORT: interrupted; LS_EINVAL: too
 * few seeds reach the target. */
ls_status ls_seeds_train(const ls_seeds_request *, const ls_config *, ls_seeds *s_p, ls_error *);

#endif
