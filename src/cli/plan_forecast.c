/* plan_forecast.c - the predictions of lockstep plan. See plan_print.h. */
#include "cli/plan_print.h"

#include <stdlib.h>
#include <string.h>

#include "base/plural.h"
#include "base/print.h"
#include "base/wrap.h"
#include "perf/expense.h"
#include "perf/plan_text.h"

/* ---- reading ---- */

ls_status cli_forecast_counts(const char *text, int *counts, int *n_p, ls_error *e) {
    const char *at = text;
    int n = 0;
    for (;;) {
        char *end = NULL;
        long x = strtol(at, &end, 10);
        bool ends = *end == ',' || *end == 0;
        if (end == at || !ends || x < 1 || x > 4096 || n == CLI_MAX_COUNTS)
            return ls_fail(e, LS_EINVAL,
                           "--workers: '%.60s' is neither a number of workers from 1 to 4096 nor a "
                           "list of at most %d such as 8,64,512",
                           text, CLI_MAX_COUNTS);
        counts[n++] = (int)x;
        if (!*end) break;
        at = end + 1;
    }
    *n_p = n;
    return LS_OK;
}

void cli_forecast_print_world(const ls_forecast_world_options *o, const ls_machine *m) {
    int n = o->host_workers ? o->host_workers : 1;
    ls_print("predicted for machines as in %s\n  (%s, %d core%s)\n",
             o->machine ? o->machine : "this one, just measured", m->name, m->cores,
             ls_plural(m->cores));
    if (m->device.product > 0) ls_print("  (device of a worker: %s)\n", m->device.name);
    if (o->link) ls_print("  %d worker%s a host, %s between hosts\n", n, ls_plural(n), o->link);
    if (o->algorithm) ls_print("  %s where possible\n", o->algorithm);
}

/* ---- one plan ---- */

static void print_phases(const ls_config *c, const double *step_s) {
    ls_buf out = {0};
    ls_phases_print(c, step_s, &out);
    ls_print_text(out.data, out.len);
    ls_buf_free(&out);
}

static ls_json *run_json(const ls_machine *m, int n, double run_s) {
    ls_expense cost = ls_expense_of(&m->prices, run_s * n);
    ls_json *o = ls_expense_json(&m->prices, &cost);
    ls_json_set_number(o, "seconds", run_s);
    return o;
}

/* What all steps take and cost, if the machine's file has prices. */
static void print_run(const ls_config *c, const ls_machine *m, int n, double run_s) {
    if (m->prices.worker_hour <= 0 && m->prices.watts <= 0) return;
    ls_expense cost = ls_expense_of(&m->prices, run_s * n);
    ls_buf out = {0};
    ls_expense_print(&m->prices, &cost, &out);
    ls_print("  predicted for %lld steps: %.1f s\n    %s\n", (long long)c->train.steps, run_s,
             out.data);
    ls_buf_free(&out);
}

static void print_forecast(const ls_forecast *f) {
    ls_print("  predicted step         %12.6f s\n", f->step_s);
    ls_print("  predicted %s/s%*s%12.1f\n", f->unit, (int)(11 - strlen(f->unit)), "",
             f->units_per_s);
    ls_print("  predicted efficiency   %12.1f %%  against one worker with the same work\n",
             100 * f->efficiency);
    ls_print("  predicted exposed      %12.6f s  of %.6f s communication (%s)\n", f->exposed_s,
             f->comm_s, f->algorithm);
    if (f->nworkers > 1)
        ls_print("  predicted waiting      %12.1f %%  of a step, of some workers up to %.1f %%\n",
                 100 * f->least_wait, 100 * f->most_wait);
    if (f->sync_s > 0)
        ls_print("  predicted synchronization %9.6f s  a step on average, in the step above\n",
                 f->sync_s);
    if (f->reference_s > 0)
        ls_print("  predicted reference    %12.6f s  a pair, before the first step\n",
                 f->reference_s);
    ls_print("  predicted memory       %12.3f MB a worker%s\n", (double)f->memory_nbytes / 1e6,
             f->fits_host ? "" : ": exceeds parallel.memory_limit_mb");
    if (f->device_nbytes)
        ls_print("  predicted on device    %12.3f MB a worker%s\n", (double)f->device_nbytes / 1e6,
                 f->fits_device ? "" : ": exceeds the device's memory");
    ls_print("  predicted seconds of the step by action kind\n");
    for (int k = 0; k < LS_NACTION_KINDS; k++)
        if (f->kinds_s[k] > 0)
            ls_print("    %-14s %12.6f\n", ls_action_kind_name((ls_action_kind)k), f->kinds_s[k]);
}

/* ---- bounded staleness, parameter servers ---- */

/* Figures that both forecasts have. */
typedef struct pace {
    int nworkers;
    double gradient_s, update_s;
} pace;

