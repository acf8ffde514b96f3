/* options.c - reading the command line by a command's table. */
#include <errno.h>
#include <getopt.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "cli/cli.h"

enum { FIRST_CODE = 256 };

static bool usage(const ls_command *c, const char *what) {
    ls_log("%s: %s; see 'lockstep help %s'", c->name, what, c->name);
    return false;
}

static void build(const ls_command *c, struct option *longs, char *shorts) {
    if (c->takes_rest) *shorts++ = '+';
    *shorts++ = ':';
    for (int i = 0; c->options[i].name; i++) {
        const ls_option *o = &c->options[i];
        longs[i] = (struct option){o->name, o->value ? required_argument : no_argument, NULL,
                                   FIRST_CODE + i};
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

bool cli_parse(const ls_command *c, int argc, char **argv, ls_args *a) {
    struct option longs[CLI_MAX_OPTIONS + 1] = {{0}};
    char shorts[2 * CLI_MAX_OPTIONS + 3], line[256];
    build(c, longs, shorts);
    optind = 1;
    opterr = 0;
    for (int code; (code = getopt_long(argc, argv, shorts, longs, NULL)) != -1;) {
        int option = code == '?' || code == ':' ? -1 : option_of(c, code);
        if (option >= 0) {
            add_value(a, option, optarg);
            continue;
        }
        snprintf(line, sizeof line, code == ':' ? "%s needs a value" : "unknown option %s",
                 argv[optind - 1]);
        return usage(c, line);
    }
    a->rest = argv + optind;
    for (; optind < argc && !(c->takes_rest && a->nwords == c->max_words); optind++) {
        if (a->nwords == c->max_words) {
            snprintf(line, sizeof line, "'%s' is one argument too many", argv[optind]);
            return usage(c, line);
        }
        a->words[a->nwords++] = argv[optind];
    }
    if (a->nwords < c->min_words) {
        snprintf(line, sizeof line, "%s is missing", c->words);
        return usage(c, line);
    }
    return true;
}

void cli_args_free(ls_args *a) {
    for (int i = 0; i < CLI_MAX_OPTIONS; i++) free(a->options[i].values);
}

const char *cli_value(const ls_args *a, int option) {
    int n = a->options[option].n;
    return n ? a->options[option].values[n - 1] : NULL;
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

int cli_fail(const ls_error *e) {
    if (e->msg[0]) ls_log("%s", e->msg); /* else another worker tells it */
    return CLI_FAILED;
}

void cli_make_insecure(void) {
    setenv("LOCKSTEP_INSECURE", "1", 1);
    ls_log(
        "insecure: over tcp anyone who reaches a worker's port can join, read and change what is "
        "sent: there is no key, no encryption");
}
