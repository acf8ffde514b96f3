/* spelling.c - see spelling.h. Source of the characters of bytes: Radford et al., "Language models
 * are unsupervised multitask learners", 2019, encoder.py. */
#include "data/spelling.h"

#include <string.h>

/* 0..32 are the first 33 of the invisible bytes, 127..160 the next 34, 173 is the last. */
static uint32_t spelling_char(uint8_t byte) {
    if (byte <= 32) return 256u + byte;
    if (byte >= 127 && byte <= 160) return 256u + 33 + byte - 127u;
    return byte == 173 ? 256u + 67 : byte;
}

int ls_spelling_byte(uint32_t c) {
    uint32_t i = c - 256;
    if (c < 256) return spelling_char((uint8_t)c) == c ? (int)c : -1;
    if (i <= 32) return (int)i;
    if (i < 67) return (int)(i - 33 + 127);
    return i == 67 ? 173 : -1;
}

/* Each character of that alphabet is one or two bytes of UTF-8. */
bool ls_spelling_read(const char *text, size_t n, ls_buf *bytes) {
    for (size_t i = 0; i < n; i++) {
        uint32_t c = (uint8_t)text[i];
        if (c >= 0xE0 || (c >= 0x80 && i + 1 == n)) return false;
        if (c >= 0x80) c = (c & 0x1F) << 6 | (text[++i] & 0x3F);
        int value = ls_spelling_byte(c);
        uint8_t byte = (uint8_t)value;
        if (value < 0) return false;
        ls_buf_append(bytes, &byte, 1);
    }
    return true;
}

void ls_spelling_write(const uint8_t *bytes, size_t n, ls_buf *text) {
    for (size_t i = 0; i < n; i++) {
        uint32_t c = spelling_char(bytes[i]);
        char utf8[2] = {(char)(c < 0x80 ? c : 0xC0 | c >> 6), (char)(0x80 | (c & 0x3F))};
        ls_buf_append(text, utf8, c < 0x80 ? 1 : 2);
    }
}

static const size_t MARK = sizeof LS_SPACE_MARK - 1;

void ls_spelling_read_spaces(const char *text, size_t n, ls_buf *bytes) {
    for (size_t i = 0; i < n;) {
        const char *mark = memmem(text + i, n - i, LS_SPACE_MARK, MARK);
        size_t end = mark ? (size_t)(mark - text) : n;
        ls_buf_append(bytes, text + i, end - i);
        if (mark) ls_buf_append(bytes, " ", 1);
        i = mark ? end + MARK : n;
    }
}

void ls_spelling_write_spaces(const uint8_t *bytes, size_t n, ls_buf *text) {
    for (size_t i = 0; i < n; i++) {
        if (bytes[i] == ' ')
            ls_buf_append(text, LS_SPACE_MARK, MARK);
        else
            ls_buf_append(text, bytes + i, 1);
    }
}

int ls_spelling_single_byte(const char *text, size_t n) {
    static const char digits[] = "0123456789ABCDEF";
    if (n != 6 || memcmp(text, "<0x", 3) != 0 || text[5] != '>' || !text[3] || !text[4]) return -1;
    const char *high = strchr(digits, text[3]), *low = strchr(digits, text[4]);
    return high && low ? (int)((high - digits) * 16 + (low - digits)) : -1;
}
