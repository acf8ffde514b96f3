/* cmd_tune.c - lockstep tune */
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "cli/cli.h"
#include "cli/tune.h"
#include "config/relations.h"
#include "storage/epochs.h"

enum { SPACE, OUTPUT, WORKERS, PARALLEL, SET, LIST, JSON };

/* configs/demo.yaml -> runs/demo-tune */
static char *default_output(const char *config) {
    const char *slash = strrchr(config, '/'), *base = slash ? slash + 1 : config;
    const char *dot = strrchr(base, '.');
    return ls_format("runs/%.*s-tune", dot && dot != base ? (int)(dot - base) : 200, base);
}

static int run(const ls_args *a) {
    ls_error e = {0};
    ls_config c;
    cli_tune o = {.config = &c,
                  .space = cli_value(a, SPACE),
                  .list = cli_given(a, LIST),
                  .json = cli_given(a, JSON)};
    if (!o.space) {
        ls_log("tune: give the file of the space: --space FILE; see 'lockstep help tune'");
        return CLI_USAGE;
    }
    if (!cli_integer(&cmd_tune, a, WORKERS, 1, 4096, &o.workers) ||
        !cli_integer(&cmd_tune, a, PARALLEL, 1, 4096, &o.parallel))
        return CLI_USAGE;
    ls_status s = ls_config_load(a->words[0], a->options[SET].values, a->options[SET].n, &c, &e);
    char *own = cli_given(a, OUTPUT) ? NULL : default_output(a->words[0]);
    o.dir = own ? own : cli_value(a, OUTPUT);
    if (s == LS_OK) s = ls_epochs_replace(&c, &e);
    if (s == LS_OK) s = cli_tune_run(&o, &e);
    free(own);
    return s == LS_OK ? 0 : cli_fail(&e);
}

const ls_command cmd_tune = {
    .name = "tune",
    .words = "CONFIG.yaml",
    .min_words = 1,
    .max_words = 1,
    .summary = "search for the best values of a config's keys",
    .about =
        "Trains the config with many values of some of its keys, and writes the best config.\n"
        "The file of --space says how (docs/tune.md):\n"
        "\n"
        "    method: asha      # or grid, random, pbt\n"
        "    trials: 20\n"
        "    space:\n"
        "      optim.lr: {log_uniform: [1e-4, 1e-2]}\n"
        "      optim.optimizer: {choice: [adamw, lion]}\n"
        "\n"
        "grid and random train all trials to the end. asha trains all of them for a few steps,\n"
        "the better ones on and on. pbt trains all, and in between replaces the worst by copies\n"
        "of the best with changed values.\n"
        "\n"
        "Trials are run directories in runs/NAME-tune, or DIR, beside best.yaml, a table\n"
        "(tune.txt) and a picture (tune.svg), which are renewed with each result. Several trials\n"
        "are trained at once; the result is the same for any number of workers. A command that\n"
        "was interrupted or killed goes on where it was when it is repeated.",
    .options = {[SPACE] = {"space", 0, "FILE", "the method, the keys and their values"},
                [OUTPUT] = {"output", 'o', "DIR", "the directory of the trials"},
                [WORKERS] = {"workers", 'n', "N",
                             "number of workers, which all trials share (default: one per core)"},
                [PARALLEL] = {"parallel", 0, "N",
                              "trials that are trained at once, at most (default: one per worker)"},
                [SET] = {"set", 0, "KEY=VALUE", "set a key of the config; repeatable"},
                [LIST] = {"list", 0, NULL, "print the trials' values, and train nothing"},
                [JSON] = {"json", 0, NULL, "for programs: one JSON object (docs/json.md)"}},
    .run = run,
};
