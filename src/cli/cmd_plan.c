/* cmd_plan.c - lockstep plan */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/math.h"
#include "base/plural.h"
#include "base/print.h"
#include "base/waiting.h"
#include "cli/cli.h"
#include "cli/plan_print.h"
#include "config/relations.h"
#include "dataset/data_paths.h"
#include "model/print_model.h"
#include "perf/choose_code.h"
#include "perf/mesh_search.h"
#include "perf/plan_text.h"
#include "report/mesh_svg.h"
#include "report/timeline.h"
#include "storage/epochs.h"
#include "storage/origin.h"
#include "tensor/sum_order.h"
#include "train/device_room.h"
#include "train/fit.h"
#include "train/host_memory.h"
#include "train/layout.h"
#include "train/run.h"
#include "train/worker_device.h"

enum {
    WORKERS,
    WORKER,
    SET,
    ACTIONS,
    FIT,
    MACHINE,
    LINK,
    HOST_WORKERS,
    MESH,
    ALGORITHM,
    STRONG,
    BUDGET,
    TRACE,
    SVG,
    DIFF,
    JSON
};

/* The plan of a text does not read it, nor the weights that the run would begin with: it is the
 * same for any. */
static void log_absent(const ls_config *c) {
    ls_error why = {0};
    ls_config *known = LS_NEW(ls_config);
    *known = *c;
    if (ls_config_has_corpus(c) && ls_data_paths_check(c, &why) != LS_OK)
        ls_log("warning: %s", why.msg);
    if (ls_origin_resolve(known, NULL, &why) != LS_OK) ls_log("warning: %s", why.msg);
    free(known);
}

static ls_status read_config(const ls_args *a, ls_config *c, ls_error *e) {
    LS_TRY(ls_config_load(a->words[0], a->options[SET].values, a->options[SET].n, c, e));
    LS_TRY(ls_origin_complete(c, NULL, e));
    ls_worker_device_resolve(c);
    log_absent(c);
    return ls_epochs_replace(c, e);
}

/* Without --link all workers are on one host. */
static ls_status choose_code(const ls_args *a, ls_config *c, int workers, ls_error *e) {
    int64_t host = 1;
    if (c->compress.kind != LS_COMPRESS_AUTO) return LS_OK;
    if (!cli_integer(&cmd_plan, a, HOST_WORKERS, 1, 4096, &host) || host < 1) host = 1;
    return ls_choose_code(c, (int)host, cli_value(a, LINK) ? workers / (int)host : 1, e);
}

/* As a run on this machine will (train/host.h). */
static ls_status lower_micro(ls_config *c, int workers, const ls_device_trial *devices,
                             ls_layout *l, ls_error *e) {
    int64_t asked = c->train.micro_batch;
    bool is_devices = false;
    for (;;) {
        ls_error why = {0};
        ls_host_need x = ls_host_memory_need(c, &l->plan, workers, 1, ls_run_can_survive(c));
        bool fits = ls_device_room_fits(c, &l->plan, devices, &why) == LS_OK;
        is_devices |= !fits;
        if ((x.all > x.has || !fits) && ls_fit_lower_micro(c)) {
            ls_layout_free(l);
            LS_TRY(ls_layout_make(c, workers, NULL, l, e));
            continue;
        }
        if (!fits) ls_log("warning: %s", why.msg);
        if (fits && is_devices)
            ls_log("to fit into the memory of device %s: train.micro_batch=%lld, in place of %lld",
                   devices->device, (long long)c->train.micro_batch, (long long)asked);
        return LS_OK;
    }
}

