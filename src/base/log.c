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
#include "base/name.h"
#include "base/plural.h"
#include "base/transcript.h"
#include "base/utf8.h"

#define CLEAR_LINE "\r\033[K"

/* PATIENCE_MS: how long to wait, once, for a full pipe or a stopped terminal. MOST: where poll()
 * finds room, a line of up to PIPE_BUF bytes fits. */
enum { PATIENCE_MS = 500, MOST = PIPE_BUF };

static atomic_int nlost; /* lines lost since the reader took the last one */

bool ls_log_is_terminal(void) { return isatty(STDERR_FILENO) == 1; }

/* Can standard error take more? Also true where write() would fail at once. */
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

/* ---- messages held back ---- */

static struct {
    pthread_mutex_t lock;
    bool on, quiet;
    ls_buf text;
} held = {.lock = PTHREAD_MUTEX_INITIALIZER};

void ls_log_hold(bool quiet) {
    held.on = true;
    held.quiet = quiet;
    ls_buf_append(&held.text, "", 0);
}

const char *ls_log_held(void) { return !held.on ? NULL : held.text.data ? held.text.data : ""; }

/* Appends the line to the held ones if lines are held. True: it must not be written. */
static bool hold(const char *line, size_t n) {
    pthread_mutex_lock(&held.lock);
    bool done = held.on && held.quiet;
    if (held.on) ls_buf_append(&held.text, line, n);
    pthread_mutex_unlock(&held.lock);
    return done;
}

/* ---- messages written ---- */

/* Writes a line to the terminal alone, after a line with the number of lines lost since the last
 * one, if any were. */
static void show_line(const char *line, size_t n) {
    char text[128];
    int lost = atomic_load(&nlost);
    int m = snprintf(text, sizeof text, "%s: %d line%s of this log lost: nobody read it\n",
                     ls_name(), lost, ls_plural(lost));
    if (lost && put(text, (size_t)m)) atomic_fetch_sub(&nlost, lost);
    if (!put(line, n)) atomic_fetch_add(&nlost, 1);
}

/* The transcript has also lines that nobody reads here. */
static void write_out(const char *line, size_t n) {
    ls_transcript_add(line, n);
    show_line(line, n);
}

static void put_line(const char *line, size_t n) {
    if (!hold(line, n)) write_out(line, n);
}

/* Cuts the last fields (separated by two spaces) off a line that would wrap. */
static size_t fit(const char *text, size_t n) {
    size_t fits = ls_columns_cut(text, n, ls_columns_of(STDERR_FILENO, 80) - 1);
    if (fits == n) return n;
    for (size_t i = fits; i > 1; i--)
        if (text[i - 1] == ' ' && text[i - 2] == ' ') return i - 2;
    return fits;
}

enum { WHOLE, CUT };

void ls_log_release(bool show) {
    pthread_mutex_lock(&held.lock);
    bool was_quiet = held.on && held.quiet;
    held.on = false;
    pthread_mutex_unlock(&held.lock);
    if (was_quiet && show && held.text.len) put_line(held.text.data, held.text.len);
    ls_buf_free(&held.text);
}

/* Returns the length of the line [MOST]. */
static size_t write_line(char *line, const char *prefix, int how, const char *suffix,
                         const char *fmt, va_list args) {
    char given[MOST], raw[MOST];
    int m = vsnprintf(given, sizeof given, fmt, args);
    size_t length = m < 0 ? 0 : (size_t)m, n = strlen(prefix);
    length = ls_name_copy(given, length < sizeof given ? length : sizeof given - 1, raw, MOST - 1);
    if (length >= sizeof raw - 1) length = ls_utf8_complete(raw, length);
    memcpy(line, prefix, n);
    size_t room = MOST - n - strlen(suffix);
    size_t shown = ls_escape(LS_ESCAPE_LINE, raw, length, line + n, room);
    n += how == CUT ? fit(line + n, shown) : shown;
    memcpy(line + n, suffix, strlen(suffix));
    return n + strlen(suffix);
}

static void log_write(const char *prefix, const char *fmt, va_list args) {
    char line[MOST];
    put_line(line, write_line(line, prefix, WHOLE, "\n", fmt, args));
}

enum { NAMED = sizeof CLEAR_LINE + LS_NAME_NBYTES + 2 };

static const char *named(char prefix[NAMED]) {
    snprintf(prefix, NAMED, "%s%s: ", ls_log_is_terminal() ? CLEAR_LINE : "", ls_name());
    return prefix;
}

void ls_log(const char *fmt, ...) {
    char prefix[NAMED];
    va_list args;
    va_start(args, fmt);
    log_write(named(prefix), fmt, args);
    va_end(args);
}

void ls_log_at_once(const char *fmt, ...) {
    char prefix[NAMED], line[MOST];
    va_list args;
    va_start(args, fmt);
    write_out(line, write_line(line, named(prefix), WHOLE, "\n", fmt, args));
    va_end(args);
}

void ls_log_lines(const char *text) {
    ls_buf message = {0};
    ls_buf_printf(&message, "%s%s: ", ls_log_is_terminal() ? CLEAR_LINE : "", ls_name());
    ls_buf_escape(&message, LS_ESCAPE_TEXT, text, strlen(text));
    ls_buf_append(&message, "\n", 1);
    put_line(message.data, message.len);
    ls_buf_free(&message);
}

void ls_log_result(const char *fmt, ...) {
    va_list args;
    va_start(args, fmt);
    log_write(ls_log_is_terminal() ? CLEAR_LINE : "", fmt, args);
    va_end(args);
}

void ls_log_highlighted(ls_highlight *h, const char *fmt, ...) {
    char text[MOST];
    ls_buf escaped = {0}, line = {0};
    va_list args;
    va_start(args, fmt);
    int m = vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    size_t n = m < 0 ? 0 : (size_t)m < sizeof text ? (size_t)m : sizeof text - 1;
    ls_buf_escape(&escaped, LS_ESCAPE_LINE, text, ls_utf8_complete(text, n));
    if (ls_log_is_terminal()) ls_buf_printf(&line, CLEAR_LINE);
    ls_highlight_write(h, escaped.data, escaped.len, &line);
    ls_buf_append(&line, "\n", 1);
    put_line(line.data, line.len);
    ls_buf_free(&escaped);
    ls_buf_free(&line);
}

static void show_in_place(const char *line, size_t n) {
    if (!hold(line, n)) show_line(line, n);
}

void ls_log_status(const char *fmt, ...) {
    char line[MOST];
    va_list args;
    va_start(args, fmt);
    if (!ls_log_is_terminal())
        log_write("", fmt, args);
    else
        show_in_place(line, write_line(line, CLEAR_LINE, CUT, "", fmt, args));
    va_end(args);
}

void ls_log_keep(const char *fmt, ...) {
    char line[MOST];
    va_list args;
    if (!ls_log_is_terminal()) return;
    va_start(args, fmt);
    ls_transcript_add(line, write_line(line, "", WHOLE, "\n", fmt, args));
    va_end(args);
}

void ls_log_end_status(void) {
    if (ls_log_is_terminal()) show_in_place("\n", 1);
}
