/* branch.c - see branch.h. */
#include "search/branch.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json_records.h"
#include "base/math.h"
#include "data/batches.h"
#include "optim/learning_rate.h"
#include "report/history.h"

/* ---- spans ---- */

static uint64_t position(const ls_batches *b, int64_t steps, uint64_t nsamples) {
    ls_batch at = ls_batches_at(b, (uint64_t)steps, nsamples);
    return at.epoch * nsamples + at.first;
}

ls_status ls_branch_span_of(const ls_config *run, const ls_branch_request *q, ls_branch_span *s_p,
                            ls_error *e) {
    const ls_batches b = ls_batches_of(run);
    int64_t batch = (int64_t)ls_batches_size(&b, (uint64_t)q->step), unit = q->most * batch;
    int64_t left = 0;
    if (q->step < run->train.steps)
        left = (int64_t)(ls_batches_sum(&b, (uint64_t)run->train.steps) -
                         ls_batches_sum(&b, (uint64_t)q->step));
    int64_t wanted = q->samples ? (q->samples + unit - 1) / unit * unit : left / unit * unit;
    if (wanted > left || wanted == 0)
        return ls_fail(
            e, LS_EINVAL,
            "--branch: after step %lld the run has %lld samples left, and %lld are "
            "needed; use an earlier checkpoint (--at), fewer --tokens, smaller branches, "
            "or a run with more train.steps",
            (long long)q->step, (long long)left, (long long)(wanted ? wanted : unit));
    int64_t end = q->step + wanted / batch;
    for (int64_t s = q->step; s < end; s++)
        if ((int64_t)ls_batches_size(&b, (uint64_t)s) != batch)
            return ls_fail(e, LS_EINVAL,
                           "--branch: train.batch changes at step %lld, within the branches; use "
                           "fewer --tokens or a later checkpoint (--at)",
                           (long long)s);
    *s_p = (ls_branch_span){.step = q->step,
                            .batch = batch,
                            .nsamples = q->nsamples,
                            .first = position(&b, q->step, q->nsamples),
                            .end = position(&b, end, q->nsamples)};
    return LS_OK;
}

/* ---- configs ---- */

static bool scales_by_root(const ls_config *c) {
    return c->optim.optimizer != LS_OPTIMIZER_SGD && c->optim.optimizer != LS_OPTIMIZER_LARS;
}

/* The batches of the run up to the branch, then that of the branch. */
static ls_status set_batches(ls_config *c, const ls_branch_span *s, int64_t batch, ls_error *e) {
    ls_buf text = {0};
    const ls_batches b = ls_batches_of(c);
    ls_buf_printf(&text, "train.batch=[");
    for (int i = 0; i < b.n && (int64_t)b.phases[i].step < s->step; i++)
        ls_buf_printf(&text, "[%llu, %llu], ", (unsigned long long)b.phases[i].step,
                      (unsigned long long)b.phases[i].batch);
    ls_buf_printf(&text, "[%lld, %lld]]", (long long)s->step, (long long)batch);
    ls_status status = ls_config_set(c, text.data, e);
    ls_buf_free(&text);
    return status;
}

/* The curve of the learning rate ends at the same sample as the run's. */
static void set_steps(const ls_config *run, const ls_branch_span *s, int64_t k, ls_config *c) {
    int64_t left = run->train.steps - s->step, steps = (left + k - 1) / k;
    int64_t decay = (int64_t)ls_math_times(run->optim.decay_fraction, (double)run->train.steps);
    c->train.steps = s->step + steps;
    c->train.epochs = 0;
    c->optim.warmup = ls_config_warmup(run);
    if (run->optim.schedule == LS_SCHEDULE_WSD)
        c->optim.decay_fraction = (double)((decay + k - 1) / k) / (double)c->train.steps;
}

