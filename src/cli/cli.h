/* cli.h - the commands of `lockstep`, as tables.
 *
 * Each command is one file with one ls_command: its words, options, help and function. Help texts,
 * the man page and shell completion are all made from these tables (help.c, completion.c).
 */
#ifndef LS_CLI_CLI_H
#define LS_CLI_CLI_H

#include <stdbool.h>

#include "base/mem.h"

/* Exit codes; CLI_UNFINISHED is the EX_TEMPFAIL of sysexits.h: start it again. */
enum { CLI_FAILED = 1, CLI_USAGE = 2, CLI_UNFINISHED = 75 };
enum { CLI_MAX_OPTIONS = 32, CLI_MAX_WORDS = 256 };

typedef struct ls_option {
    const char *name;  /* without "--" */
    char letter;       /* or 0 */
    const char *value; /* its name in help; NULL: takes none; "[NAME]": only as --option=NAME, and
                        * it can be left out */
    const char *help;
} ls_option;

typedef struct ls_args {
    const char *words[CLI_MAX_WORDS]; /* the words that are not options */
    int nwords;
    struct {
        const char **values;
        int n;
    } options[CLI_MAX_OPTIONS]; /* in the order of the command's table */
    char *const *rest;          /* the command line from the first word on, NULL-terminated */
    const char *program;        /* as the user called it */
    int argc;                   /* } the whole command line, also the program's name */
    char *const *argv;          /* } */
    int64_t began_ns;
} ls_args;

typedef struct ls_command {
    const char *name;
    const char *words; /* in usage, e.g. "CONFIG.yaml" */
    int min_words, max_words;
    bool takes_rest; /* the first word ends the options: it begins another program's command line */
    bool outlives_output; /* keeps running, and may succeed, if its output can't be written */
    bool is_worker;       /* a launcher may start several: each is a worker of one group */
    const char *summary;  /* one line */
    const char *about;    /* paragraphs */
    ls_option options[CLI_MAX_OPTIONS]; /* ends with name NULL */
    int (*run)(const ls_args *);        /* exit code */
} ls_command;

extern const ls_command cmd_train, cmd_eval, cmd_predict, cmd_generate, cmd_chat, cmd_serve,
    cmd_plan, cmd_bench, cmd_run, cmd_ckpt, cmd_scale, cmd_data, cmd_weights, cmd_tokens,
    cmd_import, cmd_export, cmd_check, cmd_replay, cmd_compare, cmd_report, cmd_batch, cmd_tune,
    cmd_status, cmd_watch, cmd_help;
/* The commands of this program; ends with NULL. */
extern const ls_command *const *cli_commands;

/* Runs the command in argv; returns the exit code. */
int cli_main(int argc, char **argv, const ls_command *const *commands);

/* At program start: opens each closed standard stream on a descriptor whose reads and writes fail,
 * so that no other file gets its number. */
void cli_streams_open(void);

/* At program start: raises a limit of the stack that is too small. False: it can't, and says so. */
bool cli_stack_suffices(void);
/* Process 1 of a container runs its command in a child (first_process.c), and gets the exit code;
 * -1: the calling process is to run the command. */
int cli_first_process(void);
/* Flushes standard output. Logs an error and returns false if part of the output could not be
 * written. */
bool cli_streams_flush(void);

/* Fills *a. Logs one line and returns false on bad usage. */
bool cli_parse(const ls_command *, int argc, char **argv, ls_args *a);
void cli_args_free(ls_args *);

/* The last value of an option, or NULL. An invalid option number is a bug of the caller. */
const char *cli_value(const ls_args *, int option);
bool cli_given(const ls_args *, int option);

/* Paths one a line, as data.path of several files is; free() it. NULL: there are none. */
char *cli_join(const char *const *words, int n);

/* Parse a number. Log one line and return false if the value is not a number or is out of range. */
bool cli_integer(const ls_command *, const ls_args *, int option, int64_t low, int64_t high,
                 int64_t *value_p);
bool cli_real(const ls_command *, const ls_args *, int option, double low, double high,
              double *value_p);

/* The option --insecure: sets it in the environment that started workers inherit, and logs one line
 * on the risks. */
void cli_make_insecure(void);

/* Appends a command-line word for a shell, quoted if necessary. Puts ./ before a path that begins
 * with '-', so that it is not taken for an option. */
void cli_quote(ls_buf *, const char *word);

/* The whole command line, with words quoted for a shell; free() it. */
char *cli_command_line(const ls_args *);

/* The name of a config: configs/demo.yaml -> demo. free() it. */
char *cli_config_name(const char *path);
/* The directory that the option names, else runs/NAME with a suffix, by the config's name: free()
 * it. */
char *cli_output(const ls_args *, int option, const char *suffix);

/* Logs that there is no such command and which one may be meant; returns CLI_USAGE. The line begins
 * with `where`. */
int cli_no_command(const char *where, const char *word);

/* Logs the error's message and returns CLI_FAILED. */
int cli_fail(const ls_error *);

void cli_help_command(const ls_command *, ls_buf *);
void cli_completion(ls_buf *); /* a script for bash */

#endif
