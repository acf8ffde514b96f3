/* cmd_tune.c - lockstep tune */
#include <stdlib.h>

#include "base/file.h"
#include "base/log.h"
#include "base/name.h"
#include "base/print.h"
#include "cli/cli.h"
#include "config/relations.h"
#include "search/space_try.h"
#include "search/tune.h"
#include "storage/epochs.h"

enum { SPACE, TRY, LR, METHOD, TRIALS, OUTPUT, RESUME, WORKERS, PARALLEL, SET, LIST, JSON };

/* What the command line asks for, with the texts of the files that it names. */
typedef struct request {
    ls_tune_request o;
    ls_search_saved asked;
    ls_config config;
    char *dir, *space;
} request;

/* ---- a new search ---- */

/* The text of a space from --try and --lr. */
static ls_status try_words(const ls_args *a, request *r, ls_error *e) {
    int ntries = a->options[TRY].n, nlrs = a->options[LR].n, n = 0;
    char **words = LS_NEW_ARRAY(char *, (size_t)(ntries + nlrs) + 1);
    for (int i = 0; i < nlrs; i++) words[n++] = ls_format("optim.lr=%s", a->options[LR].values[i]);
    for (int i = 0; i < ntries; i++) words[n++] = ls_strdup(a->options[TRY].values[i]);
    const ls_space_tries t = {
        .words = (const char *const *)words, .n = n, .method = cli_value(a, METHOD)};
    ls_status s = ls_space_try(&t, &r->config, &r->asked.space, e);
    for (int i = 0; i < n; i++) free(words[i]);
    free(words);
    return s;
}

static ls_status begin(const ls_args *a, request *r, ls_error *e) {
    const char *config = a->words[0], *space = cli_value(a, SPACE);
    r->asked.sets = a->options[SET].values;
    r->asked.nsets = a->options[SET].n;
    r->dir = cli_output(a, OUTPUT, "-tune");
    r->space = ls_strdup(space ? space : LS_SPACE_TRY);
    LS_TRY(ls_config_load(config, r->asked.sets, r->asked.nsets, &r->config, e));
    LS_TRY(ls_file_read(config, LS_SPACE_NBYTES, &r->asked.config, e));
    return space ? ls_file_read(space, LS_SPACE_NBYTES, &r->asked.space, e) : try_words(a, r, e);
}

/* ---- one that was stopped ---- */

static ls_status resume(const ls_args *a, request *r, ls_error *e) {
    int64_t trials = r->asked.trials;
    r->dir = ls_strdup(a->words[0]);
    LS_TRY(ls_search_saved_read(r->dir, &r->asked, e));
    if (trials) r->asked.trials = trials;
    char *config = ls_format("%s/base.yaml", r->dir);
    r->space = ls_format("%s/space.yaml", r->dir);
    ls_status s = ls_config_load(config, r->asked.sets, r->asked.nsets, &r->config, e);
    free(config);
    return s;
}

/* ---- the command ---- */

/* Options that say what is searched: exactly one way, and none where a search goes on. */
static bool check_options(const ls_args *a) {
    static const int begins[] = {SPACE, TRY, LR, METHOD, OUTPUT, SET};
    bool tries = cli_given(a, TRY) || cli_given(a, LR), space = cli_given(a, SPACE);
    for (size_t i = 0; cli_given(a, RESUME) && i < sizeof begins / sizeof *begins; i++)
        if (cli_given(a, begins[i])) {
            ls_log("tune: --resume continues a search as it began; leave out --%s",
                   cmd_tune.options[begins[i]].name);
            return false;
        }
    if (cli_given(a, RESUME)) return true;
    if (ls_file_is_dir(a->words[0])) {
        ls_log("tune: %s is a directory; to continue a search add --resume, else name a config",
               a->words[0]);
        return false;
    }
    if (space && (tries || cli_given(a, METHOD)))
        ls_log("tune: --space has the keys and the method; leave out --try, --lr and --method");
    else if (!space && !tries)
        ls_log("tune: say what to try, e.g. --lr 1e-4,1e-3, --try KEY=VALUE,VALUE or --space FILE; "
               "see 'lockstep help tune'");
    return space != tries && !(space && cli_given(a, METHOD));
}