/* *n_p: workers on the command line, and on return those that there would be. */
static ls_status make(const ls_args *a, int *n_p, ls_config *c, ls_layout *l, ls_error *e) {
    int workers = *n_p;
    LS_TRY(read_config(a, c, e));
    if (cli_value(a, LINK)) ls_layout_config_distributed(c);
    if (ls_config_has_crew(c))
        LS_TRY(ls_run_workers_crew(c, workers, n_p, e));
    else
        LS_TRY(ls_run_workers_here(c, workers, n_p, e));
    workers = ls_config_has_crew(c) ? 1 : *n_p; /* the plan is that of one */
    LS_TRY(choose_code(a, c, workers, e));
    bool here = !cli_value(a, LINK) && !cli_value(a, MACHINE); /* on this machine's devices */
    ls_device_trial devices = {0};
    if (here) LS_TRY(ls_device_room_try(c, workers, &devices, e));
    ls_waiting_begin(LS_WAITING_NS, LS_LAYOUT_PLANNING, workers);
    ls_status s = LS_OK;
    if (c->parallel.mesh == LS_MESH_AUTO) s = ls_mesh_auto(c, workers, cli_given(a, LINK), e);
    if (s == LS_OK) s = ls_fit_auto(c, workers, e);
    if (s == LS_OK) s = ls_layout_make(c, workers, NULL, l, e);
    if (s == LS_OK && !cli_value(a, LINK)) s = lower_micro(c, workers, &devices, l, e);
    ls_waiting_end();
    return s;
}

/* A line for each. */
static void print_fits_json(const ls_fit *fits, int n, int workers) {
    static const char *const states[] = {"memory", "file", "device"};
    for (int i = 0; i < n; i++) {
        const ls_fit *f = &fits[i];
        ls_json *o = ls_json_new_object();
        ls_json_set_integer(o, "workers", workers);
        ls_json_set_integer(o, "zero", f->zero);
        ls_json_set_integer(o, "recompute", f->recompute);
        ls_json_set_integer(o, "recompute_layers", f->recompute_layers);
        ls_json_set_integer(o, "micro_batch", f->micro_batch);
        ls_json_set_number(o, "bucket_mb", f->bucket_mb);
        ls_json_set_text(o, "accumulate", f->accumulate ? "early" : "late");
        ls_json_set_text(o, "optimizer_state", states[f->state]);
        ls_json_set_integer(o, "memory_bytes", (int64_t)f->nbytes);
        ls_json_set_number(o, "computing", f->compute);
        ls_json_set_number(o, "sent", f->sent);
        ls_print_json(o);
    }
}

/* Prints a table of the settings that fit into `megabytes` a worker. */
static ls_status print_fits(const ls_config *c, int workers, double megabytes, bool json,
                            ls_error *e) {
    ls_fit *fits = NULL;
    int n = 0;
    ls_waiting_begin(LS_WAITING_NS, LS_LAYOUT_PLANNING, workers);
    ls_status s = ls_fit_find(c, workers, (size_t)ls_math_times(megabytes, 1e6), &fits, &n, e);
    ls_waiting_end();
    LS_TRY(s);
    if (n == 0)
        return ls_fail(e, LS_ENOMEM,
                       "no setting fits into %g MB a worker; use more workers or a smaller model",
                       megabytes);
    if (json) {
        print_fits_json(fits, n, workers);
        free(fits);
        return LS_OK;
    }
    ls_print(
        "%d worker%s, %g MB each; the least costly first\n\n  zero recompute micro_batch        "
        "  MB  computing   sent  optimizer\n",
        workers, ls_plural(workers), megabytes);
    for (int i = 0; i < n; i++)
        ls_print("  %4lld %9lld %11lld %11.1f %9.2fx %5.2fx  %s\n", (long long)fits[i].zero,
                 (long long)fits[i].recompute, (long long)fits[i].micro_batch,
                 (double)fits[i].nbytes / 1e6, fits[i].compute, fits[i].sent,
                 fits[i].state ? "file" : "memory");
    if (fits[0].bucket_mb < c->parallel.bucket_mb || fits[0].accumulate != c->parallel.accumulate) {
        ls_buf text = {0};
        ls_fit_text(c, &fits[0], &text);
        ls_buf_printf(&text, "\n");
        ls_print("\nthe first of them:");
        ls_print_text(text.data, text.len);
        ls_buf_free(&text);
    }
    ls_print("\ncomputing: of the plan without recompute; sent: by a worker in a step, times\n"
             "the model's size\n");
    free(fits);
    return LS_OK;
}

