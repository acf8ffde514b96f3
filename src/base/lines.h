/* lines.h - the lines of a file, from its beginning or from its end, in pieces: files of any size
 * in little memory. */
#ifndef LS_BASE_LINES_H
#define LS_BASE_LINES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

enum { LS_LONGEST_LINE = 64 << 10 };

typedef struct ls_lines ls_lines;

typedef struct ls_line {
    const char *text; /* [nbytes] without the line's end; valid until the next call */
    size_t nbytes;
    uint64_t at;    /* its place in the file */
    int64_t number; /* from 1; 0 where the file is read from its end */
    bool whole;     /* it has an end: the last one may have none */
    bool too_long;  /* longer than LS_LONGEST_LINE: it has no text here */
} ls_line;

/* LS_EIO: can't be opened or read. The caller frees it with ls_lines_close(). */
ls_status ls_lines_open(const char *path, bool from_end, ls_lines **l_p, ls_error *);
void ls_lines_close(ls_lines *); /* NULL is fine */

/* Bytes of the file when it was opened. */
uint64_t ls_lines_size(const ls_lines *);
/* From the end: lines that begin before this place are not read. */
void ls_lines_stop_at(ls_lines *, uint64_t at);

/* *there_p: there is another line, and it is in *line_p. Holes of sparse files are passed over. */
ls_status ls_lines_next(ls_lines *, ls_line *line_p, bool *there_p, ls_error *);

#endif
