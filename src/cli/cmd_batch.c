/* cmd_batch.c - lockstep batch */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/log.h"
#include "cli/batch_branch.h"
#include "cli/batch_target.h"
#include "cli/cli.h"
#include "config/relations.h"
#include "data/batches.h"
#include "storage/epochs.h"

enum {
    BRANCH,
    TOKENS,
    AT,
    TOLERANCE,
    WORKERS,
    JOBS,
    OUTPUT,
    MACHINE,
    TIMES,
    STEPS_TO,
    BATCHES,
    RATES,
    SAMPLES,
    SET,
    JSON
};

static bool bad_list(const ls_option *o, const char *what) {
    ls_log("batch: --%s '%.60s' is not a list of ascending numbers, such as %s; see 'lockstep help "
           "batch'",
           o->name, what, o->value);
    return false;
}

/* Reads "1,2,4": ascending numbers from 1 to `high`. */
static bool read_list(const ls_args *a, int option, int most, int64_t high, int64_t *list,
                      int *n_p) {
    const ls_option *o = &cmd_batch.options[option];
    const char *text = cli_value(a, option), *at = text;
    for (*n_p = 0;; at++) {
        char *end = NULL;
        errno = 0;
        long long x = strtoll(at, &end, 10);
        bool grows = *n_p == 0 || x > list[*n_p - 1];
        if (end == at || errno || x < 1 || x > high || !grows || *n_p == most ||
            strspn(at, "0123456789") != (size_t)(end - at))
            return bad_list(o, text);
        list[(*n_p)++] = x;
        at = end;
        if (!*at) return true;
        if (*at != ',') return bad_list(o, text);
    }
}

/* What both forms share: workers, and the machines for which times are predicted. */
static bool read_common(const ls_args *a, cli_batch_workers *w, cli_batch_machine *m) {
    int64_t counts[CLI_BATCH_COUNTS];
    if (!cli_integer(&cmd_batch, a, WORKERS, 1, 4096, &w->workers) ||
        !cli_integer(&cmd_batch, a, JOBS, 1, 4096, &w->jobs) ||
        (cli_given(a, TIMES) && !read_list(a, TIMES, CLI_BATCH_COUNTS, 4096, counts, &m->ncounts)))
        return false;
    for (int i = 0; i < m->ncounts; i++) m->counts[i] = (int)counts[i];
    m->file = cli_value(a, MACHINE);
    if (cli_given(a, TIMES) == cli_given(a, MACHINE)) return true;
    ls_log("batch: --times and --machine belong together: numbers of workers, and the file that "
           "`lockstep bench machine --save` writes");
    return false;
}

static int branch(const ls_args *a) {
    ls_error e = {0};
    cli_branches o = {.run = a->words[0],
                      .output = cli_value(a, OUTPUT),
                      .tolerance = 0.01,
                      .json = cli_given(a, JSON)};
    if (!read_list(a, BRANCH, LS_BRANCHES, 1048576, o.factors, &o.n) ||
        !cli_real(&cmd_batch, a, TOKENS, 1, 1e15, &o.units) ||
        !cli_real(&cmd_batch, a, TOLERANCE, 0, 100, &o.tolerance) ||
        !cli_integer(&cmd_batch, a, AT, 1, 1000000000, &o.at) ||
        !read_common(a, &o.workers, &o.machine))
        return CLI_USAGE;
    if (o.factors[0] != 1 || o.n < 2) {
        ls_log("batch: --branch: the first branch is 1, the run itself, and there are others, such "
               "as 1,2,4,8");
        return CLI_USAGE;
    }
    return cli_branches_run(&o, &e) == LS_OK ? 0 : cli_fail(&e);
}

/* Reads "0.5,1,2". */
static bool read_factors(const ls_args *a, double *list, int *n_p) {
    const char *text = cli_value(a, RATES), *at = text;
    for (*n_p = 0;; at++) {
        char *end = NULL;
        double x = strtod(at, &end);
        bool grows = *n_p == 0 || x > list[*n_p - 1];
        if (end == at || !(x > 0 && x <= 1e6) || !grows || *n_p == CLI_TARGET_RATES ||
            strspn(at, "0123456789.e-+") < (size_t)(end - at))
            return bad_list(&cmd_batch.options[RATES], text);
        list[(*n_p)++] = x;
        at = end;
        if (!*at) return true;
        if (*at != ',') return bad_list(&cmd_batch.options[RATES], text);
    }
}

static const double usual_factors[] = {0.25, 0.5, 1, 2, 4};
enum { NUSUAL = 5 };

/* A half of the config's batch, it, and up to 8 times it, as virtual workers divide them. */
static void use_usual_batches(const ls_config *c, cli_target *o) {
    for (int64_t twice = 1; twice <= 16; twice *= 2) {
        int64_t batch = c->train.batch * twice / 2;
        if (batch % c->train.virtual_workers == 0) o->batches[o->nbatches++] = batch;
    }
}

/* configs/demo.yaml -> runs/demo-batches */
static char *default_output(const char *config) {
    char *name = cli_config_name(config), *output = ls_format("runs/%s-batches", name);
    free(name);
    return output;
}

