/* cmd_report.c - lockstep report --scaling, --cost, --seeds */
#include <stdlib.h>
#include <string.h>

#include "base/escape.h"
#include "base/json.h"
#include "base/log.h"
#include "base/print.h"
#include "cli/cli.h"
#include "cli/report_scaling.h"
#include "config/relations.h"
#include "perf/expense.h"
#include "search/seeds.h"
#include "storage/epochs.h"
#include "storage/origin.h"

enum {
    SCALING,
    COST,
    SEEDS,
    TARGET,
    OUT,
    WORKERS,
    STEPS,
    SET,
    MACHINE,
    LINK,
    HOST_WORKERS,
    SVG,
    MLLOG,
    JSON
};

static int ascending(const void *a, const void *b) { return *(const int *)a - *(const int *)b; }

typedef struct sum {
    ls_expense_used used;
    ls_expense cost;
} sum;

static void put_row(ls_buf *out, const sum *x, const char *name, const ls_machine_prices *p) {
    ls_buf_printf(out, "%10lld %12.1f  ", (long long)x->used.steps, x->used.seconds);
    ls_expense_print(p, &x->cost, out);
    ls_buf_printf(out, "  ");
    ls_buf_escape(out, LS_ESCAPE_LINE, name, strlen(name));
    ls_buf_printf(out, "\n");
}

static void print_cost_json(const sum *x, const char *run, const ls_machine_prices *p) {
    ls_json *o = ls_expense_json(p, &x->cost);
    ls_json_set_path(o, "run", run);
    ls_json_set_integer(o, "steps", x->used.steps);
    ls_json_set_number(o, "seconds", x->used.seconds);
    ls_print_json(o);
}

/* Prints what each of the runs [n] has used so far, by the prices in the machine's file. */
static ls_status print_costs(const char *const *runs, int n, const char *machine, bool json,
                             ls_error *e) {
    ls_machine m = {0};
    ls_buf out = {0};
    sum all = {0};
    ls_status s = ls_machine_read(machine, &m, e);
    if (s == LS_OK && m.prices.worker_hour <= 0 && m.prices.watts <= 0)
        s = ls_fail(e, LS_EINVAL,
                    "%s: has neither cost.worker_hour nor cost.watts; `lockstep bench machine "
                    "--price P --watts W --save FILE` writes them, or add them by hand",
                    machine);
    ls_buf_printf(&out, "%10s %12s  used\n", "steps", "seconds");
    for (int i = 0; i < n && s == LS_OK; i++) {
        sum x;
        s = ls_expense_read(runs[i], &x.used, e);
        if (s != LS_OK) break;
        x.cost = ls_expense_of(&m.prices, x.used.worker_seconds);
        all.used.steps += x.used.steps;
        all.used.seconds += x.used.seconds;
        all.used.worker_seconds += x.used.worker_seconds;
        put_row(&out, &x, runs[i], &m.prices);
        if (json) print_cost_json(&x, runs[i], &m.prices);
    }
    all.cost = ls_expense_of(&m.prices, all.used.worker_seconds);
    if (n > 1) put_row(&out, &all, "all", &m.prices);
    if (s == LS_OK && !json) ls_print_text(out.data, out.len);
    ls_buf_free(&out);
    ls_machine_free(&m);
    return s;
}

static int run_cost(const ls_args *a) {
    ls_error e = {0};
    if (!cli_given(a, MACHINE)) {
        ls_log("report: --cost needs the file with the prices: --machine FILE");
        return CLI_USAGE;
    }
    ls_status s = print_costs(a->words, a->nwords, cli_value(a, MACHINE), cli_given(a, JSON), &e);
    return s == LS_OK ? 0 : cli_fail(&e);
}

