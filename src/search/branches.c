/* branches.c - see branches.h. */
#include "search/branches.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/log.h"
#include "dataset/dataset.h"
#include "search/batch_svg.h"
#include "storage/checkpoint.h"
#include "storage/lock.h"

/* ---- where branches begin ---- */

static int64_t samples_of(const ls_branches *w) {
    return w->asked->units > 0 ? (int64_t)ceil(w->asked->units / ls_config_units(w->run)) : 0;
}

static ls_status try_span(ls_branches *w, int64_t step, ls_error *e) {
    const ls_branch_request q = {.step = step,
                                 .samples = samples_of(w),
                                 .most = w->asked->factors[w->asked->n - 1],
                                 .nsamples = w->nsamples};
    return ls_branch_span_of(w->run, &q, &w->span, e);
}

/* The newest checkpoint after which the run has enough samples left. */
static ls_status find_checkpoint(ls_branches *w, ls_error *e) {
    int64_t step = 0;
    char *newest = NULL;
    if (w->asked->at) {
        w->checkpoint = ls_checkpoint_path(w->asked->run, w->asked->at);
        if (ls_file_exists(w->checkpoint)) return try_span(w, w->asked->at, e);
        return ls_fail(e, LS_EINVAL, "%s: there is no such checkpoint; see 'lockstep ckpt list'",
                       w->checkpoint);
    }
    LS_TRY(ls_checkpoint_newest(w->asked->run, &newest, &step, e));
    free(newest);
    ls_status s = LS_EINVAL;
    for (; step > 0 && (s = try_span(w, step, e)) != LS_OK;)
        LS_TRY(ls_checkpoint_below(w->asked->run, step, &step, e));
    if (s == LS_OK) w->checkpoint = ls_checkpoint_path(w->asked->run, step);
    return s;
}

static ls_status open_run(ls_branches *w, ls_error *e) {
    char *path = ls_format("%s/config.yaml", w->asked->run);
    ls_order order = {0};
    ls_status s = ls_config_read(path, w->run, e);
    free(path);
    LS_TRY(s);
    LS_TRY(ls_dataset_order_of(w->asked->run, w->run, &order, e));
    w->nsamples = order.n;
    w->output =
        w->asked->output ? ls_strdup(w->asked->output) : ls_format("%s/branches", w->asked->run);
    return find_checkpoint(w, e);
}

/* Evaluations during a branch would only take time. */
static ls_status plan_branches(ls_branches *w, ls_error *e) {
    for (int i = 0; i < w->asked->n; i++) {
        ls_config *c = &w->configs[i];
        ls_trial *t = &w->trials[i];
        int64_t k = w->asked->factors[i];
        LS_TRY(ls_branch_config(w->run, &w->span, k, c, &t->until, e));
        c->train.eval_every = c->train.patience = 0;
        t->config = c;
        t->dir = ls_format("%s/step-%lld-x%lld", w->output, (long long)w->span.step, (long long)k);
        w->results[i].k = k;
    }
    return LS_OK;
}

static ls_status predict(ls_branches *w, ls_error *e) {
    LS_TRY(ls_costs_open(&w->asked->cost, &w->costs, e));
    double samples = (double)(w->span.end - w->span.first);
    for (int i = 0; i < w->asked->n; i++) {
        int64_t batch = w->asked->factors[i] * w->span.batch;
        ls_costs_add(&w->costs, &w->configs[i], batch, samples / (double)batch);
    }
    return LS_OK;
}

/* ---- training ---- */

static ls_status open_branch(const ls_branches *w, int i, ls_error *e) {
    const ls_trial *t = &w->trials[i];
    int64_t k = w->asked->factors[i];
    ls_log("batch: branch %lld: batch %lld, %lld steps after step %lld: %s", (long long)k,
           (long long)(k * w->span.batch), (long long)(t->until - w->span.step),
           (long long)w->span.step, t->dir);
    LS_TRY(ls_trial_open(t, e));
    return ls_trial_begin_with(t, w->checkpoint, e);
}

static ls_status read_branch(ls_branches *w, int i, ls_runner *r, ls_error *e) {
    const ls_trial *t = &w->trials[i];
    if (t->diverged)
        return ls_fail(e, LS_EINVAL, "%s: branch %lld diverged: its loss is no number any more",
                       t->dir, (long long)w->asked->factors[i]);
    LS_TRY(ls_branch_read(t->dir, &w->span, t->until, &w->results[i].losses, e));
    return ls_runner_evaluate(r, t, &w->val_losses[i], e);
}

static ls_status train_branches(ls_branches *w, ls_error *e) {
    ls_trial *trials[LS_BRANCHES];
    int n = w->asked->n;
    ls_runner *r = ls_runner_open(&w->asked->sharing, w->run);
    ls_status s = LS_OK;
    for (int i = 0; s == LS_OK && i < n; i++) s = open_branch(w, i, e);
    for (int i = 0; i < n; i++) trials[i] = &w->trials[i];
    if (s == LS_OK) s = ls_runner_train(r, trials, n, e);
    for (int i = 0; s == LS_OK && i < n; i++) s = read_branch(w, i, r, e);
    ls_runner_close(r);
    return s;
}

