/* characters.c - see characters.h. */
#include "template/characters.h"

#include "base/utf8.h"

size_t ls_character(const char *s, size_t n, uint32_t *point_p) {
    size_t k = ls_utf8_decode(s, n, point_p);
    if (k) return k;
    *point_p = 0xfffd;
    return 1;
}

size_t ls_characters(const char *s, size_t n) {
    size_t count = 0;
    uint32_t point;
    for (size_t i = 0; i < n; i += ls_character(s + i, n - i, &point)) count++;
    return count;
}

size_t ls_characters_bytes(const char *s, size_t n, size_t k) {
    size_t i = 0;
    uint32_t point;
    for (; k && i < n; k--) i += ls_character(s + i, n - i, &point);
    return i;
}

bool ls_is_space(uint32_t p) {
    return (p >= 9 && p <= 13) || (p >= 28 && p <= 32) || p == 0x85 || p == 0xa0 || p == 0x1680 ||
           (p >= 0x2000 && p <= 0x200a) || p == 0x2028 || p == 0x2029 || p == 0x202f ||
           p == 0x205f || p == 0x3000;
}

size_t ls_spaces_at_start(const char *s, size_t n) {
    size_t i = 0;
    uint32_t point = 0;
    while (i < n) {
        size_t k = ls_character(s + i, n - i, &point);
        if (!ls_is_space(point)) break;
        i += k;
    }
    return i;
}

size_t ls_spaces_at_end(const char *s, size_t n) {
    size_t end = n;
    uint32_t point = 0;
    while (end) {
        size_t first = end - 1;
        while (first && end - first < 4 && ((unsigned char)s[first] & 0xc0) == 0x80) first--;
        if (ls_character(s + first, end - first, &point) != end - first || !ls_is_space(point))
            break;
        end = first;
    }
    return n - end;
}

size_t ls_character_write(uint32_t p, char *s) {
    if (p < 0x80) {
        s[0] = (char)p;
        return 1;
    }
    size_t n = p < 0x800 ? 2 : p < 0x10000 ? 3 : 4;
    for (size_t i = n - 1; i; i--, p >>= 6) s[i] = (char)(0x80 | (p & 0x3f));
    s[0] = (char)((n == 2 ? 0xc0 : n == 3 ? 0xe0 : 0xf0) | p);
    return n;
}
