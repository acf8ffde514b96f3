/* highlight.c - see highlight.h. */
#include "base/highlight.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define GREEN "\033[32m"
#define USUAL "\033[0m"

static bool has_colours(int fd) {
    const char *no = getenv("NO_COLOR"), *term = getenv("TERM");
    return isatty(fd) == 1 && !(no && *no) && term && *term && strcmp(term, "dumb") != 0;
}

ls_highlight ls_highlight_for(int fd, const char *begin, const char *end) {
    return (ls_highlight){.begin = begin, .end = end, .coloured = has_colours(fd)};
}

void ls_highlight_write(ls_highlight *h, const char *text, size_t n, ls_buf *out) {
    if (h->coloured && h->open) ls_buf_printf(out, GREEN);
    while (n) {
        const char *mark = h->open ? h->end : h->begin;
        const char *at = h->coloured ? memmem(text, n, mark, strlen(mark)) : NULL;
        size_t before = at ? (size_t)(at - text) : n;
        ls_buf_append(out, text, before);
        if (!at) break;
        h->open = !h->open;
        ls_buf_printf(out, "%s", h->open ? GREEN : USUAL);
        text += before + strlen(mark);
        n -= before + strlen(mark);
    }
    if (h->coloured && h->open) ls_buf_printf(out, USUAL);
}
