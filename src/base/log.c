/* log.c - see log.h. Each message is one write(), so that lines of several workers don't mix. */
#include "base/log.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define CLEAR_LINE "\r\033[K"

bool ls_log_is_terminal(void) { return isatty(STDERR_FILENO) == 1; }

static void log_write(const char *prefix, const char *suffix, const char *fmt, va_list args) {
    char line[8192];
    int n = snprintf(line, sizeof line, "%s", prefix);
    int room = (int)sizeof line - n - (int)strlen(suffix) - 1;
    int m = vsnprintf(line + n, (size_t)room, fmt, args);
    n += m < 0 ? 0 : m >= room ? room - 1 : m;
    n += snprintf(line + n, sizeof line - (size_t)n, "%s", suffix);
    ssize_t ignored = write(STDERR_FILENO, line, (size_t)n);
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
