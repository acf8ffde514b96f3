/* batch_branch.c - see batch_branch.h. */
#include "cli/batch_branch.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/json.h"
#include "base/log.h"
#include "base/print.h"
#include "report/batch_svg.h"
#include "storage/checkpoint.h"
#include "storage/dataset.h"
#include "storage/lock.h"

/* A branch, and what is known of it besides its losses. */
typedef struct branch {
    ls_config config;
    int64_t end, steps; /* the step after which it ends, and its steps */
    double val_loss;
} branch;

typedef struct work {
    const cli_branches *o;
    ls_config run;
    char *checkpoint, *output;
    uint64_t nsamples; /* of the data set */
    ls_branch_span span;
    branch *branches;          /* [o->n] */
    ls_branch_result *results; /* [o->n] */
    cli_batch_cost *cost;      /* NULL: nothing is predicted */
    cli_batch_row *rows;       /* [o->n] */
    ls_branch_critical critical;
    ls_lock lock; /* of the branches' directory */
} work;

/* ---- where branches begin ---- */

static int64_t samples_of(const work *w) {
    return w->o->units > 0 ? (int64_t)ceil(w->o->units / ls_config_units(&w->run)) : 0;
}

static ls_status try_span(work *w, int64_t step, ls_error *e) {
    const ls_branch_request q = {.step = step,
                                 .samples = samples_of(w),
                                 .most = w->o->factors[w->o->n - 1],
                                 .nsamples = w->nsamples};
    return ls_branch_span_of(&w->run, &q, &w->span, e);
}

/* The newest checkpoint after which the run has enough samples left. */
static ls_status find_checkpoint(work *w, ls_error *e) {
    int64_t step = 0;
    char *newest = NULL;
    if (w->o->at) {
        w->checkpoint = ls_checkpoint_path(w->o->run, w->o->at);
        if (ls_file_exists(w->checkpoint)) return try_span(w, w->o->at, e);
        return ls_fail(e, LS_EINVAL, "%s: there is no such checkpoint; see 'lockstep ckpt list'",
                       w->checkpoint);
    }
    LS_TRY(ls_checkpoint_newest(w->o->run, &newest, &step, e));
    free(newest);
    ls_status s = LS_EINVAL;
    for (; step > 0 && (s = try_span(w, step, e)) != LS_OK;)
        LS_TRY(ls_checkpoint_below(w->o->run, step, &step, e));
    if (s == LS_OK) w->checkpoint = ls_checkpoint_path(w->o->run, step);
    return s;
}

static ls_status open_run(work *w, ls_error *e) {
    char *path = ls_format("%s/config.yaml", w->o->run);
    ls_order order = {0};
    ls_status s = ls_config_read(path, &w->run, e);
    free(path);
    LS_TRY(s);
    LS_TRY(ls_dataset_order_of(w->o->run, &w->run, &order, e));
    w->nsamples = order.n;
    w->output = w->o->output ? ls_strdup(w->o->output) : ls_format("%s/branches", w->o->run);
    return find_checkpoint(w, e);
}

/* Evaluations during a branch would only take time. */
static ls_status plan_branches(work *w, ls_error *e) {
    for (int i = 0; i < w->o->n; i++) {
        branch *b = &w->branches[i];
        LS_TRY(ls_branch_config(&w->run, &w->span, w->o->factors[i], &b->config, &b->end, e));
        b->config.train.eval_every = b->config.train.patience = 0;
        b->steps = b->end - w->span.step;
        w->results[i].k = w->o->factors[i];
    }
    return LS_OK;
}

/* ---- training ---- */

static ls_status open_branch(const work *w, int i, cli_batch_job *j, ls_error *e) {
    const branch *b = &w->branches[i];
    *j = (cli_batch_job){.trial.dir =
                             ls_format("%s/step-%lld-x%lld", w->output, (long long)w->span.step,
                                       (long long)w->o->factors[i]),
                         .config = &b->config,
                         .until = b->end};
    ls_log("batch: branch %lld: batch %lld, %lld steps after step %lld: %s",
           (long long)w->o->factors[i], (long long)(w->o->factors[i] * w->span.batch),
           (long long)b->steps, (long long)w->span.step, j->trial.dir);
    LS_TRY(cli_trial_open(&j->trial, &b->config, e));
    return cli_trial_begin_with(&j->trial, w->checkpoint, e);
}