ls_status ls_branches_run(const ls_branches_request *q, ls_branches *w, ls_error *e) {
    size_t n = (size_t)q->n;
    ls_lock lock = LS_LOCK_NONE;
    *w = (ls_branches){.asked = q,
                       .run = LS_NEW(ls_config),
                       .configs = LS_NEW_ARRAY(ls_config, n),
                       .trials = LS_NEW_ARRAY(ls_trial, n),
                       .results = LS_NEW_ARRAY(ls_branch_result, n),
                       .val_losses = LS_NEW_ARRAY(double, n)};
    LS_TRY(open_run(w, e));
    LS_TRY(ls_sharing_check(&q->sharing, w->run, e));
    LS_TRY(plan_branches(w, e));
    LS_TRY(predict(w, e));
    LS_TRY(ls_file_make_dirs(w->output, e));
    LS_TRY(ls_lock_take(w->output, 0, &lock, e));
    ls_status s = train_branches(w, e);
    ls_lock_drop(&lock);
    LS_TRY(s);
    ls_branch_compare(w->results, q->n);
    w->critical = ls_branch_find(w->results, q->n, q->tolerance);
    return LS_OK;
}

void ls_branches_free(ls_branches *w) {
    for (int i = 0; i < w->asked->n; i++) free(w->trials[i].dir);
    ls_machine_free(&w->costs.machine);
    free(w->run);
    free(w->configs);
    free(w->trials);
    free(w->results);
    free(w->val_losses);
    free(w->checkpoint);
    free(w->output);
}

/* ---- what came out ---- */
const char *ls_branches_compare_bits(const ls_branches *w) {
    char *own = ls_checkpoint_path(w->asked->run, w->trials[0].until);
    char *other = ls_checkpoint_path(w->trials[0].dir, w->trials[0].until);
    ls_checkpoint_info a, b;
    const char *text = NULL;
    if (ls_checkpoint_verify(own, &a, NULL) == LS_OK &&
        ls_checkpoint_verify(other, &b, NULL) == LS_OK) {
        bool same = memcmp(&a.weights, &b.weights, sizeof a.weights) == 0 &&
                    memcmp(&a.optimizer, &b.optimizer, sizeof a.optimizer) == 0;
        bool ordered = strcmp(a.sum, b.sum) == 0;
        bool fastest = w->run->parallel.reduce == LS_REDUCE_FASTEST;
        text = same ? "branch 1 has the bits of the run at its last step"
               : !ordered
                   ? "branch 1 has other bits than the run at its last step, as one of them summed "
                     "products in bf16 in the order of another version (sum)"
               : fastest
                   ? "branch 1 has other bits than the run at its last step, as they depend "
                     "on the workers with parallel.reduce fastest"
                   : "branch 1 has OTHER bits than the run at its last step: was the run trained "
                     "by another version?";
    }
    free(own);
    free(other);
    return text;
}

/* free() it. */
static char *mark_label(const ls_branches *w) {
    double B = (double)w->span.batch;
    const ls_branch_critical *c = &w->critical;
    const char *above = c->reached ? "" : "above ";
    return isfinite(c->high)
               ? ls_format("critical batch: %s%.0f (%.0f to %.0f)", above, c->k * B, c->low * B,
                           c->high * B)
               : ls_format("critical batch: %s%.0f (at least %.0f)", above, c->k * B, c->low * B);
}

ls_status ls_branches_draw(const ls_branches *w, char **path_p, ls_error *e) {
    double batches[LS_BRANCHES], losses[LS_BRANCHES], errors[LS_BRANCHES], good[LS_BRANCHES];
    double B = (double)w->span.batch, lowest = INFINITY;
    int n = w->asked->n;
    for (int i = 0; i < n; i++) {
        batches[i] = (double)w->results[i].k * B;
        losses[i] = w->results[i].loss;
        errors[i] = 2 * w->results[i].error;
        lowest = fmin(lowest, losses[i]);
        good[i] = lowest + w->asked->tolerance;
    }
    char *label = mark_label(w);
    bool tokens = ls_config_has_token_losses(w->run);
    const ls_batch_picture p = {.title =
                                    tokens ? "loss of branches, nats a token; the same samples each"
                                           : "loss of branches; the same samples each",
                                .unit = "batch, samples",
                                .batches = batches,
                                .n = n,
                                .nlines = 2,
                                .lines = {{"loss, +- 2 standard errors", losses, errors, false},
                                          {"good enough", good, NULL, true}},
                                .mark = w->critical.k * B,
                                .low = w->critical.low * B,
                                .high = w->critical.high * B,
                                .mark_label = label};
    char *path = ls_format("%s/branches.svg", w->output);
    ls_status s = ls_batch_svg_write(path, &p, e);
    free(label);
    if (s == LS_OK)
        *path_p = path;
    else
        free(path);
    return s;
}
