/* cmd_scale.c - lockstep scale */
#include <stdio.h>
#include <string.h>

#include "base/log.h"
#include "base/print.h"
#include "cli/cli.h"
#include "cluster/control.h"

enum { JSON };

static void print_json(const char *run, int from, int to) {
    ls_json *o = ls_json_new_object();
    ls_json_set_path(o, "run", run);
    ls_json_set_integer(o, "from", from);
    ls_json_set_integer(o, "to", to);
    ls_print_json(o);
}

static int run(const ls_args *a) {
    char line[LS_CONTROL_LINE], answer[LS_CONTROL_LINE];
    ls_error e = {0};
    size_t ndigits = strspn(a->words[1], "0123456789");
    if (ndigits == 0 || a->words[1][ndigits]) {
        ls_log("scale: '%.100s' is not a number of workers; see 'lockstep help scale'",
               a->words[1]);
        return CLI_USAGE;
    }
    snprintf(line, sizeof line, "scale %.100s", a->words[1]);
    if (ls_control_ask(a->words[0], line, answer, &e) != LS_OK) return cli_fail(&e);
    bool ok = strncmp(answer, "ok ", 3) == 0;
    int from = 0, to = 0;
    if (ok && cli_given(a, JSON) && sscanf(answer, "ok from %d to %d", &from, &to) == 2)
        print_json(a->words[0], from, to);
    else if (ok)
        ls_print("%s: %s\n", a->words[0], answer + 3);
    else
        ls_log("%s: %s", a->words[0], strncmp(answer, "error ", 6) == 0 ? answer + 6 : answer);
    return ok ? 0 : CLI_FAILED;
}

const ls_command cmd_scale = {
    .name = "scale",
    .words = "RUN N",
    .min_words = 2,
    .max_words = 2,
    .summary = "give a running job more or fewer workers",
    .about =
        "RUN is the directory of a run that `lockstep train` is training on this host. After the\n"
        "step in flight it continues with N workers, to the same bits. The limits are\n"
        "survival.min_workers and survival.max_workers of its config.",
    .options = {[JSON] = {"json", 0, NULL,
                          "for programs: one JSON object (docs/reference/json.md)"}},
    .run = run,
};
