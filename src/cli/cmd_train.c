/* cmd_train.c - lockstep train */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/log.h"
#include "cli/cli.h"
#include "infer/published.h"
#include "net/launch/environment.h"
#include "perf/choose_code.h"
#include "perf/mesh_search.h"
#include "report/mllog.h"
#include "report/tracer.h"
#include "storage/checkpoint.h"
#include "train/train.h"
#include "watch/beside.h"

enum {
    WORKERS,
    LEAST,
    MOST,
    DEVICE,
    OUTPUT,
    SET,
    UNTIL,
    RESUME,
    OVERWRITE,
    YES,
    LISTEN,
    JOIN,
    HOSTS,
    MEMBERSHIP,
    INSECURE,
    TRACE,
    TRACE_STEPS,
    MLLOG,
    TARGET,
    SUBMISSION,
    WATCH,
    METRICS_PORT
};

/* ---- the run ---- */

static char *without_slashes(const char *path) {
    int n = (int)strlen(path);
    while (n > 1 && path[n - 1] == '/') n--;
    return ls_format("%.*s", n, path);
}

/* The run directory and the config. With --resume a run directory alone names both. False: bad
 * usage, which is logged. */
static bool find_run(const ls_args *a, char **run_p, char **config_p) {
    const char *word = a->words[0], *output = cli_value(a, OUTPUT);
    bool is_run = ls_file_is_dir(word);
    if (ls_published_is(word)) {
        ls_log("train: %s is a published model, not a config: a config names it as model.from, and "
               "the data as data.path (docs/guide/finetune.md)",
               word);
        return false;
    }
    if (is_run && !cli_given(a, RESUME)) {
        ls_log("train: %s is a run directory; to continue the run add --resume", word);
        return false;
    }
    if (is_run && output) {
        ls_log("train: %s is a run directory, and -o names another; leave out -o, or give the "
               "config file",
               word);
        return false;
    }
    *run_p = is_run   ? without_slashes(word)
             : output ? without_slashes(output)
                      : cli_output(a, OUTPUT, "");
    *config_p = is_run ? ls_format("%s/config.yaml", *run_p) : ls_strdup(word);
    return true;
}

/* The command that continues the run; under a launcher it has no -n. joins: as it was started; else
 * by a host that has taken the first one's place. */
static char *resume_command(const ls_args *a, const char *run, bool joins) {
    static const int options[] = {WORKERS, LISTEN, JOIN, HOSTS, INSECURE, MLLOG, TARGET};
    ls_buf b = {0};
    cli_quote(&b, a->program);
    ls_buf_printf(&b, " train --resume ");
    cli_quote(&b, run);
    for (size_t i = 0; i < sizeof options / sizeof *options; i++) {
        const ls_option *o = &cmd_train.options[options[i]];
        if (!cli_given(a, options[i]) || (options[i] == JOIN && !joins)) continue;
        if (o->letter)
            ls_buf_printf(&b, " -%c", o->letter);
        else
            ls_buf_printf(&b, " --%s", o->name);
        if (!o->value) continue;
        ls_buf_printf(&b, " ");
        cli_quote(&b, cli_value(a, options[i]));
    }
    return b.data;
}

/* Logs what is lost after the workers were ended at once, and how to continue. */
static void explain_abort(const char *run, const char *again) {
    char *config = ls_format("%s/config.yaml", run), *path = NULL;
    int64_t step = 0;
    if (ls_checkpoint_newest(run, &path, &step, NULL) == LS_OK)
        ls_log(
            "the steps after the newest checkpoint, of step %lld, are lost; continue from it with: "
            "%s",
            (long long)step, again);
    else if (ls_file_exists(config))
        ls_log("there is no checkpoint yet: all steps are lost; begin again with: %s", again);
    free(config);
    free(path);
}

/* The values of --set, and the settings that other options imply. */
typedef struct sets {
    const char **values; /* [n] */
    int n;
    char *least, *most, *membership, *device;
} sets;

static sets sets_of(const ls_args *a, int64_t least, int64_t most) {
    sets s = {.values = LS_NEW_ARRAY(const char *, (size_t)a->options[SET].n + 4)};
    for (int i = 0; i < a->options[SET].n; i++) s.values[s.n++] = a->options[SET].values[i];
    if (least) s.values[s.n++] = s.least = ls_format("survival.min_workers=%lld", (long long)least);
    if (most) s.values[s.n++] = s.most = ls_format("survival.max_workers=%lld", (long long)most);
    if (cli_given(a, MEMBERSHIP))
        s.values[s.n++] = s.membership =
            ls_format("survival.membership=%s", cli_value(a, MEMBERSHIP));
    if (cli_given(a, DEVICE))
        s.values[s.n++] = s.device = ls_format("parallel.device=%s", cli_value(a, DEVICE));
    return s;
}

