/* unicode.c - see unicode.h.
 *
 * Composing looks for the characters that can change: marks, characters that NFC replaces, and
 * those that join one before them. Only the stretches around them, from the character before to the
 * next character that can't change, are taken apart, sorted and put together again; the rest is
 * copied. A table of one bit per character says which are such: it is computed once, from utf8proc.
 */
#include "base/unicode.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <utf8proc.h>

#include "base/utf8.h"

enum { FIRST = 0x300, END = 0x30000, FEW_MARKS = 16, MOST_PARTS = 8 };
#define OPTIONS (UTF8PROC_STABLE | UTF8PROC_COMPOSE)

static pthread_once_t once = PTHREAD_ONCE_INIT;
static uint8_t changing[END / 8]; /* characters below FIRST don't change; those from END on may */

static int class_of(utf8proc_int32_t c) { return utf8proc_get_property(c)->combining_class; }

static void set_changing(utf8proc_int32_t c) {
    if (c < END) changing[c / 8] |= (uint8_t)(1 << c % 8);
}

static utf8proc_ssize_t decompose(utf8proc_int32_t c, utf8proc_int32_t *parts, size_t room) {
    int last = UTF8PROC_BOUNDCLASS_START;
    utf8proc_ssize_t n = utf8proc_decompose_char(c, parts, (utf8proc_ssize_t)room, OPTIONS, &last);
    if (n <= 0 || (size_t)n > room) abort(); /* c is not a character, or has more parts than any */
    return n;
}

static void fill_table(void) {
    for (utf8proc_int32_t c = FIRST; c < END; c++) {
        utf8proc_int32_t parts[MOST_PARTS];
        if (c >= 0xd800 && c < 0xe000) continue;
        utf8proc_ssize_t n = decompose(c, parts, MOST_PARTS);
        for (utf8proc_ssize_t i = 1; i < n; i++) set_changing(parts[i]);
        n = utf8proc_normalize_utf32(parts, n, OPTIONS);
        if (n != 1 || parts[0] != c || class_of(c) != 0) set_changing(c);
    }
}

static bool can_change(uint32_t c) {
    if (c < FIRST) return false;
    return c >= END || (changing[c / 8] >> c % 8 & 1);
}

/* Sorts marks by class; those of one class keep their order. */
static void marks_sort(utf8proc_int32_t *marks, size_t n) {
    if (n <= FEW_MARKS) {
        for (size_t i = 1; i < n; i++) {
            utf8proc_int32_t c = marks[i];
            size_t at = i;
            for (; at > 0 && class_of(marks[at - 1]) > class_of(c); at--) marks[at] = marks[at - 1];
            marks[at] = c;
        }
        return;
    }
    size_t begin[257] = {0};
    utf8proc_int32_t *sorted = LS_NEW_ARRAY(utf8proc_int32_t, n);
    for (size_t i = 0; i < n; i++) begin[class_of(marks[i]) + 1]++;
    for (int k = 0; k < 256; k++) begin[k + 1] += begin[k];
    for (size_t i = 0; i < n; i++) sorted[begin[class_of(marks[i])]++] = marks[i];
    memcpy(marks, sorted, n * sizeof *marks);
    free(sorted);
}

/* Appends the normal form of a stretch [n bytes]. No character has more than 2 parts a byte. */
static void compose(const uint8_t *text, size_t n, ls_buf *out) {
    utf8proc_int32_t *c = LS_NEW_ARRAY(utf8proc_int32_t, 2 * n + MOST_PARTS);
    size_t count = 0;
    uint32_t point = 0;
    for (size_t at = 0; at < n;) {
        at += ls_utf8_decode((const char *)text + at, n - at, &point);
        count += (size_t)decompose((utf8proc_int32_t)point, c + count, MOST_PARTS);
    }
    for (size_t i = 0, end; i < count; i = end) {
        for (end = i; end < count && class_of(c[end]) != 0;) end++;
        if (end > i)
            marks_sort(c + i, end - i);
        else
            end++;
    }
    utf8proc_ssize_t left = utf8proc_normalize_utf32(c, (utf8proc_ssize_t)count, OPTIONS);
    for (utf8proc_ssize_t i = 0; i < left; i++) {
        utf8proc_uint8_t bytes[4];
        ls_buf_append(out, bytes, (size_t)utf8proc_encode_char(c[i], bytes));
    }
    free(c);
}