static ls_status check(const ls_config *run, const ls_branch_span *s, int64_t k, ls_error *e) {
    const ls_schedule curve = ls_schedule_of(run, 0);
    int64_t V = run->train.virtual_workers;
    if (run->sync.mode != LS_SYNC_ALL_REDUCE)
        return ls_fail(e, LS_EINVAL,
                       "--branch: sync.mode %s: branches need the sums of all workers in each step",
                       run->sync.mode == LS_SYNC_ASYNC    ? "async"
                       : run->sync.mode == LS_SYNC_SSP    ? "ssp"
                       : run->sync.mode == LS_SYNC_GOSSIP ? "gossip"
                                                          : "local and diloco");
    if (run->optim.schedule == LS_SCHEDULE_STEP)
        return ls_fail(e, LS_EINVAL,
                       "--branch: optim.schedule step counts steps, of which branches have others; "
                       "use a run with another schedule");
    if (run->optim.optimizer == LS_OPTIMIZER_SCHEDULE_FREE)
        return ls_fail(e, LS_EINVAL,
                       "--branch: optim.optimizer schedule-free needs one learning rate, and those "
                       "of branches differ; use a run with another optimizer");
    if (run->optim.warmup.unit == LS_SPAN_EPOCHS || s->step < curve.warmup)
        return ls_fail(e, LS_EINVAL,
                       "--branch: the checkpoint of step %lld must lie after a warm-up in steps or "
                       "samples, which ends at step %lld; use a later one (--at)",
                       (long long)s->step, (long long)curve.warmup);
    if (k * s->batch % V || k * s->batch > 1048576)
        return ls_fail(e, LS_EINVAL,
                       "--branch %lld: a batch of %lld is not possible with train.virtual_workers "
                       "%lld",
                       (long long)k, (long long)(k * s->batch), (long long)V);
    return LS_OK;
}

ls_status ls_branch_config(const ls_config *run, const ls_branch_span *s, int64_t k, ls_config *c_p,
                           int64_t *end_p, ls_error *e) {
    LS_TRY(check(run, s, k, e));
    *c_p = *run;
    if (k > 1) LS_TRY(set_batches(c_p, s, k * s->batch, e));
    const ls_batches b = ls_batches_of(c_p);
    *end_p = s->step + 1;
    while (position(&b, *end_p, s->nsamples) < s->end) ++*end_p;
    if (k == 1) return LS_OK;
    set_steps(run, s, k, c_p);
    if (c_p->train.steps < *end_p) c_p->train.steps = *end_p;
    if (run->optim.scale_lr != LS_SCALE_OFF) return LS_OK;
    c_p->optim.scale_lr = scales_by_root(run) ? LS_SCALE_SQRT : LS_SCALE_LINEAR;
    c_p->optim.scale_batch = s->batch;
    return LS_OK;
}

/* ---- losses ---- */

typedef struct sums {
    double loss[LS_BRANCH_PIECES], samples[LS_BRANCH_PIECES];
} sums;

/* The loss of samples [first, end) of the span, divided among the pieces in which they lie. */
static void add_step(sums *s, double all, double first, double end, double loss) {
    double size = all / LS_BRANCH_PIECES;
    for (int i = (int)(first / size); i < LS_BRANCH_PIECES && i * size < end; i++) {
        double from = fmax(first, i * size), to = fmin(end, (i + 1) * size);
        if (to <= from) continue;
        s->loss[i] += loss * (to - from);
        s->samples[i] += to - from;
    }
}

static ls_status missing(const char *dir, int64_t step, ls_error *e) {
    return ls_fail(e, LS_EINVAL,
                   "%s/metrics.jsonl: has no loss of step %lld; remove the directory, and start "
                   "again",
                   dir, (long long)step);
}