static void sets_free(sets *s) {
    free(s->values);
    free(s->least);
    free(s->most);
    free(s->membership);
    free(s->device);
}

/* Reads one "org=NAME" of --submission. */
static bool read_submission(const char *text, ls_mllog_request *q) {
    size_t n = strcspn(text, "=");
    for (int i = 0; i < LS_MLLOG_WORDS && text[n]; i++) {
        if (strlen(ls_mllog_words[i]) != n || memcmp(text, ls_mllog_words[i], n) != 0 ||
            !text[n + 1])
            continue;
        q->words[i] = text + n + 1;
        return true;
    }
    ls_log("train: --submission '%.60s' is not a word of a log, such as org=NAME: benchmark, "
           "division, org, platform, status",
           text);
    return false;
}

/* The log that the options ask for. False: bad usage, which is logged. */
static bool read_mllog(const ls_args *a, ls_mllog_request *q) {
    ls_error e;
    if (cli_given(a, MLLOG) != cli_given(a, TARGET) ||
        (cli_given(a, SUBMISSION) && !cli_given(a, MLLOG))) {
        ls_log("train: --mllog FILE and --target LIMIT belong together, and --submission to them");
        return false;
    }
    *q = (ls_mllog_request){.path = cli_value(a, MLLOG)};
    for (int i = 0; i < a->options[SUBMISSION].n; i++)
        if (!read_submission(a->options[SUBMISSION].values[i], q)) return false;
    if (!q->path || ls_goal_read(cli_value(a, TARGET), &q->goal, &e) == LS_OK) return true;
    ls_log("train: %s", e.msg);
    return false;
}

/* ---- a run that is replaced ---- */

/* Asks on the terminal. False: the user does not want to replace it, or there is no terminal to ask
 * on, which is logged. */
static bool ask(const char *run, int64_t step) {
    char answer[16] = "";
    if (!isatty(STDIN_FILENO) || !ls_log_is_terminal()) {
        ls_log("train: %s has checkpoints, the newest of step %lld; without a terminal to ask on, "
               "--overwrite needs --yes",
               run, (long long)step);
        return false;
    }
    ls_log("%s has checkpoints, the newest of step %lld; remove that run? [y/N]", run,
           (long long)step);
    bool answered = fgets(answer, sizeof answer, stdin);
    answer[strcspn(answer, "\n")] = 0;
    if (answered && (strcasecmp(answer, "y") == 0 || strcasecmp(answer, "yes") == 0)) return true;
    ls_log("%s stays as it is", run);
    return false;
}

/* *code_p: the exit code, if it returns false. */
static bool may_overwrite(const ls_args *a, const char *run, int *code_p) {
    char *path = NULL;
    int64_t step = 0;
    *code_p = CLI_USAGE;
    if (cli_given(a, OVERWRITE) && cli_given(a, RESUME)) {
        ls_log(
            "train: --resume continues a run, and --overwrite removes it; leave one of them out");
        return false;
    }
    if (cli_given(a, YES) && !cli_given(a, OVERWRITE)) {
        ls_log("train: --yes belongs to --overwrite");
        return false;
    }
    if (!cli_given(a, OVERWRITE) || cli_given(a, YES)) return true;
    bool has = ls_checkpoint_newest(run, &path, &step, NULL) == LS_OK && path;
    free(path);
    *code_p = CLI_FAILED;
    return !has || ask(run, step);
}

/* ---- watched meanwhile ---- */

enum { WATCH_PORT = 7007, MOST_PORT = 65535 };

/* The port of --watch or --metrics-port; -1: neither is given. False: bad usage, which is
 * logged. */
static bool read_port(const ls_args *a, int64_t *port_p) {
    const char *watch = cli_value(a, WATCH);
    *port_p = -1;
    if (cli_given(a, WATCH) && cli_given(a, METRICS_PORT)) {
        ls_log("train: --watch and --metrics-port are one server, with the page and the metrics; "
               "leave one of them out");
        return false;
    }
    if (watch && !*watch) *port_p = WATCH_PORT;
    if (watch && !*watch) return true;
    return cli_integer(&cmd_train, a, cli_given(a, WATCH) ? WATCH : METRICS_PORT, 0, MOST_PORT,
                       port_p);
}

