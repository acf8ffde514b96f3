/* print.h - text for people, on standard output.
 *
 * What a file, the command line or a peer has put into it is escaped (escape.h); line ends and
 * tabs stay. A name in a table, in which a line end would forge a row, is appended to the table by
 * ls_buf_escape() with LS_ESCAPE_LINE. What is for programs alone (JSON, a man page, the text of a
 * model) is not written by this.
 *
 * A failure to write is found by the end of the program, which flushes. Any thread.
 */
#ifndef LS_BASE_PRINT_H
#define LS_BASE_PRINT_H

#include "base/json.h"
#include "base/mem.h"
#include "base/print.h"

void ls_print(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
/* A paragraph: in lines of at most 80 columns (wrap.h), with a line end behind it. */
void ls_print_wrapped(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
void ls_print_text(const char *text, size_t nbytes);
/* Megabytes that have no text of others in them: not looked at. */
void ls_print_own(const char *text, size_t nbytes);

/* One line, with no control character in it but the line's end. */
void ls_print_json(const ls_json *);

#endif
