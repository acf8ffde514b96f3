/* commands.c - a program with commands: finds the command, reads its options, runs it. `lockstep`
 * (main.c), and programs built with the library (lockstep/program.h). */
#include <locale.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/cores.h"
#include "base/floats.h"
#include "base/locale.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/name.h"
#include "base/wait_policy.h"
#include "cli/cli.h"
#include "cluster/workers.h"
#include "net/launch/child.h"
#include "networks/program_model.h"
#include "source/note.h"

const ls_command *const *cli_commands;

/* The index of the first word after options and their values. */
static int words_begin(const ls_command *c, int argc, char **argv) {
    int i = 1;
    for (; i < argc && argv[i][0] == '-'; i++)
        for (int k = 0; c->options[k].name; k++) {
            const ls_option *o = &c->options[k];
            const char *a = argv[i];
            bool is_long = strncmp(a, "--", 2) == 0 && strcmp(a + 2, o->name) == 0;
            bool is_short = o->letter && a[1] == o->letter && !a[2];
            if (o->value && (is_long || is_short)) {
                i++;
                break;
            }
        }
    return i;
}

static int run_command(const ls_command *c, int argc, char **argv, const ls_args *given) {
    if (c->outlives_output) ls_process_ignore(SIGPIPE);
    for (int i = 1; i < argc && strcmp(argv[i], "--") != 0; i++) {
        if (strcmp(argv[i], "--help") != 0) continue;
        if (c->takes_rest && i > words_begin(c, argc, argv))
            break; /* it belongs to another program */
        ls_buf out = {0};
        cli_help_command(c, &out);
        fwrite(out.data, 1, out.len, stdout);
        ls_buf_free(&out);
        return cli_streams_flush() ? 0 : CLI_FAILED;
    }
    ls_error e = {0};
    if (ls_wait_policy_check(&e) != LS_OK || ls_cores_check(&e) != LS_OK) return cli_fail(&e);
    ls_args args = *given;
    if (c->is_worker) ls_workers_hold_log();
    ls_note_once();
    int code = cli_parse(c, argc, argv, &args) ? c->run(&args) : CLI_USAGE;
    if (c->is_worker) ls_workers_fail();
    cli_args_free(&args);
    if (code || c->outlives_output) return code;
    return cli_streams_flush() ? 0 : CLI_FAILED;
}

int cli_main(int argc, char **argv, const ls_command *const *commands) {
    LS_FLOATS();
    ls_args given = {.program = argc > 0 ? argv[0] : ls_name(),
                     .argc = argc,
                     .argv = argv,
                     .began_ns = ls_clock_ns()};
    cli_commands = commands;
    cli_streams_open();
    int ended = cli_first_process();
    if (ended >= 0) return ended;
    if (!cli_stack_suffices()) return CLI_FAILED;
    ls_process_ignore(SIGXFSZ); /* a file over the size limit is an error with a message */
    const char *word = argc > 1 ? argv[1] : NULL;
    if (word && (strcmp(word, "--version") == 0 || strcmp(word, "-V") == 0)) {
        printf("%s %s\n", ls_name(), ls_version());
        return cli_streams_flush() ? 0 : CLI_FAILED;
    }
    if (word && (strcmp(word, "--help") == 0 || strcmp(word, "-h") == 0)) word = "help";
    for (int i = 0; word && cli_commands[i]; i++)
        if (strcmp(word, cli_commands[i]->name) == 0)
            return run_command(cli_commands[i], argc - 1, argv + 1, &given);
    if (word) return cli_no_command("", word);
    ls_log("a command is missing; see 'lockstep help'");
    return CLI_USAGE;
}

/* `generate` is of language models. All threads have the locale "C": commands start many. */
int ls_program_main(int argc, char **argv, const ls_program *p) {
    LS_LOCALE_C();
    static const ls_command *const commands[] = {
        &cmd_train, &cmd_eval,   &cmd_predict, &cmd_plan,   &cmd_bench,   &cmd_run,    &cmd_ckpt,
        &cmd_scale, &cmd_data,   &cmd_check,   &cmd_replay, &cmd_compare, &cmd_report, &cmd_batch,
        &cmd_tune,  &cmd_status, &cmd_watch,   &cmd_help,   NULL};
    ls_error e = {0};
    if (ls_program_use(p, &e) != LS_OK) return cli_fail(&e);
    ls_name_set(p->name);
    char *before = ls_strdup(setlocale(LC_ALL, NULL));
    setlocale(LC_ALL, "C");
    int status = cli_main(argc, argv, commands);
    setlocale(LC_ALL, before);
    free(before);
    return status;
}