/* Compares two timelines. */
static int diff(const ls_args *a) {
    ls_error e = {0};
    ls_timeline x = {0}, y = {0};
    ls_status s = ls_timeline_read(a->words[0], &x, &e);
    if (s == LS_OK) s = ls_timeline_read(a->words[1], &y, &e);
    if (s == LS_OK) {
        ls_buf out = {0};
        ls_timeline_diff(&x, &y, &out);
        ls_print_text(out.data, out.len);
        ls_buf_free(&out);
    }
    ls_timeline_free(&x);
    ls_timeline_free(&y);
    return s == LS_OK ? 0 : cli_fail(&e);
}

/* Actions are printed in pieces: all at once could take gigabytes. */
static void print_actions(const ls_plan *p, int worker) {
    ls_buf out = {0};
    for (int at = 0; at < p->nactions; out.len = 0) {
        at = ls_plan_print_some(p, worker, at, &out);
        ls_print_own(out.data, out.len);
    }
    ls_buf_free(&out);
}

/* Which actions are printed: of all workers, of one, or none. */
enum { NO_ACTIONS = -2 };

/* Prints the plan and its memory table. near: workers of a host; 0: there is one host. */
static void print_plan(const ls_config *c, const ls_plan *p, int workers, int worker, int near) {
    ls_buf out = {0};
    const ls_model *m = p->share.model;
    const char *order = ls_sum_order(p->share.compute);
    ls_print("%zu parameters", m->count);
    if (m->frozen_count) ls_print(", of which %zu are trained", m->count - m->frozen_count);
    ls_print("; %d worker%s, %d virtual worker%s, %d bucket%s, %d actions a step\n",
             p->share.nworkers, ls_plural(p->share.nworkers), p->share.V, ls_plural(p->share.V),
             p->share.nbuckets, ls_plural(p->share.nbuckets), p->nactions);
    if (order) ls_print("sum: %s, the order of products in bf16\n", order);
    ls_print("\n");
    ls_model_print(p->share.model, p->share.compute, &out);
    ls_buf_printf(&out, "\n");
    if (worker != NO_ACTIONS) {
        ls_print_text(out.data, out.len);
        out.len = 0;
        print_actions(p, worker);
        ls_buf_printf(&out, "\n");
    }
    ls_plan_print_rest(c, p, workers, near, &out);
    ls_print_text(out.data, out.len);
    ls_buf_free(&out);
}

/* Reads the options of a prediction; false: bad usage. */
static bool read_forecast(const ls_args *a, cli_forecast *o) {
    int64_t host_workers = 0;
    *o = (cli_forecast){.world = {.machine = cli_value(a, MACHINE),
                                  .link = cli_value(a, LINK),
                                  .algorithm = cli_value(a, ALGORITHM)},
                        .trace = cli_value(a, TRACE),
                        .strong = cli_given(a, STRONG),
                        .json = cli_given(a, JSON)};
    if (!cli_integer(&cmd_plan, a, HOST_WORKERS, 1, 4096, &host_workers) ||
        !cli_real(&cmd_plan, a, BUDGET, 0, 1e12, &o->budget))
        return false;
    o->world.host_workers = (int)host_workers;
    return true;
}

/* Parses "2GB", "512MB", or a number of megabytes. */
static bool read_megabytes(const ls_args *a, double *mb_p) {
    const char *text = cli_value(a, FIT);
    char *end = NULL;
    if (!text) return true;
    double x = strtod(text, &end);
    if (strcmp(end, "GB") == 0) x *= 1e3;
    bool unit = *end == 0 || strcmp(end, "MB") == 0 || strcmp(end, "GB") == 0;
    if (end != text && unit && x > 0 && x <= 1e9) {
        *mb_p = x;
        return true;
    }
    ls_log("plan: --fit '%.40s' is not a size such as 2GB, 512MB or 512 (megabytes); see 'lockstep "
           "help plan'",
           text);
    return false;
}

