/* highlight.h - parts of a text stand out: in colour on a terminal, else between two marks.
 *
 * No colours are used if the variable NO_COLOR is set and not empty (no-color.org), or TERM is dumb
 * or not set.
 */
#ifndef LS_BASE_HIGHLIGHT_H
#define LS_BASE_HIGHLIGHT_H

#include <stdbool.h>

#include "base/mem.h"

typedef struct ls_highlight {
    const char *begin, *end; /* the marks around a part */
    bool coloured;
    bool open; /* in a part; initially false */
} ls_highlight;

/* For what is written to a file descriptor. */
ls_highlight ls_highlight_for(int fd, const char *begin, const char *end);

/* Appends text [n], in which colours replace the marks. A part may continue in the next text: each
 * ends with the terminal's usual colour. */
void ls_highlight_write(ls_highlight *, const char *text, size_t n, ls_buf *out);

#endif
