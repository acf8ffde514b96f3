/* help.c - help texts and the man page, from the tables of commands. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/name.h"
#include "base/wrap.h"
#include "cli/cli.h"
#include "config/config.h"
#include "config/key.h"
#include "config/key_help.h"
#include "config/own.h"
#include "device/compiled.h"

enum { OPTION_COLUMNS = 29 };

/* The text with the program's name in its commands; the caller frees it. */
static char *named(const char *text) {
    size_t n = strlen(text), room = n + n * LS_NAME_NBYTES / sizeof "`lockstep" + 1;
    char *out = ls_alloc(room);
    ls_name_copy(text, n, out, room - 1);
    return out;
}

static void put_option(const ls_option *o, ls_buf *out) {
    char left[64];
    int n = snprintf(left, sizeof left, "  %c%c%s--%s%s%s", o->letter ? '-' : ' ',
                     o->letter ? o->letter : ' ', o->letter ? ", " : "  ", o->name,
                     o->value ? " " : "", o->value ? o->value : "");
    ls_buf_printf(out, "%s", left);
    if (n >= OPTION_COLUMNS)
        ls_buf_printf(out, "\n%*s", OPTION_COLUMNS, "");
    else
        ls_buf_printf(out, "%*s", OPTION_COLUMNS - n, "");
    char *help = named(o->help);
    ls_buf_wrap(out, help, OPTION_COLUMNS, OPTION_COLUMNS);
    free(help);
}

/* The length of the text's first line, without its end. */
static size_t line_length(const char *text) { return strcspn(text, "\n"); }

/* The position of an item's text, which follows two spaces, as in "show    step and tensors"; 0:
 * the line is not an item. */
static size_t item_text(const char *line) {
    size_t n = line_length(line);
    for (size_t i = 1; i + 2 < n; i++)
        if (line[i] == ' ' && line[i + 1] == ' ') return i + strspn(line + i, " ");
    return 0;
}

/* Joins the source lines into paragraphs and items that fill the width. Continuation lines of an
 * item begin with spaces; other lines that begin with four are an example, and stay as they are. */
static void put_about(const char *text, ls_buf *out) {
    while (*text) {
        size_t n = line_length(text), head = item_text(text);
        ls_buf part = {0};
        if (n == 0) { /* between paragraphs */
            ls_buf_printf(out, "\n");
            text++;
            continue;
        }
        if (strncmp(text, "    ", 4) == 0) {
            n += text[n] == '\n';
            ls_buf_append(out, text, n);
            text += n;
            continue;
        }
        ls_buf_printf(&part, "%.*s", (int)(n - head), text + head);
        ls_buf_printf(out, "%.*s", (int)head, text);
        int indent = (int)head;
        text += n + (text[n] == '\n');
        while (*text && *text != '\n' && (head ? *text == ' ' : !item_text(text))) {
            n = line_length(text);
            if (head) indent = (int)strspn(text, " ");
            ls_buf_printf(&part, " %.*s", (int)n, text);
            text += n + (text[n] == '\n');
        }
        ls_buf_wrap(out, part.data, (int)head, indent);
        ls_buf_free(&part);
    }
}

void cli_help_command(const ls_command *c, ls_buf *out) {
    ls_buf usage = {0};
    char *about = named(c->about);
    ls_buf_printf(&usage, "usage: %s %s %s%s", ls_name(), c->name, c->words,
                  c->options[0].name ? " [options]" : "");
    ls_buf_wrap(out, usage.data, 0, 7);
    ls_buf_free(&usage);
    ls_buf_printf(out, "\n");
    put_about(about, out);
    free(about);
    if (c->options[0].name) ls_buf_printf(out, "\noptions:\n");
    for (int i = 0; c->options[i].name; i++) put_option(&c->options[i], out);
}

static void put_all(ls_buf *out) {
    char *line = ls_format("%s trains %s on many workers at once, to the same bits for any number "
                           "of them.",
                           ls_name(), ls_config_program() ? "its model" : "models");
    ls_buf_wrap(out, line, 0, 0);
    free(line);
    ls_buf_printf(out, "\nusage: %s COMMAND [options]\n\ncommands:\n", ls_name());
    for (int i = 0; cli_commands[i]; i++) {
        ls_buf_printf(out, "  %-10s ", cli_commands[i]->name);
        ls_buf_wrap(out, cli_commands[i]->summary, 13, 13);
    }
    ls_buf_printf(out, "\n  --help, --version\n\n");
    char *topics = named(
        "'lockstep help COMMAND' explains a command, 'lockstep help config' the keys of a "
        "config, 'lockstep help config GROUP' the keys of a group, 'lockstep help optim.lr' one "
        "key.");
    ls_buf_wrap(out, topics, 0, 0);
    free(topics);
    ls_buf_printf(out, "Exit codes: 0 done, 1 failed, 2 bad usage.\n");
    ls_buf_wrap(out,
                "LOCKSTEP_CPU=amx|avx512bf16|avx512|avx2|neon|portable in the environment chooses "
                "the kernels, "
                "LOCKSTEP_WAIT_POLICY=passive lets threads that wait sleep at once.",
                0, 0);
}