/* Refuses a list of numbers of workers in modes without a common step. */
static ls_status check_list(const ls_config *c, ls_error *e) {
    if (!ls_config_has_crew(c)) return LS_OK;
    return ls_fail(
        e, LS_EINVAL,
        "sync.mode %s is predicted for one number of workers, not for a list, --strong or "
        "--budget",
        c->sync.mode == LS_SYNC_SSP ? "ssp" : "async");
}

static int run_table(const ls_args *a, const cli_forecast *o, const int *counts, int n) {
    ls_config c;
    ls_error e = {0};
    static const struct {
        int option;
        const char *name;
    } of_one[] = {
        {FIT, "fit"}, {WORKER, "worker"}, {ACTIONS, "actions"}, {TRACE, "trace"}, {SVG, "svg"}};
    for (int i = 0; i < 5; i++)
        if (cli_given(a, of_one[i].option)) {
            ls_log("plan: --%s is for one number of workers, not for a list", of_one[i].name);
            return CLI_USAGE;
        }
    ls_status s = read_config(a, &c, &e);
    if (s == LS_OK) s = check_list(&c, &e);
    if (s == LS_OK) s = choose_code(a, &c, counts[n - 1], &e);
    if (s != LS_OK) return cli_fail(&e);
    ls_waiting_begin(LS_WAITING_NS, LS_LAYOUT_PLANNING, counts[n > 0 ? n - 1 : 0]);
    if (cli_given(a, BUDGET))
        s = cli_budget_print(o, &c, counts, n, &e);
    else
        s = cli_forecast_table(o, &c, counts, n, &e);
    ls_waiting_end();
    return s == LS_OK ? 0 : cli_fail(&e);
}

/* Pictures come first: whoever reads the text may close it early, which ends the program. */
static ls_status draw(const ls_args *a, const cli_forecast *o, const ls_config *c, const ls_plan *p,
                      const ls_prospect *x, ls_error *e) {
    if (cli_given(a, SVG)) LS_TRY(ls_mesh_svg(p, cli_value(a, SVG), e));
    return o->trace && x ? ls_prospect_draw(x, c, p, o->trace, e) : LS_OK;
}

/* Prints the answers, the plan, and the prediction if one was asked for. */
static ls_status print_all(const ls_args *a, const cli_forecast *o, const ls_config *c,
                           const ls_plan *p, int workers, ls_error *e) {
    ls_prospect x;
    ls_error why = {0};
    bool predicts = cli_forecast_predicts(o), json = o->json;
    int64_t worker = cli_given(a, ACTIONS) ? LS_ALL_WORKERS : NO_ACTIONS;
    cli_integer(&cmd_plan, a, WORKER, 0, 4095, &worker);
    if (json && !predicts) {
        LS_TRY(draw(a, o, c, p, NULL, e));
        ls_print_json(ls_plan_json(c, p, workers));
        return LS_OK;
    }
    ls_status s = cli_predict(o, c, p, workers, &x, predicts ? e : &why);
    bool known = s == LS_OK;
    if (!predicts) s = LS_OK;
    if (s == LS_OK) s = draw(a, o, c, p, known ? &x : NULL, e);
    if (s == LS_OK && json) cli_predicted_print_json(c, p, &x);
    if (s == LS_OK && !json) {
        cli_answers_print(o, c, p, &x, known ? NULL : &why);
        print_plan(c, p, workers, (int)worker,
                   o->world.host_workers ? o->world.host_workers
                   : o->world.link       ? 1
                                         : 0);
        if (predicts) cli_predicted_print(o, c, &x);
    }
    ls_prospect_free(&x);
    return s;
}

