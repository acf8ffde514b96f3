/* cmd_status.c - lockstep status */
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/columns.h"
#include "base/file.h"
#include "base/log.h"
#include "base/print.h"
#include "cli/cli.h"
#include "report/run_list.h"
#include "report/run_status.h"

enum { WATCH, JSON };

static const char BEGIN_AGAIN[] = "\033[H\033[J"; /* clears a terminal */

/* ---- what is there now ---- */

static void log_left_out(const ls_run_list *l) {
    if (l->nunread == 1)
        ls_log("%s: can't be read: %s; runs below it are not shown", l->unread, strerror(l->why));
    if (l->nunread > 1)
        ls_log("%s and %zu other directories can't be read (%s); runs below them are not shown",
               l->unread, l->nunread - 1, strerror(l->why));
    if (l->cut)
        ls_log("there are more than %d directories; those after them were not looked at",
               LS_RUN_LIST_MOST);
}

/* Cuts lines to the width of the terminal, and leaves out those that it has no rows for: else each
 * new picture would begin below the last one. */
static void fit(const ls_run_status *list, size_t n, ls_buf *out) {
    enum { OTHERS = 3 }; /* rows: names of the columns, how many are left out, the cursor */
    int columns = ls_columns_of(STDOUT_FILENO, INT_MAX);
    int rows = ls_columns_rows(STDOUT_FILENO, INT_MAX);
    size_t most = rows > OTHERS ? (size_t)(rows - OTHERS) : 1, shown = n <= most + 1 ? n : most;
    ls_buf text = {0};
    ls_run_status_print(list, shown, &text);
    for (char *at = text.data, *end = at + text.len, *next; at < end; at = next) {
        char *stop = memchr(at, '\n', (size_t)(end - at));
        size_t len = (size_t)(stop - at);
        ls_buf_append(out, at, ls_columns_cut(at, len, columns));
        ls_buf_append(out, "\n", 1);
        next = stop + 1;
    }
    ls_buf_free(&text);
    if (shown < n) ls_buf_printf(out, "and %zu more\n", n - shown);
}

static void print(const ls_run_status *list, size_t n, bool json, bool redraws) {
    ls_buf text = {0};
    for (size_t i = 0; json && i < n; i++) {
        ls_json *o = ls_run_status_json(&list[i]);
        ls_print_json(o);
    }
    if (!json && n && redraws) fit(list, n, &text);
    if (!json && n && !redraws) ls_run_status_print(list, n, &text);
    if (text.len) ls_print_text(text.data, text.len);
    ls_buf_free(&text);
}

/* Returns the exit code. redraws: the terminal is cleared first, once all is known. */
static int show(const char *const *dirs, int ndirs, bool json, bool redraws) {
    ls_run_list l = {0};
    ls_error e = {0};
    ls_status s = LS_OK;
    for (int i = 0; s == LS_OK && i < ndirs; i++) s = ls_run_list_add(dirs[i], &l, &e);
    ls_run_status *list = LS_NEW_ARRAY(ls_run_status, l.n + 1);
    for (size_t i = 0; s == LS_OK && i < l.n; i++) ls_run_status_read(l.runs[i], &list[i]);
    if (redraws) ls_print_own(BEGIN_AGAIN, sizeof BEGIN_AGAIN - 1);
    if (s == LS_OK) print(list, l.n, json, redraws);
    if (s == LS_OK && !l.n && !json)
        ls_print("%s: no runs are there: directories with a config.yaml that `lockstep train` has "
                 "made\n",
                 dirs[0]);
    fflush(stdout);
    if (s == LS_OK) log_left_out(&l);
    for (size_t i = 0; s == LS_OK && i < l.n; i++) ls_run_status_free(&list[i]);
    free(list);
    int code = s != LS_OK ? cli_fail(&e) : l.nunread || l.cut ? CLI_FAILED : 0;
    ls_run_list_free(&l);
    return code;
}

/* ---- again and again ---- */

static void wait_for(double seconds) {
    struct timespec t = {.tv_sec = (time_t)seconds};
    t.tv_nsec = (long)((seconds - (double)t.tv_sec) * 1e9);
    nanosleep(&t, NULL);
}

static bool is_number(const char *word) {
    return *word && word[strspn(word, "0123456789.")] == 0 && !ls_file_exists(word);
}

/* The seconds of --watch=SECONDS, or of the word after --watch, which is then no directory. False:
 * bad usage, which is logged. */
static bool read_seconds(const ls_args *a, const char **dirs, int *ndirs_p, double *seconds_p) {
    const char *value = cli_value(a, WATCH);
    int n = 0;
    for (int i = 0; i < a->nwords; i++) {
        if (value && !*value && is_number(a->words[i]))
            value = a->words[i];
        else
            dirs[n++] = a->words[i];
    }
    *ndirs_p = n;
    if (!value || !*value) return true;
    char *end = NULL;
    *seconds_p = strtod(value, &end);
    if (end != value && !*end && *seconds_p >= 0.1 && *seconds_p <= 86400) return true;
    ls_log("status: --watch '%.60s' is not a number of seconds from 0.1 to 86400", value);
    return false;
}

static int run(const ls_args *a) {
    const char *dirs[CLI_MAX_WORDS + 1];
    double seconds = 2;
    int n = 0;
    bool json = cli_given(a, JSON), watches = cli_given(a, WATCH);
    if (!read_seconds(a, dirs, &n, &seconds)) return CLI_USAGE;
    if (!n) dirs[n++] = ls_file_is_dir("runs") ? "runs" : ".";
    bool redraws = watches && !json && isatty(STDOUT_FILENO);
    for (;;) {
        int code = show(dirs, n, json, redraws);
        if (!watches || ferror(stdout)) return code;
        wait_for(seconds);
    }
}

const ls_command cmd_status = {
    .name = "status",
    .words = "[DIR...]",
    .max_words = CLI_MAX_WORDS,
    .summary = "what runs do: running, stopped, complete; their steps, losses, rates",
    .about =
        "Shows the runs below the directories, a line each; without a directory those below "
        "runs/,\n"
        "or else below the current one. States: running; stopped (a checkpoint is there, from "
        "which\n"
        "--resume continues); complete; diverged (the loss was no number any more); failed (it "
        "has\n"
        "ended, without a checkpoint); unknown (its process is on another host, or its config "
        "can't\n"
        "be read). The process is that which holds the run directory; rate and time left are by "
        "the\n"
        "last 20 steps, memory is that of all processes of the run on this host.\n"
        "\n"
        "Nothing in the runs is changed, and the lock of a run is not taken: its directory may be\n"
        "another user's, who lets you read it. Exit code 1 if a directory can't be read.",
    .options = {[WATCH] = {"watch", 0, "[SECONDS]",
                           "show it again every SECONDS (default: 2), on a terminal in place"},
                [JSON] = {"json", 0, NULL,
                          "for programs: a JSON object a run (docs/reference/json.md)"}},
    .run = run,
};