static int run_scaling(const ls_args *a) {
    ls_error e = {0};
    ls_config c;
    int counts[CLI_MAX_COUNTS], n = 0;
    int64_t host_workers = 0, steps = 10;
    if (a->nwords > 1) {
        ls_log("report: --scaling: '%.60s' is one argument too many", a->words[1]);
        return CLI_USAGE;
    }
    if (!cli_integer(&cmd_report, a, HOST_WORKERS, 1, 4096, &host_workers) ||
        !cli_integer(&cmd_report, a, STEPS, 1, 1000, &steps))
        return CLI_USAGE;
    const char *list = cli_given(a, WORKERS) ? cli_value(a, WORKERS) : "1,2,4,8";
    if (cli_forecast_counts(list, counts, &n, &e) != LS_OK) {
        ls_log("report: %s; see 'lockstep help report'", e.msg);
        return CLI_USAGE;
    }
    qsort(counts, (size_t)n, sizeof *counts, ascending);
    const ls_forecast_world_options world = {.machine = cli_value(a, MACHINE),
                                             .link = cli_value(a, LINK),
                                             .host_workers = (int)host_workers};
    const cli_scaling o = {.world = &world,
                           .counts = counts,
                           .n = n,
                           .steps = steps,
                           .svg = cli_value(a, SVG),
                           .json = cli_given(a, JSON)};
    ls_status s = ls_config_load(a->words[0], a->options[SET].values, a->options[SET].n, &c, &e);
    if (s == LS_OK && c.sync.mode != LS_SYNC_ALL_REDUCE)
        s = ls_fail(&e, LS_EINVAL, "%s: --scaling times common steps; set sync.mode: all_reduce",
                    a->words[0]);
    if (s == LS_OK) s = ls_origin_complete(&c, NULL, &e);
    if (s == LS_OK) s = cli_scaling_run(&o, &c, &e);
    return s == LS_OK ? 0 : cli_fail(&e);
}

static void print_run(void *arg, int64_t seed, const ls_seeds_run *r) {
    bool json = cli_given(arg, JSON);
    if (!json && r->reached)
        ls_print("%12lld %10lld %12.3f %12.6g\n", (long long)seed, (long long)r->steps, r->seconds,
                 r->best);
    if (!json && !r->reached)
        ls_print("%12lld %10s %12s %12.6g\n", (long long)seed, "-", "-", r->best);
    if (!json) return;
    ls_json *o = ls_json_new_object();
    ls_json_set_integer(o, "seed", seed);
    ls_json_set_bool(o, "reached", r->reached);
    ls_json_set_integer(o, "steps", r->steps);
    ls_json_set_number(o, "seconds", r->seconds);
    ls_json_set_number(o, "best", r->best);
    ls_print_json(o);
}

static void put_score(const ls_seeds_score *s, const char *unit) {
    ls_print("%.4g %s (+- %.3g)", s->mean, unit, s->spread);
}

static void print_score(const ls_seeds *s, const ls_seeds_request *o, bool json) {
    const ls_seeds_score *steps = &s->steps, *seconds = &s->seconds;
    if (!json) {
        if (o->n < LS_SEEDS_TRIMMED)
            ls_print("\nmean of all %d seeds: ", o->n);
        else
            ls_print("\n%d of %d seeds, without the fastest and the slowest: ", o->n - 2, o->n);
        put_score(steps, "steps");
        ls_print(", ");
        put_score(seconds, "seconds");
        ls_print("\nto %s\n", o->target);
        return;
    }
    ls_json *j = ls_json_new_object();
    ls_json_set_text(j, "target", o->target);
    ls_json_set_integer(j, "seeds", o->n);
    ls_json_set_number(j, "steps", steps->mean);
    ls_json_set_number(j, "steps_spread", steps->spread);
    ls_json_set_number(j, "seconds", seconds->mean);
    ls_json_set_number(j, "seconds_spread", seconds->spread);
    ls_print_json(j);
}