/* Where the next stretch that can change begins and ends, from `at` on; n: there is none. */
static size_t stretch(const char *s, size_t n, size_t at, size_t *end_p) {
    size_t before = at, length;
    uint32_t point = 0;
    for (; at < n; at += length) {
        length = ls_utf8_decode(s + at, n - at, &point);
        if (can_change(point)) break;
        before = at;
    }
    if (at >= n) return n;
    for (; at < n; at += length) {
        length = ls_utf8_decode(s + at, n - at, &point);
        if (!can_change(point)) break;
    }
    *end_p = at;
    return before;
}

bool ls_unicode_compose(const uint8_t *text, size_t n, ls_buf *out) {
    const char *s = (const char *)text;
    size_t copied = 0, end = 0;
    pthread_once(&once, fill_table);
    for (size_t from = stretch(s, n, 0, &end); from < n; from = stretch(s, n, copied, &end)) {
        ls_buf_append(out, s + copied, from - copied);
        compose(text + from, end - from, out);
        copied = end;
    }
    if (copied == 0) return false;
    ls_buf_append(out, s + copied, n - copied);
    return true;
}

bool ls_unicode_is_space(uint32_t c) {
    return (c >= 9 && c <= 13) || c == ' ' || c == 0x85 || c == 0xa0 || c == 0x1680 ||
           (c >= 0x2000 && c <= 0x200a) || c == 0x2028 || c == 0x2029 || c == 0x202f ||
           c == 0x205f || c == 0x3000;
}

bool ls_unicode_is_word(uint32_t c) {
    switch (utf8proc_category((utf8proc_int32_t)c)) {
    case UTF8PROC_CATEGORY_LU:
    case UTF8PROC_CATEGORY_LL:
    case UTF8PROC_CATEGORY_LT:
    case UTF8PROC_CATEGORY_LM:
    case UTF8PROC_CATEGORY_LO:
    case UTF8PROC_CATEGORY_MN:
    case UTF8PROC_CATEGORY_MC:
    case UTF8PROC_CATEGORY_ME:
    case UTF8PROC_CATEGORY_ND:
    case UTF8PROC_CATEGORY_NL:
    case UTF8PROC_CATEGORY_PC: return true;
    default: /* joiners, and letters in circles and squares, which are symbols, but alphabetic */
        return c == 0x200c || c == 0x200d || (c >= 0x24b6 && c <= 0x24e9) ||
               (c >= 0x1f130 && c <= 0x1f149) || (c >= 0x1f150 && c <= 0x1f169) ||
               (c >= 0x1f170 && c <= 0x1f189);
    }
}

bool ls_unicode_is_printable(uint32_t c) {
    switch (utf8proc_category((utf8proc_int32_t)c)) {
    case UTF8PROC_CATEGORY_CN:
    case UTF8PROC_CATEGORY_CC:
    case UTF8PROC_CATEGORY_CF:
    case UTF8PROC_CATEGORY_CS:
    case UTF8PROC_CATEGORY_CO:
    case UTF8PROC_CATEGORY_ZL:
    case UTF8PROC_CATEGORY_ZP: return false;
    case UTF8PROC_CATEGORY_ZS: return c == ' ';
    default: return true;
    }
}

bool ls_unicode_is_cased(uint32_t c) {
    utf8proc_category_t k = utf8proc_category((utf8proc_int32_t)c);
    return k == UTF8PROC_CATEGORY_LU || k == UTF8PROC_CATEGORY_LL || k == UTF8PROC_CATEGORY_LT;
}

/* Characters with an entry in Unicode's SpecialCasing.txt, and a few others near them. */
static bool is_special(uint32_t c, char which) {
    static const uint16_t ranges[][2] = {{0xdf, 0xdf},     {0x149, 0x149},   {0x1f0, 0x1f0},
                                         {0x345, 0x345},   {0x390, 0x390},   {0x3b0, 0x3b0},
                                         {0x587, 0x587},   {0x1e96, 0x1e9a}, {0x1f50, 0x1f57},
                                         {0x1f80, 0x1fff}, {0xfb00, 0xfb17}};
    if (which == 'l') return c == 0x130 || c == 0x3a3;
    for (size_t i = 0; i < sizeof ranges / sizeof *ranges; i++)
        if (c >= ranges[i][0] && c <= ranges[i][1]) return true;
    return false;
}

bool ls_unicode_case(uint32_t c, char which, uint32_t *cased_p) {
    utf8proc_int32_t x = (utf8proc_int32_t)c;
    if (is_special(c, which)) return false;
    *cased_p = (uint32_t)(which == 'u'   ? utf8proc_toupper(x)
                          : which == 'l' ? utf8proc_tolower(x)
                                         : utf8proc_totitle(x));
    return true;
}
