/* cmd_bench.c - lockstep bench train */
#include <stdio.h>
#include <string.h>

#include "base/log.h"
#include "cli/cli.h"
#include "train/bench.h"

enum { WORKERS, STEPS, SET };

static void print(const ls_config *c, const ls_bench_train *b) {
    printf("%d worker%s of %d thread%s, batch %lld x context %lld, %lld steps after %lld\n",
           b->nworkers, b->nworkers == 1 ? "" : "s", b->threads, b->threads == 1 ? "" : "s",
           (long long)c->train.batch, (long long)c->model.context, (long long)b->steps,
           (long long)b->warmup);
    printf("  step             %10.4f s (median)\n", b->step_seconds);
    printf("  tokens/s         %10.1f\n", b->tokens_per_s);
    printf("  model FLOP/s     %10.2f G, %.1f%% of the measured FMA peak of %.1f G\n",
           b->flops_per_s / 1e9, 100 * b->flops_per_s / b->peak_flops_per_s,
           b->peak_flops_per_s / 1e9);
    printf("seconds of a step by action kind, mean of workers:\n");
    double sum = 0;
    for (int k = 0; k < LS_NACTION_KINDS; k++) sum += b->seconds[k];
    for (int k = 0; k < LS_NACTION_KINDS; k++)
        if (b->seconds[k] > 0)
            printf("  %-14s %12.6f  %5.1f%%\n", ls_action_kind_name((ls_action_kind)k),
                   b->seconds[k], 100 * b->seconds[k] / sum);
}

static int run(const ls_args *a) {
    if (strcmp(a->words[0], "train") != 0) {
        ls_log("bench: there is no '%s'; use train", a->words[0]);
        return CLI_USAGE;
    }
    int64_t workers = 0, steps = 10;
    if (!cli_integer(&cmd_bench, a, WORKERS, 1, 4096, &workers) ||
        !cli_integer(&cmd_bench, a, STEPS, 1, 10000, &steps))
        return CLI_USAGE;
    ls_config c;
    ls_error e = {0};
    ls_bench_train b;
    ls_status s = ls_config_read(a->words[1], &c, &e);
    for (int i = 0; s == LS_OK && i < a->options[SET].n; i++)
        s = ls_config_set(&c, a->options[SET].values[i], &e);
    if (s == LS_OK) s = ls_config_check(&c, a->words[1], &e);
    if (s == LS_OK) s = ls_bench_train_run(&c, (int)workers, 2, steps, &b, &e);
    if (s != LS_OK) return cli_fail(&e);
    print(&c, &b);
    return 0;
}

const ls_command cmd_bench = {
    .name = "bench",
    .words = "train CONFIG.yaml",
    .min_words = 2,
    .max_words = 2,
    .summary = "measure training speed",
    .about =
        "train  tokens/s, model FLOP/s as a share of the machine's measured peak of "
        "multiply-adds,\n"
        "       and the seconds of a step by action kind; on random tokens, nothing is written",
    .options = {[WORKERS] = {"workers", 'n', "N", "how many (default: one a core)"},
                [STEPS] = {"steps", 0, "N", "steps to measure, after two to warm up (default: 10)"},
                [SET] = {"set", 0, "KEY=VALUE", "a key of the config; repeatable"}},
    .run = run,
};
