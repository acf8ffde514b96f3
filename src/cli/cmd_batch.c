/* cmd_batch.c - lockstep batch */
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/log.h"
#include "base/print.h"
#include "cli/batch_print.h"
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

enum { MOST = 16 }; /* numbers of a list */

/* Reads "1,2,4": ascending numbers above 0, up to `high`. */
static bool read_list(const ls_args *a, int option, bool whole, double high, double list[MOST],
                      int *n_p) {
    const ls_option *o = &cmd_batch.options[option];
    const char *text = cli_value(a, option), *letters = whole ? "0123456789" : "0123456789.e-+";
    bool good = true;
    int n = 0;
    for (const char *at = text; good; at++) {
        char *end = NULL;
        double x = strtod(at, &end);
        good = end != at && x > 0 && x <= high && n < MOST && (n == 0 || x > list[n - 1]) &&
               strspn(at, letters) >= (size_t)(end - at) && (!*end || *end == ',');
        if (good) list[n++] = x;
        at = end;
        if (!*at) break;
    }
    *n_p = n;
    if (good) return true;
    ls_log("batch: --%s '%.60s' is not a list of ascending numbers, such as %s; see 'lockstep help "
           "batch'",
           o->name, text, o->value);
    return false;
}

static bool read_integers(const ls_args *a, int option, double high, int64_t list[MOST], int *n_p) {
    double numbers[MOST];
    if (!read_list(a, option, true, high, numbers, n_p)) return false;
    for (int i = 0; i < *n_p; i++) list[i] = (int64_t)numbers[i];
    return true;
}

/* What both forms share: workers, and the machines for which times are predicted. */
static bool read_common(const ls_args *a, ls_sharing *s, ls_cost_request *q) {
    int64_t counts[MOST];
    s->jobs = 1;
    if (!cli_integer(&cmd_batch, a, WORKERS, 1, 4096, &s->workers) ||
        !cli_integer(&cmd_batch, a, JOBS, 1, 4096, &s->jobs) ||
        (cli_given(a, TIMES) && !read_integers(a, TIMES, 4096, counts, &q->ncounts)))
        return false;
    for (int i = 0; i < q->ncounts; i++) q->counts[i] = (int)counts[i];
    q->file = cli_value(a, MACHINE);
    if (cli_given(a, TIMES) == cli_given(a, MACHINE)) return true;
    ls_log("batch: --times and --machine belong together: numbers of workers, and the file that "
           "`lockstep bench machine --save` writes");
    return false;
}

/* The end of both: where the picture is, and the exit code. */
static int end(const ls_args *a, ls_status s, char *picture, const ls_error *e) {
    if (s == LS_OK && !cli_given(a, JSON)) ls_print("picture: %s\n", picture);
    free(picture);
    return s == LS_OK ? 0 : cli_fail(e);
}

static int branch(const ls_args *a) {
    ls_error e = {0};
    ls_branches_request o = {.run = a->words[0], .output = cli_value(a, OUTPUT), .tolerance = 0.01};
    ls_branches b;
    char *picture = NULL;
    if (!read_integers(a, BRANCH, 1048576, o.factors, &o.n) ||
        !cli_real(&cmd_batch, a, TOKENS, 1, 1e15, &o.units) ||
        !cli_real(&cmd_batch, a, TOLERANCE, 0, 100, &o.tolerance) ||
        !cli_integer(&cmd_batch, a, AT, 1, 1000000000, &o.at) ||
        !read_common(a, &o.sharing, &o.cost))
        return CLI_USAGE;
    if (o.factors[0] != 1 || o.n < 2) {
        ls_log("batch: --branch: the first branch is 1, the run itself, and there are others, such "
               "as 1,2,4,8");
        return CLI_USAGE;
    }
    ls_status s = ls_branches_run(&o, &b, &e);
    if (s == LS_OK) (cli_given(a, JSON) ? cli_branches_print_json : cli_branches_print)(&b);
    if (s == LS_OK) s = ls_branches_draw(&b, &picture, &e);
    ls_branches_free(&b);
    return end(a, s, picture, &e);
}

static const double usual_factors[] = {0.25, 0.5, 1, 2, 4};
enum { NUSUAL = 5 };

/* A half of the config's batch, it, and up to 8 times it, as virtual workers divide them. */
static void use_usual_batches(const ls_config *c, ls_targets_request *o) {
    for (int64_t twice = 1; twice <= 16; twice *= 2) {
        int64_t batch = c->train.batch * twice / 2;
        if (batch % c->train.virtual_workers == 0) o->batches[o->nbatches++] = batch;
    }
}

static ls_status train_to_target(const ls_args *a, const ls_targets_request *o, char **picture_p,
                                 ls_error *e) {
    ls_targets *t = LS_NEW(ls_targets);
    ls_status s = ls_targets_run(o, t, e);
    if (s == LS_OK) (cli_given(a, JSON) ? cli_targets_print_json : cli_targets_print)(t);
    if (s == LS_OK) s = ls_targets_draw(t, picture_p, e);
    ls_targets_free(t);
    free(t);
    return s;
}

static int steps_to(const ls_args *a) {
    ls_config c;
    ls_error e = {0};
    ls_targets_request o = {.config = &c, .nfactors = NUSUAL};
    double samples = 0;
    memcpy(o.factors, usual_factors, sizeof usual_factors);
    if (!cli_real(&cmd_batch, a, STEPS_TO, 1e-9, 1e9, &o.target.loss) ||
        !cli_real(&cmd_batch, a, SAMPLES, 1, 1e12, &samples) ||
        !read_common(a, &o.sharing, &o.cost) ||
        (cli_given(a, BATCHES) && !read_integers(a, BATCHES, 1048576, o.batches, &o.nbatches)) ||
        (cli_given(a, RATES) && !read_list(a, RATES, false, 1e6, o.factors, &o.nfactors)))
        return CLI_USAGE;
    ls_status s = ls_config_load(a->words[0], a->options[SET].values, a->options[SET].n, &c, &e);
    if (s == LS_OK) s = ls_epochs_replace(&c, &e);
    if (s != LS_OK) return cli_fail(&e);
    const ls_batches b = ls_batches_of(&c);
    o.target.samples =
        samples > 0 ? (int64_t)samples : (int64_t)ls_batches_sum(&b, (uint64_t)c.train.steps);
    if (!o.nbatches) use_usual_batches(&c, &o);
    char *output = cli_output(a, OUTPUT, "-batches"), *picture = NULL;
    o.output = output;
    s = train_to_target(a, &o, &picture, &e);
    free(output);
    return end(a, s, picture, &e);
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
