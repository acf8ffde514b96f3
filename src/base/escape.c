/* escape.c - see escape.h. */
#include "base/escape.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "base/utf8.h"

enum { LONGEST = 8 }; /* \u202e and a 0; a character has at most four bytes */

static bool is_unsafe(uint32_t point) {
    if (point < 0x20 || (point >= 0x7f && point < 0xa0)) return true;
    if (point == 0x61c || point == 0x200e || point == 0x200f) return true;
    return (point >= 0x2028 && point <= 0x202e) || (point >= 0x2066 && point <= 0x2069);
}

/* Writes the replacement of the character or byte at in [n] to text and returns its length; *used_p
 * is the number of bytes of `in` that it replaces. */
static size_t escape_one(ls_escape_kind kind, const char *in, size_t n, char text[LONGEST],
                         size_t *used_p) {
    static const char *const named[] = {['\t'] = "\\t", ['\n'] = "\\n", ['\r'] = "\\r"};
    uint32_t point = 0;
    size_t length = ls_utf8_decode(in, n, &point);
    *used_p = length ? length : 1;
    bool stays = kind != LS_ESCAPE_LINE && (point == '\n' || point == '\t');
    if (length && (stays || !is_unsafe(point))) {
        memcpy(text, in, length);
        return length;
    }
    if (!length) return (size_t)snprintf(text, LONGEST, "\\x%02x", (unsigned char)*in);
    if (kind == LS_ESCAPE_JSON || point >= 0x80)
        return (size_t)snprintf(text, LONGEST, "\\u%04x", (unsigned)(point & 0xffff));
    if (point < sizeof named / sizeof *named && named[point])
        return (size_t)snprintf(text, LONGEST, "%s", named[point]);
    return (size_t)snprintf(text, LONGEST, "\\x%02x", (unsigned)(point & 0xff));
}

size_t ls_escape(ls_escape_kind kind, const char *in, size_t n, char *out, size_t room) {
    char text[LONGEST];
    size_t used = 0, written = 0;
    for (size_t at = 0; at < n; at += used) {
        size_t length = escape_one(kind, in + at, n - at, text, &used);
        if (written + length >= room) break;
        memcpy(out + written, text, length);
        written += length;
    }
    out[written] = 0;
    return written;
}

void ls_buf_escape(ls_buf *b, ls_escape_kind kind, const char *in, size_t n) {
    char text[LONGEST];
    size_t used = 0, clean = 0; /* bytes before `clean` have been appended */
    for (size_t at = 0; at < n; at += used) {
        size_t length = escape_one(kind, in + at, n - at, text, &used);
        if (length == used && memcmp(text, in + at, used) == 0) continue;
        ls_buf_append(b, in + clean, at - clean);
        ls_buf_append(b, text, length);
        clean = at + used;
    }
    if (clean < n) ls_buf_append(b, in + clean, n - clean);
}

/* ---- formats ---- */

enum { SPEC = 32 };

typedef struct spec {
    char flags[8];
    int width, precision; /* precision -1: none */
    char length;          /* 0, 'h', 'l', 'q' (ll), 'z', 'j', 't', 'L' */
    char what;
} spec;

typedef struct arguments {
    va_list list;
} arguments;

static int read_number(const char **at, arguments *a) {
    int n = 0;
    if (**at == '*') {
        ++*at;
        return va_arg(a->list, int);
    }
    for (; **at >= '0' && **at <= '9'; ++*at) n = 10 * n + **at - '0';
    return n;
}

/* at: after the '%'. Returns the place after the conversion. */
static const char *read_spec(const char *at, arguments *a, spec *s) {
    size_t n = strspn(at, "-+ #0");
    *s = (spec){.precision = -1};
    memcpy(s->flags, at, n < sizeof s->flags ? n : sizeof s->flags - 1);
    at += n;
    s->width = read_number(&at, a);
    if (*at == '.') {
        at++;
        s->precision = read_number(&at, a);
    }
    for (; *at && strchr("hlzjtL", *at); at++)
        s->length = *at == 'l' && s->length == 'l' ? 'q' : *at;
    s->what = *at;
    return *at ? at + 1 : at;
}

static void put_text(ls_buf *b, const spec *s, const char *text) {
    ls_buf escaped = {0};
    size_t n = s->precision < 0 ? strlen(text) : strnlen(text, (size_t)s->precision);
    int width = strchr(s->flags, '-') ? -s->width : s->width;
    ls_buf_escape(&escaped, LS_ESCAPE_LINE, text, n);
    ls_buf_printf(b, "%*s", width, escaped.data ? escaped.data : "");
    ls_buf_free(&escaped);
}

static long long read_signed(const spec *s, arguments *a) {
    switch (s->length) {
    case 'l': return va_arg(a->list, long);
    case 'q': return va_arg(a->list, long long);
    case 'z':
    case 't': return va_arg(a->list, ptrdiff_t);
    case 'j': return va_arg(a->list, intmax_t);
    default: return va_arg(a->list, int);
    }
}

static unsigned long long read_unsigned(const spec *s, arguments *a) {
    switch (s->length) {
    case 'l': return va_arg(a->list, unsigned long);
    case 'q': return va_arg(a->list, unsigned long long);
    case 'z':
    case 't': return va_arg(a->list, size_t);
    case 'j': return va_arg(a->list, uintmax_t);
    default: return va_arg(a->list, unsigned);
    }
}

static void put_value(ls_buf *b, const spec *s, arguments *a) {
    char format[SPEC];
    const char *length = strchr("diuxXo", s->what) ? "ll" : "";
    snprintf(format, sizeof format, "%%%s*.*%s%c", s->flags, length, s->what);
    if (strchr("di", s->what))
        ls_buf_printf(b, format, s->width, s->precision, read_signed(s, a));
    else if (strchr("uxXo", s->what))
        ls_buf_printf(b, format, s->width, s->precision, read_unsigned(s, a));
    else if (strchr("eEfFgGaA", s->what))
        ls_buf_printf(b, format, s->width, s->precision, va_arg(a->list, double));
    else if (s->what == 'p')
        ls_buf_printf(b, "%p", va_arg(a->list, void *));
}

static void put_argument(ls_buf *b, const spec *s, arguments *a) {
    if (s->what == '%')
        ls_buf_append(b, "%", 1);
    else if (s->what == 's')
        put_text(b, s, va_arg(a->list, const char *));
    else if (s->what == 'c')
        put_text(b, s, (const char[]){(char)va_arg(a->list, int), 0});
    else
        put_value(b, s, a);
}

void ls_buf_vput(ls_buf *b, const char *fmt, va_list args) {
    arguments a;
    spec s;
    va_copy(a.list, args);
    for (const char *at = fmt; *at;) {
        size_t n = strcspn(at, "%");
        ls_buf_append(b, at, n);
        at += n;
        if (!*at) break;
        at = read_spec(at + 1, &a, &s);
        put_argument(b, &s, &a);
    }
    va_end(a.list);
}

void ls_buf_put(ls_buf *b, const char *fmt, ...) {
    va_list args;
    va_start(args, fmt);
    ls_buf_vput(b, fmt, args);
    va_end(args);
}
