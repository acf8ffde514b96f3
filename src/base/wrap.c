/* wrap.c - see wrap.h. */
#include "base/wrap.h"

#include <stdbool.h>
#include <string.h>

/* Characters of a word: bytes that don't continue one. */
static int columns_of(const char *word, size_t n) {
    int columns = 0;
    for (size_t i = 0; i < n; i++) columns += ((unsigned char)word[i] & 0xc0) != 0x80;
    return columns;
}

void ls_buf_wrap(ls_buf *b, const char *text, int at, int indent) {
    static const char spaces[] = " \n\t";
    bool first = true; /* word of the line */
    for (text += strspn(text, spaces); *text; text += strspn(text, spaces)) {
        size_t n = strcspn(text, spaces);
        int columns = columns_of(text, n);
        if (!first && at + 1 + columns > LS_COLUMNS) {
            ls_buf_printf(b, "\n%*s", indent, "");
            at = indent;
            first = true;
        }
        ls_buf_printf(b, "%s%.*s", first ? "" : " ", (int)n, text);
        at += !first + columns;
        first = false;
        text += n;
    }
    ls_buf_printf(b, "\n");
}