static ls_status run_one(const ls_args *a, const cli_forecast *o, int workers, double fit,
                         ls_error *e) {
    ls_config c;
    ls_layout l = {0};
    const ls_plan *p = &l.plan;
    int64_t worker = 0;
    LS_TRY(make(a, &workers, &c, &l, e));
    cli_integer(&cmd_plan, a, WORKER, 0, 4095, &worker);
    ls_status s = LS_OK;
    if (worker >= p->share.nworkers)
        s = ls_fail(e, LS_EINVAL, "--worker %lld: there are workers 0 to %d", (long long)worker,
                    p->share.nworkers - 1);
    else if (fit > 0) {
        s = draw(a, o, &c, p, NULL, e);
        if (s == LS_OK) s = print_fits(&c, p->share.nworkers, fit, o->json, e);
    } else
        s = print_all(a, o, &c, p, workers, e);
    ls_layout_free(&l);
    return s;
}

/* Lists the meshes of the workers. */
static int run_mesh(const ls_args *a, const cli_forecast *o, int workers, double fit) {
    ls_config c;
    ls_error e = {0};
    bool other = cli_given(a, WORKER) || cli_given(a, ACTIONS) || cli_given(a, TRACE) ||
                 cli_given(a, BUDGET) || cli_given(a, SVG);
    if (strcmp(cli_value(a, MESH), "auto") != 0 || other) {
        if (other)
            ls_log("plan: --mesh auto: not with --worker, --actions, --trace, --svg or --budget; "
                   "see 'lockstep "
                   "help plan'");
        else
            ls_log("plan: --mesh '%.40s': auto is expected; a mesh of your own is set by --set "
                   "parallel.mesh.pipe=P",
                   cli_value(a, MESH));
        return CLI_USAGE;
    }
    ls_status s = read_config(a, &c, &e);
    if (s == LS_OK && c.parallel.mesh != LS_MESH_AUTO) {
        c.parallel.mesh = LS_MESH_AUTO;
        s = ls_config_check(&c, "--mesh auto", &e);
    }
    if (s == LS_OK && cli_value(a, LINK)) ls_layout_config_distributed(&c);
    if (s == LS_OK) s = ls_run_workers_here(&c, workers, &workers, &e);
    if (s == LS_OK) s = choose_code(a, &c, workers, &e);
    if (s == LS_OK) s = cli_mesh_print(o, &c, workers, fit, &e);
    return s == LS_OK ? 0 : cli_fail(&e);
}

static int run(const ls_args *a) {
    if (cli_given(a, DIFF) != (a->nwords == 2)) {
        ls_log("plan: %s; see 'lockstep help plan'",
               a->nwords == 2 ? "one CONFIG.yaml, or two timelines with --diff"
                              : "--diff compares two timelines: A.json B.json");
        return CLI_USAGE;
    }
    if (cli_given(a, JSON) &&
        (cli_given(a, DIFF) || cli_given(a, WORKER) || cli_given(a, ACTIONS))) {
        ls_log("plan: --json: not with --%s; see 'lockstep help plan'", cli_given(a, DIFF) ? "diff"
                                                                        : cli_given(a, WORKER)
                                                                            ? "worker"
                                                                            : "actions");
        return CLI_USAGE;
    }
    if (cli_given(a, DIFF)) return diff(a);
    int64_t worker = LS_ALL_WORKERS;
    int counts[CLI_MAX_COUNTS] = {0}, n = 0;
    double fit = 0;
    cli_forecast o;
    ls_error e = {0};
    if (!cli_integer(&cmd_plan, a, WORKER, 0, 4095, &worker) || !read_megabytes(a, &fit) ||
        !read_forecast(a, &o))
        return CLI_USAGE;
    if (cli_given(a, WORKERS) &&
        cli_forecast_counts(cli_value(a, WORKERS), counts, &n, &e) != LS_OK) {
        ls_log("plan: %s; see 'lockstep help plan'", e.msg);
        return CLI_USAGE;
    }
    for (int k = 1; cli_given(a, BUDGET) && !cli_given(a, WORKERS) && k <= 8; k *= 2)
        counts[n++] = k;
    if (cli_given(a, MESH) && n > 1) {
        ls_log("plan: --mesh is for one number of workers, not for a list");
        return CLI_USAGE;
    }
    if (cli_given(a, MESH)) return run_mesh(a, &o, counts[0], fit);
    if (n > 1 || o.strong || cli_given(a, BUDGET)) return run_table(a, &o, counts, n);
    ls_status s = run_one(a, &o, counts[0], fit, &e);
    return s == LS_OK ? 0 : cli_fail(&e);
}

