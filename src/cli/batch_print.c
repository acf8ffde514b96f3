/* batch_print.c - see batch_print.h. */
#include "cli/batch_print.h"

#include <math.h>
#include <stdio.h>

#include "base/print.h"

/* ---- times and money ---- */

static void print_number(double value, bool known) {
    if (known && isfinite(value))
        ls_print(" %10.4g", value);
    else
        ls_print(" %10s", "-");
}

static void print_cost(const ls_costs *x, const ls_cost_row *row, int k) {
    const ls_machine_prices *p = &x->machine.prices;
    const ls_expense cost = ls_costs_of(x, row, k);
    ls_print("%7d %8lld", x->asked->counts[k], (long long)row->batch);
    if (isfinite(row->steps))
        ls_print(" %8.1f", row->steps);
    else
        ls_print(" %8s", "-");
    print_number(row->step_s[k], true);
    print_number(ls_costs_seconds(row, k) / 3600, true);
    print_number(cost.worker_hours, true);
    print_number(cost.money, p->worker_hour > 0);
    print_number(cost.kwh, p->watts > 0);
    ls_print("\n");
}

static void print_costs(const ls_costs *x) {
    const ls_machine_prices *p = &x->machine.prices;
    if (x->n == 0) return;
    ls_print("\npredicted for machines as in %s", x->asked->file);
    if (p->worker_hour > 0) ls_print(", at %.4g %s a worker-hour", p->worker_hour, p->currency);
    ls_print("\n\nworkers    batch    steps     step s      hours   w.-hours %10s        kWh\n",
             p->worker_hour > 0 && p->currency[0] ? p->currency : "money");
    for (int k = 0; k < x->asked->ncounts; k++)
        for (int i = 0; i < x->n; i++) print_cost(x, &x->rows[i], k);
}

/* Adds step_s, seconds, money and kwh of row i, each an array over the numbers of workers. */
static void set_costs(const ls_costs *x, int i, ls_json *one) {
    const ls_machine_prices *p = &x->machine.prices;
    if (x->n == 0) return;
    ls_json *steps = ls_json_new_array(), *seconds = ls_json_new_array();
    ls_json *money = ls_json_new_array(), *kwh = ls_json_new_array();
    const ls_cost_row *row = &x->rows[i];
    for (int k = 0; k < x->asked->ncounts; k++) {
        const ls_expense cost = ls_costs_of(x, row, k);
        ls_json_push(steps, ls_json_new_number(row->step_s[k]));
        ls_json_push(seconds, ls_json_new_number(ls_costs_seconds(row, k)));
        ls_json_push(money, ls_json_new_number(p->worker_hour > 0 ? cost.money : NAN));
        ls_json_push(kwh, ls_json_new_number(p->watts > 0 ? cost.kwh : NAN));
    }
    ls_json_set(one, "step_s", steps);
    ls_json_set(one, "seconds", seconds);
    ls_json_set(one, "money", money);
    ls_json_set(one, "kwh", kwh);
}

/* ---- branches ---- */

static int64_t steps_of(const ls_branches *w, int i) { return w->trials[i].until - w->span.step; }

static void print_critical(const ls_branches *w) {
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
    const char *bits = ls_branches_compare_bits(w);
    if (bits) ls_print("%s\n", bits);
}

void cli_branches_print(const ls_branches *w) {
    const ls_branches_request *o = w->asked;
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
                 (long long)(r->k * w->span.batch), (long long)steps_of(w, i), r->loss, r->above,
                 r->error, w->val_losses[i]);
    }
    print_costs(&w->costs);
    print_critical(w);
}

