/* help.c - help texts, the man page and shell completion, all from the tables of commands. */
#include <stdio.h>
#include <string.h>

#include "base/log.h"
#include "cli/cli.h"
#include "train/config.h"

static void put_option(const ls_option *o, ls_buf *out) {
    char left[64];
    snprintf(left, sizeof left, "%c%c%s--%s%s%s", o->letter ? '-' : ' ',
             o->letter ? o->letter : ' ', o->letter ? ", " : "  ", o->name, o->value ? " " : "",
             o->value ? o->value : "");
    ls_buf_printf(out, "  %-26s %s\n", left, o->help);
}

void cli_help_command(const ls_command *c, ls_buf *out) {
    ls_buf_printf(out, "usage: lockstep %s%s%s%s\n\n%s\n", c->name, *c->words ? " " : "", c->words,
                  c->options[0].name ? " [options]" : "", c->about);
    if (c->options[0].name) ls_buf_printf(out, "\noptions:\n");
    for (int i = 0; c->options[i].name; i++) put_option(&c->options[i], out);
}

void cli_help_all(ls_buf *out) {
    ls_buf_printf(out, "lockstep trains models on many workers at once, to the same bits whatever "
                       "their number.\n\nusage: lockstep COMMAND [options]\n\ncommands:\n");
    for (int i = 0; cli_commands[i]; i++)
        ls_buf_printf(out, "  %-10s %s\n", cli_commands[i]->name, cli_commands[i]->summary);
    ls_buf_printf(out, "\n  --help, --version\n\n'lockstep help COMMAND' tells of a command, "
                       "'lockstep help config' of all keys of a config.\n"
                       "Exit codes: 0 done, 1 failed, 2 bad usage.\n"
                       "LOCKSTEP_CPU=avx512|avx2|neon|portable in the environment chooses the "
                       "kernels.\n");
}

/* ---- man page: roff; a leading dot or quote is escaped, and '-' and '\' where they mean something
 * ---- */

static void put_roff(const char *text, ls_buf *out) {
    bool line_start = true;
    for (; *text; text++) {
        if (line_start && (*text == '.' || *text == '\'')) ls_buf_printf(out, "\\&");
        if (*text == '\\' || *text == '-')
            ls_buf_printf(out, "\\%c", *text == '\\' ? 'e' : '-');
        else
            ls_buf_append(out, text, 1);
        line_start = *text == '\n';
    }
}

static void man_command(const ls_command *c, ls_buf *out) {
    ls_buf_printf(out, ".SS \"lockstep %s %s\"\n", c->name, c->words);
    put_roff(c->about, out);
    ls_buf_printf(out, "\n");
    for (int i = 0; c->options[i].name; i++) {
        const ls_option *o = &c->options[i];
        ls_buf_printf(out, ".TP\n.B ");
        if (o->letter) ls_buf_printf(out, "\\-%c, ", o->letter);
        put_roff("--", out);
        put_roff(o->name, out);
        ls_buf_printf(out, "%s%s\n", o->value ? " " : "", o->value ? o->value : "");
        put_roff(o->help, out);
        ls_buf_printf(out, "\n");
    }
}

static void man_page(ls_buf *out) {
    ls_buf_printf(out,
                  ".TH LOCKSTEP 1 \"\" \"lockstep %s\"\n.SH NAME\nlockstep \\- data\\-parallel "
                  "training, to the same bits whatever the number of workers\n.SH SYNOPSIS\n"
                  ".B lockstep\n.I COMMAND\n[options]\n.SH COMMANDS\n",
                  LS_VERSION);
    for (int i = 0; cli_commands[i]; i++) man_command(cli_commands[i], out);
    ls_buf keys = {0};
    ls_config_help(&keys);
    ls_buf_printf(out, ".SH CONFIG\n.nf\n");
    put_roff(keys.data, out);
    ls_buf_printf(out,
                  ".fi\n.SH ENVIRONMENT\n.TP\n.B LOCKSTEP_CPU\navx512, avx2, neon or portable: "
                  "chooses the kernels, of those that this processor runs; all give the same "
                  "bits.\n.SH EXIT STATUS\n0 done, 1 failed, 2 bad "
                  "usage.\n");
    ls_buf_free(&keys);
}

static void bash_completion(ls_buf *out) {
    ls_buf_printf(out, "# bash completion of lockstep: eval \"$(lockstep help --bash)\"\n"
                       "_lockstep() {\n    local words='' word=${COMP_WORDS[COMP_CWORD]}\n"
                       "    if [ \"$COMP_CWORD\" -eq 1 ]; then\n        words='--help --version");
    for (int i = 0; cli_commands[i]; i++) ls_buf_printf(out, " %s", cli_commands[i]->name);
    ls_buf_printf(out, "'\n    else\n        case ${COMP_WORDS[1]} in\n");
    for (int i = 0; cli_commands[i]; i++) {
        const ls_command *c = cli_commands[i];
        ls_buf_printf(out, "        %s) words='--help", c->name);
        for (int k = 0; c->options[k].name; k++) ls_buf_printf(out, " --%s", c->options[k].name);
        ls_buf_printf(out, "' ;;\n");
    }
    ls_buf_printf(out, "        esac\n        [ \"${word#-}\" = \"$word\" ] && words=''\n    fi\n"
                       "    COMPREPLY=($(compgen -W \"$words\" -- \"$word\"))\n}\n"
                       "complete -o default -F _lockstep lockstep\n");
}

enum { MAN, BASH };

static int run(const ls_args *a) {
    ls_buf out = {0};
    const char *topic = a->nwords ? a->words[0] : NULL;
    const ls_command *c = NULL;
    for (int i = 0; topic && cli_commands[i]; i++)
        if (strcmp(topic, cli_commands[i]->name) == 0) c = cli_commands[i];
    if (cli_given(a, MAN))
        man_page(&out);
    else if (cli_given(a, BASH))
        bash_completion(&out);
    else if (c)
        cli_help_command(c, &out);
    else if (topic && strcmp(topic, "config") == 0)
        ls_config_help(&out);
    else if (topic) {
        return cli_no_command("help: ", topic);
    } else
        cli_help_all(&out);
    fwrite(out.data, 1, out.len, stdout);
    ls_buf_free(&out);
    return 0;
}

const ls_command cmd_help = {
    .name = "help",
    .words = "[COMMAND|config]",
    .max_words = 1,
    .summary = "tell of a command, or of the keys of a config",
    .about = "Prints help for a command, or the reference of all config keys.",
    .options = {[MAN] = {"man", 0, NULL, "print the man page"},
                [BASH] = {"bash", 0, NULL, "print the completion for bash"}},
    .run = run,
};
