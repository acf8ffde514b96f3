/* lines.h - reads the lines of a file, forwards or backwards, piece by piece: files of any size in
 * little memory. The lines of a text in memory. */
#ifndef LS_BASE_LINES_H
#define LS_BASE_LINES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

enum { LS_LONGEST_LINE = 64 << 10 };

typedef struct ls_lines ls_lines;

typedef struct ls_line {
    const char *text; /* [nbytes] without the line break; valid until the next call */
    size_t nbytes;
    uint64_t at;    /* its offset in the file */
    int64_t number; /* from 1; 0 if the file is read from its end */
    bool whole;     /* it ends in a line break, which the last line may lack */
    bool too_long;  /* longer than LS_LONGEST_LINE: text is not set */
} ls_line;

/* LS_EIO: the file can't be opened or read. The caller frees *l_p with ls_lines_close(). */
ls_status ls_lines_open(const char *path, bool from_end, ls_lines **l_p, ls_error *);
void ls_lines_close(ls_lines *); /* NULL is allowed */

/* Bytes of the file when it was opened. */
uint64_t ls_lines_size(const ls_lines *);
/* Backwards: lines that begin before this offset are not read. */
void ls_lines_stop_at(ls_lines *, uint64_t at);

/* *there_p: true if there is another line, which is then in *line_p. Holes of sparse files are
 * skipped. */
ls_status ls_lines_next(ls_lines *, ls_line *line_p, bool *there_p, ls_error *);

/* Cuts the file behind the last line for which stays() is true. Does nothing if there is no such
 * file. */
ls_status ls_lines_cut(const char *path, bool (*stays)(void *arg, const ls_line *), void *arg,
                       ls_error *);

/* The first line of the text at *text, without its end, which becomes 0; *text is moved behind it.
 * A line ends in LF, CR LF or CR. NULL: the text has no more lines. */
char *ls_lines_split(char **text);

#endif
