/* seeds.c - see seeds.h. */
#include "perf/seeds.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "report/history.h"

/* ---- a run ---- */

typedef struct reading {
    const ls_goal *target;
    ls_seeds_run run;
} reading;

static void add_line(void *arg, int64_t step, const ls_json *line) {
    reading *x = arg;
    ls_seeds_run *r = &x->run;
    double seconds = 0, value = 0;
    if (!r->reached && ls_json_number(ls_json_get(line, "seconds"), &seconds)) {
        r->steps = step;
        r->seconds += seconds;
    }
    if (!ls_json_number(ls_json_get(line, x->target->metric), &value)) return;
    if (isnan(r->best) || ls_goal_is_better(x->target, value, r->best)) r->best = value;
    if (ls_goal_is_reached(x->target, value)) r->reached = true;
}

ls_status ls_seeds_read(const char *run, const ls_goal *t, ls_seeds_run *r_p, ls_error *e) {
    reading x = {.target = t, .run = {.best = NAN}};
    LS_TRY(ls_history_scan(run, add_line, &x, e));
    if (isnan(x.run.best))
        return ls_fail(e, LS_EINVAL,
                       "--target: '%s' is in no line of %s/metrics.jsonl; use a number of its "
                       "evaluations, e.g. val_loss",
                       t->metric, run);
    *r_p = x.run;
    return LS_OK;
}

/* ---- all runs ---- */

static int ascending(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

bool ls_seeds_score_of(const double *values, int n, ls_seeds_score *s_p) {
    double sorted[LS_SEEDS_MOST], sum = 0, squares = 0;
    int from = n >= LS_SEEDS_TRIMMED ? 1 : 0, kept = n - 2 * from;
    memcpy(sorted, values, (size_t)n * sizeof *sorted);
    qsort(sorted, (size_t)n, sizeof *sorted, ascending);
    for (int i = from; i < from + kept; i++) {
        if (!isfinite(sorted[i])) return false;
        sum += sorted[i];
    }
    double mean = sum / kept;
    for (int i = from; i < from + kept; i++) squares += (sorted[i] - mean) * (sorted[i] - mean);
    *s_p = (ls_seeds_score){mean, sqrt(squares / (kept - 1))};
    return true;
}
