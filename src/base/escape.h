/* escape.h - makes text of unknown origin safe to show on a terminal.
 *
 * Names of files, tensors and keys, values in configs and messages from peers may contain control
 * characters: escape sequences that change the terminal, line breaks that forge a line, marks that
 * reverse the order of characters. All text for people is escaped here: ls_fail(), ls_log() and
 * ls_print() do it, so that no caller has to.
 *
 * These are escaped:
 *  - C0 controls and DEL;
 *  - C1 controls, as UTF-8 and as single bytes;
 *  - every byte that is not UTF-8;
 *  - marks of direction (U+061C, U+200E, U+200F, U+202A to U+202E, U+2066 to U+2069);
 *  - the line and paragraph separators (U+2028, U+2029).
 * A backslash is not, so that text that is escaped twice is the same as text that is escaped once.
 */
#ifndef LS_BASE_ESCAPE_H
#define LS_BASE_ESCAPE_H

#include <stdarg.h>

#include "base/mem.h"

typedef enum ls_escape_kind {
    LS_ESCAPE_LINE, /* a message of one line: \n, \t, \x1b, \u202e */
    LS_ESCAPE_TEXT, /* several lines: line breaks and tabs stay */
    LS_ESCAPE_JSON  /* as LS_ESCAPE_TEXT, by escapes that JSON allows: \u001b. The text is UTF-8. */
} ls_escape_kind;

/* Writes in [n], escaped, to out [room], followed by a 0. Text that does not fit is cut off between
 * characters. Returns the length without the 0. room is at least 1. */
size_t ls_escape(ls_escape_kind, const char *in, size_t n, char *out, size_t room);

/* Appends in [n], escaped, to a buffer. */
void ls_buf_escape(ls_buf *, ls_escape_kind, const char *in, size_t n);

/* Appends as ls_buf_printf() does, each text (%s) escaped as a part of a line: only the format has
 * line breaks and tabs. The conversions are those of numbers, %s, %c, %p and %%. */
void ls_buf_put(ls_buf *, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void ls_buf_vput(ls_buf *, const char *fmt, va_list) __attribute__((format(printf, 2, 0)));

#endif
