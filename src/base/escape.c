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