static int steps_to(const ls_args *a) {
    ls_config c;
    ls_error e = {0};
    cli_target o = {.config = &c, .nfactors = NUSUAL, .json = cli_given(a, JSON)};
    double samples = 0;
    memcpy(o.factors, usual_factors, sizeof usual_factors);
    if (!cli_real(&cmd_batch, a, STEPS_TO, 1e-9, 1e9, &o.target.loss) ||
        !cli_real(&cmd_batch, a, SAMPLES, 1, 1e12, &samples) ||
        !read_common(a, &o.workers, &o.machine) ||
        (cli_given(a, BATCHES) &&
         !read_list(a, BATCHES, CLI_TARGET_BATCHES, 1048576, o.batches, &o.nbatches)) ||
        (cli_given(a, RATES) && !read_factors(a, o.factors, &o.nfactors)))
        return CLI_USAGE;
    ls_status s = ls_config_load(a->words[0], a->options[SET].values, a->options[SET].n, &c, &e);
    if (s == LS_OK) s = ls_epochs_replace(&c, &e);
    if (s != LS_OK) return cli_fail(&e);
    const ls_batches b = ls_batches_of(&c);
    o.target.samples =
        samples > 0 ? (int64_t)samples : (int64_t)ls_batches_sum(&b, (uint64_t)c.train.steps);
    if (!o.nbatches) use_usual_batches(&c, &o);
    char *own = cli_given(a, OUTPUT) ? NULL : default_output(a->words[0]);
    o.output = own ? own : cli_value(a, OUTPUT);
    s = cli_target_run(&o, &e);
    free(own);
    return s == LS_OK ? 0 : cli_fail(&e);
}

static int wrong(const char *why) {
    ls_log("batch: %s; see 'lockstep help batch'", why);
    return CLI_USAGE;
}

static int run(const ls_args *a) {
    static const int of_branches[] = {TOKENS, AT, TOLERANCE};
    static const int of_steps[] = {BATCHES, RATES, SAMPLES, SET};
    bool branches = cli_given(a, BRANCH), steps = cli_given(a, STEPS_TO);
    if (branches == steps) return wrong("give either --branch or --steps-to");
    for (size_t i = 0; i < sizeof of_branches / sizeof *of_branches; i++)
        if (steps && cli_given(a, of_branches[i]))
            return wrong("--tokens, --at and --tolerance belong to --branch");
    for (size_t i = 0; i < sizeof of_steps / sizeof *of_steps; i++)
        if (branches && cli_given(a, of_steps[i]))
            return wrong("--batches, --rates, --samples and --set belong to --steps-to");
    if (branches && !ls_file_is_dir(a->words[0])) return wrong("--branch needs a run directory");
    if (steps && ls_file_is_dir(a->words[0])) return wrong("--steps-to needs a config file");
    return branches ? branch(a) : steps_to(a);
}

const ls_command cmd_batch = {
    .name = "batch",
    .words = "RUN|CONFIG.yaml",
    .min_words = 1,
    .max_words = 1,
    .summary = "find out how large a batch may be",
    .about =
        "With --branch 1,2,4,8: trains branches of the run, from its newest checkpoint after\n"
        "which it has enough samples left. Branch k has k times the batch, and a learning rate\n"
        "multiplied by the root of k (sgd and lars: by k). All take the same samples. Prints\n"
        "their losses and the critical batch: the largest whose loss is hardly above that of\n"
        "smaller ones (docs/guide/batch.md).\n"
        "\n"
        "With --steps-to LOSS: trains the config with several batches and rates until the\n"
        "validation loss is reached, and prints the steps that each batch needs: where larger\n"
        "batches save steps in proportion, where less, and where none; and training and\n"
        "validation losses after the same samples, and after the same steps.\n"
        "\n"
        "Branches are run directories, in RUN/branches, those of --steps-to in\n"
        "runs/NAME-batches. What is trained already is not trained again, so the command can be\n"
        "interrupted and repeated.",
    .options =
        {[BRANCH] = {"branch", 0, "1,2,4,8", "factors of the batch, the first 1: the run itself"},
         [TOKENS] = {"tokens", 0, "N",
                     "tokens of each branch (samples, of a model that reads none; default: what "
                     "the run has left)"},
         [AT] = {"at", 0, "STEP", "begin at the checkpoint of this step"},
         [TOLERANCE] = {"tolerance", 0, "LOSS",
                        "a batch is good enough if its loss is at most this much above that of "
                        "smaller ones (default: 0.01)"},
         [WORKERS] = {"workers", 'n', "N", "number of workers that train (default: one per core)"},
         [JOBS] = {"jobs", 0, "N",
                   "trainings at once, at most, which share the workers (default: 1)"},
         [OUTPUT] = {"output", 'o', "DIR", "the directory of the trainings"},
         [MACHINE] =
             {"machine", 0, "FILE",
              "predict time and money for machines as in FILE, which `bench machine --save` "
              "writes"},
         [TIMES] = {"times", 0, "1,8,64", "numbers of workers for which they are predicted"},
         [STEPS_TO] = {"steps-to", 0, "LOSS", "the validation loss that is to be reached"},
         [BATCHES] = {"batches", 0, "8,16,32",
                      "batches (default: half of the config's, to 8 times it)"},
         [RATES] = {"rates", 0, "0.5,1,2",
                    "factors of the learning rate that fits the batch by the root, for sgd and "
                    "lars in proportion (default: 0.25,0.5,1,2,4)"},
         [SAMPLES] = {"samples", 0, "N",
                      "samples of a training at most (default: those of the config)"},
         [SET] = {"set", 0, "KEY=VALUE", "set a key of the config; repeatable"},
         [JSON] = {"json", 0, NULL, "for programs: one JSON object (docs/reference/json.md)"}},
    .run = run,
};
