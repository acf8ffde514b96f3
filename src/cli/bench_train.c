/* bench_train.c - see bench.h. */
#include "cli/bench.h"

#include <stdio.h>

#include "base/json.h"
#include "base/plural.h"
#include "base/print.h"
#include "cli/cli.h"
#include "config/relations.h"
#include "perf/bench_train.h"
#include "storage/origin.h"

static void print(const ls_config *c, const ls_bench_train *b) {
    char context[48] = "", rate[32];
    if (ls_config_has_tokens(c))
        snprintf(context, sizeof context, " x context %lld", (long long)c->model.context);
    snprintf(rate, sizeof rate, "%s/s", ls_config_unit(c));
    ls_print("%d worker%s of %d thread%s, batch %lld%s, %lld step%s after %lld\n", b->nworkers,
             ls_plural(b->nworkers), b->threads, ls_plural(b->threads), (long long)c->train.batch,
             context, (long long)b->steps, ls_plural(b->steps), (long long)b->warmup);
    ls_print("  step             %10.4f s (median)\n", b->step_seconds);
    ls_print("  %-16s %10.1f\n", rate, b->units_per_s);
    if (b->peak_flops_per_s == 0)
        ls_print("  model FLOP/s     %10.2f G, on device %s\n", b->flops_per_s / 1e9,
                 c->parallel.device);
    else
        ls_print("  model FLOP/s     %10.2f G, %.1f%% of the measured FMA peak%s of %.1f G\n",
                 b->flops_per_s / 1e9, 100 * b->flops_per_s / b->peak_flops_per_s,
                 c->train.compute == LS_COMPUTE_BF16 ? " in bf16" : "", b->peak_flops_per_s / 1e9);
    ls_print("  state            %10.3f MB a worker: parameters, gradients, moments\n",
             b->state_nbytes / 1e6);
    ls_print("  planned          %10.3f MB a worker; resident %.3f MB a process, at most\n",
             b->planned_nbytes / 1e6, b->peak_nbytes / 1e6);
    if (b->sent_nbytes > 0)
        ls_print("  sent             %10.3f MB a worker in a step\n", b->sent_nbytes / 1e6);
    if (b->nworkers > 1)
        ls_print("  waiting          %9.1f%% of a step, %.1f%% of the worker that waits most\n",
                 100 * b->least_wait, 100 * b->most_wait);
    if (b->threads > 1)
        ls_print(
            "  threads          %9.1f%% of the processor time in one thread of a worker; longest "
            "parts %.1f%% above the mean\n",
            100 * b->alone, 100 * b->uneven);
    ls_print("seconds of a step by action kind, mean of workers:\n");
    double sum = 0;
    for (int k = 0; k < LS_NACTION_KINDS; k++) sum += b->seconds[k];
    for (int k = 0; k < LS_NACTION_KINDS; k++)
        if (b->seconds[k] > 0)
            ls_print("  %-14s %12.6f  %5.1f%%\n", ls_action_kind_name((ls_action_kind)k),
                     b->seconds[k], 100 * b->seconds[k] / sum);
}

static ls_json *numbers(const double *x, int64_t n) {
    ls_json *a = ls_json_new_array();
    for (int64_t i = 0; i < n; i++) ls_json_push(a, ls_json_new_number(x[i]));
    return a;
}

/* One JSON object. */
static void print_json(const ls_config *c, const ls_bench_train *b) {
    ls_json *o = ls_json_new_object();
    char rate[32];
    ls_json_set_text(o, "system", "lockstep");
    ls_json_set_text(o, "version", LS_VERSION);
    ls_json_set_integer(o, "workers", b->nworkers);
    ls_json_set_integer(o, "threads", b->threads);
    ls_json_set_integer(o, "batch", c->train.batch);
    if (ls_config_has_tokens(c)) ls_json_set_integer(o, "context", c->model.context);
    ls_json_set_integer(o, "warmup", b->warmup);
    ls_json_set(o, "step_seconds", numbers(b->all_seconds, b->warmup + b->steps));
    ls_json_set(o, "losses", numbers(b->losses, b->warmup + b->steps));
    snprintf(rate, sizeof rate, "%s_per_s", ls_config_unit(c));
    ls_json_set_number(o, rate, b->units_per_s);
    ls_json_set_number(o, "flops_per_s", b->flops_per_s);
    if (b->peak_flops_per_s > 0)
        ls_json_set_number(o, "peak_flops_per_s", b->peak_flops_per_s);
    else
        ls_json_set_text(o, "device", c->parallel.device);
    ls_json_set_number(o, "least_wait", b->least_wait);
    ls_json_set_number(o, "most_wait", b->most_wait);
    ls_json_set_number(o, "alone", b->alone);
    ls_json_set_number(o, "uneven", b->uneven);
    ls_json_set_integer(o, "planned_nbytes", (int64_t)b->planned_nbytes);
    ls_json_set_integer(o, "peak_nbytes", (int64_t)b->peak_nbytes);
    ls_json_set_integer(o, "sent_nbytes", (int64_t)b->sent_nbytes);
    ls_print_json(o);
}

int cli_bench_train_run(const cli_bench_train *o) {
    ls_config c;
    ls_error e = {0};
    const ls_bench_request q = {.nworkers = o->workers,
                                .warmup = 2,
                                .steps = o->steps,
                                .trace = {.path = o->trace},
                                .export_dir = o->export_dir};
    ls_status s = ls_config_load(o->config, o->set, o->nset, &c, &e);
    if (s == LS_OK && c.sync.mode != LS_SYNC_ALL_REDUCE)
        s = ls_fail(&e, LS_EINVAL,
                    "%s: `bench train` times common steps; leave sync.mode out, or see "
                    "docs/guide/async.md for the speed of asynchronous runs",
                    o->config);
    if (s == LS_OK) s = ls_origin_complete(&c, NULL, &e);
    if (s == LS_OK) s = ls_bench_train_run(&c, &q, o->json ? print_json : print, &e);
    if (s != LS_OK) return cli_fail(&e);
    return 0;
}