static ls_status read_branch(work *w, int i, const cli_batch_job *j, ls_error *e) {
    if (j->diverged)
        return ls_fail(e, LS_EINVAL, "%s: branch %lld diverged: its loss is no number any more",
                       j->trial.dir, (long long)w->o->factors[i]);
    LS_TRY(ls_branch_read(j->trial.dir, &w->span, j->until, &w->results[i].losses, e));
    return cli_trial_evaluate(&j->trial, j->until, &w->branches[i].val_loss, e);
}

static ls_status train_branches(work *w, ls_error *e) {
    ls_status s = LS_OK;
    int n = w->o->n;
    cli_batch_job *jobs = LS_NEW_ARRAY(cli_batch_job, (size_t)n);
    for (int i = 0; s == LS_OK && i < n; i++) s = open_branch(w, i, &jobs[i], e);
    if (s == LS_OK) s = cli_batch_jobs_run(&w->o->workers, jobs, n, e);
    for (int i = 0; s == LS_OK && i < n; i++) s = read_branch(w, i, &jobs[i], e);
    for (int i = 0; i < n; i++) free(jobs[i].trial.dir);
    free(jobs);
    return s;
}

/* ---- times and money ---- */

static ls_status predict(work *w, ls_error *e) {
    if (!w->o->machine.file) return LS_OK;
    LS_TRY(cli_batch_cost_open(&w->o->machine, &w->cost, e));
    double samples = (double)(w->span.end - w->span.first);
    for (int i = 0; i < w->o->n; i++) {
        w->rows[i].steps = samples / (double)(w->o->factors[i] * w->span.batch);
        cli_batch_cost_predict(w->cost, &w->branches[i].config, w->o->factors[i] * w->span.batch,
                               &w->rows[i]);
    }
    return LS_OK;
}

/* ---- what is printed ---- */

/* Has the run itself a checkpoint where branch 1 ends, and the same bits in it? */
static const char *compare_bits(const work *w) {
    char *own = ls_checkpoint_path(w->o->run, w->branches[0].end);
    char *dir = ls_format("%s/step-%lld-x1", w->output, (long long)w->span.step);
    char *other = ls_checkpoint_path(dir, w->branches[0].end);
    ls_checkpoint_info a, b;
    const char *text = NULL;
    if (ls_checkpoint_verify(own, &a, NULL) == LS_OK &&
        ls_checkpoint_verify(other, &b, NULL) == LS_OK) {
        bool same = memcmp(&a.weights, &b.weights, sizeof a.weights) == 0 &&
                    memcmp(&a.optimizer, &b.optimizer, sizeof a.optimizer) == 0;
        bool fastest = w->run.parallel.reduce == LS_REDUCE_FASTEST;
        text = same ? "branch 1 has the bits of the run at its last step"
               : fastest
                   ? "branch 1 has other bits than the run at its last step, as they depend "
                     "on the workers with parallel.reduce fastest"
                   : "branch 1 has OTHER bits than the run at its last step: was the run trained "
                     "by another version?";
    }
    free(own);
    free(dir);
    free(other);
    return text;
}

static void print_critical(const work *w) {
    const ls_branch_critical *c = &w->critical;
    double B = (double)w->span.batch;
    ls_print("\n");
    if (!c->reached)
        ls_print("critical batch: above %.0f samples, the largest branch, which is good enough\n",
                 c->k * B);
    else
        ls_print("critical batch: %.0f samples; the largest branch that is good enough has %lld\n",
                 c->k * B, (long long)(w->results[c->last].k * w->span.batch));
    if (isfinite(c->high))
        ls_print("  with two standard errors: %.0f to %.0f samples\n", c->low * B, c->high * B);
    else
        ls_print("  with two standard errors: at least %.0f samples\n", c->low * B);
    const char *bits = compare_bits(w);
    if (bits) ls_print("%s\n", bits);
}

static void print_table(const work *w) {
    const cli_branches *o = w->o;
    ls_print(
        "branches of %s after step %lld: %lld samples each\n"
        "loss: mean over the last quarter of them, the same samples in each branch; above: the\n"
        "lowest loss of smaller branches, +- a standard error; good enough: at most %g\n\n",
        o->run, (long long)w->span.step, (long long)(w->span.end - w->span.first), o->tolerance);
    ls_print("     k    batch    steps     loss    above       +-   val loss\n");
    for (int i = 0; i < o->n; i++) {
        const ls_branch_result *r = &w->results[i];
        ls_print("%c %4lld %8lld %8lld %8.4f %8.4f %8.4f %10.4f\n",
                 i <= w->critical.last ? '*' : ' ', (long long)r->k,
                 (long long)(r->k * w->span.batch), (long long)w->branches[i].steps, r->loss,
                 r->above, r->error, w->branches[i].val_loss);
    }
    if (w->cost) cli_batch_cost_print(w->cost, w->rows, o->n);
    print_critical(w);
}

