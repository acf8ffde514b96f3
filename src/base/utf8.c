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

size_t ls_utf8_valid(const char *s, size_t n) {
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

bool ls_utf8_is_valid(const char *s, size_t n) { return ls_utf8_valid(s, n) == n; }

size_t ls_utf8_complete(const char *s, size_t n) {
    for (size_t back = 1; back <= 3 && back <= n; back++) {
        unsigned char byte = (unsigned char)s[n - back];
        if (byte >> 6 == 2) continue; /* in the middle of a character */
        return length_of(byte) > back ? n - back : n;
    }
    return n;
}
