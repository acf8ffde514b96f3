/* options.c - parses the command line by the command's table of options. */
#include <errno.h>
#include <getopt.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/log.h"
#include "base/nearest.h"
#include "base/shell_word.h"
#include "cli/cli.h"

enum { WORD = 1, FIRST_CODE = 256 };

static bool usage(const ls_command *c, const char *what) {
    ls_log("%s: %s; see 'lockstep help %s'", c->name, what, c->name);
    return false;
}

static void build(const ls_command *c, struct option *longs, char *shorts) {
    *shorts++ = c->takes_rest ? '+' : '-'; /* '-': words are reported in their order, as WORD */
    *shorts++ = ':';
    for (int i = 0; c->options[i].name; i++) {
        const ls_option *o = &c->options[i];
        int takes = !o->value          ? no_argument
                    : *o->value == '[' ? optional_argument
                                       : required_argument;
        longs[i] = (struct option){o->name, takes, NULL, FIRST_CODE + i};
        if (!o->letter) continue;
        *shorts++ = o->letter;
        if (o->value) *shorts++ = ':';
    }
    *shorts = 0;
}

static int option_of(const ls_command *c, int code) {
    if (code >= FIRST_CODE) return code - FIRST_CODE;
    for (int i = 0; c->options[i].name; i++)
        if (c->options[i].letter == code) return i;
    return -1;
}

static void add_value(ls_args *a, int option, const char *value) {
    int n = a->options[option].n++;
    a->options[option].values = ls_grow(a->options[option].values, (size_t)n, sizeof(const char *));
    a->options[option].values[n] = value ? value : "";
}

static bool add_word(const ls_command *c, ls_args *a, const char *word) {
    char line[256];
    if (a->nwords < c->max_words) {
        a->words[a->nwords++] = word;
        return true;
    }
    snprintf(line, sizeof line, "'%.200s' is one argument too many", word);
    return usage(c, line);
}

/* Appends the options that begin with `name` [n], or the one of which it may be a misspelling. */
static int put_meant(const ls_command *c, const char *name, size_t n, ls_buf *out) {
    int found = 0;
    for (int i = 0; n && c->options[i].name; i++)
        if (strncmp(c->options[i].name, name, n) == 0)
            ls_buf_printf(out, "%s --%s", found++ ? " or" : " (did you mean", c->options[i].name);
    char *word = ls_format("%.*s", (int)n, name);
    for (int i = 0; !found && c->options[i].name; i++)
        if (ls_is_near(word, c->options[i].name))
            ls_buf_printf(out, "%s --%s", found++ ? " or" : " (did you mean", c->options[i].name);
    if (found) ls_buf_printf(out, "?)");
    free(word);
    return found;
}

/* Names that commands and other programs have for the same option. */
static const char *const same[][6] = {{"o", "output", "out", "to", "save", "svg"},
                                      {"n", "workers", "np", "nproc", "nproc_per_node", NULL}};
enum { NSAME = sizeof same / sizeof *same, NNAMES = sizeof *same / sizeof **same };

static bool is_among(const char *const *names, const char *name, size_t n) {
    for (int i = 0; i < NNAMES && names[i]; i++)
        if (strlen(names[i]) == n && strncmp(names[i], name, n) == 0) return true;
    return false;
}

/* Appends the option that does in this command what `name` [n] does in others. */
static void put_same(const ls_command *c, const char *name, size_t n, ls_buf *out) {
    for (int k = 0; k < NSAME; k++)
        for (int i = 0; is_among(same[k], name, n) && c->options[i].name; i++) {
            const char *own = c->options[i].name;
            if (!is_among(same[k], own, strlen(own))) continue;
            ls_buf_printf(out, " (did you mean --%s?)", own);
            return;
        }
}

/* Reports a word that getopt_long() did not accept; `code` is its answer. */
static bool bad_option(const ls_command *c, int code, const char *word) {
    bool is_long = strncmp(word, "--", 2) == 0;
    const char *name = is_long ? word + 2 : word + 1;
    size_t n = is_long ? strcspn(name, "=") : *name != 0;
    ls_buf line = {0};
    if (code == ':') {
        ls_buf_printf(&line, "%.200s needs a value", word);
    } else if (optopt >= FIRST_CODE) {
        ls_buf_printf(&line, "--%s takes no value", c->options[optopt - FIRST_CODE].name);
    } else {
        ls_buf_printf(&line, "unknown option %.200s", word);
        if (!is_long || !put_meant(c, name, n, &line)) put_same(c, name, n, &line);
    }
    usage(c, line.data);
    ls_buf_free(&line);
    return false;
}

/* Whether the word is an option of this command; if so, the preceding option lacks its value. */
static bool is_option(const ls_command *c, const char *word) {
    if (word[0] != '-' || !word[1]) return false;
    if (word[1] != '-') return !word[2] && option_of(c, word[1]) >= 0;
    size_t n = strcspn(word + 2, "=");
    for (int i = 0; c->options[i].name; i++)
        if (strlen(c->options[i].name) == n && strncmp(c->options[i].name, word + 2, n) == 0)
            return true;
    return false;
}

