/* wrap.h - wraps text to lines of at most 80 columns. */
#ifndef LS_BASE_WRAP_H
#define LS_BASE_WRAP_H

#include "base/mem.h"

enum { LS_COLUMNS = 80 };

/* Appends the words of text, followed by a line break. The current line already has `at` columns;
 * each further line begins with `indent` spaces. A word longer than a line gets a line of its own.
 * Spaces and line breaks in the text only separate words. */
void ls_buf_wrap(ls_buf *, const char *text, int at, int indent);

#endif