/* ---- man page ----
 *
 * roff interprets a leading dot or quote, '-' and '\', which are therefore escaped.
 */

static void put_roff_part(const char *text, size_t n, ls_buf *out) {
    bool line_start = true;
    for (const char *end = text + n; text < end; text++) {
        if (line_start && (*text == '.' || *text == '\'')) ls_buf_printf(out, "\\&");
        if (*text == '\\' || *text == '-')
            ls_buf_printf(out, "\\%c", *text == '\\' ? 'e' : '-');
        else
            ls_buf_append(out, text, 1);
        line_start = *text == '\n';
    }
}

static void put_roff(const char *text, ls_buf *out) { put_roff_part(text, strlen(text), out); }

/* A line of the text of an option, an item or a variable: \fB is bold, \fI italic. */
static void man_term(const char *name, const char *value, ls_buf *out) {
    ls_buf_printf(out, "\\fB");
    put_roff(name, out);
    ls_buf_printf(out, "\\fR");
    if (!value) return;
    ls_buf_printf(out, " \\fI");
    put_roff(value, out);
    ls_buf_printf(out, "\\fR");
}

static void man_item(const char *name, const char *text, ls_buf *out) {
    ls_buf_printf(out, ".TP\n");
    man_term(name, NULL, out);
    ls_buf_printf(out, "\n");
    put_roff(text, out);
    ls_buf_printf(out, "\n");
}

/* Paragraphs, items and examples, as put_about() reads them. */
static void man_about(const char *text, ls_buf *out) {
    enum { PLAIN, ITEM, EXAMPLE } in = PLAIN;
    for (size_t n; *text; text += n + (text[n] == '\n')) {
        n = line_length(text);
        bool more = in == ITEM && *text == ' ';
        bool example = !more && strncmp(text, "    ", 4) == 0;
        size_t head = more || example ? 0 : item_text(text);
        size_t indent = example ? 4 : strspn(text, " ");
        if (in == EXAMPLE && !example) ls_buf_printf(out, ".fi\n.RE\n");
        if (n == 0 || (in == ITEM && !more && !head)) ls_buf_printf(out, ".PP\n");
        if (in != EXAMPLE && example) ls_buf_printf(out, ".RS 4\n.nf\n");
        in = example ? EXAMPLE : more || head ? ITEM : PLAIN;
        if (n == 0) continue;
        if (head) {
            char *name = ls_format("%.*s", (int)strcspn(text, " "), text);
            ls_buf_printf(out, ".TP\n");
            man_term(name, NULL, out);
            ls_buf_printf(out, "\n");
            free(name);
        }
        if (head) indent = head;
        put_roff_part(text + indent, n - indent, out);
        ls_buf_printf(out, "\n");
    }
    if (in == EXAMPLE) ls_buf_printf(out, ".fi\n.RE\n");
}

static void man_command(const ls_command *c, ls_buf *out) {
    ls_buf_printf(out, ".SS \"lockstep %s ", c->name);
    put_roff(c->words, out);
    ls_buf_printf(out, "\"\n");
    man_about(c->about, out);
    for (int i = 0; c->options[i].name; i++) {
        const ls_option *o = &c->options[i];
        char letter[] = {'-', o->letter, 0}, *name = ls_format("--%s", o->name);
        ls_buf_printf(out, ".TP\n");
        if (o->letter) man_term(letter, NULL, out);
        if (o->letter) ls_buf_printf(out, ", ");
        man_term(name, o->value, out);
        ls_buf_printf(out, "\n");
        put_roff(o->help, out);
        ls_buf_printf(out, "\n");
        free(name);
    }
}

/* docs/reference/commands.md has the same. */
static const char *const variables[][2] = {
    {"LOCKSTEP_KEY, LOCKSTEP_KEY_FILE",
     "the join key of workers and hosts over TCP, or a file with it"},
    {"LOCKSTEP_INSECURE", "1: no encryption and no key"},
    {"LOCKSTEP_TRANSPORT, LOCKSTEP_ALGORITHM, LOCKSTEP_LINKS, LOCKSTEP_EXPLAIN",
     "transports and algorithms of collectives"},
    {"LOCKSTEP_LISTEN", "the address at which a worker listens"},
    {"LOCKSTEP_PLUGINS", "the directory of the plugins for MPI"},
    {"LOCKSTEP_WAIT_POLICY",
     "active (the default) or passive: threads that wait for others sleep at once instead of "
     "spinning first, and leave the cores to other programs"},
    {"LOCKSTEP_CORES", "how many cores a command may use at most, without being bound to some"},
    {"LOCKSTEP_CPU",
     "amx, avx512bf16, avx512, avx2, neon or portable: chooses among the kernels that this "
     "processor can run; all give the same bits"},
    {"LOCKSTEP_SERVE_KEY", "the key that requests to lockstep serve need"},
    {"LOCKSTEP_WATCH_TOKEN", "the token of lockstep watch --address"},
    {"LOCKSTEP_ETCD_PASSWORD", "the password of survival.etcd_user"},
    {"LOCKSTEP_RESTART_COUNT",
     "set by lockstep run --restarts: how often it has started the program before"},
    {"RANK, WORLD_SIZE, MASTER_ADDR, MASTER_PORT", "torchrun's"},
    {"XDG_CACHE_HOME, SSL_CERT_FILE, NO_COLOR",
     "where the cache is; authorities of downloads; no colours"},
};
enum { NVARIABLES = sizeof variables / sizeof *variables };