void cli_branches_print_json(const ls_branches *w) {
    ls_json *o = ls_json_new_object(), *list = ls_json_new_array();
    for (int i = 0; i < w->asked->n; i++) {
        const ls_branch_result *r = &w->results[i];
        ls_json *one = ls_json_new_object();
        ls_json_set_integer(one, "k", r->k);
        ls_json_set_integer(one, "batch", r->k * w->span.batch);
        ls_json_set_integer(one, "steps", steps_of(w, i));
        ls_json_set_number(one, "loss", r->loss);
        ls_json_set_number(one, "above", r->above);
        ls_json_set_number(one, "error", r->error);
        ls_json_set_number(one, "val_loss", w->val_losses[i]);
        set_costs(&w->costs, i, one);
        ls_json_push(list, one);
    }
    ls_json_set_path(o, "run", w->asked->run);
    ls_json_set_integer(o, "step", w->span.step);
    ls_json_set_integer(o, "samples", (int64_t)(w->span.end - w->span.first));
    ls_json_set(o, "branches", list);
    ls_json_set_number(o, "critical_batch", w->critical.k * (double)w->span.batch);
    ls_json_set_number(o, "critical_low", w->critical.low * (double)w->span.batch);
    ls_json_set_number(o, "critical_high", w->critical.high * (double)w->span.batch);
    ls_json_set_bool(o, "reached", w->critical.reached);
    ls_print_json(o);
}

/* ---- steps to a loss ---- */

static void print_steps(const ls_targets *w) {
    int largest = -1;
    ls_print(
        "steps to a validation loss of %g; each batch with the best of %d rates, constant after "
        "the\nwarm-up; saved: of the steps, by each doubling of the batch\n\n"
        "   batch         lr    steps      samples    saved  regime\n",
        w->asked->target.loss, w->asked->nfactors);
    for (int i = 0; i < w->asked->nbatches; i++) {
        const ls_target_best *x = &w->best[i];
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
        ls_print("  %s\n", ls_target_regime_name(x->regime));
        if (x->regime == LS_REGIME_PERFECT) largest = i;
    }
    if (largest >= 0)
        ls_print("\nscaling is within 20%% of perfect up to a batch of %lld\n",
                 (long long)w->asked->batches[largest]);
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
}

static void print_gaps(const ls_targets *w) {
    char samples[48];
    snprintf(samples, sizeof samples, "after %.0f samples", w->samples);
    ls_print("\ngeneralization: training and validation loss, their difference\n"
             "%9s%-27s after %.0f steps\n"
             "   batch    train      val      gap     train      val      gap\n",
             "", samples, w->steps);
    for (int i = 0; i < w->asked->nbatches; i++) {
        const ls_target_best *x = &w->best[i];
        ls_print("%8lld", (long long)x->batch);
        print_gap(x->train, x->val);
        ls_print(" ");
        print_gap(x->train_steps, x->val_steps);
        ls_print("\n");
    }
}

void cli_targets_print(const ls_targets *w) {
    print_steps(w);
    print_costs(&w->costs);
    print_gaps(w);
}

void cli_targets_print_json(const ls_targets *w) {
    ls_json *o = ls_json_new_object(), *list = ls_json_new_array();
    for (int i = 0; i < w->asked->nbatches; i++) {
        const ls_target_best *x = &w->best[i];
        ls_json *one = ls_json_new_object();
        ls_json_set_integer(one, "batch", x->batch);
        ls_json_set_number(one, "lr", x->lr);
        ls_json_set_number(one, "steps", x->steps);
        ls_json_set_text(one, "regime", ls_target_regime_name(x->regime));
        ls_json_set_number(one, "train_loss_samples", x->train);
        ls_json_set_number(one, "val_loss_samples", x->val);
        ls_json_set_number(one, "train_loss_steps", x->train_steps);
        ls_json_set_number(one, "val_loss_steps", x->val_steps);
        set_costs(&w->costs, i, one);
        ls_json_push(list, one);
    }
    ls_json_set_number(o, "target", w->asked->target.loss);
    ls_json_set_number(o, "equal_samples", w->samples);
    ls_json_set_number(o, "equal_steps", w->steps);
    ls_json_set(o, "batches", list);
    ls_print_json(o);
}
