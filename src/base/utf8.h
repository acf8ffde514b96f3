/* utf8.h - decodes UTF-8 text, one character at a time; recognizes texts in other encodings. */
#ifndef LS_BASE_UTF8_H
#define LS_BASE_UTF8_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "base/mem.h"

/* Returns the length of the character at s [n], with its code point in *point_p, or 0 if there is
 * no valid one: overlong forms, surrogates and code points above U+10FFFF are not. Source: RFC
 * 3629. */
size_t ls_utf8_decode(const char *s, size_t n, uint32_t *point_p);

/* True if all of s [n] is valid UTF-8. */
bool ls_utf8_is_valid(const char *s, size_t n);

/* The bytes of a byte order mark (U+FEFF) with which s [n] begins: 3 or 0. It is no part of the
 * text. */
size_t ls_utf8_mark(const char *s, size_t n);

/* "UTF-16LE", "UTF-32BE", ... (names that iconv knows): the encoding of a text whose first bytes
 * are s [n], by its byte order mark or by where it has zero bytes. NULL: none of these. */
const char *ls_utf8_other(const char *s, size_t n);

/* LS_EINVAL: s [n], the text of `what` (a path; "": the caller names it), is not UTF-8. The message
 * names the encoding that the text has, or the first byte that is wrong. */
ls_status ls_utf8_check(const char *s, size_t n, const char *what, ls_error *);

/* Checks the first bytes alone (ls_utf8_other()), for files whose other bytes may be of any
 * encoding with ASCII characters. */
ls_status ls_utf8_check_beginning(const char *s, size_t n, const char *what, ls_error *);

/* The length of s [n] without an incomplete character at its end. */
size_t ls_utf8_complete(const char *s, size_t n);

/* Appends the bytes s [n] as UTF-8: U+FFFD for each that is of no character, and for NUL. */
void ls_utf8_put(ls_buf *, const char *s, size_t n);

#endif
