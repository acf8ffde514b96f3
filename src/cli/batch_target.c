/* batch_target.c - see batch_target.h. */
#include "cli/batch_target.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/json.h"
#include "base/log.h"
#include "base/print.h"
#include "report/batch_svg.h"
#include "storage/lock.h"

enum { FIRST_PART = 8 }; /* of the samples, that all rates train at first */

/* A training of one batch with one rate. */
typedef struct trial {
    ls_config config;
    cli_trial run;
    double factor;
    ls_target_curve curve;
    double steps; /* to the target; INFINITY: not reached yet */
    double loss;  /* its latest evaluation; INFINITY: it failed */
} trial;

/* The best training of a batch. */
typedef struct outcome {
    int64_t batch, trained; /* trained: steps */
    double factor, lr, steps;
    double val, train;             /* when all have taken the same samples */
    double val_steps, train_steps; /* when all have made the same steps */
    ls_target_curve curve;
} outcome;

typedef struct work {
    const cli_target *o;
    outcome *outcomes;     /* [o->nbatches] */
    double samples, steps; /* at which all are compared */
    cli_batch_cost *cost;  /* NULL: nothing is predicted */
    cli_batch_row *rows;   /* [o->nbatches] to the target */
    ls_lock lock;          /* of the trainings' directory */
} work;

/* ---- one batch ---- */

static ls_status open_trial(const cli_target *o, int64_t batch, double factor, trial *t,
                            ls_error *e) {
    *t = (trial){.factor = factor, .steps = INFINITY, .loss = INFINITY};
    LS_TRY(ls_target_config(o->config, &o->target, batch, factor, &t->config, e));
    t->run =
        (cli_trial){.dir = ls_format("%s/batch-%lld-rate-%g", o->output, (long long)batch, factor)};
    return cli_trial_open(&t->run, &t->config, e);
}

static void close_trial(trial *t) {
    ls_target_curve_free(&t->curve);
    free(t->run.dir);
}

/* What a training has come to at its rung. One whose loss is no number any more is out. */
static ls_status read_trial(const cli_target *o, trial *t, const cli_batch_job *j, ls_error *e) {
    if (j->diverged) {
        ls_log("batch: batch %lld, rate %.4g: diverged", (long long)t->config.train.batch,
               t->config.optim.lr);
        t->loss = INFINITY;
        return LS_OK;
    }
    ls_target_curve_free(&t->curve);
    LS_TRY(ls_target_read(t->run.dir, t->config.train.batch, j->until, &t->curve, e));
    t->steps = ls_target_steps(&t->curve, o->target.loss);
    t->loss = t->curve.n ? t->curve.losses[t->curve.n - 1] : INFINITY;
    return LS_OK;
}

/* Those that reached the target come first, by steps; then the lower loss. */
static int better_first(const void *a, const void *b) {
    const trial *x = *(trial *const *)a, *y = *(trial *const *)b;
    if (x->steps != y->steps) return x->steps < y->steps ? -1 : 1;
    if (x->loss != y->loss) return x->loss < y->loss ? -1 : 1;
    return x->factor < y->factor ? -1 : 1;
}

/* The step of a rung: a multiple of those between evaluations, one at least. */
static int64_t rung_of(const trial *t, int64_t part) {
    int64_t every = t->config.train.eval_every, all = t->config.train.steps;
    int64_t steps = (all / part + every - 1) / every * every;
    if (steps < every) steps = every;
    return steps < all ? steps : all;
}

/* Trains all up to their next rung. */
static ls_status train(const cli_target *o, trial **order, int n, int64_t part, ls_error *e) {
    cli_batch_job jobs[CLI_TARGET_RATES];
    for (int i = 0; i < n; i++)
        jobs[i] = (cli_batch_job){
            .trial = order[i]->run, .config = &order[i]->config, .until = rung_of(order[i], part)};
    LS_TRY(cli_batch_jobs_run(&o->workers, jobs, n, e));
    for (int i = 0; i < n; i++) LS_TRY(read_trial(o, order[i], &jobs[i], e));
    return LS_OK;
}

/* order [n]: the best one is first in the end. */
static ls_status halve(const cli_target *o, trial **order, int n, ls_error *e) {
    for (int64_t part = FIRST_PART;; part /= 2) {
        LS_TRY(train(o, order, n, part, e));
        qsort(order, (size_t)n, sizeof *order, better_first);
        if (isfinite(order[0]->steps) || part == 1 || !isfinite(order[0]->loss)) return LS_OK;
        n = (n + 1) / 2;
    }
}