static ls_json *pace_json(const ls_config *c, const ls_prospect *x, pace p) {
    ls_json *o = ls_json_new_object();
    ls_json_set_integer(o, "workers", p.nworkers);
    ls_json_set_number(o, "step_s", x->step_s);
    ls_json_set_number(o, ls_config_has_tokens(c) ? "tokens_per_s" : "samples_per_s",
                       x->units_per_s);
    ls_json_set_number(o, "gradient_s", p.gradient_s);
    ls_json_set_number(o, "update_s", p.update_s);
    return o;
}

static void print_units(const ls_config *c, const ls_prospect *x) {
    const char *unit = ls_config_unit(c);
    ls_print("  predicted %s/s%*s%12.1f\n", unit, (int)(11 - strlen(unit)), "", x->units_per_s);
}

static ls_json *clocked_json(const ls_config *c, const ls_prospect *x) {
    const ls_clocked *k = &x->by.clocked;
    return pace_json(c, x, (pace){k->nworkers, k->gradient_s, k->update_s});
}

static void print_clocked(const ls_config *c, const ls_prospect *x) {
    const ls_clocked *k = &x->by.clocked;
    ls_print("  predicted step         %12.6f s  with %d worker%s\n", x->step_s, k->nworkers,
             ls_plural(k->nworkers));
    print_units(c, x);
    ls_print("  predicted gradient     %12.6f s  of a virtual worker\n", k->gradient_s);
    ls_print("  predicted update       %12.6f s  by the main process\n", k->update_s);
}

static ls_json *pushed_json(const ls_config *c, const ls_prospect *x) {
    const ls_pushed *k = &x->by.pushed;
    ls_json *o = pace_json(c, x, (pace){k->nworkers, k->gradient_s, k->update_s});
    ls_json_set_number(o, "link_s", k->link_s);
    return o;
}

static void print_pushed(const ls_config *c, const ls_prospect *x) {
    const ls_pushed *k = &x->by.pushed;
    ls_print("  predicted step         %12.6f s  from one to the next, with %d worker%s\n",
             x->step_s, k->nworkers, ls_plural(k->nworkers));
    print_units(c, x);
    ls_print("  predicted gradient     %12.6f s  of a batch, by a worker\n", k->gradient_s);
    ls_print("  predicted update       %12.6f s  of a gradient, by all servers\n", k->update_s);
    if (k->link_s > 0)
        ls_print(
            "  predicted transfer     %12.6f s  of its bytes: all workers are on other hosts\n",
            k->link_s);
}

/* ---- any of them ---- */

bool cli_forecast_predicts(const cli_forecast *o) {
    return o->world.machine || o->world.link || o->trace;
}

/* Workers without a common step, and workers of one host, can't be predicted with all options. */
static ls_status check_mode(const cli_forecast *o, const ls_config *c, ls_error *e) {
    if (c->sync.mode == LS_SYNC_SSP && (o->world.link || o->trace))
        return ls_fail(e, LS_EINVAL,
                       "--%s: sync.mode ssp is predicted for workers of one host, which have no "
                       "common step to draw; leave it out",
                       o->world.link ? "link" : "trace");
    if (c->sync.mode == LS_SYNC_ASYNC && o->trace)
        return ls_fail(e, LS_EINVAL,
                       "--trace: workers of sync.mode async have no common step to draw; leave it "
                       "out");
    return LS_OK;
}

ls_status cli_predict(const cli_forecast *o, const ls_config *c, const ls_plan *p, int n,
                      ls_prospect *x, ls_error *e) {
    *x = (ls_prospect){.nworkers = n};
    LS_TRY(check_mode(o, c, e));
    return ls_prospect_make(&o->world, !cli_forecast_predicts(o), c, p, x, e);
}

void cli_predicted_print(const cli_forecast *o, const ls_config *c, const ls_prospect *x) {
    ls_print("\n");
    cli_forecast_print_world(&o->world, &x->machine);
    if (c->sync.mode == LS_SYNC_SSP) {
        print_clocked(c, x);
    } else if (c->sync.mode == LS_SYNC_ASYNC) {
        print_pushed(c, x);
    } else {
        print_forecast(&x->by.plan);
        print_phases(c, x->phases_s);
        print_run(c, &x->machine, x->nworkers, x->run_s);
    }
}

void cli_predicted_print_json(const ls_config *c, const ls_plan *p, const ls_prospect *x) {
    ls_json *plan = ls_plan_json(c, p, x->nworkers);
    if (c->sync.mode == LS_SYNC_SSP) {
        ls_json_set(plan, "prediction", clocked_json(c, x));
    } else if (c->sync.mode == LS_SYNC_ASYNC) {
        ls_json_set(plan, "prediction", pushed_json(c, x));
    } else {
        ls_json_set(plan, "prediction", ls_forecast_json(&x->by.plan));
        if (c->train.nphases) ls_json_set(plan, "phases", ls_phases_json(c, x->phases_s));
        ls_json_set(plan, "run", run_json(&x->machine, x->nworkers, x->run_s));
    }
    ls_print_json(plan);
}