/* Of the workers of a launcher one alone serves. False: it can't, which is logged. */
static bool begin_watching(const ls_args *a, int64_t port, const char *const *run, ls_beside *b_p) {
    ls_environment env = {0};
    ls_error e = {0};
    *b_p = (ls_beside){0};
    if (port < 0 || (ls_environment_read(&env, NULL) == LS_OK && env.rank > 0)) return true;
    const ls_service_options o = {.dirs = run, .ndirs = 1, .may_come = true, .port = (int)port};
    if (ls_beside_begin(&o, b_p, &e) != LS_OK) {
        cli_fail(&e);
        return false;
    }
    ls_log(cli_given(a, WATCH) ? "watch it at http://localhost:%d/"
                               : "metrics: http://localhost:%d/metrics",
           b_p->port);
    return true;
}

static int run(const ls_args *a) {
    int64_t port = 0, workers = 0, trace_steps = 0, least = 0, most = 0, hosts = 0, until = 0;
    if (!cli_integer(&cmd_train, a, WORKERS, 1, 4096, &workers) ||
        !cli_integer(&cmd_train, a, LEAST, 1, 4096, &least) ||
        !cli_integer(&cmd_train, a, MOST, 1, 4096, &most) ||
        !cli_integer(&cmd_train, a, HOSTS, 1, 256, &hosts) ||
        !cli_integer(&cmd_train, a, UNTIL, 1, 1000000000, &until) ||
        !cli_integer(&cmd_train, a, TRACE_STEPS, 1, LS_TRACE_MOST_STEPS, &trace_steps))
        return CLI_USAGE;
    ls_mllog_request mllog;
    if (!read_mllog(a, &mllog) || !read_port(a, &port)) return CLI_USAGE;
    if (cli_given(a, INSECURE)) cli_make_insecure();
    char *run_dir = NULL, *config = NULL;
    int refused = 0;
    if (!find_run(a, &run_dir, &config)) return CLI_USAGE;
    if (!may_overwrite(a, run_dir, &refused)) {
        free(run_dir);
        free(config);
        return refused;
    }
    ls_beside beside;
    const char *const watched[] = {run_dir};
    if (!begin_watching(a, port, watched, &beside)) {
        free(run_dir);
        free(config);
        return CLI_FAILED;
    }
    char *command = cli_command_line(a);
    char *again = resume_command(a, run_dir, true), *first = resume_command(a, run_dir, false);
    ls_error e = {0};
    bool unfinished = false;
    sets all = sets_of(a, least, most);
    ls_status s = ls_train(&(ls_train_options){.config = config,
                                               .sets = all.values,
                                               .nsets = all.n,
                                               .nworkers = (int)workers,
                                               .run = run_dir,
                                               .until = until,
                                               .resume = cli_given(a, RESUME),
                                               .overwrite = cli_given(a, OVERWRITE),
                                               .command = command,
                                               .again = again,
                                               .again_first = first,
                                               .listen = cli_value(a, LISTEN),
                                               .join = cli_value(a, JOIN),
                                               .hosts = (int)hosts,
                                               .trace = cli_value(a, TRACE),
                                               .trace_steps = trace_steps,
                                               .mllog = mllog.path ? &mllog : NULL,
                                               .began_ns = a->began_ns,
                                               .choose = ls_choose_code,
                                               .choose_mesh = ls_mesh_auto},
                           &unfinished, &e);
    int code = s != LS_OK ? cli_fail(&e) : unfinished ? CLI_UNFINISHED : 0;
    if (s == LS_EABORT && e.msg[0]) explain_abort(run_dir, again);
    ls_beside_end(&beside);
    sets_free(&all);
    free(run_dir);
    free(config);
    free(command);
    free(again);
    free(first);
    return code;
}

