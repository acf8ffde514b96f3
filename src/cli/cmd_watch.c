/* cmd_watch.c - lockstep watch */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/log.h"
#include "base/output.h"
#include "base/plural.h"
#include "base/print.h"
#include "cli/cli.h"
#include "http/visitor.h"
#include "net/launch/child.h"
#include "watch/export_page.h"
#include "watch/service.h"

enum { PORT, ADDRESS, HOST, CERTIFICATE, TLS_KEY, EXPORT, COLUMNS };
enum { DEFAULT_PORT = 7007, DEFAULT_COLUMNS = 1000, MOST_PORT = 65535 };

static volatile sig_atomic_t stopped;

static void stop(int number) { stopped = number; }

/* ---- one file ---- */

static int export_page(const char *const *dirs, int ndirs, const char *path, int64_t columns) {
    ls_watcher *w = NULL;
    ls_buf page = {0};
    ls_error e = {0};
    ls_status s = ls_output_check(path, &e);
    if (s == LS_OK) s = ls_watcher_open(dirs, ndirs, false, &w, &e);
    if (s == LS_OK) {
        ls_watcher_settle(w);
        ls_export_page(w, (int)columns, &page);
        s = ls_output_write(path, page.data, page.len, &e);
    }
    if (s == LS_OK)
        ls_log("%s: %d run%s, %zu bytes", path, w->nruns, ls_plural(w->nruns), page.len);
    ls_buf_free(&page);
    ls_watcher_close(w);
    return s == LS_OK ? 0 : cli_fail(&e);
}

/* ---- the service ---- */

/* Prints the URL, and how to open it from another computer. */
static void print_places(const ls_service_options *o, int port, int nruns) {
    char host[256] = "HOST";
    gethostname(host, sizeof host - 1);
    bool loopback = !o->address || ls_visitor_is_loopback(o->address);
    ls_buf name = {0};
    ls_visitor_name(o->address, o->names, o->nnames, &name);
    ls_print("http%s://%s:%d/%s%s\n", o->key ? "s" : "", name.data, port, o->token ? "?token=" : "",
             o->token ? o->token : "");
    ls_buf_free(&name);
    if (loopback)
        ls_print("from another computer: ssh -N -L %d:localhost:%d %s, and then this URL there\n",
                 port, port, host);
    fflush(stdout);
    ls_process_ignore(SIGPIPE); /* the reader of its log may end: tee */
    ls_log(nruns == 1 ? "watching %d run; Ctrl-C ends" : "watching %d runs; Ctrl-C ends", nruns);
}

/* The run goes first. What nice() returns may be negative. */
static void lower_priority(void) {
    errno = 0;
    if (nice(10) < 0 && errno) ls_log("watch: can't lower its own priority");
}

static int serve(const ls_service_options *o) {
    ls_service s = {0};
    ls_error e = {0};
    ls_process_handle_stops(stop);
    lower_priority();
    if (ls_service_open(o, &s, &e) != LS_OK) return cli_fail(&e);
    print_places(o, ls_http_port(s.http), s.watcher->nruns);
    ls_service_run(&s, &stopped);
    ls_service_close(&s);
    return 0;
}

/* Another address than that of this host alone needs a token: one from the environment, or a new
 * one. False: it can't be made, which is logged. */
static bool take_token(ls_service_options *o, char token[LS_TOKEN_TEXT]) {
    ls_error e = {0};
    const char *own = getenv("LOCKSTEP_WATCH_TOKEN");
    if (own && strlen(own) < 16) {
        ls_log("watch: LOCKSTEP_WATCH_TOKEN has fewer than 16 characters");
        return false;
    }
    o->token = own;
    if (own || !o->address || ls_visitor_is_loopback(o->address)) return true;
    if (ls_visitor_token_make(token, &e) != LS_OK) {
        cli_fail(&e);
        return false;
    }
    o->token = token;
    return true;
}

static int run(const ls_args *a) {
    int64_t port = DEFAULT_PORT, columns = DEFAULT_COLUMNS;
    char token[LS_TOKEN_TEXT];
    static const char *const all[] = {"runs"}, *const here[] = {"."};
    const char *const *dirs = a->nwords ? a->words : ls_file_is_dir("runs") ? all : here;
    int ndirs = a->nwords ? a->nwords : 1;
    if (!cli_integer(&cmd_watch, a, PORT, 0, MOST_PORT, &port) ||
        !cli_integer(&cmd_watch, a, COLUMNS, 10, 4000, &columns))
        return CLI_USAGE;
    if (cli_given(a, COLUMNS) && !cli_given(a, EXPORT)) {
        ls_log("watch: --columns belongs to --export");
        return CLI_USAGE;
    }
    if (cli_given(a, EXPORT)) return export_page(dirs, ndirs, cli_value(a, EXPORT), columns);
    ls_service_options o = {.dirs = dirs,
                            .ndirs = ndirs,
                            .address = cli_value(a, ADDRESS),
                            .certificate = cli_value(a, CERTIFICATE),
                            .key = cli_value(a, TLS_KEY),
                            .port = (int)port,
                            .names = a->options[HOST].values,
                            .nnames = a->options[HOST].n};
    return take_token(&o, token) ? serve(&o) : CLI_USAGE;
}

const ls_command cmd_watch = {
    .name = "watch",
    .words = "[DIR...]",
    .max_words = CLI_MAX_WORDS,
    .summary = "show runs on a page: curves that move, states, several runs over each other",
    .about =
        "Serves a page about the runs below the directories (without one: those below runs/, or\n"
        "else below the current one), for a browser on this computer, or on another one through\n"
        "ssh: both lines are printed. The curves move while the runs train; steps that a resumed\n"
        "run takes back disappear. Nothing is installed, stored or loaded from elsewhere, and\n"
        "nothing in the runs is changed.\n"
        "\n"
        "It listens at 127.0.0.1, so that this computer's users can open it, and nobody else. "
        "With\n"
        "--address others can, who have the token that the URL shows (or that the variable\n"
        "LOCKSTEP_WATCH_TOKEN names). The connection is not encrypted: ssh is.\n"
        "\n"
        "--export writes the page with the runs in it to one file, which opens without a server.",
    .options =
        {[PORT] = {"port", 0, "N", "listen at this port; 0: a free one (default: 7007)"},
         [ADDRESS] = {"address", 0, "ADDRESS",
                      "listen at this address of the host; needs a token (default: 127.0.0.1)"},
         [HOST] = {"host", 0, "NAME",
                   "a further name under which it may be asked, e.g. that of a proxy; repeatable"},
         [CERTIFICATE] = {"tls-cert", 0, "FILE", "answer by TLS, with this certificate in PEM"},
         [TLS_KEY] = {"tls-key", 0, "FILE", "the certificate's key"},
         [EXPORT] = {"export", 0, "FILE", "write the page to FILE.html, and serve nothing"},
         [COLUMNS] = {"columns", 0, "N", "of --export: stretches of each curve (default: 1000)"}},
    .run = run,
};
