/* cmd_check.c - lockstep check: finds wrong layers of a model. */
#include <stdio.h>
#include <stdlib.h>

#include "base/floats.h"
#include "base/locale.h"
#include "base/log.h"
#include "base/print.h"
#include "cli/cli.h"
#include "config/own.h"
#include "config/relations.h"
#include "model/check.h"
#include "networks/network.h"
#include "networks/program_model.h"
#include "storage/origin.h"

enum { SET };
enum { CLI_OPEN = 3 }; /* exit code: no layer is wrong, but some are not decided */

/* ---- the report ---- */

/* What a layer's check found, on one line. */
static char *line_of(const ls_check_result *r) {
    if (r->wrong) return ls_format("%-32s WRONG: %s", r->layer->name, r->wrong);
    if (*r->open) return ls_format("%-32s NOT DECIDED: %s", r->layer->name, r->open);
    if (r->comparisons == 0) return ls_format("%-32s right", r->layer->name);
    char left_open[48] = "";
    if (r->nopen) snprintf(left_open, sizeof left_open, ", %lld open", (long long)r->nopen);
    return ls_format("%-32s right; %lld gradients within %.1e (bound %.1e%s)", r->layer->name,
                     (long long)r->comparisons, r->worst, r->bound, left_open);
}

typedef struct report {
    void (*line)(void *arg, const char *line); /* NULL: lines are not wanted */
    void *arg;
    ls_error *e;
    bool failed, left_open;
} report;

static void report_layer(void *arg, const ls_check_result *r) {
    report *p = arg;
    char *line = line_of(r);
    if (p->line) p->line(p->arg, line);
    if (r->wrong && !p->failed)
        ls_fail(p->e, LS_EINVAL, "layer '%s': %s", r->layer->name, r->wrong);
    else if (*r->open && !p->failed && !p->left_open)
        ls_fail(p->e, LS_EINVAL, "layer '%s': not decided: %s", r->layer->name, r->open);
    p->failed = p->failed || r->wrong;
    p->left_open = p->left_open || *r->open;
    free(line);
}

/* The first wrong layer is the error, or else the first one that is not decided. */
static ls_status check(const ls_config *c, report *p, ls_check_count *count_p, ls_error *e) {
    ls_model m;
    LS_TRY(ls_network_create(c, &m, e));
    p->e = e;
    ls_status s = ls_check_model(&m, report_layer, p, count_p, e);
    ls_model_free(&m);
    return s != LS_OK ? s : count_p->wrong || count_p->open ? LS_EINVAL : LS_OK;
}

/* path NULL: all keys have their defaults. */
static ls_status read_config(const char *path, const char *const *sets, int nsets, ls_config *c,
                             ls_error *e) {
    if (path) {
        LS_TRY(ls_config_load(path, sets, nsets, c, e));
        return ls_origin_complete(c, NULL, e);
    }
    ls_config_defaults(c);
    for (int i = 0; i < nsets; i++) LS_TRY(ls_config_set(c, sets[i], e));
    return LS_OK; /* what a run needs, such as data, is not needed */
}

ls_status ls_model_check(const ls_program *program, const char *config,
                         void (*line)(void *arg, const char *line), void *arg, ls_error *e) {
    LS_LOCALE_C();
    LS_FLOATS();
    ls_config c;
    report p = {.line = line, .arg = arg};
    ls_check_count count = {0, 0};
    LS_TRY(ls_program_use(program, e));
    LS_TRY(read_config(config, NULL, 0, &c, e));
    return check(&c, &p, &count, e);
}

/* ---- the command ---- */

static void print_line(void *arg, const char *line) {
    (void)arg;
    ls_print("%s\n", line);
    fflush(stdout);
}

static int run(const ls_args *a) {
    ls_config c;
    ls_error e = {0};
    report p = {.line = print_line};
    ls_check_count count = {0, 0};
    if (!a->nwords && !ls_config_program()) {
        ls_log("check: CONFIG.yaml is missing; see 'lockstep help check'");
        return CLI_USAGE;
    }
    ls_status s = read_config(a->nwords ? a->words[0] : NULL, a->options[SET].values,
                              a->options[SET].n, &c, &e);
    if (s == LS_OK) s = check(&c, &p, &count, &e);
    if (count.open)
        ls_log("check: %d layer%s not decided", count.open, count.open == 1 ? " is" : "s are");
    if (count.wrong)
        ls_log("check: %d layer%s wrong", count.wrong, count.wrong == 1 ? " is" : "s are");
    if (count.wrong || count.open) return count.wrong ? CLI_FAILED : CLI_OPEN;
    return s == LS_OK ? 0 : cli_fail(&e);
}

const ls_command cmd_check = {
    .name = "check",
    .words = "[CONFIG.yaml]",
    .max_words = 1,
    .summary = "find layers of a model that are wrong",
    .about =
        "Builds the model with random parameters and samples, and calls each layer alone. Its\n"
        "gradients of all parameters and inputs are compared with central differences. Its\n"
        "results must have the same bits when it is called again, with another batch, other\n"
        "samples beside each one, other micro-batches and numbers of threads. It must write its\n"
        "own memory only, and read nothing that it has not written.\n"
        "\n"
        "A wrong layer is named, with what is wrong first; the exit code is then 1. Each line has\n"
        "the largest difference and the bound beyond which a gradient is wrong, relative to the\n"
        "gradients. A layer is not decided if more than a tenth of the comparisons can't be made\n"
        "to 3%: its output is too large beside what an element changes, or has too many kinks.\n"
        "If no layer is wrong, the exit code is then 3. A program\n"
        "with a model of its own (lockstep/program.h) needs no config.",
    .options = {[SET] = {"set", 0, "KEY=VALUE", "set a key of the config, e.g. model.width=64"}},
    .run = run,
};