static void print_json(const work *w) {
    ls_json *o = ls_json_new_object(), *list = ls_json_new_array();
    for (int i = 0; i < w->o->n; i++) {
        const ls_branch_result *r = &w->results[i];
        ls_json *one = ls_json_new_object();
        ls_json_set_integer(one, "k", r->k);
        ls_json_set_integer(one, "batch", r->k * w->span.batch);
        ls_json_set_integer(one, "steps", w->branches[i].steps);
        ls_json_set_number(one, "loss", r->loss);
        ls_json_set_number(one, "above", r->above);
        ls_json_set_number(one, "error", r->error);
        ls_json_set_number(one, "val_loss", w->branches[i].val_loss);
        if (w->cost) cli_batch_cost_json(w->cost, &w->rows[i], one);
        ls_json_push(list, one);
    }
    ls_json_set(o, "run", ls_json_new_path(w->o->run));
    ls_json_set_integer(o, "step", w->span.step);
    ls_json_set_integer(o, "samples", (int64_t)(w->span.end - w->span.first));
    ls_json_set(o, "branches", list);
    ls_json_set_number(o, "critical_batch", w->critical.k * (double)w->span.batch);
    ls_json_set_number(o, "critical_low", w->critical.low * (double)w->span.batch);
    ls_json_set_number(o, "critical_high", w->critical.high * (double)w->span.batch);
    ls_json_set(o, "reached", ls_json_new_bool(w->critical.reached));
    ls_print_json(o);
    ls_json_free(o);
}

/* free() it. */
static char *mark_label(const work *w) {
    double B = (double)w->span.batch;
    const ls_branch_critical *c = &w->critical;
    const char *above = c->reached ? "" : "above ";
    return isfinite(c->high)
               ? ls_format("critical batch: %s%.0f (%.0f to %.0f)", above, c->k * B, c->low * B,
                           c->high * B)
               : ls_format("critical batch: %s%.0f (at least %.0f)", above, c->k * B, c->low * B);
}

static ls_status write_picture(const work *w, ls_error *e) {
    double batches[LS_BRANCHES], losses[LS_BRANCHES], errors[LS_BRANCHES], good[LS_BRANCHES];
    double B = (double)w->span.batch, lowest = INFINITY;
    int n = w->o->n;
    for (int i = 0; i < n; i++) {
        batches[i] = (double)w->results[i].k * B;
        losses[i] = w->results[i].loss;
        errors[i] = 2 * w->results[i].error;
        lowest = fmin(lowest, losses[i]);
        good[i] = lowest + w->o->tolerance;
    }
    char *label = mark_label(w);
    bool tokens = ls_config_has_token_losses(&w->run);
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
    if (s == LS_OK && !w->o->json) ls_print("picture: %s\n", path);
    free(label);
    free(path);
    return s;
}

/* ---- all of it ---- */

static ls_status run_all(work *w, ls_error *e) {
    LS_TRY(open_run(w, e));
    LS_TRY(cli_batch_jobs_check(&w->o->workers, &w->run, e));
    LS_TRY(plan_branches(w, e));
    LS_TRY(predict(w, e));
    LS_TRY(ls_file_make_dirs(w->output, e));
    LS_TRY(ls_lock_take(w->output, 0, &w->lock, e));
    LS_TRY(train_branches(w, e));
    ls_branch_compare(w->results, w->o->n);
    w->critical = ls_branch_find(w->results, w->o->n, w->o->tolerance);
    if (w->o->json)
        print_json(w);
    else
        print_table(w);
    return write_picture(w, e);
}

ls_status cli_branches_run(const cli_branches *o, ls_error *e) {
    work *w = LS_NEW(work);
    w->o = o;
    w->lock = LS_LOCK_NONE;
    w->branches = LS_NEW_ARRAY(branch, (size_t)o->n);
    w->rows = LS_NEW_ARRAY(cli_batch_row, (size_t)o->n);
    w->results = LS_NEW_ARRAY(ls_branch_result, (size_t)o->n);
    ls_status s = run_all(w, e);
    ls_lock_drop(&w->lock);
    cli_batch_cost_close(w->cost);
    free(w->rows);
    free(w->branches);
    free(w->results);
    free(w->checkpoint);
    free(w->output);
    free(w);
    return s;
}