const ls_command cmd_train = {
    .name = "train",
    .words = "CONFIG.yaml|RUN",
    .min_words = 1,
    .max_words = 1,
    .outlives_output = true,
    .is_worker = true,
    .summary = "train a model",
    .about =
        "Starts workers on this host, or is one of the workers that mpirun, srun, torchrun's\n"
        "variables (RANK, WORLD_SIZE, MASTER_ADDR, MASTER_PORT) or `lockstep run` started; all\n"
        "hosts share the run directory. Training writes to the run directory: config.yaml (every\n"
        "key), tokenizer.json, tokens.bin, metrics.jsonl, TensorBoard event files, loss.svg and\n"
        "checkpoints/. The weights have the same bits for any number of workers.\n"
        "\n"
        "Workers that it has started may be killed or stopped: others take their place, and no\n"
        "step is lost. SIGTERM makes a worker leave after the step in flight.\n"
        "\n"
        "train --resume RUN continues a run that was stopped: the run directory has its config,\n"
        "so nothing else is needed; -n, --set of keys that may change, and some of the other\n"
        "options are allowed. A run that is stopped prints this command. The learning rate and\n"
        "other keys that steer the next steps may change, too; `lockstep ckpt ledger` says from\n"
        "which step on they hold (docs/guide/survival.md).\n"
        "\n"
        "A run that failed or was stopped before its first checkpoint is begun again by the same\n"
        "command; one with checkpoints is replaced only with --overwrite.\n"
        "\n"
        "Ctrl-C, SIGTERM, SIGUSR1 or a closed terminal (SIGHUP) ends the run after the step in\n"
        "flight, with a checkpoint from which --resume continues with any number of workers. A\n"
        "second signal other than SIGHUP ends it at once. Output that can't be written does not\n"
        "end the run.\n"
        "\n"
        "Exit codes: 0 all steps are done; 75 the run was stopped before its last step, with a\n"
        "checkpoint: start it again with --resume; 1 it failed; 2 the command line is wrong.",
    .options =
        {[WORKERS] = {"workers", 'n', "N", "number of workers (default: one per core)"},
         [LEAST] = {"min-workers", 0, "N",
                    "a worker that leaves is replaced if fewer than N would remain"},
         [MOST] = {"max-workers", 0, "N",
                   "number of workers to which `lockstep scale` may increase them"},
         [DEVICE] =
             {"device", 0, "DEVICE",
              "what runs the layers: cuda, opencl, c, auto, or one for all workers as cuda:1 "
              "(default: the cores; see parallel.device)"},
         [OUTPUT] = {"output", 'o', "RUN", "the run directory (default: runs/NAME for NAME.yaml)"},
         [SET] = {"set", 0, "KEY=VALUE",
                  "set a key of the config, e.g. train.steps=50; repeatable"},
         [UNTIL] = {"until", 0, "STEP",
                    "stop after this step, with a checkpoint, as if interrupted there"},
         [RESUME] = {"resume", 0, NULL,
                     "continue from the run's newest checkpoint; start if there is none"},
         [OVERWRITE] = {"overwrite", 0, NULL,
                        "remove the run that is there, with its checkpoints, and begin a new one; "
                        "asks first"},
         [YES] = {"yes", 0, NULL, "of --overwrite: do not ask"},
         [LISTEN] = {"listen", 0, "HOST:PORT",
                     "be the first of several hosts, which others join here"},
         [JOIN] = {"join", 0, "HOST:PORT",
                   "be another host: train with the one that listens there; with sync.mode async "
                   "and ssp also a list, of hosts that may take over"},
         [HOSTS] = {"hosts", 0, "N",
                    "the first host waits until there are N hosts, with itself (default: 1)"},
         [MEMBERSHIP] = {"membership", 0, "URL",
                         "etcd://HOST:PORT,...: hosts elect a leader, and each has --listen"},
         [INSECURE] = {"insecure", 0, NULL, "no join key and no encryption between hosts"},
         [TRACE] = {"trace", 0, "FILE",
                    "write when each action of some steps ran: FILE.json opens in Perfetto and "
                    "chrome://tracing, FILE.svg is a picture"},
         [TRACE_STEPS] = {"trace-steps", 0, "N",
                          "number of steps after the first that are traced (default: 3)"},
         [MLLOG] = {"mllog", 0, "FILE",
                    "write a log in the form of MLPerf's training rules (docs/guide/reports.md)"},
         [TARGET] = {"target", 0, "LIMIT",
                     "of --mllog: an evaluation's number, 'val_loss<=2.5' or 'val_accuracy>=0.93'"},
         [SUBMISSION] = {"submission", 0, "WORD=NAME",
                         "of --mllog: what a new log says of benchmark, division, org, platform or "
                         "status; repeatable"},
         [WATCH] = {"watch", 0, "[PORT]",
                    "serve a page about the run while it trains, as `lockstep watch` does "
                    "(default: port 7007)"},
         [METRICS_PORT] = {"metrics-port", 0, "PORT",
                           "serve metrics for Prometheus at this port of 127.0.0.1, at /metrics"}},
    .run = run,
};
