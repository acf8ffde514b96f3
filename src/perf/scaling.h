/* scaling.h - how a config scales with the number of workers: measured on this machine, and
 * simulated beyond it.
 *
 * Strong scaling: the batch is the config's. Weak scaling: batch and virtual workers grow, so that
 * each worker has the same work. The fewest workers with which the config can be trained are the
 * first point, to which all others are compared.
 */
#ifndef LS_PERF_SCALING_H
#define LS_PERF_SCALING_H

#include "perf/forecast.h"

enum { LS_SCALING_MOST = 16 };

/* The time of a step. */
typedef struct ls_scaling_time {
    double step_s; /* 0: not known */
    double comm;   /* the part of it in which a worker communicates, or waits to */
} ls_scaling_time;

enum { LS_SCALING_MEASURED, LS_SCALING_SIMULATED, LS_NSCALING };

typedef struct ls_scaling_point {
    int nworkers;
    int64_t batch;
    ls_scaling_time times[LS_NSCALING];
    char why[512]; /* why the config can't be trained by nworkers; "": it can */
} ls_scaling_point;

typedef struct ls_scaling {
    bool strong;
    ls_scaling_point points[LS_SCALING_MOST]; /* [n], by numbers of workers */
    int n;
} ls_scaling;

typedef struct ls_scaling_request {
    const ls_config *config;
    const ls_forecast_world *world;
    const int *counts; /* [n] numbers of workers, ascending */
    int n;
    int64_t steps; /* that are measured */
} ls_scaling_request;

/* Measures steps for each number of workers that has a core for each thread of its workers, and
 * simulates all in the world. Numbers that are not possible are points that say why. LS_EINVAL:
 * none is possible. */
ls_status ls_scaling_run(const ls_scaling_request *, bool strong, ls_scaling *s_p, ls_error *);

/* The speedup: samples a second, relative to the first point; 0: not known. And the efficiency: the
 * speedup, relative to the number of workers. */
double ls_scaling_speedup(const ls_scaling *, int i, int which);
double ls_scaling_efficiency(const ls_scaling *, int i, int which);

/* The part of the first point's step that more workers do not shorten, fitted to all points by
 * least squares: by Amdahl's law, T(n) = T(1) (s + (1 - s) / n), of strong scaling; by Gustafson's,
 * speedup(n) = n - s (n - 1), of weak scaling. Negative: fewer than two points are known. 0 where
 * speedups are linear or above, 1 where more workers are no faster at all, or slower. */
double ls_scaling_serial(const ls_scaling *, int which);

#endif
