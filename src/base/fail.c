/* fail.c - fills in errors: see error.h. A file of its own, since what it needs returns errors. */
#include <stdarg.h>
#include <stdio.h>

#include "base/error.h"
#include "base/escape.h"
#include "base/utf8.h"

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
    return code;
}