/* ---- a table ---- */

static void print_rows_json(const ls_config *c, const ls_forecast_list *list) {
    for (int i = 0; i < list->n; i++) {
        ls_json *o = ls_forecast_json(&list->rows[i]);
        ls_json_set_integer(o, "batch", c->train.batch);
        ls_json_set_bool(o, "best", i == list->best);
        ls_print_json(o);
    }
}

static const char *rate_of(const ls_config *c) {
    return ls_config_has_tokens(c) ? "tok/s" : "smp/s";
}

static void print_rows(const ls_config *c, const ls_forecast_list *list) {
    for (int i = 0; i < list->n; i++) {
        const ls_forecast *f = &list->rows[i];
        double megabytes = (double)f->memory_nbytes / 1e6;
        ls_print("%c %5d %5d %6lld %4lld %3lld %8.4f %7.0f %5.1f%% %5.1f%% %6.*f %s\n",
                 i == list->best ? '*'
                 : f->fits       ? ' '
                                 : '!',
                 f->nworkers, f->nhosts, (long long)c->train.batch, (long long)f->zero,
                 (long long)f->recompute, f->step_s, f->units_per_s, 100 * f->efficiency,
                 100 * f->exposed_s / f->step_s, megabytes < 1000 ? 1 : 0, megabytes, f->algorithm);
    }
    if (list->best < 0) ls_print("%7d: nothing fits\n", list->rows[0].nworkers);
}

static void print_head(const cli_forecast *o, const ls_config *c) {
    ls_print_wrapped(
        "%s", o->strong ? "strong scaling: the batch is that of the config"
                        : "weak scaling: batch and virtual workers grow, so that each worker "
                          "has the same work at every size");
    if (c->parallel.memory_limit_mb > 0)
        ls_print("limit: parallel.memory_limit_mb %g a worker\n", c->parallel.memory_limit_mb);
    ls_print("\npredicted:\nworkers hosts  batch zero rec   step s   %s effic. expos.     MB "
             "algorithm\n",
             rate_of(c));
}

static void print_impossible(const cli_forecast *o, int n, const ls_error *why) {
    ls_buf out = {0};
    if (o->json) {
        ls_json *row = ls_json_new_object();
        ls_json_set_integer(row, "workers", n);
        ls_json_set_text(row, "reason", why->msg);
        ls_print_json(row);
        return;
    }
    ls_buf_printf(&out, "%7d not possible: ", n);
    ls_buf_wrap(&out, why->msg, 22, 8);
    ls_print_text(out.data, out.len);
    ls_buf_free(&out);
}

/* Prints the forecast for n workers. LS_EINVAL: n workers are not possible. */
static ls_status print_count(const ls_forecast_world *w, const cli_forecast *o, const ls_config *c,
                             int base, int n, ls_error *e) {
    ls_forecast_list list;
    ls_config scaled;
    LS_TRY(ls_forecast_scale(c, base, n, o->strong, &scaled, e));
    LS_TRY(ls_forecast_rows(&scaled, n, w, &list, e));
    if (o->json)
        print_rows_json(&scaled, &list);
    else
        print_rows(&scaled, &list);
    return LS_OK;
}

/* Prints what is possible; fails if nothing is. */
static ls_status print_counts(const ls_forecast_world *w, const cli_forecast *o, const ls_config *c,
                              const int *counts, int n, ls_error *e) {
    int base = counts[0], possible = 0;
    for (int i = 1; i < n; i++)
        if (counts[i] < base) base = counts[i];
    for (int i = 0; i < n; i++) {
        ls_status s = print_count(w, o, c, base, counts[i], e);
        if (s != LS_OK && s != LS_EINVAL) return s;
        if (s == LS_OK)
            possible++;
        else if (n > 1)
            print_impossible(o, counts[i], e);
    }
    return possible ? LS_OK : e->code;
}

ls_status cli_forecast_table(const cli_forecast *o, const ls_config *c, const int *counts, int n,
                             ls_error *e) {
    ls_machine m = {0};
    ls_forecast_world w;
    ls_status s = ls_forecast_world_open(&o->world, &m, &w, e);
    for (int i = 0; s == LS_OK && i < n; i++) s = ls_forecast_world_check(&w, counts[i], e);
    if (s == LS_OK) ls_forecast_note_device(c, &m);
    if (s == LS_OK && !o->json) {
        cli_forecast_print_world(&o->world, &m);
        print_head(o, c);
    }
    if (s == LS_OK) s = print_counts(&w, o, c, counts, n, e);
    if (s == LS_OK && !o->json)
        ls_print("\n*: the fastest that fits; !: over the limit. rec: parallel.recompute. %s:\n"
                 "%s a second. effic.: against one worker with the same work a worker.\n"
                 "expos.: the part of the step in which a worker does not compute. MB: memory of\n"
                 "a worker.\n",
                 rate_of(c), ls_config_unit(c));
    ls_machine_free(&m);
    return s;
}
