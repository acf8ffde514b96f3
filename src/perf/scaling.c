/* scaling.c - see scaling.h. */
#include "perf/scaling.h"

#include <stdio.h>

#include "base/cores.h"
#include "perf/bench_train.h"
#include "train/layout.h"

/* In memory that the measured workers share: worker 0 may be another process. */
static ls_scaling_time *measured;

static bool communicates(ls_action_kind kind) {
    return ls_action_kind_lane(kind) == LS_LANE_COMM || kind == LS_TAKE;
}

static void take(const ls_config *c, const ls_bench_train *b) {
    double comm = 0, all = 0;
    (void)c;
    for (int k = 0; k < LS_NACTION_KINDS; k++) {
        all += b->seconds[k];
        if (communicates((ls_action_kind)k)) comm += b->seconds[k];
    }
    *measured = (ls_scaling_time){b->step_seconds, all > 0 ? comm / all : 0};
}

static ls_status measure(const ls_config *c, int n, int64_t steps, ls_scaling_time *t,
                         ls_error *e) {
    const ls_bench_request q = {.nworkers = n, .warmup = 2, .steps = steps};
    void *shared = NULL;
    LS_TRY(ls_map_shared(sizeof *measured, "a measured step", &shared, e));
    measured = shared;
    ls_status s = ls_bench_train_run(c, &q, take, e);
    if (s == LS_OK) *t = *measured;
    ls_unmap(shared, sizeof *measured);
    return s;
}

static ls_status simulate(const ls_config *c, int n, const ls_forecast_world *w, ls_scaling_time *t,
                          ls_error *e) {
    ls_layout l;
    ls_forecast f;
    LS_TRY(ls_layout_make(c, n, NULL, &l, e));
    ls_status s = ls_forecast_plan(c, &l.plan, w, &f, e);
    ls_layout_free(&l);
    if (s == LS_OK) *t = (ls_scaling_time){f.step_s, f.exposed_s / f.step_s};
    return s;
}

static ls_status make_point(const ls_scaling_request *q, bool strong, ls_scaling_point *p,
                            ls_error *e) {
    ls_config own = *q->config, scaled;
    if (own.parallel.threads == LS_AUTO) own.parallel.threads = 1; /* each worker has as much */
    int cores = ls_config_workers_on(&own, ls_cores());
    LS_TRY(ls_forecast_scale(&own, q->counts[0], p->nworkers, strong, &scaled, e));
    p->batch = scaled.train.batch;
    LS_TRY(simulate(&scaled, p->nworkers, q->world, &p->times[LS_SCALING_SIMULATED], e));
    if (p->nworkers > cores) return LS_OK;
    return measure(&scaled, p->nworkers, q->steps, &p->times[LS_SCALING_MEASURED], e);
}

ls_status ls_scaling_run(const ls_scaling_request *q, bool strong, ls_scaling *s_p, ls_error *e) {
    ls_error first = {0};
    int possible = 0;
    *s_p = (ls_scaling){.strong = strong, .n = q->n};
    for (int i = 0; i < q->n; i++) {
        ls_scaling_point *p = &s_p->points[i];
        *p = (ls_scaling_point){.nworkers = q->counts[i]};
        ls_status s = make_point(q, strong, p, e);
        if (s != LS_OK && s != LS_EINVAL) return s;
        if (s == LS_OK) {
            possible++;
            continue;
        }
        *p = (ls_scaling_point){.nworkers = q->counts[i]};
        snprintf(p->why, sizeof p->why, "%s", e->msg);
        if (!first.code) first = *e;
    }
    if (possible) return LS_OK;
    *e = first;
    return first.code;
}

static const ls_scaling_point *first_of(const ls_scaling *s) {
    int i = 0;
    while (i + 1 < s->n && s->points[i].why[0]) i++;
    return &s->points[i];
}

double ls_scaling_speedup(const ls_scaling *s, int i, int which) {
    const ls_scaling_point *p = &s->points[i], *first = first_of(s);
    double t = p->times[which].step_s, t0 = first->times[which].step_s;
    return t > 0 && t0 > 0 ? (double)p->batch / t / ((double)first->batch / t0) : 0;
}

/* How many times the first point's workers. */
static double ratio(const ls_scaling *s, int i) {
    return (double)s->points[i].nworkers / first_of(s)->nworkers;
}

double ls_scaling_efficiency(const ls_scaling *s, int i, int which) {
    return ls_scaling_speedup(s, i, which) / ratio(s, i);
}

/* Both laws are lines through 0 in s: y = s x. */
double ls_scaling_serial(const ls_scaling *s, int which) {
    double xy = 0, xx = 0;
    for (int i = 0; i < s->n; i++) {
        double r = ratio(s, i), speedup = ls_scaling_speedup(s, i, which);
        if (speedup <= 0) continue;
        double x = s->strong ? 1 - 1 / r : r - 1;
        double y = s->strong ? 1 / speedup - 1 / r : r - speedup;
        xy += x * y;
        xx += x * x;
    }
    if (xx <= 0) return -1;
    double share = xy / xx;
    return share < 1e-4 ? 0 : share > 1 ? 1 : share;
}
