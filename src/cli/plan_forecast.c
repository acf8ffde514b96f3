/* plan_forecast.c - see plan_forecast.h. */
#include "cli/plan_forecast.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/plural.h"
#include "base/print.h"
#include "cli/plan_json.h"
#include "cli/plan_phases.h"
#include "perf/calibrate.h"
#include "perf/clocked.h"
#include "perf/expense.h"
#include "perf/pushed.h"
#include "report/timeline.h"

/* ---- reading ---- */

/* Reads "200Gb/s" as seconds per byte. */
static bool read_bandwidth(const char *text, size_t length, double *byte_s_p) {
    static const char scales[] = "kMGT";
    char *end = NULL;
    double x = strtod(text, &end), scale = 1;
    if (end == text || !(x > 0 && x < 1e15)) return false;
    for (const char *s = scales; *end && *s; s++) {
        scale *= 1e3;
        if (*end != *s) continue;
        x *= scale;
        end++;
        break;
    }
    if (*end != 'b' && *end != 'B') return false;
    x /= *end == 'b' ? 8 : 1;
    *byte_s_p = 1 / x;
    return strncmp(end + 1, "/s", 2) == 0 && end + 3 == text + length;
}

/* Reads "3us" as seconds. */
static bool read_time(const char *text, double *s_p) {
    static const struct {
        const char *unit;
        double s;
    } units[] = {{"ns", 1e-9}, {"us", 1e-6}, {"ms", 1e-3}, {"s", 1}};
    char *end = NULL;
    double x = strtod(text, &end);
    if (end == text || !(x >= 0 && x < 1e9)) return false;
    for (size_t i = 0; i < sizeof units / sizeof *units; i++)
        if (strcmp(end, units[i].unit) == 0) {
            *s_p = x * units[i].s;
            return true;
        }
    return false;
}

static ls_status read_link(const char *text, ls_forecast_world *w, ls_error *e) {
    size_t length = strcspn(text, ",");
    if (text[length] && read_bandwidth(text, length, &w->byte_s) &&
        read_time(text + length + 1, &w->latency_s))
        return LS_OK;
    return ls_fail(e, LS_EINVAL,
                   "--link: '%.40s' is not the bandwidth and latency of a host's network card, "
                   "such as 200Gb/s,3us or 1.25GB/s,50us",
                   text);
}

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

/* ---- the world ---- */

ls_status cli_forecast_read_world(const cli_forecast *o, ls_forecast_world *w, ls_error *e) {
    *w = (ls_forecast_world){.algorithm = o->algorithm};
    if (o->algorithm && !ls_fabric_knows(o->algorithm))
        return ls_fail(e, LS_EINVAL,
                       "--algorithm: '%.40s' does not exist; docs/collectives.md lists them",
                       o->algorithm);
    if (o->link) LS_TRY(read_link(o->link, w, e));
    if (o->host_workers && !o->link)
        return ls_fail(e, LS_EINVAL,
                       "--host-workers: the link between the hosts is missing; add --link, e.g. "
                       "--link 200Gb/s,3us");
    w->host_workers = o->host_workers ? o->host_workers : o->link ? 1 : 0;
    return LS_OK;
}

ls_status cli_forecast_open_world(const cli_forecast *o, ls_machine *m, ls_forecast_world *w,
                                  ls_error *e) {
    LS_TRY(cli_forecast_read_world(o, w, e));
    w->machine = m;
    if (o->machine) return ls_machine_read(o->machine, m, e);
    ls_log("measuring this machine, which takes 45 seconds; --machine FILE reads what "
           "`lockstep bench machine --save FILE` has measured");
    return ls_calibrate(m, e);
}

void cli_forecast_print_world(const cli_forecast *o, const ls_machine *m) {
    int n = o->host_workers ? o->host_workers : 1;
    ls_print("predicted for machines as in %s\n  (%s, %d core%s)\n",
             o->machine ? o->machine : "this one, just measured", m->name, m->cores,
             ls_plural(m->cores));
    if (o->link) ls_print("  %d worker%s a host, %s between hosts\n", n, ls_plural(n), o->link);
    if (o->algorithm) ls_print("  %s where possible\n", o->algorithm);
}

ls_status cli_forecast_check_hosts(const ls_forecast_world *w, int n, ls_error *e) {
    if (!w->host_workers || n < w->host_workers || n % w->host_workers == 0) return LS_OK;
    return ls_fail(e, LS_EINVAL,
                   "--host-workers %d: %d workers don't fill a whole number of such hosts",
                   w->host_workers, n);
}

/* ---- one plan ---- */