static ls_status find_best(const cli_target *o, int64_t batch, outcome *out, ls_error *e) {
    trial *trials = LS_NEW_ARRAY(trial, (size_t)o->nfactors), *order[CLI_TARGET_RATES];
    ls_status s = LS_OK;
    int n = 0;
    for (; s == LS_OK && n < o->nfactors; n++) {
        s = open_trial(o, batch, o->factors[n], &trials[n], e);
        order[n] = &trials[n];
    }
    if (s == LS_OK) s = halve(o, order, n, e);
    if (s == LS_OK) {
        trial *best = order[0];
        *out = (outcome){.batch = batch,
                         .trained = best->curve.nsteps,
                         .factor = best->factor,
                         .lr = best->config.optim.lr,
                         .steps = best->steps,
                         .curve = best->curve};
        best->curve = (ls_target_curve){0};
        ls_log("batch: batch %lld: %s%.0f steps, rate %.4g", (long long)batch,
               isfinite(best->steps) ? "target after " : "target not reached in ",
               isfinite(best->steps) ? best->steps : (double)out->trained, out->lr);
    }
    for (int i = 0; i < n; i++) close_trial(&trials[i]);
    free(trials);
    return s;
}

/* ---- all batches ---- */

/* At the most samples, and the most steps, that all best trainings have. */
static void compare(work *w) {
    w->samples = w->steps = INFINITY;
    for (int i = 0; i < w->o->nbatches; i++) {
        const outcome *x = &w->outcomes[i];
        if (x->trained == 0) continue; /* all rates diverged */
        w->samples = fmin(w->samples, (double)x->trained * (double)x->batch);
        w->steps = fmin(w->steps, (double)x->trained);
    }
    for (int i = 0; i < w->o->nbatches; i++) {
        outcome *x = &w->outcomes[i];
        double at = w->samples / (double)x->batch;
        x->val = ls_target_val(&x->curve, at);
        x->train = ls_target_train(&x->curve, at, w->samples / 8);
        x->val_steps = ls_target_val(&x->curve, w->steps);
        x->train_steps = ls_target_train(&x->curve, w->steps, w->steps * (double)x->batch / 8);
    }
}

static void find_regimes(const work *w, ls_target_regime *regimes) {
    double steps[CLI_TARGET_BATCHES];
    for (int i = 0; i < w->o->nbatches; i++) steps[i] = w->outcomes[i].steps;
    ls_target_regimes(w->o->batches, steps, w->o->nbatches, regimes);
}

static void print_steps(const work *w, const ls_target_regime *regimes) {
    int largest = -1;
    ls_print(
        "steps to a validation loss of %g; each batch with the best of %d rates, constant after "
        "the\nwarm-up; saved: of the steps, by each doubling of the batch\n\n"
        "   batch         lr    steps      samples    saved  regime\n",
        w->o->target.loss, w->o->nfactors);
    for (int i = 0; i < w->o->nbatches; i++) {
        const outcome *x = &w->outcomes[i];
        ls_print("%8lld %10.4g ", (long long)x->batch, x->lr);
        if (isfinite(x->steps))
            ls_print("%8.0f %12.0f ", x->steps, x->steps * (double)x->batch);
        else
            ls_print("%8s %12s ", "-", "-");
        if (i > 0 && isfinite(x->steps) && isfinite(x[-1].steps))
            ls_print("%7.0f%%", 100 * (1 - pow(x->steps / x[-1].steps,
                                               1 / log2((double)x->batch / (double)x[-1].batch))));
        else
            ls_print("%8s", "");
        ls_print("  %s\n", ls_target_regime_name(regimes[i]));
        if (regimes[i] == LS_REGIME_PERFECT) largest = i;
    }
    if (largest >= 0)
        ls_print("\nscaling is within 20%% of perfect up to a batch of %lld\n",
                 (long long)w->o->batches[largest]);
}

/* The three losses at a point; where no step or evaluation is early enough, one is missing. */
static void print_gap(double train, double val) {
    const double numbers[] = {train, val, val - train};
    for (int i = 0; i < 3; i++) {
        if (isfinite(numbers[i]))
            ls_print(" %8.4f", numbers[i]);
        else
            ls_print(" %8s", "-");
    }
    ls_print(" ");
}

static void print_gaps(const work *w) {
    ls_print("\ngeneralization: training and validation loss, their difference\n"
             "          after %-10.0f samples         after %.0f steps\n"
             "   batch    train      val      gap     train      val      gap\n",
             w->samples, w->steps);
    for (int i = 0; i < w->o->nbatches; i++) {
        const outcome *x = &w->outcomes[i];
        ls_print("%8lld", (long long)x->batch);
        print_gap(x->train, x->val);
        print_gap(x->train_steps, x->val_steps);
        ls_print("\n");
    }
}

