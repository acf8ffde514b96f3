/* fail.c - fills in errors: see error.h. A file of its own, since what it needs returns errors. */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>

#include "base/error.h"
#include "base/escape.h"
#include "base/utf8.h"

/* Where there are too many open files, also says which limit that is. */
static void name_limit(char *msg, size_t size) {
    struct rlimit r;
    if (!strstr(msg, strerror(EMFILE)) || strstr(msg, strerror(ENFILE))) return;
    if (strstr(msg, "ulimit") || getrlimit(RLIMIT_NOFILE, &r) != 0) return;
    char hint[64];
    size_t length = strlen(msg);
    size_t n = (size_t)snprintf(hint, sizeof hint, "; `ulimit -n` allows %llu: raise it",
                                (unsigned long long)r.rlim_cur);
    if (length + n < size) memcpy(msg + length, hint, n + 1);
}

ls_status ls_fail_at(ls_error *e, ls_status code, const char *file, int line, const char *fmt,
                     ...) {
    if (!e) return code;
    e->code = code;
    e->file = file;
    e->line = line;
    char raw[sizeof e->msg];
    va_list args;
    va_start(args, fmt);
    int n = vsnprintf(raw, sizeof raw, fmt, args);
    va_end(args);
    size_t length = n < 0 ? 0 : (size_t)n;
    if (length >= sizeof raw) length = ls_utf8_complete(raw, sizeof raw - 1);
    ls_escape(LS_ESCAPE_LINE, raw, length, e->msg, sizeof e->msg);
    name_limit(e->msg, sizeof e->msg);
    return code;
}