static void print_phases(const ls_config *c, const double *step_s) {
    ls_buf out = {0};
    cli_phases_print(c, step_s, &out);
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
             f->fits ? "" : ": exceeds parallel.memory_limit_mb");
    ls_print("  predicted seconds of the step by action kind\n");
    for (int k = 0; k < LS_NACTION_KINDS; k++)
        if (f->kinds_s[k] > 0)
            ls_print("    %-14s %12.6f\n", ls_action_kind_name((ls_action_kind)k), f->kinds_s[k]);
}

/* Writes the predicted timeline of all workers. */
static ls_status write_timeline(const char *path, const ls_config *c, const ls_plan *p,
                                const ls_forecast_world *w, ls_error *e) {
    ls_site site = ls_forecast_site(c, p, w);
    ls_sim sim;
    ls_timeline t;
    LS_TRY(ls_timeline_check_path(path, e));
    LS_TRY(ls_sim_run(p, &site, true, &sim, e));
    ls_timeline_open(&t, p, "predicted", w->machine->name, 1);
    ls_timeline_add(&t, p, 0, sim.spans, (size_t)sim.nspans);
    ls_status s = ls_timeline_write(&t, path, e);
    ls_timeline_free(&t);
    ls_sim_free(&sim);
    return s;
}

ls_status cli_forecast_print(const cli_forecast *o, const ls_config *c, const ls_plan *p,
                             ls_error *e) {
    ls_machine m = {0};
    ls_forecast_world w;
    ls_forecast f;
    double phases_s[LS_CONFIG_PHASES], run_s = 0;
    ls_status s = cli_forecast_open_world(o, &m, &w, e);
    if (s == LS_OK) s = cli_forecast_check_hosts(&w, p->c.nworkers, e);
    if (s == LS_OK) s = ls_forecast_plan(c, p, &w, &f, e);
    if (s == LS_OK) s = ls_forecast_phases(c, p->c.nworkers, &w, phases_s, e);
    if (s == LS_OK) s = ls_expense_run_s(c, p->c.nworkers, &w, f.step_s, &run_s, e);
    if (s == LS_OK && o->json) {
        ls_json *plan = cli_plan_json(c, p);
        ls_json_set(plan, "prediction", cli_forecast_json(&f));
        if (c->train.nphases) ls_json_set(plan, "phases", cli_phases_json(c, phases_s));
        ls_json_set(plan, "run", run_json(&m, p->c.nworkers, run_s));
        ls_print_json(plan);
        ls_json_free(plan);
    } else if (s == LS_OK) {
        ls_print("\n");
        cli_forecast_print_world(o, &m);
        print_forecast(&f);
        print_phases(c, phases_s);
        print_run(c, &m, p->c.nworkers, run_s);
    }
    if (s == LS_OK && o->trace) s = write_timeline(o->trace, c, p, &w, e);
    ls_machine_free(&m);
    return s;
}

/* The plan with its prediction, which it owns from now on. */
static void print_plan_json(const ls_config *c, const ls_plan *p, ls_json *prediction) {
    ls_json *plan = cli_plan_json(c, p);
    ls_json_set(plan, "prediction", prediction);
    ls_print_json(plan);
    ls_json_free(plan);
}

/* ---- bounded staleness ---- */

static ls_json *clocked_json(const ls_config *c, const ls_clocked *k, double step_s) {
    ls_json *o = ls_json_new_object();
    ls_json_set_integer(o, "workers", k->nworkers);
    ls_json_set_number(o, "step_s", step_s);
    ls_json_set_number(o, ls_config_has_tokens(c) ? "tokens_per_s" : "samples_per_s",
                       (double)c->train.batch * ls_config_units(c) / step_s);
    ls_json_set_number(o, "gradient_s", k->gradient_s);
    ls_json_set_number(o, "update_s", k->update_s);
    return o;
}

static void print_clocked(const ls_config *c, const ls_clocked *k, double step_s) {
    const char *unit = ls_config_unit(c);
    ls_print("  predicted step         %12.6f s  with %d worker%s\n", step_s, k->nworkers,
             ls_plural(k->nworkers));
    ls_print("  predicted %s/s%*s%12.1f\n", unit, (int)(11 - strlen(unit)), "",
             (double)c->train.batch * ls_config_units(c) / step_s);
    ls_print("  predicted gradient     %12.6f s  of a virtual worker\n", k->gradient_s);
    ls_print("  predicted update       %12.6f s  by the main process\n", k->update_s);
}