static bool parse_options(const ls_command *c, int argc, char **argv, ls_args *a) {
    struct option longs[CLI_MAX_OPTIONS + 1] = {{0}};
    char shorts[2 * CLI_MAX_OPTIONS + 3];
    build(c, longs, shorts);
    optind = 1;
    opterr = 0;
    for (;;) {
        const char *word = argv[optind]; /* the one that getopt_long() parses */
        int code = getopt_long(argc, argv, shorts, longs, NULL);
        if (code == -1) return true;
        if (code == WORD && !add_word(c, a, optarg)) return false;
        if (code == WORD) continue;
        int option = code == '?' || code == ':' ? -1 : option_of(c, code);
        if (option < 0) return bad_option(c, code, word);
        if (optarg && optarg == argv[optind - 1] && is_option(c, optarg)) {
            ls_buf line = {0};
            ls_buf_printf(&line, "%.200s needs a value, and %.200s is an option", word, optarg);
            usage(c, line.data);
            ls_buf_free(&line);
            return false;
        }
        add_value(a, option, optarg);
    }
}

/* Names the words that are needed from the first missing one on: those of the usage, without what
 * is optional, in brackets, and without the dots of a word that may be repeated. */
static bool fail_missing(const ls_command *c, int given) {
    char line[256];
    const char *missing = c->words;
    for (int i = 0; i < given && strchr(missing, ' '); i++) missing = strchr(missing, ' ') + 1;
    const char *optional = strstr(missing, " [");
    size_t n = optional ? (size_t)(optional - missing) : strlen(missing);
    while (n && missing[n - 1] == '.') n--;
    snprintf(line, sizeof line, "%.*s is missing", (int)n, missing);
    return usage(c, line);
}

bool cli_parse(const ls_command *c, int argc, char **argv, ls_args *a) {
    if (!parse_options(c, argc, argv, a)) return false;
    a->rest = argv + optind;
    for (; optind < argc && !(c->takes_rest && a->nwords == c->max_words); optind++)
        if (!add_word(c, a, argv[optind])) return false;
    return a->nwords >= c->min_words || fail_missing(c, a->nwords);
}

void cli_args_free(ls_args *a) {
    for (int i = 0; i < CLI_MAX_OPTIONS; i++) free(a->options[i].values);
}

const char *cli_value(const ls_args *a, int option) {
    int n = a->options[option].n;
    return n ? a->options[option].values[n - 1] : NULL;
}

char *cli_join(const char *const *words, int n) {
    ls_buf b = {0};
    for (int i = 0; i < n; i++) ls_buf_printf(&b, "%s%s", i ? "\n" : "", words[i]);
    return b.data;
}

bool cli_given(const ls_args *a, int option) { return a->options[option].n > 0; }

bool cli_integer(const ls_command *c, const ls_args *a, int option, int64_t low, int64_t high,
                 int64_t *value_p) {
    const char *text = cli_value(a, option);
    if (!text) return true;
    char *end = NULL, line[256];
    errno = 0;
    long long v = strtoll(text, &end, 10);
    if (*text && !*end && !errno && v >= low && v <= high) {
        *value_p = v;
        return true;
    }
    snprintf(line, sizeof line, "--%s: '%s' is not a whole number from %lld to %lld",
             c->options[option].name, text, (long long)low, (long long)high);
    return usage(c, line);
}

bool cli_real(const ls_command *c, const ls_args *a, int option, double low, double high,
              double *value_p) {
    const char *text = cli_value(a, option);
    if (!text) return true;
    char *end = NULL, line[256];
    double v = strtod(text, &end);
    if (*text && !*end && isfinite(v) && v >= low && v <= high) {
        *value_p = v;
        return true;
    }
    snprintf(line, sizeof line, "--%s: '%s' is not a number from %g to %g", c->options[option].name,
             text, low, high);
    return usage(c, line);
}

int cli_no_command(const char *where, const char *word) {
    const char *meant = NULL;
    for (int i = 0; cli_commands[i]; i++)
        if (ls_is_near(word, cli_commands[i]->name) &&
            (!meant ||
             ls_edit_distance(word, cli_commands[i]->name) < ls_edit_distance(word, meant)))
            meant = cli_commands[i]->name;
    ls_log("%sthere is no command '%s'%s%s%s; see 'lockstep help'", where, word,
           meant ? " (did you mean '" : "", meant ? meant : "", meant ? "'?)" : "");
    return CLI_USAGE;
}

int cli_fail(const ls_error *e) {
    if (e->msg[0]) ls_log("%s", e->msg); /* an empty message: another worker reports the error */
    return CLI_FAILED;
}

void cli_make_insecure(void) {
    setenv("LOCKSTEP_INSECURE", "1", 1);
    ls_log(
        "insecure: over TCP anyone who reaches a worker's port can join, read and change what is "
        "sent: there is no key and no encryption");
}

/* ---- words and names ---- */

void cli_quote(ls_buf *out, const char *word) {
    if (*word == '-') ls_buf_printf(out, "./");
    ls_shell_word(out, word);
}

char *cli_command_line(const ls_args *a) {
    ls_buf b = {0};
    for (int i = 0; i < a->argc; i++) {
        if (i) ls_buf_append(&b, " ", 1);
        ls_shell_word(&b, a->argv[i]);
    }
    return b.data ? b.data : ls_strdup("");
}

char *cli_config_name(const char *path) {
    const char *base = ls_file_name(path), *dot = strrchr(base, '.');
    return ls_format("%.*s", (int)(dot && dot != base ? dot - base : (long)strlen(base)), base);
}

char *cli_output(const ls_args *a, int option, const char *suffix) {
    if (cli_given(a, option)) return ls_strdup(cli_value(a, option));
    char *name = cli_config_name(a->words[0]), *dir = ls_format("runs/%s%s", name, suffix);
    free(name);
    return dir;
}