ls_status ls_branch_read(const char *dir, const ls_branch_span *span, int64_t end,
                         ls_branch_losses *l_p, ls_error *e) {
    char *path = ls_metrics_path(dir);
    ls_lines *lines = NULL;
    ls_line line;
    bool there = false;
    sums s = {{0}, {0}};
    double at = 0;
    int64_t next = span->step + 1;
    ls_status status = ls_lines_open(path, false, &lines, e);
    free(path);
    LS_TRY(status);
    while (next <= end && (status = ls_lines_next(lines, &line, &there, e)) == LS_OK && there) {
        int64_t step = 0, n = 0;
        double loss = 0;
        ls_json *j = ls_json_of_line(&line);
        bool is_step = ls_json_integer(ls_json_get(j, "step"), &step) && step == next &&
                       ls_json_integer(ls_json_get(j, "samples"), &n) &&
                       ls_json_number(ls_json_get(j, "loss"), &loss);
        ls_json_free(j);
        if (!is_step) continue;
        add_step(&s, (double)(span->end - span->first), at, at + (double)n, loss);
        at += (double)n;
        next++;
    }
    ls_lines_close(lines);
    LS_TRY(status);
    if (next <= end) return missing(dir, next, e);
    for (int i = 0; i < LS_BRANCH_PIECES; i++)
        l_p->of[i] = s.samples[i] > 0 ? s.loss[i] / s.samples[i] : NAN;
    return LS_OK;
}

/* ---- the critical batch ---- */

enum { FIRST = LS_BRANCH_PIECES * 3 / 4 }; /* of the pieces that count */

static double mean_from(const double *x, int first, int end) {
    double sum = 0;
    int n = 0;
    for (int i = first; i < end; i++)
        if (isfinite(x[i])) sum += x[i], n++;
    return n ? sum / n : NAN;
}

/* The mean of a - b over the pieces, and its standard error. */
static void difference(const double *a, const double *b, double *mean_p, double *error_p) {
    double d[LS_BRANCH_PIECES], squares = 0;
    int n = 0;
    for (int i = FIRST; i < LS_BRANCH_PIECES; i++)
        if (isfinite(a[i]) && isfinite(b[i])) d[n++] = a[i] - b[i];
    *mean_p = mean_from(d, 0, n);
    for (int i = 0; i < n; i++) squares += (d[i] - *mean_p) * (d[i] - *mean_p);
    *error_p = n > 1 ? sqrt(squares / (n - 1) / n) : NAN;
}

void ls_branch_compare(ls_branch_result *r, int n) {
    int lowest = 0;
    for (int i = 0; i < n; i++) {
        r[i].loss = mean_from(r[i].losses.of, FIRST, LS_BRANCH_PIECES);
        r[i].above = r[i].error = 0;
        if (i > 0) difference(r[i].losses.of, r[lowest].losses.of, &r[i].above, &r[i].error);
        if (r[i].loss < r[lowest].loss) lowest = i;
    }
}

/* Where `above`, with `shift` standard errors more, first crosses the tolerance, by log k;
 * INFINITY: nowhere. *last_p: the result before that. */
static double crossing(const ls_branch_result *r, int n, double tolerance, double shift,
                       int *last_p) {
    double before = 0;
    for (int i = 1; i < n; i++) {
        double now = r[i].above + (isfinite(r[i].error) ? shift * r[i].error : 0);
        *last_p = i - 1;
        if (!(now <= tolerance)) {
            double part = before < tolerance ? (tolerance - before) / (now - before) : 0;
            if (!isfinite(part)) part = 0;
            return (double)r[i - 1].k * pow((double)r[i].k / (double)r[i - 1].k, part);
        }
        before = now;
    }
    *last_p = n - 1;
    return INFINITY;
}

ls_branch_critical ls_branch_find(const ls_branch_result *r, int n, double tolerance) {
    ls_branch_critical c = {0};
    int ignored = 0;
    c.k = crossing(r, n, tolerance, 0, &c.last);
    c.reached = isfinite(c.k);
    if (!c.reached) c.k = (double)r[c.last].k;
    c.low = crossing(r, n, tolerance, 2, &ignored);
    c.high = crossing(r, n, tolerance, -2, &ignored);
    if (!isfinite(c.low)) c.low = (double)r[n - 1].k;
    return c;
}