ls_status cli_forecast_print_clocked(const cli_forecast *o, const ls_config *c, const ls_plan *p,
                                     int n, ls_error *e) {
    ls_machine m = {0};
    ls_forecast_world w;
    ls_clocked k;
    if (o->link || o->trace)
        return ls_fail(e, LS_EINVAL,
                       "--%s: sync.mode ssp is predicted for workers of one host, which have no "
                       "common step to draw; leave it out",
                       o->link ? "link" : "trace");
    ls_status s = cli_forecast_open_world(o, &m, &w, e);
    if (s == LS_OK) s = ls_clocked_forecast(c, p, n, &w, &k, e);
    if (s == LS_OK && o->json) {
        print_plan_json(c, p, clocked_json(c, &k, ls_clocked_step_s(&k)));
    } else if (s == LS_OK) {
        ls_print("\n");
        cli_forecast_print_world(o, &m);
        print_clocked(c, &k, ls_clocked_step_s(&k));
    }
    ls_machine_free(&m);
    return s;
}

/* ---- parameter servers ---- */

static ls_json *pushed_json(const ls_config *c, const ls_pushed *k, double step_s) {
    ls_json *o = ls_json_new_object();
    ls_json_set_integer(o, "workers", k->nworkers);
    ls_json_set_number(o, "step_s", step_s);
    ls_json_set_number(o, ls_config_has_tokens(c) ? "tokens_per_s" : "samples_per_s",
                       (double)c->train.batch * ls_config_units(c) / step_s);
    ls_json_set_number(o, "gradient_s", k->gradient_s);
    ls_json_set_number(o, "update_s", k->update_s);
    ls_json_set_number(o, "link_s", k->link_s);
    return o;
}

static void print_pushed(const ls_config *c, const ls_pushed *k, double step_s) {
    const char *unit = ls_config_unit(c);
    ls_print("  predicted step         %12.6f s  from one to the next, with %d worker%s\n", step_s,
             k->nworkers, ls_plural(k->nworkers));
    ls_print("  predicted %s/s%*s%12.1f\n", unit, (int)(11 - strlen(unit)), "",
             (double)c->train.batch * ls_config_units(c) / step_s);
    ls_print("  predicted gradient     %12.6f s  of a batch, by a worker\n", k->gradient_s);
    ls_print("  predicted update       %12.6f s  of a gradient, by all servers\n", k->update_s);
    if (k->link_s > 0)
        ls_print(
            "  predicted transfer     %12.6f s  of its bytes: all workers are on other hosts\n",
            k->link_s);
}

ls_status cli_forecast_print_pushed(const cli_forecast *o, const ls_config *c, const ls_plan *p,
                                    int n, ls_error *e) {
    ls_machine m = {0};
    ls_forecast_world w;
    ls_pushed k;
    if (o->trace)
        return ls_fail(e, LS_EINVAL,
                       "--trace: workers of sync.mode async have no common step to draw; leave it "
                       "out");
    ls_status s = cli_forecast_open_world(o, &m, &w, e);
    if (s == LS_OK) s = ls_pushed_forecast(c, p, n, &w, &k, e);
    if (s == LS_OK && o->json) {
        print_plan_json(c, p, pushed_json(c, &k, ls_pushed_step_s(&k)));
    } else if (s == LS_OK) {
        ls_print("\n");
        cli_forecast_print_world(o, &m);
        print_pushed(c, &k, ls_pushed_step_s(&k));
    }
    ls_machine_free(&m);
    return s;
}

/* ---- a table ---- */

static void print_rows_json(const ls_config *c, const ls_forecast_list *list) {
    for (int i = 0; i < list->n; i++) {
        ls_json *o = cli_forecast_json(&list->rows[i]);
        ls_json_set_integer(o, "batch", c->train.batch);
        ls_json_set(o, "best", ls_json_new_bool(i == list->best));
        ls_print_json(o);
        ls_json_free(o);
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

ls_status cli_forecast_table(const cli_forecast *o, const ls_config *c, const int *counts, int n,
                             ls_error *e) {
    ls_machine m = {0};
    ls_forecast_world w;
    int base = counts[0];
    ls_status s = cli_forecast_open_world(o, &m, &w, e);
    for (int i = 0; s == LS_OK && i < n; i++) {
        s = cli_forecast_check_hosts(&w, counts[i], e);
        if (counts[i] < base) base = counts[i];
    }
    if (s == LS_OK && !o->json) {
        cli_forecast_print_world(o, &m);
        print_head(o, c);
    }
    for (int i = 0; s == LS_OK && i < n; i++) s = print_count(&w, o, c, base, counts[i], e);
    if (s == LS_OK && !o->json)
        ls_print("\n*: the fastest that fits; !: over the limit. rec: parallel.recompute. %s:\n"
                 "%s a second. effic.: against one worker with the same work a worker.\n"
                 "expos.: the part of the step in which a worker does not compute. MB: memory of\n"
                 "a worker.\n",
                 rate_of(c), ls_config_unit(c));
    ls_machine_free(&m);
    return s;
}
