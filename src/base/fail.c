/* fail.c - fills in errors: see error.h. A file of its own, since what it needs returns errors. */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>

#include "base/error.h"
#include "base/escape.h"
#include "base/file.h"
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

/* A path in a message is the one that it will have, not the temporary one where it is written:
 * DIR/.lockstep-0123abcd-NAME (base/file.h) and DIR/.lockstep-0123abcd-NAME/NAME (base/fresh.h)
 * become DIR/NAME. */
static void name_final(char *msg) {
    for (char *at = msg; (at = strstr(at, LS_FILE_FRESH));) {
        size_t digits = strlen(LS_FILE_FRESH), skip = digits + LS_FILE_FRESH_DIGITS + 1;
        if (strspn(at + digits, "0123456789abcdef") != LS_FILE_FRESH_DIGITS ||
            at[skip - 1] != '-') {
            at += digits;
            continue;
        }
        char *name = at + skip, *slash = strchr(name, '/');
        if (slash && strncmp(slash + 1, name, (size_t)(slash - name)) == 0) name = slash + 1;
        memmove(at, name, strlen(name) + 1);
    }
}

ls_status ls_fail_at(ls_error *e, ls_status code, const char *file, int line, const char *fmt,
                     ...) {
    if (!e) return code;
    e->code = code;
    e->file = file;
    e->line = line;
    char raw[2 * sizeof e->msg]; /* a temporary path is longer than what becomes of it */
    va_list args;
    va_start(args, fmt);
    int n = vsnprintf(raw, sizeof raw, fmt, args);
    va_end(args);
    size_t length = n < 0 ? 0 : (size_t)n;
    if (length >= sizeof raw) length = ls_utf8_complete(raw, sizeof raw - 1);
    raw[length] = 0;
    name_final(raw);
    ls_escape(LS_ESCAPE_LINE, raw, strlen(raw), e->msg, sizeof e->msg);
    name_limit(e->msg, sizeof e->msg);
    return code;
}