static int run_seeds(const ls_args *a) {
    ls_error e = {0};
    ls_config c;
    int64_t n = 0, workers = 0;
    if (!cli_integer(&cmd_report, a, SEEDS, LS_SEEDS_LEAST, LS_SEEDS_MOST, &n) ||
        !cli_integer(&cmd_report, a, WORKERS, 1, 4096, &workers))
        return CLI_USAGE;
    if (a->nwords > 1 || !cli_given(a, TARGET) || !cli_given(a, OUT)) {
        ls_log("report: --seeds needs one CONFIG.yaml, --target 'val_loss<=X' and -o DIR for its "
               "runs; see 'lockstep help report'");
        return CLI_USAGE;
    }
    char *name = cli_config_name(a->words[0]);
    ls_seeds_request o = {.n = (int)n,
                          .target = cli_value(a, TARGET),
                          .dir = cli_value(a, OUT),
                          .mllog = cli_value(a, MLLOG),
                          .name = name,
                          .workers = workers,
                          .each = print_run,
                          .arg = (void *)(uintptr_t)a};
    ls_seeds seeds;
    ls_status s = ls_config_load(a->words[0], a->options[SET].values, a->options[SET].n, &c, &e);
    if (s == LS_OK && c.train.patience > 0)
        s = ls_fail(&e, LS_EINVAL, "%s: --seeds trains all of train.steps; set train.patience: 0",
                    a->words[0]);
    if (s == LS_OK) s = ls_epochs_replace(&c, &e);
    if (s == LS_OK) s = ls_goal_read(o.target, &o.goal, &e);
    if (s == LS_OK && !cli_given(a, JSON))
        ls_print("%12s %10s %12s %12s\n", "seed", "steps", "seconds", "best");
    if (s == LS_OK) s = ls_seeds_train(&o, &c, &seeds, &e);
    if (s == LS_OK) print_score(&seeds, &o, cli_given(a, JSON));
    free(name);
    return s == LS_OK ? 0 : cli_fail(&e);
}

static int run(const ls_args *a) {
    if (cli_given(a, SCALING) + cli_given(a, COST) + cli_given(a, SEEDS) != 1) {
        ls_log("report: what is to be reported? Use --scaling, --cost or --seeds; see 'lockstep "
               "help report'");
        return CLI_USAGE;
    }
    if (cli_given(a, SEEDS)) return run_seeds(a);
    return cli_given(a, COST) ? run_cost(a) : run_scaling(a);
}

const ls_command cmd_report = {
    .name = "report",
    .words = "CONFIG.yaml|RUN...",
    .min_words = 1,
    .max_words = CLI_MAX_WORDS,
    .summary = "report on scaling, on costs, or on a training with many seeds",
    .about =
        "--scaling: strong and weak scaling over numbers of workers, measured on this machine as\n"
        "far as its cores go, with random samples, and simulated for all of them: seconds of a\n"
        "step, speedup, efficiency, the part of the step that is communication, and the serial\n"
        "share, fitted by Amdahl's law (strong) and Gustafson's (weak).\n"
        "--cost: worker-hours, money and energy that runs have used so far, by the prices in the\n"
        "machine's file.\n"
        "--seeds: trains CONFIG.yaml with N seeds, and prints the steps and seconds until each\n"
        "reaches the target, and their mean and spread, from 5 seeds on without the fastest and\n"
        "the slowest. A command that was killed continues where it was (docs/guide/reports.md).",
    .options =
        {[SCALING] = {"scaling", 0, NULL, "report strong and weak scaling"},
         [COST] = {"cost", 0, NULL, "report what the runs RUN... have cost; needs --machine FILE"},
         [SEEDS] = {"seeds", 0, "N", "report the steps and seconds to a target over N seeds"},
         [TARGET] = {"target", 0, "LIMIT",
                     "of --seeds: an evaluation's number, 'val_loss<=2.5' or 'val_accuracy>=0.93'"},
         [OUT] = {"out", 'o', "DIR", "of --seeds: the directory of its runs"},
         [WORKERS] = {"workers", 'n', "LIST",
                      "numbers of workers (default: 1,2,4,8); with --seeds one number"},
         [STEPS] = {"steps", 0, "N", "steps that are measured for each number (default: 10)"},
         [SET] = {"set", 0, "KEY=VALUE", "set a key of the config; repeatable"},
         [MACHINE] = {"machine", 0, "FILE",
                      "simulate machines as described in FILE, which `bench machine --save` "
                      "writes (default: this machine, which takes 45 seconds of processor time)"},
         [LINK] = {"link", 0, "LINK",
                   "simulate several hosts with this link between them: 200Gb/s,3us"},
         [HOST_WORKERS] = {"host-workers", 0, "N", "workers on each of these hosts (default: 1)"},
         [SVG] = {"svg", 0, "FILE", "write the efficiencies to a picture, too"},
         [MLLOG] = {"mllog", 0, "DIR",
                    "of --seeds: write each training's log in the form of MLPerf's rules"},
         [JSON] = {"json", 0, NULL,
                   "for programs: a JSON object for weak and one for strong scaling "
                   "(docs/reference/json.md)"}},
    .run = run,
};
