/* cmd_plan.c - lockstep plan */
#include <stdio.h>

#include "base/log.h"
#include "cli/cli.h"
#include "plan/world.h"
#include "train/run.h"

enum { WORKERS, WORKER, SET };

static ls_status make(const ls_args *a, int workers, ls_config *c, ls_model *m, ls_plan *p,
                      ls_error *e) {
    LS_TRY(ls_config_read(a->words[0], c, e));
    for (int i = 0; i < a->options[SET].n; i++)
        LS_TRY(ls_config_set(c, a->options[SET].values[i], e));
    LS_TRY(ls_config_check(c, a->words[0], e));
    bool started = false;
    LS_TRY(ls_run_workers(c, workers, &workers, &started, e));
    return ls_run_plan(c, workers, m, p, e);
}

static int run(const ls_args *a) {
    int64_t workers = 0, worker = LS_ALL_WORKERS;
    if (!cli_integer(&cmd_plan, a, WORKERS, 1, 4096, &workers) ||
        !cli_integer(&cmd_plan, a, WORKER, 0, 4095, &worker))
        return CLI_USAGE;
    ls_config c;
    ls_model m = {0};
    ls_plan p = {0};
    ls_error e = {0};
    ls_status s = make(a, (int)workers, &c, &m, &p, &e);
    if (s == LS_OK && worker >= p.c.nworkers)
        s = ls_fail(&e, LS_EINVAL, "--worker %lld: there are workers 0 to %d", (long long)worker,
                    p.c.nworkers - 1);
    if (s == LS_OK) {
        ls_buf out = {0};
        ls_buf_printf(&out,
                      "%zu parameters; %d workers, %d virtual workers, %d buckets, %d actions "
                      "a step\n\n",
                      m.count, p.c.nworkers, p.c.V, p.nbuckets, p.nactions);
        ls_plan_print(&p, (int)worker, &out);
        ls_buf_printf(&out, "\n");
        ls_world_print_memory(&p, (int)c.parallel.threads, &out);
        fwrite(out.data, 1, out.len, stdout);
        ls_buf_free(&out);
    }
    ls_plan_free(&p);
    ls_model_free(&m);
    return s == LS_OK ? 0 : cli_fail(&e);
}

const ls_command cmd_plan = {
    .name = "plan",
    .words = "CONFIG.yaml",
    .min_words = 1,
    .max_words = 1,
    .summary = "print the plan of a training step, and its memory",
    .about =
        "One line an action, in the global order, or of one worker alone; then the memory table.\n"
        "Nothing is run, and the text at data.path is not read.",
    .options = {[WORKERS] = {"workers", 'n', "N", "how many (default: one a core)"},
                [WORKER] = {"worker", 'w', "R", "print what worker R runs"},
                [SET] = {"set", 0, "KEY=VALUE", "a key of the config; repeatable"}},
    .run = run,
};
