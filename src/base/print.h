/* print.h - text for people, on standard output.
 *
 * Text is escaped (escape.h), since names in it may come from a file, the command line or a peer. A
 * line break in a name would forge a line: ls_print() has those of its format alone. In the text of
 * ls_print_text() they stay: append names to it by ls_buf_put() or ls_buf_escape(). Output for
 * programs alone (JSON, a man page, the text that a model generates) is not written here.
 *
 * The program flushes standard output when it ends, and reports a failure to write. Any thread.
 */
#ifndef LS_BASE_PRINT_H
#define LS_BASE_PRINT_H

#include "base/highlight.h"
#include "base/json.h"
#include "base/mem.h"

void ls_print(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
/* A paragraph, wrapped to lines of at most 80 columns (wrap.h) and followed by a line break. */
void ls_print_wrapped(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
void ls_print_text(const char *text, size_t nbytes);
/* Prints a text, in which parts stand out. */
void ls_print_highlighted(ls_highlight *, const char *text, size_t nbytes);
/* Large text of the program itself, with no names from outside: not escaped. */
void ls_print_own(const char *text, size_t nbytes);

/* One line, with no control character but the line break at its end. Frees it. */
void ls_print_json(ls_json *);

#endif
