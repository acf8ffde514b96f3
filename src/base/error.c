/* error.c - see error.h. */
#include "base/error.h"

#include <stdarg.h>
#include <stdio.h>

#include "base/escape.h"
#include "base/utf8.h"

const char *ls_version(void) { return LS_VERSION; }

const char *ls_status_name(ls_status code) {
    switch (code) {
    case LS_OK: return "ok";
    case LS_EINVAL: return "bad input";
    case LS_ENOMEM: return "out of memory";
    case LS_EIO: return "input/output error";
    case LS_EPENDING: return "still in flight";
    case LS_EPEER: return "worker lost";
    case LS_ETIMEOUT: return "timed out";
    case LS_EABORT: return "aborted";
    case LS_EDISAGREE: return "workers disagree";
    case LS_EBROKEN: return "transport broken";
    }
    return "unknown status";
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
    return code;
}