/* What to do with the best trial. */
static void print_next(const ls_search_view *v, int best) {
    char *run = ls_search_part_dir(v, best, ls_search_nparts(v->search, best) - 1);
    ls_buf dir = {0}, words = {0};
    cli_quote(&dir, v->dir);
    cli_quote(&words, run);
    int rung = ls_search_reached(v->search, best);
    ls_print("\nbest: trial %d, %s %.6g after step %lld\n", best + 1, v->space->rules.metric,
             ls_search_metric(v->search, best, rung),
             (long long)ls_search_rung_steps(v->search, rung));
    ls_print("picture: %s/tune.svg\n", v->dir);
    ls_print("train its config anew:  %s train %s/best.yaml -o RUN\n", ls_name(), dir.data);
    ls_print("train it further:       %s train --resume %s --set train.steps=%lld\n", ls_name(),
             words.data, (long long)(2 * v->space->rules.steps));
    ls_buf_free(&dir);
    ls_buf_free(&words);
    free(run);
}

static void print(const ls_search_view *v, bool list, bool json) {
    ls_buf text = {0};
    if (json && !list) {
        ls_print_json(ls_search_json(v));
        return;
    }
    if (list) ls_search_log_plan(v);
    (list ? ls_search_print_trials : ls_search_print_table)(v, &text);
    ls_print_text(text.data, text.len);
    ls_buf_free(&text);
    if (!list) print_next(v, ls_search_best(v->search));
}

static int run(const ls_args *a) {
    ls_error e = {0};
    request r = {0};
    ls_tune *t = NULL;
    if (!check_options(a) || !cli_integer(&cmd_tune, a, WORKERS, 1, 4096, &r.o.sharing.workers) ||
        !cli_integer(&cmd_tune, a, PARALLEL, 1, 4096, &r.o.sharing.jobs) ||
        !cli_integer(&cmd_tune, a, TRIALS, 1, LS_SPACE_TRIALS, &r.asked.trials))
        return CLI_USAGE;
    ls_status s = cli_given(a, RESUME) ? resume(a, &r, &e) : begin(a, &r, &e);
    r.o.config = &r.config;
    r.o.asked = &r.asked;
    r.o.dir = r.dir;
    r.o.space = r.space;
    if (s == LS_OK) s = ls_epochs_replace(&r.config, &e);
    if (s == LS_OK) s = ls_tune_open(&r.o, &t, &e);
    if (s == LS_OK && !cli_given(a, LIST)) s = ls_tune_train(t, &e);
    if (s == LS_OK) print(ls_tune_view(t), cli_given(a, LIST), cli_given(a, JSON));
    ls_tune_close(t);
    ls_search_saved_free(&r.asked);
    free(r.dir);
    free(r.space);
    if (s != LS_OK) return cli_fail(&e);
    return cli_streams_flush() ? 0 : CLI_FAILED;
}

const ls_command cmd_tune = {
    .name = "tune",
    .outlives_output = true, /* trainings go on without who reads their results */
    .words = "CONFIG.yaml|DIR",
    .min_words = 1,
    .max_words = 1,
    .summary = "search for the best values of a config's keys",
    .about =
        "Trains the config with many values of some of its keys, and writes the best config:\n"
        "\n"
        "    lockstep tune my.yaml --lr 1e-4,1e-3,1e-2\n"
        "    lockstep tune my.yaml --try optim.lr=log:1e-4,1e-1 --try model.layers=2,4\n"
        "\n"
        "Values with commas between them are all tried, in all combinations with those of other\n"
        "keys (method grid). From a range numbers are drawn: log:LOW,HIGH or lin:LOW,HIGH, and\n"
        "int:LOW,HIGH for whole ones; then there are 20 trials (method random). --method and\n"
        "--trials say otherwise. A file, --space, can say more (docs/guide/tune.md):\n"
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
        "was interrupted or killed continues where it was when it is repeated, or by\n"
        "`lockstep tune --resume DIR`.",
    .options = {[SPACE] = {"space", 0, "FILE", "the method, the keys and their values"},
                [TRY] = {"try", 0, "KEY=VALUES",
                         "values of a key: A,B,C or log:LOW,HIGH; repeatable"},
                [LR] = {"lr", 0, "VALUES", "the same of optim.lr"},
                [METHOD] = {"method", 0, "NAME", "with --try: grid, random, asha or pbt"},
                [TRIALS] = {"trials", 0, "N", "how many trials, but for a grid"},
                [OUTPUT] = {"output", 'o', "DIR", "the directory of the trials"},
                [RESUME] = {"resume", 0, NULL, "continue the search of the directory"},
                [WORKERS] = {"workers", 'n', "N",
                             "number of workers, which all trials share (default: one per core)"},
                [PARALLEL] = {"parallel", 0, "N",
                              "trials that are trained at once, at most (default: one per worker)"},
                [SET] = {"set", 0, "KEY=VALUE", "set a key of the config; repeatable"},
                [LIST] = {"list", 0, NULL, "print the trials' values, and train nothing"},
                [JSON] = {"json", 0, NULL,
                          "for programs: one JSON object (docs/reference/json.md)"}},
    .run = run,
};