static void man_page(ls_buf *out) {
    ls_buf keys = {0};
    ls_buf_printf(out,
                  ".TH LOCKSTEP 1 \"\" \"lockstep %s\"\n.SH NAME\nlockstep \\- data\\-parallel "
                  "training, to the same bits for any number of workers\n.SH SYNOPSIS\n"
                  ".B lockstep\n.I COMMAND\n[options]\n.SH DESCRIPTION\n"
                  "Trains models on many workers at once, to the same bits for any number of "
                  "them.\n",
                  LS_VERSION);
    for (int i = 0; cli_commands[i]; i++)
        man_item(cli_commands[i]->name, cli_commands[i]->summary, out);
    ls_buf_printf(out, ".SH COMMANDS\n");
    for (int i = 0; cli_commands[i]; i++) man_command(cli_commands[i], out);
    ls_config_help(NULL, &keys, NULL);
    ls_buf_printf(out, ".SH CONFIG\n.nf\n");
    put_roff(keys.data, out);
    ls_buf_printf(out, ".fi\n.SH ENVIRONMENT\n");
    for (int i = 0; i < NVARIABLES; i++) man_item(variables[i][0], variables[i][1], out);
    ls_buf_printf(out, ".SH EXIT STATUS\n");
    man_item("0", "done", out);
    man_item("1", "failed, with a message", out);
    man_item("2", "bad usage", out);
    man_item("3", "check: not decided", out);
    man_item("75", "train: stopped before the last step, with a checkpoint", out);
    ls_buf_printf(out,
                  ".SH SEE ALSO\nThe documents beside this page, in share/doc/lockstep: "
                  "docs/guide/start.md has first steps, docs/reference what all words mean.\n");
    ls_buf_free(&keys);
}

enum { MAN, BASH, CUDA };

/* Appends the help on the keys of a group, or on all keys. */
static bool help_config(const char *group, ls_buf *out) {
    ls_error e = {0};
    if (ls_config_help(group, out, &e) == LS_OK) return true;
    ls_log("help config: %s", e.msg);
    return false;
}

static void no_topic(const char *topic) {
    const char *key = ls_config_suggest_key(topic), *dot = key ? strrchr(key, '.') : NULL;
    if (!dot || strcmp(dot + 1, topic) != 0)
        cli_no_command("help: ", topic);
    else
        ls_log("help: there is no command '%s'; for the key of a config: 'lockstep help %s'", topic,
               key);
}

static bool help_topic(const ls_args *a, ls_buf *out) {
    const char *topic = a->nwords ? a->words[0] : NULL;
    bool is_config = topic && strcmp(topic, "config") == 0;
    if (a->nwords > 1 && !is_config) {
        ls_log("help: '%s' is one argument too many; only config has groups, as in 'lockstep help "
               "config optim'",
               a->words[1]);
        return false;
    }
    if (is_config) return help_config(a->nwords > 1 ? a->words[1] : NULL, out);
    if (topic && strchr(topic, '.')) return help_config(topic, out);
    for (int i = 0; topic && cli_commands[i]; i++)
        if (strcmp(topic, cli_commands[i]->name) == 0) {
            cli_help_command(cli_commands[i], out);
            return true;
        }
    if (topic && ls_config_key_is_group(topic)) return help_config(topic, out);
    if (topic)
        no_topic(topic);
    else
        put_all(out);
    return !topic;
}

static int run(const ls_args *a) {
    ls_buf out = {0};
    bool good = true;
    if (cli_given(a, MAN))
        man_page(&out);
    else if (cli_given(a, BASH))
        cli_completion(&out);
    else if (cli_given(a, CUDA))
        ls_compiled_text(&out);
    else
        good = help_topic(a, &out);
    if (good) fwrite(out.data, 1, out.len, stdout);
    ls_buf_free(&out);
    return good ? 0 : CLI_USAGE;
}

const ls_command cmd_help = {
    .name = "help",
    .words = "[COMMAND|config [GROUP]]",
    .max_words = 2,
    .summary = "explain a command or the keys of a config",
    .about = "Prints help on a command, or the reference of all config keys or of one group's\n"
             "keys, e.g. 'lockstep help config optim'.",
    .options = {[MAN] = {"man", 0, NULL, "print the man page"},
                [BASH] = {"bash", 0, NULL, "print the completion for bash"},
                [CUDA] = {"cuda", 0, NULL, "print the kernels of GPUs for nvcc"}},
    .run = run,
};
