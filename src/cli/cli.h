/* cli.h - the commands of `lockstep`, as tables.
 *
 * Each command is one file with one ls_command: its words, options, help and function. Help texts,
 * the man page and shell completion are all made from these tables (help.c,
 * completion.c).
 */
#ifndef LS_CLI_CLI_H
#define LS_CLI_CLI_H

#include <stdbool.h>

#include "base/mem.h"

/* Exit codes; CLI_UNFINISHED is the EX_TEMPFAIL of sysexits.h: start it again. */
enum { CLI_FAILED = 1, CLI_USAGE = 2, CLI_UNFINISHED = 75 };
enum { CLI_MAX_OPTIONS = 24, CLI_MAX_WORDS = 4 };

typedef struct ls_option {
    const char *name;  /* without "--" */
    char letter;       /* or 0 */
    const char *value; /* its name in help; NULL: takes none */
    const char *help;
} ls_option;

typedef struct ls_args {
    const char *words[CLI_MAX_WORDS]; /* what is not an option */
    int nwords;
    struct {
        const char **values;
        int n;
    } options[CLI_MAX_OPTIONS]; /* in the order of the command's table */
    char *const *rest;          /* the command line from the first word on, NULL-terminated */
    const char *program;        /* as the user called it */
    int64_t began_ns;
} ls_args;

typedef struct ls_command {
    const char *name;
    const char *words; /* in usage, e.g. "CONFIG.yaml" */
    int min_words, max_words;
    bool takes_rest; /* the first word ends the options: all from there on is another program's */
    bool outlives_output; /* it goes on, and may succeed, where its output can't be written */
    bool is_worker;       /* a launcher may start several: each is a worker of one group */
    const char *summary;  /* one line */
    const char *about;    /* paragraphs */
    ls_option options[CLI_MAX_OPTIONS]; /* ends with name NULL */
    int (*run)(const ls_args *);        /* exit code */
} ls_command;

extern const ls_command cmd_train, cmd_eval, cmd_generate, cmd_plan, cmd_bench, cmd_run, cmd_ckpt,
    cmd_scale, cmd_help;
extern const ls_command *const cli_commands[]; /* ends with NULL */

/* When the program begins: of standard input, output and error those that are closed become
 * descriptors on which reads and writes fail, so that no file gets their numbers. */
void cli_streams_open(void);
/* Writes out what was printed. False, with a line: some of it could not be written. */
bool cli_streams_flush(void);

/* Fills *a; prints one line and returns false on bad usage. */
bool cli_parse(const ls_command *, int argc, char **argv, ls_args *a);
void cli_args_free(ls_args *);

/* The last value of an option, or NULL. Bad option numbers are our own bugs. */
const char *cli_value(const ls_args *, int option);
bool cli_given(const ls_args *, int option);

/* Numbers; false, with a line, where the value is none or out of range. */
bool cli_integer(const ls_command *, const ls_args *, int option, int64_t low, int64_t high,
                 int64_t *value_p);
bool cli_real(const ls_command *, const ls_args *, int option, double low, double high,
              double *value_p);

/* The option --insecure: workers that are started find it in their environment. Says in one line
 * what is given up. */
void cli_make_insecure(void);

/* Appends a word of a command line as a shell reads it: in quotes where it needs them. A path that
 * begins with '-' is no option. */
void cli_quote(ls_buf *, const char *word);

/* Says that there is no such command, and which one may be meant; returns CLI_USAGE. `where` begins
 * the line. */
int cli_no_command(const char *where, const char *word);

/* Prints the error's line and returns CLI_FAILED. */
int cli_fail(const ls_error *);

void cli_help_all(ls_buf *);
void cli_help_command(const ls_command *, ls_buf *);
void cli_completion(ls_buf *); /* a script for bash */

#endif
