/* utf8.c - see utf8.h. */
#include "base/utf8.h"

#include <string.h>

/* The length of a character that begins with this byte; 0: no character does. */
static size_t length_of(unsigned char first) {
    if (first < 0x80) return 1;
    return first >> 5 == 6 ? 2 : first >> 4 == 14 ? 3 : first >> 3 == 30 ? 4 : 0;
}

size_t ls_utf8_decode(const char *s, size_t n, uint32_t *point_p) {
    static const uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
    const unsigned char *p = (const unsigned char *)s;
    size_t length = n ? length_of(p[0]) : 0;
    if (length == 0 || length > n) return 0;
    uint32_t point = length == 1 ? p[0] : p[0] & (0x7fu >> length);
    for (size_t i = 1; i < length; i++) {
        if (p[i] >> 6 != 2) return 0;
        point = point << 6 | (p[i] & 0x3f);
    }
    if (point < least[length] || point > 0x10ffff || (point >= 0xd800 && point < 0xe000)) return 0;
    *point_p = point;
    return length;
}

/* The length of the valid UTF-8 at the beginning of s [n]. */
static size_t utf8_valid(const char *s, size_t n) {
    uint32_t point;
    for (size_t at = 0; at < n;) {
        uint64_t eight = 0;
        if (n - at >= sizeof eight) memcpy(&eight, s + at, sizeof eight);
        bool ascii = n - at >= sizeof eight && !(eight & 0x8080808080808080u);
        size_t length = ascii ? sizeof eight : ls_utf8_decode(s + at, n - at, &point);
        if (length == 0) return at;
        at += length;
    }
    return n;
}

bool ls_utf8_is_valid(const char *s, size_t n) { return utf8_valid(s, n) == n; }

/* ---- other encodings ---- */

size_t ls_utf8_mark(const char *s, size_t n) {
    return n >= 3 && memcmp(s, "\xef\xbb\xbf", 3) == 0 ? 3 : 0;
}

static bool begins_with(const char *s, size_t n, const char *bytes, size_t nbytes) {
    return n >= nbytes && memcmp(s, bytes, nbytes) == 0;
}

/* Most texts have ASCII characters at their beginning, spaces and line ends at least: of each, all
 * bytes but one are zeros in UTF-16 and UTF-32. A few bytes decide nothing. */
static const char *by_zeros(const char *s, size_t n) {
    size_t zeros[4] = {0}, units = 0;
    if (n > 1024) n = 1024;
    for (; units < n / 4; units++)
        for (size_t k = 0; k < 4; k++) zeros[k] += s[4 * units + k] == 0;
    bool even = zeros[0] + zeros[2] > 0, odd = zeros[1] + zeros[3] > 0;
    size_t some = units / 2; /* a quarter of the characters */
    if (units < 4) return NULL;
    if (zeros[2] == units && zeros[3] == units && !zeros[0]) return "UTF-32LE";
    if (zeros[0] == units && zeros[1] == units && !zeros[3]) return "UTF-32BE";
    if (!even && zeros[1] + zeros[3] >= some) return "UTF-16LE";
    if (!odd && zeros[0] + zeros[2] >= some) return "UTF-16BE";
    return NULL;
}

const char *ls_utf8_other(const char *s, size_t n) {
    if (begins_with(s, n, "\xff\xfe\0\0", 4)) return "UTF-32LE";
    if (begins_with(s, n, "\0\0\xfe\xff", 4)) return "UTF-32BE";
    if (begins_with(s, n, "\xff\xfe", 2)) return "UTF-16LE";
    if (begins_with(s, n, "\xfe\xff", 2)) return "UTF-16BE";
    return by_zeros(s, n);
}

ls_status ls_utf8_check_beginning(const char *s, size_t n, const char *what, ls_error *e) {
    const char *other = n ? ls_utf8_other(s, n) : NULL;
    if (!other) return LS_OK;
    return ls_fail(e, LS_EINVAL, "%s%sis %s, not UTF-8; convert it: iconv -f %s -t UTF-8", what,
                   *what ? ": " : "", other, other);
}

ls_status ls_utf8_check(const char *s, size_t n, const char *what, ls_error *e) {
    LS_TRY(ls_utf8_check_beginning(s, n, what, e));
    size_t bad = n ? utf8_valid(s, n) : 0, line = 1;
    if (bad == n) return LS_OK;
    for (size_t i = 0; i < bad; i++) line += s[i] == '\n';
    return ls_fail(e, LS_EINVAL,
                   "%s: is not UTF-8 at byte %zu (line %zu); convert it, e.g. with iconv", what,
                   bad, line);
}

size_t ls_utf8_complete(const char *s, size_t n) {
    for (size_t back = 1; back <= 3 && back <= n; back++) {
        unsigned char byte = (unsigned char)s[n - back];
        if (byte >> 6 == 2) continue; /* in the middle of a character */
        return length_of(byte) > back ? n - back : n;
    }
    return n;
}

void ls_utf8_put(ls_buf *b, const char *s, size_t n) {
    uint32_t point = 0;
    for (size_t i = 0, k; i < n; i += k ? k : 1) {
        k = ls_utf8_decode(s + i, n - i, &point);
        if (k == 0 || point == 0)
            ls_buf_append(b, "\xef\xbf\xbd", 3);
        else
            ls_buf_append(b, s + i, k);
    }
}
