/* wrap.h - text in lines of at most 80 columns, as a terminal has them. */
#ifndef LS_BASE_WRAP_H
#define LS_BASE_WRAP_H

#include "base/mem.h"

enum { LS_COLUMNS = 80 };

/* Appends the words of text, with a line end behind them: the line so far has `at` columns, each
 * further one begins with `indent` spaces. A word that is longer than a line has one of its own.
 * Spaces and line ends of the text only part words. */
void ls_buf_wrap(ls_buf *, const char *text, int at, int indent);

#endif
