/* scaling.c - see scaling.h. */
#include "perf/scaling.h"

#include "base/cores.h"
#include "perf/bench_train.h"
#include "train/layout.h"

/* In memory that the measured workers share: worker 0 may be another process. */
static ls_scaling_time *measured;

static bool communicates(int kind) {
    return kind == LS_EXCHANGE || kind == LS_REDUCE_SCATTER || kind == LS_ALL_REDUCE ||
           kind == LS_ALL_GATHER || kind == LS_SEND || kind == LS_TAKE;
}

static void take(const ls_config *c, const ls_bench_train *b) {
    double comm = 0, all = 0;
    (void)c;
    for (int k = 0; k < LS_NACTION_KINDS; k++) {
        all += b->seconds[k];
        if (communicates(k)) comm += b->seconds[k];
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

ls_status ls_scaling_run(const ls_scaling_request *q, bool strong, ls_scaling *s_p, ls_error *e) {
    int cores = (int)(ls_cores() / q->config->parallel.threads);
    *s_p = (ls_scaling){.strong = strong};
    for (int i = 0; i < q->n; i++) {
        ls_scaling_point *p = &s_p->points[i];
        ls_config scaled;
        int n = q->counts[i];
        LS_TRY(ls_forecast_scale(q->config, q->counts[0], n, strong, &scaled, e));
        *p = (ls_scaling_point){.nworkers = n, .batch = scaled.train.batch};
        if (n <= cores) LS_TRY(measure(&scaled, n, q->steps, &p->times[LS_SCALING_MEASURED], e));
        LS_TRY(simulate(&scaled, n, q->world, &p->times[LS_SCALING_SIMULATED], e));
        s_p->n++;
    }
    return LS_OK;
}

double ls_scaling_speedup(const ls_scaling *s, int i, int which) {
    const ls_scaling_point *p = &s->points[i], *first = &s->points[0];
    double t = p->times[which].step_s, t0 = first->times[which].step_s;
    return t > 0 && t0 > 0 ? (double)p->batch / t / ((double)first->batch / t0) : 0;
}

/* How many times the first point's workers. */
static double ratio(const ls_scaling *s, int i) {
    return (double)s->points[i].nworkers / s->points[0].nworkers;
}

double ls_scaling_efficiency(const ls_scaling *s, int i, int which) {
    return ls_scaling_speedup(s, i, which) / ratio(s, i);
}

/* Both laws are lines through 0 in s: y = s x. */
double ls_scaling_serial(const ls_scaling *s, int which) {
    double xy = 0, xx = 0;
    for (int i = 1; i < s->n; i++) {
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