static void print_json(const work *w, const ls_target_regime *regimes) {
    ls_json *o = ls_json_new_object(), *list = ls_json_new_array();
    for (int i = 0; i < w->o->nbatches; i++) {
        const outcome *x = &w->outcomes[i];
        ls_json *one = ls_json_new_object();
        ls_json_set_integer(one, "batch", x->batch);
        ls_json_set_number(one, "lr", x->lr);
        ls_json_set_number(one, "steps", x->steps);
        ls_json_set_text(one, "regime", ls_target_regime_name(regimes[i]));
        ls_json_set_number(one, "train_loss_samples", x->train);
        ls_json_set_number(one, "val_loss_samples", x->val);
        ls_json_set_number(one, "train_loss_steps", x->train_steps);
        ls_json_set_number(one, "val_loss_steps", x->val_steps);
        if (w->cost) cli_batch_cost_json(w->cost, &w->rows[i], one);
        ls_json_push(list, one);
    }
    ls_json_set_number(o, "target", w->o->target.loss);
    ls_json_set_number(o, "equal_samples", w->samples);
    ls_json_set_number(o, "equal_steps", w->steps);
    ls_json_set(o, "batches", list);
    ls_print_json(o);
    ls_json_free(o);
}

static ls_status write_picture(const work *w, ls_error *e) {
    double batches[CLI_TARGET_BATCHES], steps[CLI_TARGET_BATCHES], perfect[CLI_TARGET_BATCHES];
    double samples = NAN;
    for (int i = 0; i < w->o->nbatches; i++) {
        batches[i] = (double)w->o->batches[i];
        steps[i] = w->outcomes[i].steps;
        if (isnan(samples) && isfinite(steps[i])) samples = steps[i] * batches[i];
        perfect[i] = samples / batches[i];
    }
    char *title = ls_format("steps to a validation loss of %g", w->o->target.loss);
    const ls_batch_picture p = {
        .title = title,
        .unit = "batch, samples",
        .batches = batches,
        .n = w->o->nbatches,
        .nlines = 2,
        .lines = {{"steps", steps, NULL, false}, {"perfect scaling", perfect, NULL, true}},
        .log_values = true};
    char *path = ls_format("%s/steps.svg", w->o->output);
    ls_status s = ls_batch_svg_write(path, &p, e);
    if (s == LS_OK && !w->o->json) ls_print("picture: %s\n", path);
    free(title);
    free(path);
    return s;
}

static ls_status predict(work *w, ls_error *e) {
    if (!w->o->machine.file) return LS_OK;
    LS_TRY(cli_batch_cost_open(&w->o->machine, &w->cost, e));
    for (int i = 0; i < w->o->nbatches; i++)
        cli_batch_cost_predict(w->cost, w->o->config, w->o->batches[i], &w->rows[i]);
    return LS_OK;
}

static ls_status run_all(work *w, ls_error *e) {
    ls_target_regime regimes[CLI_TARGET_BATCHES];
    ls_config c;
    LS_TRY(cli_batch_jobs_check(&w->o->workers, w->o->config, e));
    for (int i = 0; i < w->o->nbatches; i++) /* before anything is trained */
        for (int k = 0; k < w->o->nfactors; k++)
            LS_TRY(ls_target_config(w->o->config, &w->o->target, w->o->batches[i], w->o->factors[k],
                                    &c, e));
    LS_TRY(predict(w, e));
    LS_TRY(ls_file_make_dirs(w->o->output, e));
    LS_TRY(ls_lock_take(w->o->output, 0, &w->lock, e));
    for (int i = 0; i < w->o->nbatches; i++)
        LS_TRY(find_best(w->o, w->o->batches[i], &w->outcomes[i], e));
    for (int i = 0; i < w->o->nbatches; i++) w->rows[i].steps = w->outcomes[i].steps;
    compare(w);
    find_regimes(w, regimes);
    if (w->o->json) {
        print_json(w, regimes);
    } else {
        print_steps(w, regimes);
        if (w->cost) cli_batch_cost_print(w->cost, w->rows, w->o->nbatches);
        print_gaps(w);
    }
    return write_picture(w, e);
}

ls_status cli_target_run(const cli_target *o, ls_error *e) {
    work w = {.o = o,
              .outcomes = LS_NEW_ARRAY(outcome, (size_t)o->nbatches),
              .rows = LS_NEW_ARRAY(cli_batch_row, (size_t)o->nbatches),
              .lock = LS_LOCK_NONE};
    ls_status s = run_all(&w, e);
    for (int i = 0; i < o->nbatches; i++) ls_target_curve_free(&w.outcomes[i].curve);
    free(w.outcomes);
    free(w.rows);
    cli_batch_cost_close(w.cost);
    ls_lock_drop(&w.lock);
    return s;
}
