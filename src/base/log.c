/* log.c - see log.h. Each message is one write(), so that lines of several workers don't mix. */
#include "base/log.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/escape.h"
#include "base/utf8.h"

#define CLEAR_LINE "\r\033[K"

bool ls_log_is_terminal(void) { return isatty(STDERR_FILENO) == 1; }

static void log_write(const char *prefix, const char *suffix, const char *fmt, va_list args) {
    char raw[8192], line[8192];
    int m = vsnprintf(raw, sizeof raw, fmt, args);
    size_t length = m < 0 ? 0 : (size_t)m, n = strlen(prefix);
    if (length >= sizeof raw) length = ls_utf8_complete(raw, sizeof raw - 1);
    memcpy(line, prefix, n);
    n += ls_escape(LS_ESCAPE_LINE, raw, length, line + n, sizeof line - n - strlen(suffix));
    memcpy(line + n, suffix, strlen(suffix));
    n += strlen(suffix);
    ssize_t ignored = write(STDERR_FILENO, line, n);
    (void)ignored;
}

void ls_log(const char *fmt, ...) {
    va_list args;
    va_start(args, fmt);
    log_write(ls_log_is_terminal() ? CLEAR_LINE "lockstep: " : "lockstep: ", "\n", fmt, args);
    va_end(args);
}

void ls_log_status(const char *fmt, ...) {
    bool terminal = ls_log_is_terminal();
    va_list args;
    va_start(args, fmt);
    log_write(terminal ? CLEAR_LINE : "", terminal ? "" : "\n", fmt, args);
    va_end(args);
}
