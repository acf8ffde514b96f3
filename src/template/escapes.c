/* escapes.c - see escapes.h. */
#include "template/escapes.h"

#include <stdint.h>
#include <string.h>

#include "template/characters.h"

static int digit_of(char c, int base) {
    int v = c >= '0' && c <= '9'   ? c - '0'
            : c >= 'a' && c <= 'f' ? c - 'a' + 10
            : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                   : 99;
    return v < base ? v : -1;
}

/* The number of at most `most` digits at s [n]; returns how many there are. */
static size_t digits(const char *s, size_t n, size_t most, int base, uint32_t *value_p) {
    size_t i = 0;
    *value_p = 0;
    for (int d; i < n && i < most && (d = digit_of(s[i], base)) >= 0; i++)
        *value_p = *value_p * (uint32_t)base + (uint32_t)d;
    return i;
}

/* The escape at s [n], a backslash and more: its length, 0 if it is no character. */
static size_t unescape_one(const char *s, size_t n, char *out, size_t *n_p) {
    static const char letters[] = "abfnrtv\\'\"", values[] = "\a\b\f\n\r\t\v\\'\"";
    const char *letter = s[1] ? strchr(letters, s[1]) : NULL;
    uint32_t point;
    *n_p = 1;
    if (letter) {
        *out = values[letter - letters];
        return 2;
    }
    size_t most = s[1] == 'x' ? 2 : s[1] == 'u' ? 4 : s[1] == 'U' ? 8 : 0, k;
    if (most) {
        k = digits(s + 2, n - 2, most, 16, &point);
        if (k != most || point > 0x10ffff || (point >= 0xd800 && point < 0xe000) || !point)
            return 0;
        *n_p = ls_character_write(point, out);
        return 2 + k;
    }
    k = digits(s + 1, n - 1, 3, 8, &point);
    if (k) {
        if (!point) return 0;
        *n_p = ls_character_write(point, out);
        return 1 + k;
    }
    *n_p = s[1] == '\n' ? 0 : 2; /* the backslash stays, unless it continues the line */
    memcpy(out, s, 2);
    return 2;
}

bool ls_template_unescape(const char *s, size_t n, char *out, size_t *n_p) {
    size_t len = 0, k;
    for (size_t i = 0; i < n; i += k) {
        size_t wrote = 1;
        k = 1;
        if (s[i] == '\\' && i + 1 < n) {
            char one[4];
            k = unescape_one(s + i, n - i, one, &wrote);
            if (!k) return false;
            memcpy(out + len, one, wrote);
        } else {
            out[len] = s[i];
        }
        len += wrote;
    }
    out[len] = 0;
    *n_p = len;
    return true;
}
