/* log.c - see log.h. Each message is one write(), so that lines of several workers don't mix. */
#include "base/log.h"

#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/columns.h"
#include "base/escape.h"
#include "base/mem.h"
#include "base/utf8.h"

#define CLEAR_LINE "\r\033[K"

/* For so long a full pipe or a halted terminal is waited for, once. A line of up to PIPE_BUF bytes
 * fits wherever poll() finds room. */
enum { PATIENCE_MS = 500, MOST = PIPE_BUF };

static atomic_int nlost; /* lines, since the reader took the last one */

bool ls_log_is_terminal(void) { return isatty(STDERR_FILENO) == 1; }

/* Also where write() would fail at once. */
static bool can_write(void) {
    struct pollfd p = {.fd = STDERR_FILENO, .events = POLLOUT};
    int n = 0;
    do n = poll(&p, 1, atomic_load(&nlost) ? 0 : PATIENCE_MS);
    while (n < 0 && errno == EINTR);
    return n != 0;
}

static bool put(const char *text, size_t n) {
    if (!can_write()) return false;
    return write(STDERR_FILENO, text, n) >= 0 || errno != EAGAIN;
}

/* ---- what is kept ---- */

static struct {
    pthread_mutex_t lock;
    bool on, quiet;
    ls_buf text;
} kept = {.lock = PTHREAD_MUTEX_INITIALIZER};

void ls_log_hold(bool quiet) {
    kept.on = true;
    kept.quiet = quiet;
    ls_buf_append(&kept.text, "", 0);
}

const char *ls_log_held(void) { return !kept.on ? NULL : kept.text.data ? kept.text.data : ""; }

/* Is that all that is to be done with it? */
static bool keep(const char *line, size_t n) {
    pthread_mutex_lock(&kept.lock);
    bool done = kept.on && kept.quiet;
    if (kept.on) ls_buf_append(&kept.text, line, n);
    pthread_mutex_unlock(&kept.lock);
    return done;
}

/* ---- what is written ---- */

/* Says how many lines are missing before the first that is taken again. */
static void put_line(const char *line, size_t n) {
    char text[128];
    int lost = atomic_load(&nlost);
    if (keep(line, n)) return;
    int m = snprintf(text, sizeof text, "lockstep: %d line%s of this log lost: nobody read it\n",
                     lost, lost == 1 ? "" : "s");
    if (lost && put(text, (size_t)m)) atomic_fetch_sub(&nlost, lost);
    if (!put(line, n)) atomic_fetch_add(&nlost, 1);
}

/* A line that would wrap loses its last fields, which two spaces part. */
static size_t fit(const char *text, size_t n) {
    size_t fits = ls_columns_cut(text, n, ls_columns_of(STDERR_FILENO, 80) - 1);
    if (fits == n) return n;
    for (size_t i = fits; i > 1; i--)
        if (text[i - 1] == ' ' && text[i - 2] == ' ') return i - 2;
    return fits;
}

enum { WHOLE, CUT };

void ls_log_release(bool show) {
    pthread_mutex_lock(&kept.lock);
    bool was_quiet = kept.on && kept.quiet;
    kept.on = false;
    pthread_mutex_unlock(&kept.lock);
    if (was_quiet && show && kept.text.len) put_line(kept.text.data, kept.text.len);
    ls_buf_free(&kept.text);
}

static void log_write(const char *prefix, int how, const char *suffix, const char *fmt,
                      va_list args) {
    char raw[MOST], line[MOST];
    int m = vsnprintf(raw, sizeof raw, fmt, args);
    size_t length = m < 0 ? 0 : (size_t)m, n = strlen(prefix);
    if (length >= sizeof raw) length = ls_utf8_complete(raw, sizeof raw - 1);
    memcpy(line, prefix, n);
    size_t room = sizeof line - n - strlen(suffix);
    size_t shown = ls_escape(LS_ESCAPE_LINE, raw, length, line + n, room);
    n += how == CUT ? fit(line + n, shown) : shown;
    memcpy(line + n, suffix, strlen(suffix));
    put_line(line, n + strlen(suffix));
}

void ls_log(const char *fmt, ...) {
    va_list args;
    va_start(args, fmt);
    log_write(ls_log_is_terminal() ? CLEAR_LINE "lockstep: " : "lockstep: ", WHOLE, "\n", fmt,
              args);
    va_end(args);
}

void ls_log_result(const char *fmt, ...) {
    va_list args;
    va_start(args, fmt);
    log_write(ls_log_is_terminal() ? CLEAR_LINE : "", WHOLE, "\n", fmt, args);
    va_end(args);
}

void ls_log_status(const char *fmt, ...) {
    bool terminal = ls_log_is_terminal();
    va_list args;
    va_start(args, fmt);
    log_write(terminal ? CLEAR_LINE : "", terminal ? CUT : WHOLE, terminal ? "" : "\n", fmt, args);
    va_end(args);
}

void ls_log_end_status(void) {
    if (ls_log_is_terminal()) put_line("\n", 1);
}