const ls_command cmd_plan = {
    .name = "plan",
    .words = "CONFIG.yaml|--diff A.json B.json",
    .min_words = 1,
    .max_words = 2,
    .summary = "print the plan of a training step, its memory and its predicted time",
    .about =
        "Says first whether the run fits into this machine's memory, and what a step and the\n"
        "whole run take; then prints the tables of the model's layers and of the memory. With\n"
        "--actions also one line per action, in the global order. Nothing is trained, and a text "
        "at\n"
        "data.path is not read; other data only if the config leaves the model's input or classes\n"
        "to them. Without --machine and --link the times are rough: estimated from two kernels\n"
        "that run here for some milliseconds. With them, a step is predicted; for a list of\n"
        "workers as a table over parallel.zero, in which batch and virtual workers grow with the\n"
        "workers (docs/guide/plan.md).\n"
        "With --diff: prints where two timelines of training steps differ.",
    .options =
        {[WORKERS] = {"workers", 'n', "N",
                      "number of workers (default: one per core); or a list, e.g. 8,64,512"},
         [WORKER] = {"worker", 'w', "R", "print the actions of worker R"},
         [ACTIONS] = {"actions", 0, NULL, "print the actions of all workers, in the global order"},
         [SET] = {"set", 0, "KEY=VALUE", "set a key of the config; repeatable"},
         [FIT] = {"fit", 0, "SIZE",
                  "list the settings with which a worker needs at most SIZE: 2GB, 512MB"},
         [MACHINE] = {"machine", 0, "FILE",
                      "predict for machines as described in FILE, which `bench machine --save` "
                      "writes"},
         [LINK] = {"link", 0, "LINK",
                   "predict for several hosts with this link between them: 200Gb/s,3us"},
         [HOST_WORKERS] = {"host-workers", 0, "N", "workers on each of these hosts (default: 1)"},
         [MESH] = {"mesh", 0, "auto",
                   "list the ten fastest meshes of the workers; with --fit SIZE, of those with "
                   "which a worker needs at most SIZE (docs/guide/mesh.md)"},
         [ALGORITHM] = {"algorithm", 0, "NAME",
                        "of collectives between hosts (default: the group chooses)"},
         [STRONG] = {"strong", 0, NULL, "with a list: the batch stays that of the config"},
         [BUDGET] = {"budget", 0, "MONEY",
                     "what the whole run costs with each number of workers (default: 1,2,4,8), "
                     "and what fits, by the price in the machine's file"},
         [TRACE] = {"trace", 0, "FILE",
                    "write the predicted timeline to FILE.json (for Perfetto) or FILE.svg"},
         [SVG] = {"svg", 0, "FILE",
                  "draw the workers, with the layers, slices and shards that each has"},
         [DIFF] = {"diff", 0, NULL,
                   "compare two timelines (`lockstep train --trace FILE.json`): by action, by "
                   "lane, and by the layers and buckets that differ most"},
         [JSON] = {"json", 0, NULL,
                   "for programs: one JSON object per line, without the actions "
                   "(docs/reference/json.md)"}},
    .run = run,
};
