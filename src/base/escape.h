/* escape.h - text of unknown origin, made safe to show on a terminal.
 *
 * Names of files, tensors and keys, values of configs, and what peers send may have control
 * characters in them: escape sequences that change the terminal, line ends that forge a line,
 * marks that turn the order of the characters round. Everything that is written for people goes
 * through here: ls_fail(), ls_log() and ls_print() call it, so that no caller has to.
 *
 * What is escaped: C0 controls and DEL; C1 controls, as UTF-8 and as single bytes; every byte that
 * is not UTF-8; marks of direction (U+061C, U+200E, U+200F, U+202A to U+202E, U+2066 to U+2069);
 * the line and paragraph separators (U+2028, U+2029). A backslash stays as it is, so that
 * escaping twice is escaping once.
 */
#ifndef LS_BASE_ESCAPE_H
#define LS_BASE_ESCAPE_H

#include "base/mem.h"

typedef enum ls_escape_kind {
    LS_ESCAPE_LINE, /* a message of one line: \n, \t, \x1b, \u202e */
    LS_ESCAPE_TEXT, /* lines: line ends and tabs stay */
    LS_ESCAPE_JSON  /* as LS_ESCAPE_TEXT, and JSON stays JSON: \u001b. The text is UTF-8. */
} ls_escape_kind;

/* Writes in [n] to out [room], and a 0 behind it; what does not fit is left out, from a whole
 * character on. Returns the length of what was written. room is at least 1. */
size_t ls_escape(ls_escape_kind, const char *in, size_t n, char *out, size_t room);

/* Appends it. */
void ls_buf_escape(ls_buf *, ls_escape_kind, const char *in, size_t n);

#endif
